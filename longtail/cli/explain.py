"""`longtail explain`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from longtail.cli.options import command
from longtail.core.errors import ParameterError

EXAMPLES = """
longtail explain model "a text editor for programmers"
longtail explain model "a text editor" --label vim --terms 20     # why this label, or why not
longtail explain model notes.txt --json > reasons.jsonl           # complete, one line a text
"""


def add(commands: Any) -> None:
    """Options of `explain`."""
    parser = command(
        commands,
        "explain",
        "show which words carried each suggested label",
        EXAMPLES,
        "Show which words carried each suggested label. Exact: the contributions and the bias add up to the margin of "
        "the label's own classifier, and the margins down the path make the score. Recipes that cannot explain say so.",
    )
    parser.add_argument("model", metavar="MODEL", help="a folder made by `longtail train`")
    parser.add_argument("inputs", metavar="TEXT|FILE", nargs="*", help="a text, or a file; none or -: standard input")
    parser.add_argument("-k", type=int, default=5, help="how many labels at most (default: 5)")
    parser.add_argument(
        "--label", metavar="KEY", action="append", help="explain this label, suggested or not; may be repeated"
    )
    parser.add_argument("--terms", type=int, metavar="N", default=10, help="words shown for a label (default: 10)")
    parser.add_argument("--json", action="store_true", help="one JSON line a text, with every word of every step")
    parser.add_argument(
        "--text", metavar="FIELD", default="text", help="field or column of the text in files (default: text)"
    )
    parser.add_argument("--literal", action="store_true", help="arguments are texts even where a file has that name")


def run(args: argparse.Namespace) -> None:
    """Explain one text after the other."""
    from longtail.cli.predict import inputs
    from longtail.cli.reasons import page
    from longtail.cli.show import console, dump
    from longtail.core.ranking import check_k
    from longtail.core.texts import Texts
    from longtail.store import load

    check_k(args.k)
    if args.terms < 1:
        raise ParameterError(f"--terms must be a whole number of at least 1; got {args.terms}")
    model = load(args.model)
    out = console()
    for text in inputs(args):
        explanation = model.explain(Texts.of([text])[0], args.k, args.label)  # what is no Unicode is mended
        if args.json:
            sys.stdout.write(dump(explanation.to_json()) + "\n")
        else:
            out.print(page(explanation, args.terms))
