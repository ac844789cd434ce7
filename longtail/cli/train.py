"""`longtail train`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from longtail.cli.options import add_data_options, command, progress, read_data
from longtail.core.errors import ParameterError, StoreError

log = logging.getLogger("longtail")
EXAMPLES = """
longtail train debian-related --out model
longtail train my-folder --recipe neighbours --set neighbours=50 --out model
longtail train tags.csv --text body --labels tags --label-sep ';' --out model
"""


def add(commands: Any) -> None:
    """Options of `train`."""
    parser = command(commands, "train", "train a model on a corpus", EXAMPLES)
    parser.add_argument("data", metavar="DATA", help="a folder, a file, or the name of a bundled corpus")
    parser.add_argument("--out", metavar="MODEL", required=True, help="folder to save the model in")
    parser.add_argument("--overwrite", action="store_true", help="replace the model that is there")
    parser.add_argument("--recipe", metavar="R", default="auto", help="see `longtail recipes` (default: auto)")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="a parameter of the recipe; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=0, help="everything random follows from it (default: 0)")
    parser.add_argument("--train-on-dev", action="store_true", help="after the choices, train on the dev part too")
    add_data_options(parser)


def run(args: argparse.Namespace) -> None:
    """Read, train, save, show the validation scores."""
    from longtail.core.recipe import recipe
    from longtail.core.run import Run, resolve_threads

    made = recipe(args.recipe, **parse_settings(args.set))
    out = Path(args.out)
    check_place(out, args.overwrite)
    corpus = read_data(args)
    circumstances = Run(
        folder=out / ".run",
        seed=args.seed,
        threads=resolve_threads(args.threads),
        train_on_dev=args.train_on_dev,
        progress=progress(args),
    )
    model = made.fit(corpus, circumstances)
    model.save(out)
    if not args.quiet:
        show(model, args)


def parse_settings(settings: list[str]) -> dict[str, str]:
    """KEY=VALUE pairs."""
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ParameterError(f"--set takes KEY=VALUE; got {setting!r}")
        parsed[key.strip()] = value.strip()
    return parsed


def check_place(out: Path, overwrite: bool) -> None:
    """Refuse a place where a model cannot go before hours are spent on training it."""
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out} is a file; --out must name a folder")
    if (out / "model.json").exists() and not overwrite:
        raise StoreError(f"{out} holds a model already; say --overwrite to replace it, or choose another folder")
    if out.is_dir() and not (out / "model.json").exists() and any(p.name[0] != "." for p in out.iterdir()):
        raise StoreError(f"{out} holds other files and no model; choose a new or empty folder")


def show(model: Any, args: argparse.Namespace) -> None:
    """What was trained and how good it is."""
    from longtail.cli.show import console, scores_table, table

    out = console()
    rows = model.about.get("chosen_from", [])
    if rows:
        best = sorted(rows, key=lambda row: -row["mean"])[:5]
        out.print(table(list(best[0]), [list(row.values()) for row in best], f"Best of {len(rows)} settings tried"))
    settings = ", ".join(f"{key}={value}" for key, value in model.recipe.changed().items()) or "all defaults"
    out.print(f"Recipe [bold]{model.recipe.name}[/bold] ({settings}), {model.about['seconds']:.1f} s")
    validation = model.about.get("validation")
    if validation:
        title = f"Validation: {validation['points']:,} points, {validation['source']}"
        wanted = ("P@", "nDCG@", "R@", "PSP@", "C@")
        out.print(scores_table({n: s for n, s in validation["scores"].items() if n.startswith(wanted)}, title))
    out.print(f'Saved in {args.out}. Try it:  longtail predict {args.out} "some text"', markup=False)
