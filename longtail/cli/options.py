"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any

from longtail.core.progress import Progress


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are laid out."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=32)


def command(
    commands: Any, name: str, summary: str, examples: str, description: str | None = None
) -> argparse.ArgumentParser:
    """A command's parser, with its examples at the end of `--help`, and the options every command has."""
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description or f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{lines}",
        formatter_class=HelpFormatter,
    )
    general = parser.add_argument_group("general")
    general.add_argument("--quiet", action="store_true", help="no progress, only warnings and errors")
    general.add_argument("--debug", action="store_true", help="show the traceback of an error")
    general.add_argument("--threads", type=int, metavar="N", help="default: what the machine allows")
    return parser


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """How to read DATA."""
    group = parser.add_argument_group("reading the data")
    group.add_argument("--format", metavar="NAME", help="force a format instead of looking (see docs/data.md)")
    group.add_argument("--text", metavar="FIELD", help="field or column of the text; several joined by commas")
    group.add_argument("--labels", metavar="FIELD", help="field or column of the labels")
    group.add_argument("--label-sep", metavar="SEP", help="what separates labels in one cell, as ';'")
    group.add_argument("--group-by", metavar="FIELD", help="points that share it stay on one side of a split")
    group.add_argument(
        "--on-bad-line",
        choices=("error", "skip"),
        default="error",
        help="stop at a bad line (default), or leave it out",
    )


def read_data(args: argparse.Namespace, *, test: bool = True) -> Any:
    """The corpus that the arguments name; its test part only where it is asked for."""
    from longtail.data.read import read

    return read(
        args.data,
        format=args.format,
        text=args.text,
        labels=args.labels,
        label_sep=args.label_sep,
        group_by=args.group_by,
        on_bad_line=args.on_bad_line,
        progress=progress(args),
        test=test,
    )


def progress(args: argparse.Namespace) -> Progress:
    """Bars, unless quiet."""
    return Progress(quiet=args.quiet)


def parse_ks(text: str) -> tuple[int, ...]:
    """ "1,3,5" as numbers."""
    try:
        ks = tuple(int(part) for part in text.split(","))
    except ValueError:
        ks = ()
    if not ks or min(ks) < 1:
        raise argparse.ArgumentTypeError(f"must be whole numbers of at least 1, as 1,3,5; got {text!r}")
    return ks
