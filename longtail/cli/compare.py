"""`longtail compare`."""

from __future__ import annotations

import argparse
from typing import Any

from longtail.cli.options import add_data_options, command, parse_ks, progress, read_data
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
        "Compare two models on one data set: differences B − A with 95 % intervals of a paired bootstrap over "
        "test points (coverage and macro measures: over labels).",
    )
    parser.add_argument("a", metavar="A", help="a model folder")
    parser.add_argument("b", metavar="B", help="another model folder")
    parser.add_argument("data", metavar="DATA", help="a folder, a file, or the name of a bundled corpus")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--metrics", metavar="M,M", help="only these, as P@1,PSP@5")
    parser.add_argument("--part", choices=("train", "dev", "test"), help="default: test, else dev, else all there is")
    parser.add_argument("--ks", type=parse_ks, metavar="K,K", help="cut-offs (default: 1,3,5)")
    parser.add_argument("--resamples", type=int, metavar="N", help="default: 10,000")
    parser.add_argument("--seed", type=int, default=0, help="of the resampling (default: 0)")
    add_data_options(parser)


def run(args: argparse.Namespace) -> None:
    """Predict with both, compare, show."""
    from longtail.cli.show import console, dump, table
    from longtail.evidence.score import part_of, score
    from longtail.metrics.bootstrap import RESAMPLES, compare
    from longtail.metrics.evaluate import KS
    from longtail.store import load

    corpus = read_data(args)
    name, data = part_of(corpus, args.part)
    ks = args.ks or KS
    a, b = (score(load(folder), corpus, args.part, ks, progress(args)) for folder in (args.a, args.b))
    if a.ranking.labels.keys != b.ranking.labels.keys:
        raise ParameterError("the two models have different label spaces; compare models trained on the same corpus")
    result = compare(
        a.ranking,
        b.ranking,
        a.data.Y,
        ks=ks,
        ignore=a.data.ignore,
        resamples=args.resamples or RESAMPLES,
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
    """The verdict in the words of the table."""
    return {"a ahead": "A ahead", "b ahead": "B ahead"}.get(word, word)
