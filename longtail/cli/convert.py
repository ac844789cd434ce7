"""`longtail convert`: write a corpus in another format."""

from __future__ import annotations

import argparse
from typing import Any

from longtail.cli.options import add_data, command, progress, read_data
from longtail.core.defaults import WRITTEN_AS

EXAMPLES = """
longtail convert debian-related native-folder --to native
longtail convert tags.csv folder --to jsonl --text body --labels tags --label-sep ';'
"""


def add(commands: Any) -> None:
    """Options of `convert`."""
    parser = command(
        commands,
        "convert",
        "write a corpus in another format",
        EXAMPLES,
        "Write a corpus in another format. The format `native` is memory-mapped and opens in milliseconds.",
    )
    add_data(parser)
    parser.add_argument("folder", metavar="FOLDER", help="folder to write to")
    parser.add_argument(
        "--to", choices=("native", "jsonl", "repository"), default=WRITTEN_AS, help=f"format (default: {WRITTEN_AS})"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the corpus in that folder")


def run(args: argparse.Namespace) -> None:
    """Read the corpus and write it."""
    from longtail.data.write import write

    corpus = read_data(args)
    write(corpus, args.folder, to=args.to, overwrite=args.overwrite, progress=progress(args))
