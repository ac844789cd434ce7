"""`longtail train`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from longtail.cli.options import add_data_options, command, progress, read_data
from longtail.core.errors import ParameterError, StoreError

log = logging.getLogger("longtail")
SHOWN = 10  # rows of the table that settings were chosen from
EXAMPLES = """
longtail train debian-related --out model
longtail train my-folder --recipe neighbours --set neighbours=50 --out model
longtail train tags.csv --text body --labels tags --label-sep ';' --out model
longtail train debian-related --recipe parabel --gandalf --out model              # label texts as training points
longtail train debian-related --augment gandalf-shrunk --set augment.shrink=10 --out model
longtail train debian-related --recipe inceptionxml --preset small --set epochs=3 --out model
longtail train debian-related --recipe decaf --budget 10m --out model             # then --set steps=N repeats it
longtail train debian-related --calibrate isotonic --cut-off f1 --out model      # probabilities, and only good labels
"""


def add(commands: Any) -> None:
    """Options of `train`."""
    parser = command(commands, "train", "train a model on a corpus", EXAMPLES)
    parser.add_argument("data", metavar="DATA", help="a folder, a file, or the name of a bundled corpus")
    parser.add_argument("--out", metavar="MODEL", help="folder to save the model in; without it only scores are shown")
    parser.add_argument("--overwrite", action="store_true", help="replace the model that is there")
    parser.add_argument("--recipe", metavar="R", default="auto", help="see `longtail recipes` (default: auto)")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="a parameter of the recipe; may be repeated"
    )
    parser.add_argument("--preset", metavar="P", help="settings that go together, as small (`longtail recipes R`)")
    parser.add_argument(
        "--augment",
        metavar="A",
        help="more training points, from label texts: self, gandalf, gandalf-shrunk, auto, … (docs/augment.md); "
        "short for --set augment=…",
    )
    parser.add_argument("--gandalf", action="store_true", help="short for --augment gandalf")
    parser.add_argument(
        "--calibrate", choices=("isotonic", "platt"), help="give probabilities; short for --set calibration=…"
    )
    parser.add_argument(
        "--cut-off",
        metavar="RULE",
        help="as many labels as are good, not k: f1, precision=0.8 or labels=5 (mean); short for --set cut_off=…",
    )
    parser.add_argument("--seed", type=int, default=0, help="everything random follows from it (default: 0)")
    parser.add_argument(
        "--budget",
        type=parse_time,
        metavar="TIME",
        help="wall clock after reading, as 90s, 10m, 2h; the number of steps it allows is measured, shown and saved",
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda, …")
    parser.add_argument("--resume", action="store_true", help="go on where a killed training stopped")
    parser.add_argument("--no-cache", action="store_true", help="make tokens and label graphs anew, and keep none")
    parser.add_argument("--train-on-dev", action="store_true", help="after the choices, train on the dev part too")
    add_data_options(parser)


def run(args: argparse.Namespace) -> None:
    """Read, train, save, show the validation scores."""
    from longtail.core.recipe import recipe
    from longtail.core.run import Run, is_first, resolve_threads
    from longtail.store.cache import without_cache

    made = recipe(args.recipe, preset=args.preset, **settings_of(args))
    circumstances = Run(
        folder=None if args.out is None else Path(args.out) / ".run",
        seed=args.seed,
        threads=resolve_threads(args.threads),
        device=args.device,
        budget=args.budget,
        resume=args.resume,
        train_on_dev=args.train_on_dev,
        progress=progress(args),
    )
    made.check_run(circumstances)
    check_out(args)
    with without_cache(args.no_cache):
        model = made.fit(read_data(args, test=False), circumstances)
    if not is_first():
        return  # the others have trained the same
    if args.out is not None:
        model.save(args.out, overwrite=args.overwrite)
    if not args.quiet:
        show(model, args)


def settings_of(args: argparse.Namespace) -> dict[str, str]:
    """The settings of `--set` and of the options that are short for one."""
    settings = parse_settings(args.set)
    if args.gandalf and args.augment not in (None, "gandalf"):
        raise ParameterError(f"--gandalf and --augment {args.augment} contradict each other; give one")
    short_for = (
        ("--calibrate", "calibration", args.calibrate),
        ("--cut-off", "cut_off", args.cut_off),
        (
            "--gandalf, so --augment" if args.gandalf else "--augment",
            "augment",
            "gandalf" if args.gandalf else args.augment,
        ),
    )
    for option, key, value in short_for:
        if value is not None and settings.setdefault(key, value) != value:
            raise ParameterError(f"{option} {value} and --set {key}={settings[key]} contradict each other; give one")
    return settings


def parse_settings(settings: list[str]) -> dict[str, str]:
    """KEY=VALUE pairs."""
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ParameterError(f"--set takes KEY=VALUE; got {setting!r}")
        parsed[key.strip()] = value.strip()
    return parsed


def check_out(args: argparse.Namespace) -> None:
    """Refuse a place where the model cannot go before hours are spent on training it."""
    from longtail.store import check_model_place

    if args.out is not None and check_model_place(args.out) and not args.overwrite:
        raise StoreError(f"{args.out} holds a model already; say --overwrite to replace it, or choose another folder")


def parse_time(text: str) -> float:
    """ "90s", "10m" or "2h" in seconds."""
    try:
        seconds = float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
    except (ValueError, KeyError, IndexError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a time as 90s, 10m or 2h; got {text!r}")
    return seconds


def show(model: Any, args: argparse.Namespace) -> None:
    """What was trained and how good it is."""
    from longtail.cli.show import calibration_table, console, cut_off_line, scores_table, table

    out = console()
    rows = model.about.get("chosen_from", [])
    if rows:
        best = sorted(rows, key=lambda row: -row["mean"])[:SHOWN]
        title = "Tried on the validation part" + (f": the best {SHOWN} of {len(rows)}" if len(rows) > SHOWN else "")
        out.print(table(list(best[0]), [list(row.values()) for row in best], title))
    settings = ", ".join(f"{key}={value}" for key, value in model.recipe.changed().items()) or "all defaults"
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
    if args.out is None:
        out.print("Not saved: say --out MODEL to keep it.")
    else:
        out.print(f'Saved in {args.out}. Try it:  longtail predict {args.out} "some text"', markup=False)
