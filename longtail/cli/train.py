"""`longtail train`: train a model and save it."""

from __future__ import annotations

import argparse
import logging
import shlex
from pathlib import Path
from typing import Any

from longtail.cli.options import (
    add_data,
    add_seed,
    check_out,
    command,
    parse_settings,
    parse_time,
    progress,
    read_data,
)
from longtail.core import defaults
from longtail.core.errors import ParameterError

log = logging.getLogger("longtail")
SHOWN = 10  # rows shown of the table of settings that were tried
EXAMPLES = """
longtail train debian-related --out model
longtail train debian-related --for speed --out model                             # one model, fast for single texts
longtail train debian-related --recipe ensemble --set members=xr-linear,neighbours --set xr-linear.trees=3 --out model
longtail train my-folder --recipe neighbours --set neighbours=50 --out model
longtail train tags.csv --text body --labels tags --label-sep ';' --out model
longtail train debian-related --recipe parabel --gandalf --out model              # label texts as training points
longtail train debian-related --augment gandalf-shrunk --set augment.shrink=10 --out model
longtail train debian-related --recipe inceptionxml --preset small --set epochs=3 --out model
longtail train debian-related --recipe decaf --budget 10m --out model             # then --set steps=N repeats it
longtail train debian-related --calibration isotonic --cut-off f1 --out model    # probabilities, and only good labels
"""


def add(commands: Any) -> None:
    """Options of `train`."""
    parser = command(commands, "train", "train a model on a corpus", EXAMPLES)
    parser.add_argument(
        "--out", metavar="MODEL", help="folder for the model; without it, scores are shown but nothing is saved"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the model in that folder")
    parser.add_argument(
        "--recipe",
        metavar="R",
        default=defaults.RECIPE,
        help=f"what to train; `longtail recipes` lists them (default: {defaults.RECIPE})",
    )
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="a parameter of the recipe; may be repeated"
    )
    parser.add_argument(
        "--preset", metavar="P", help="a named set of settings, for example small (`longtail recipes R` lists them)"
    )
    parser.add_argument(
        "--augment",
        metavar="A",
        help="add training points, mostly from label texts: self, gandalf, gandalf-shrunk, auto, … (docs/augment.md); "
        "short for --set augment=…",
    )
    parser.add_argument("--gandalf", action="store_true", help="short for --augment gandalf")
    parser.add_argument(
        "--calibration",
        metavar="METHOD",
        help="predict probabilities: isotonic or platt (docs/decide.md); short for --set calibration=…",
    )
    parser.add_argument(
        "--cut-off",
        metavar="RULE",
        help="how many labels a text gets: f1, precision=0.8 or labels=5 (on average); short for --set cut_off=…",
    )
    parser.add_argument(
        "--for",
        dest="aim",
        choices=("accuracy", "speed", "size"),
        help="what the default recipe chooses for (default: accuracy); short for --set aim=…",
    )
    add_seed(parser, "everything random")
    parser.add_argument(
        "--budget",
        type=parse_time,
        metavar="TIME",
        help="time limit after reading the data, for example 90s, 10m or 2h; the number of steps that fit into it is "
        "measured, shown and saved",
    )
    parser.add_argument(
        "--device", metavar="NAME", default=defaults.DEVICE, help=f"auto, cpu, cuda, … (default: {defaults.DEVICE})"
    )
    parser.add_argument("--resume", action="store_true", help="continue an interrupted training from its checkpoint")
    parser.add_argument(
        "--no-cache", action="store_true", help="compute tokens and label graphs again, and do not store them"
    )
    parser.add_argument("--train-on-dev", action="store_true", help="train the final model on the dev part as well")
    add_data(parser)


