"""`longtail ensemble`: put trained models together."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from longtail.cli.options import (
    add_data_options,
    add_seed,
    check_out,
    command,
    parse_settings,
    read_data,
)
from longtail.core.errors import DataError, ParameterError

EXAMPLES = """
longtail ensemble linear-model neighbours-model --out both                      # the mean of comparable scores
longtail ensemble linear-model neighbours-model --weights 0.8,0.2 --out both
longtail ensemble linear-model dual-model --on debian-related --out both        # what is best on points new to them
longtail ensemble linear-model dual-model --fuse stack --on my-folder --part dev --out both
"""


def add(commands: Any) -> None:
    """Options of `ensemble`."""
    parser = command(
        commands,
        "ensemble",
        "put trained models together as one",
        EXAMPLES,
        "Put models that are trained already together as one model. Their labels are joined by key. With --on, weights "
        "or a stack are fitted on points that no model was trained on; without it, the mean of comparable scores or of "
        "ranks is taken (docs/ensemble.md).",
    )
    parser.add_argument("models", metavar="MODEL", nargs="+", help="folders made by `longtail train`")
    parser.add_argument("--out", metavar="OUT", required=True, help="folder for the ensemble")
    parser.add_argument("--overwrite", action="store_true", help="replace the model in that folder")
    parser.add_argument(
        "--fuse", metavar="HOW", help="auto, stack, weights, mean or rank (default: auto; without --on mean)"
    )
    parser.add_argument("--weights", metavar="W,W", help="weights of the models, in their order")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a setting, such as depth=100")
    parser.add_argument("--on", metavar="DATA", dest="data", help="a corpus to fit on, which no model was trained on")
    parser.add_argument(
        "--part", choices=("train", "dev", "test"), help="part of it to fit on (default: dev, else test)"
    )
    add_seed(parser, "the folds of cross-fitting")
    add_data_options(parser)


def run(args: argparse.Namespace) -> None:
    """Load the models, join them, save the ensemble."""
    from longtail.cli.show import console
    from longtail.cli.train import scores_of_training
    from longtail.core.recipe import recipe
    from longtail.ensemble.join import join_models
    from longtail.store import load

    check_out(args)
    out = Path(args.out).resolve()
    if any(Path(folder).resolve() == out for folder in args.models):
        raise ParameterError(f"{args.out} is one of the models; choose another folder for the ensemble")
    chosen: Any = recipe("ensemble", **parse_settings(args.set) | ({} if args.fuse is None else {"fuse": args.fuse}))
    models = [load(folder) for folder in args.models]
    data, labels = None, None
    if args.data is not None:
        corpus = read_data(args)
        name = args.part or ("dev" if corpus.dev is not None else "test")
        data, labels = dict(corpus.parts()).get(name), corpus.labels
        if data is None:
            raise DataError(f"{corpus.name!r} has no {name} part to fit on", fix="name another with --part")
    model = join_models(models, chosen, args.weights, data, labels, args.seed)
    model.save(args.out, overwrite=args.overwrite)
    if not args.quiet:
        scores_of_training(model, console())
        console().print(f'Saved in {args.out}. Try it:  longtail predict {args.out} "some text"', markup=False)
