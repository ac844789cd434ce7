"""`longtail convert`."""

from __future__ import annotations

import argparse
from typing import Any

from longtail.cli.options import add_data_options, command, progress, read_data

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
        "Write a corpus in another format. `native` is memory-mapped and reopens in milliseconds.",
    )
    parser.add_argument("data", metavar="DATA", help="a folder, a file, or the name of a bundled corpus")
    parser.add_argument("folder", metavar="FOLDER", help="where to write")
    parser.add_argument("--to", choices=("native", "jsonl", "repository"), required=True, help="the format")
    parser.add_argument("--overwrite", action="store_true", help="replace what is in the folder")
    add_data_options(parser)


def run(args: argparse.Namespace) -> None:
    """Read and write."""
    from longtail.data.write import write

    corpus = read_data(args)
    write(corpus, args.folder, to=args.to, overwrite=args.overwrite, progress=progress(args))