def run(args: argparse.Namespace) -> None:
    """Read the data, train, save, show the validation scores."""
    from longtail.core.recipe import recipe
    from longtail.core.run import Run, is_first, resolve_threads
    from longtail.store.cache import without_cache

    chosen = recipe(args.recipe, preset=args.preset, **recipe_settings(args))
    conditions = Run(
        folder=None if args.out is None else Path(args.out) / ".run",
        seed=args.seed,
        threads=resolve_threads(args.threads),
        device=args.device,
        budget=args.budget,
        resume=args.resume,
        train_on_dev=args.train_on_dev,
        progress=progress(args),
    )
    chosen.check_run(conditions)
    check_out(args)
    with without_cache(args.no_cache):
        model = chosen.fit(read_data(args, test=False), conditions)
    if not is_first():
        return  # several processes train one model together: only the first saves it
    if args.out is not None:
        model.save(args.out, overwrite=args.overwrite)
    if not args.quiet:
        show_training(model, args)


def recipe_settings(args: argparse.Namespace) -> dict[str, str]:
    """The settings of `--set`, and of the options that are short for one of them."""
    settings = parse_settings(args.set)
    if args.gandalf and args.augment not in (None, "gandalf"):
        raise ParameterError(f"--gandalf and --augment {args.augment} contradict each other; give only one")
    short_for = (
        ("--calibration", "calibration", args.calibration),
        ("--cut-off", "cut_off", args.cut_off),
        ("--for", "aim", args.aim),
        (
            "--gandalf, which is --augment" if args.gandalf else "--augment",
            "augment",
            "gandalf" if args.gandalf else args.augment,
        ),
    )
    for option, key, value in short_for:
        if value is not None and settings.setdefault(key, value) != value:
            raise ParameterError(
                f"{option} {value} and --set {key}={settings[key]} contradict each other; give only one"
            )
    return settings


def spelled_settings(recipe: Any) -> dict[str, Any]:
    """What differs from the defaults of a recipe, as short as it can be said."""
    found: dict[str, Any] = recipe.spelled_settings() if hasattr(recipe, "spelled_settings") else recipe.changed()
    return found


def repeat(model: Any, args: argparse.Namespace) -> str:
    """The command that trains the model again without choosing anything."""
    words = ["longtail", "train", str(args.data), "--recipe", model.recipe.name]
    for key, value in spelled_settings(model.recipe).items():
        words += ["--set", f"{key}={'none' if value is None else value}"]
    for option in ("format", "text", "labels", "label_sep", "group_by"):
        if getattr(args, option) is not None:
            words += [f"--{option.replace('_', '-')}", getattr(args, option)]
    words += ["--seed", str(model.about["seed"])] if model.about["seed"] else []
    return shlex.join(words)


def show_training(model: Any, args: argparse.Namespace) -> None:
    """Show what was trained and how good it is."""
    from longtail.cli.show import console

    out = console()
    scores_of_training(model, out)
    if model.recipe.name != args.recipe:
        out.print(f"The same again: {repeat(model, args)}", markup=False, soft_wrap=True)
    if args.out is None:
        out.print("The model was not saved; give --out MODEL to save it.")
    else:
        out.print(f'Saved in {args.out}. Try it:  longtail predict {args.out} "some text"', markup=False)


def scores_of_training(model: Any, out: Any) -> None:
    """Show what was tried, the recipe, and its scores on the validation part."""
    from longtail.cli.show import calibration_table, cut_off_line, scores_table, table

    rows = model.about.get("chosen_from", [])
    if rows:
        best = sorted(rows, key=lambda row: -row["mean"])[:SHOWN]
        title = "Tried on the validation part" + (f": the best {SHOWN} of {len(rows)}" if len(rows) > SHOWN else "")
        out.print(table(list(best[0]), [list(row.values()) for row in best], title))
    settings = ", ".join(f"{key}={value}" for key, value in spelled_settings(model.recipe).items()) or "all defaults"
    out.print(f"Recipe [bold]{model.recipe.name}[/bold] ({settings}), {model.about['seconds']:.1f} s")
    validation = model.about.get("validation")
    if validation:
        title = f"Validation: {validation['points']:,} points, {validation['source']}"
        wanted = ("P@", "nDCG@", "R@", "PSP@", "C@")
        out.print(scores_table({n: s for n, s in validation["scores"].items() if n.startswith(wanted)}, title))
    if "calibration" in model.about:
        out.print(calibration_table(model.about["calibration"]))
    if "cut_off" in model.about:
        out.print(cut_off_line(model.about["cut_off"]), markup=False)
