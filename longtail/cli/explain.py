"""`longtail explain`: the words that each suggested label is based on."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from longtail.cli.options import add_k, add_model, add_texts, command, parse_whole
from longtail.core.errors import ParameterError

EXAMPLES = """
longtail explain model "a text editor for programmers"
longtail explain model "a text editor" --label vim --terms 20     # why this label, or why not
longtail explain model notes.txt --json > reasons.jsonl           # complete, one line for each text
"""


def add(commands: Any) -> None:
    """Options of `explain`."""
    parser = command(
        commands,
        "explain",
        "show why labels are suggested, word by word",
        EXAMPLES,
        "Show why labels are suggested, word by word. The figures are exact: the contributions of words and the bias "
        "add up to the margin of the label's classifier, and the margins on the path through the tree give the score. "
        "Not all recipes can do this.",
    )
    add_model(parser)
    add_texts(parser)
    add_k(parser)
    parser.add_argument(
        "--label",
        metavar="KEY",
        action="append",
        help="explain this label, whether it is suggested or not; may be repeated",
    )
    parser.add_argument(
        "--terms", type=parse_whole, metavar="N", default=10, help="number of words shown for a label (default: 10)"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON for each text, with all words and steps")


def run(args: argparse.Namespace) -> None:
    """Explain the texts one by one."""
    from longtail.cli.predict import inputs
    from longtail.cli.reasons import explanation_page
    from longtail.cli.show import console, dump
    from longtail.core.how_many import check_k
    from longtail.core.texts import Texts
    from longtail.store import load

    if args.k is not None:
        check_k(args.k)
    if args.terms < 1:
        raise ParameterError(f"--terms must be a whole number of at least 1; got {args.terms}")
    model = load(args.model)
    out = console()
    for text in inputs(args):
        explanation = model.explain(Texts.of([text])[0], args.k, args.label)  # repairs texts that are not Unicode
        if args.json:
            sys.stdout.write(dump(explanation.to_json()) + "\n")
        else:
            out.print(explanation_page(explanation, args.terms))
