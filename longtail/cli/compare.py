"""`longtail compare`: two models on the same data."""

from __future__ import annotations

import argparse
from typing import Any

from longtail.cli.options import add_data, add_scoring, add_seed, command, parse_whole, progress, read_data
from longtail.core import defaults
from longtail.core.errors import ParameterError

EXAMPLES = """
longtail compare model-a model-b debian-related
longtail compare model-a model-b debian-related --metrics P@1,PSP@5 --json
"""


def add(commands: Any) -> None:
    """Options of `compare`."""
    parser = command(
        commands,
        "compare",
        "compare two models by paired bootstrap",
        EXAMPLES,
        "Compare two models on one data set: differences B − A with 95 % intervals of a paired bootstrap over test "
        "points (over labels for coverage and macro measures).",
    )
    parser.add_argument("a", metavar="A", help="a model folder")
    parser.add_argument("b", metavar="B", help="another model folder")
    add_data(parser)
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--metrics", metavar="M,M", help="only these metrics, for example P@1,PSP@5 (default: all)")
    add_scoring(parser)
    parser.add_argument(
        "--resamples",
        type=parse_whole,
        metavar="N",
        default=defaults.RESAMPLES,
        help=f"number of bootstrap samples (default: {defaults.RESAMPLES:,})",
    )
    add_seed(parser, "the bootstrap")


def run(args: argparse.Namespace) -> None:
    """Predict with both models, compare, show."""
    from longtail.cli.show import console, dump, table
    from longtail.evidence.score import part_of, score
    from longtail.metrics.bootstrap import compare
    from longtail.store import load

    models = [load(folder) for folder in (args.a, args.b)]
    corpus = read_data(args)
    name, data = part_of(corpus, args.part)
    a, b = (score(model, corpus, args.part, args.ks, progress(args)) for model in models)
    if a.ranking.labels.keys != b.ranking.labels.keys:
        raise ParameterError(
            "the two models have different labels; compare models that were trained on the same corpus"
        )
    result = compare(
        a.ranking,
        b.ranking,
        a.data.Y,
        ks=args.ks,
        ignore=a.data.ignore,
        resamples=args.resamples,
        seed=args.seed,
        metrics=args.metrics.split(",") if args.metrics else None,
        progress=progress(args),
    )
    if args.json:
        print(dump(result.to_json()))  # noqa: T201
        return
    rows = [
        [r.metric, r.a, r.b, f"{r.difference:+.2f}", f"{r.low:+.2f} … {r.high:+.2f}", verdict(r.verdict)]
        for r in result.rows
    ]
    title = f"A = {args.a}, B = {args.b} on {corpus.name} ({name}: {len(data):,} points)"
    console().print(table(["metric", "A", "B", "B − A", "95 % interval", ""], rows, title))


def verdict(word: str) -> str:
    """The verdict as the table shows it."""
    return {"a ahead": "A ahead", "b ahead": "B ahead"}.get(word, word)
