"""`longtail inspect`: what a corpus contains."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from longtail.cli.options import add_data, command, progress, read_data

EXAMPLES = """
longtail inspect debian-related
longtail inspect my-folder --html report.html
longtail inspect tags.csv --text body --labels tags --label-sep ';' --json
"""


def add(commands: Any) -> None:
    """Options of `inspect`."""
    parser = command(commands, "inspect", "show what a corpus contains: sizes, label frequencies, duplicates", EXAMPLES)
    parser.add_argument("--html", metavar="FILE", help="also write a page with plots, as one file")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables")
    add_data(parser)


def run(args: argparse.Namespace) -> None:
    """Read the corpus, compute its statistics, show them."""
    from longtail.augment.premise import premise_of
    from longtail.cli.show import console, dump
    from longtail.data.inspect.statistics import statistics_of
    from longtail.report.corpus_page import corpus_page
    from longtail.report.corpus_terminal import render
    from longtail.store import disk

    corpus = read_data(args)
    statistics, premise = statistics_of(corpus), premise_of(corpus, progress(args))
    if args.html:
        disk.write_atomically(Path(args.html), [corpus_page(statistics).encode()])
    if args.json:
        more = {} if premise is None else {"gandalf_premise": premise.to_json()}
        print(dump(statistics.to_json() | more))  # noqa: T201
    else:
        render(statistics, console())
        if premise is not None:
            console().print(f"\n{premise}", markup=False, highlight=False, soft_wrap=True)
    if args.html and not args.quiet and not args.json:
        console().print(f"Wrote {args.html}.", markup=False)
