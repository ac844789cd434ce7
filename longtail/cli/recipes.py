"""`longtail recipes`: all recipes, or the parameters of one."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from longtail.cli.options import command

EXAMPLES = """
longtail recipes
longtail recipes neighbours      # its parameters
"""


def add(commands: Any) -> None:
    """Options of `recipes`."""
    parser = command(commands, "recipes", "list all recipes, or the parameters of one", EXAMPLES)
    parser.add_argument("name", metavar="RECIPE", nargs="?", help="show the parameters of this recipe")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")


def run(args: argparse.Namespace) -> None:
    """Show the table of recipes, or one of them."""
    from longtail.cli.show import console, dump, table
    from longtail.core.parameters import describe_type
    from longtail.core.recipe import recipes
    from longtail.train.recipe import TrainedRecipe

    if args.name is None:
        show_all(args)
        return
    chosen = recipes[args.name]
    shared = {*TrainedRecipe.names()}
    parameters = [
        {"name": p.name, "default": p.default, "type": describe_type(p.type), "help": p.help}
        for p in sorted(chosen.listed(), key=lambda p: p.name in shared)  # parameters that all recipes have come last
    ]
    if args.json:
        print(dump(parameters))  # noqa: T201
        return
    out = console()
    offer = recipes.offer(args.name)
    package = "" if offer is None else f" From the package {offer}."
    out.print(f"{chosen.name}: {chosen.title}. Paper: {chosen.paper}.{package}\n", markup=False)
    out.print(unwrapped(chosen.__doc__ or "") + "\n", markup=False)
    rows = [[p["name"], str(p["default"]), p["type"], p["help"]] for p in parameters]
    out.print(table(["--set", "default", "is", "meaning"], rows) if rows else "This recipe has no parameters.")
    for preset, settings in chosen.presets.items():
        shown = " ".join(f"{key}={value}" for key, value in settings.items())
        out.print(f"--preset {preset}: {shown}", markup=False)


def show_all(args: argparse.Namespace) -> None:
    """The table of all recipes. One of another package that does not work is listed with its error."""
    from longtail.cli.show import console, dump, table
    from longtail.core.recipe import recipes

    rows = [row_of(name) for name in recipes]
    if args.json:
        print(dump(rows))  # noqa: T201
        return
    columns = ["recipe", "what it is", "paper", "needs"]
    cells = [[r["name"], r["error"] or r["title"], r["paper"] or "–", ", ".join(r["needs"]) or "–"] for r in rows]
    if any(row["package"] for row in rows):
        columns.append("package")
        cells = [[*shown, row["package"] or "longtail"] for shown, row in zip(cells, rows, strict=True)]
    console().print(table(columns, cells))


def row_of(name: str) -> dict[str, Any]:
    """What the list says of one recipe. To know its title, the package that has it is imported."""
    from longtail.core.errors import PackageError
    from longtail.core.recipe import recipes

    row: dict[str, Any] = {"name": name, "title": None, "paper": None, "needs": [], "presets": {}}
    row |= {"package": " and ".join(map(str, recipes.offers().get(name, []))) or None, "error": None}
    try:
        found = recipes[name]
    except PackageError as error:
        return row | {"error": str(error)}
    return row | {"title": found.title, "paper": found.paper, "needs": list(found.needs), "presets": found.presets}


def unwrapped(docstring: str) -> str:
    """The paragraphs of a docstring, each on one line, so that they fit any width."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(docstring).split("\n\n"))
