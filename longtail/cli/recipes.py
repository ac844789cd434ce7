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
        found = {name: recipes[name] for name in recipes}
        if args.json:
            listed = [
                {"name": n, "title": r.title, "paper": r.paper, "needs": list(r.needs), "presets": r.presets}
                for n, r in found.items()
            ]
            print(dump(listed))  # noqa: T201
            return
        rows = [[name, r.title, r.paper, ", ".join(r.needs) or "–"] for name, r in found.items()]
        console().print(table(["recipe", "what it is", "paper", "needs"], rows))
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
    out.print(f"{chosen.name}: {chosen.title}. Paper: {chosen.paper}.\n", markup=False)
    out.print(unwrapped(chosen.__doc__ or "") + "\n", markup=False)
    rows = [[p["name"], str(p["default"]), p["type"], p["help"]] for p in parameters]
    out.print(table(["--set", "default", "is", "meaning"], rows) if rows else "This recipe has no parameters.")
    for preset, settings in chosen.presets.items():
        shown = " ".join(f"{key}={value}" for key, value in settings.items())
        out.print(f"--preset {preset}: {shown}", markup=False)


def unwrapped(docstring: str) -> str:
    """The paragraphs of a docstring, each on one line, so that they fit any width."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(docstring).split("\n\n"))
