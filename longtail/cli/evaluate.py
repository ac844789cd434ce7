"""`longtail evaluate`: the metrics of a model on a data set."""

from __future__ import annotations

import argparse
import logging
from dataclasses import asdict
from typing import Any

from longtail.cli.options import add_data, add_model, add_scoring, command, progress, read_data

log = logging.getLogger("longtail")
EXAMPLES = """
longtail evaluate model debian-related
longtail evaluate model debian-related --json
longtail evaluate model debian-related --by-frequency
longtail evaluate model debian-related --reliability     # are its probabilities right?
longtail evaluate model new-tags.csv --text body --labels tags --label-sep ';'
"""


def add(commands: Any) -> None:
    """Options of `evaluate`."""
    parser = command(
        commands,
        "evaluate",
        "score a model on a data set",
        EXAMPLES,
        "Score a model on a data set. Labels of model and data are matched by key. Filter pairs are removed from "
        "predictions and truth.",
    )
    add_model(parser)
    parser.add_argument("--json", action="store_true", help='flat JSON, in percent: {"P@1": 31.5, …}')
    parser.add_argument(
        "--by-frequency", action="store_true", help="also show five bins of labels by their frequency in training"
    )
    parser.add_argument(
        "--reliability", action="store_true", help="also compare probabilities with the share of labels that are true"
    )
    add_scoring(parser)
    add_data(parser)


def run(args: argparse.Namespace) -> None:
    """Load the model, read the data, predict, score."""
    from longtail.cli.show import console, cut_table, dump, reliability_table, scores_table, table
    from longtail.evidence.score import part_of, score
    from longtail.store import load

    model = load(args.model)
    corpus = read_data(args)
    name, _ = part_of(corpus, args.part)
    warn_if_seen(model, corpus, name)
    scored = score(model, corpus, args.part, args.ks, progress(args))
    report = scored.report(args.ks)
    scores, cut = report.scores | scored.calibration_scores(args.ks), scored.cut_scores()
    bins = reliability_of(scored, report.k) if args.reliability else ()
    if args.json:
        extra = {"by_frequency": report.to_json()["by_frequency"]} if args.by_frequency else {}
        extra |= {"reliability": [asdict(row) for row in bins]} if args.reliability else {}
        print(dump({key: round(value, 4) for key, value in (scores | cut).items()} | extra))  # noqa: T201
        return
    out = console()
    out.print(scores_table(scores, f"{model.recipe.name} on {corpus.name} ({name}: {report.points:,} points)"))
    if cut:
        out.print(cut_table(model.decision, cut))
    if args.reliability:
        out.print(reliability_table(bins, report.k))
    if args.by_frequency:
        if not report.by_frequency:
            log.warning("the model does not know how often labels occur in training: no bins by frequency are shown")
        columns = ["bin", "labels", "examples", f"part of P@{report.k}", "pairs", f"in top {report.k}"]
        rows = [
            [row.name, row.labels, row.span, row.contribution, row.pairs, row.recall] for row in report.by_frequency
        ]
        out.print(table(columns, rows, "By label frequency in training, five bins of equal volume"))


def reliability_of(scored: Any, k: int) -> Any:
    """The reliability bins of the k best labels; warns if the model gives scores and not probabilities."""
    from longtail.metrics import reliability

    if scored.ranking.kind != "probability":
        log.warning(
            "this model gives scores, not probabilities (train with --calibration isotonic for probabilities); scores "
            "below 0 count as 0, above 1 as 1"
        )
    return reliability(scored.ranking, scored.data.Y, k, ignore=scored.data.ignore)


def warn_if_seen(model: Any, corpus: Any, part: str) -> None:
    """Warn if the model was trained on these points."""
    seen = dict(corpus.parts())[part].digest_of_points() in model.about.get("trained_on", [])
    if seen:
        log.warning("the model was trained on this data: the scores say nothing about new texts")
