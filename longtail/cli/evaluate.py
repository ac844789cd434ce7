"""`longtail evaluate`."""

from __future__ import annotations

import argparse
import logging
from dataclasses import asdict
from typing import Any

from longtail.cli.options import add_data_options, command, parse_ks, progress, read_data

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
        "Score a model on a data set. Labels are joined by key; filter pairs are dropped from predictions and truth.",
    )
    parser.add_argument("model", metavar="MODEL", help="a folder made by `longtail train`")
    parser.add_argument("data", metavar="DATA", help="a folder, a file, or the name of a bundled corpus")
    parser.add_argument("--json", action="store_true", help='flat JSON, in percent: {"P@1": 31.5, …}')
    parser.add_argument(
        "--by-frequency", action="store_true", help="contribution and recall of five bins of label frequency"
    )
    parser.add_argument("--reliability", action="store_true", help="probabilities beside the share that is true")
    parser.add_argument("--part", choices=("train", "dev", "test"), help="default: test, else dev, else all there is")
    parser.add_argument("--ks", type=parse_ks, metavar="K,K", help="cut-offs (default: 1,3,5)")
    add_data_options(parser)


def run(args: argparse.Namespace) -> None:
    """Read, predict, score."""
    from longtail.cli.show import console, cut_table, dump, reliability_table, scores_table, table
    from longtail.evidence.score import part_of, score
    from longtail.metrics.evaluate import KS
    from longtail.store import load

    model = load(args.model)
    corpus = read_data(args)
    name, _ = part_of(corpus, args.part)
    warn_if_seen(model, corpus, name)
    ks = args.ks or KS
    scored = score(model, corpus, args.part, ks, progress(args))
    report = scored.report(ks)
    scores, cut = report.scores | scored.calibration_scores(ks), scored.cut_scores()
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
            log.warning("the training counts of the labels are not known: no bins by frequency")
        columns = ["bin", "labels", "examples", f"part of P@{report.k}", "pairs", f"in top {report.k}"]
        rows = [
            [row.name, row.labels, row.span, row.contribution, row.pairs, row.recall] for row in report.by_frequency
        ]
        out.print(table(columns, rows, "By label frequency in training, five bins of equal volume"))


def reliability_of(scored: Any, k: int) -> Any:
    """The bins of the k best labels; scores are no probabilities, and it is said."""
    from longtail.metrics import reliability

    if scored.ranking.kind != "probability":
        log.warning("this model gives scores, not probabilities (train --calibrate isotonic): they are cut to 0…1")
    return reliability(scored.ranking, scored.data.Y, k, ignore=scored.data.ignore)


def warn_if_seen(model: Any, corpus: Any, part: str) -> None:
    """Say so when the points are those the model was trained on."""
    seen = dict(corpus.parts())[part].digest_of_points() in model.about.get("trained_on", [])
    if seen:
        log.warning("this is the very data the model was trained on: the scores say nothing about new texts")
