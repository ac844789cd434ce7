"""`longtail memory`: add points to the memory of a trained model, remove them, or say how much it counts."""

from __future__ import annotations

import argparse
import gc
import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.cli.labels import edit_command
from longtail.cli.options import check_out, command
from longtail.core.errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    from longtail.dual.model import DualModel

log = logging.getLogger("longtail")
EXAMPLES = """
longtail memory add model corrections.jsonl   # {"text": "…", "labels": ["a", "b"], "key": "ticket-17"} on each line
longtail memory remove model ticket-17
longtail memory weigh model --share 0.8
"""
ADD_EXAMPLES = """
longtail memory add model corrections.jsonl   # {"text": "…", "labels": ["a", "b"], "key": "ticket-17"} on each line
longtail memory add model --text "a text" --label a --label b
longtail memory add model corrections.jsonl --share 0.8
"""
REMOVE_EXAMPLES = """
longtail memory remove model ticket-17 ticket-18
longtail memory remove model --text "the text of a point that was given no key"
"""
WEIGH_EXAMPLES = """
longtail memory weigh model --share 0.8            # of labels; remembered points have the rest
longtail memory weigh model --share 1              # leave the memory out
"""


def add(commands: Any) -> None:
    """Options of `memory` and its subcommands."""
    parser = command(
        commands,
        "memory",
        "correct a model by points that it remembers, without training",
        EXAMPLES,
        "A dual encoder can look up points beside its labels: texts near to a new one vote for their labels. Points "
        "are added and removed without training, and the model is replaced in one step. Texts are not stored "
        "(docs/dual.md).",
    )
    edits = parser.add_subparsers(dest="edit", metavar="EDIT", title="edits", required=True)
    adding = edit_command(edits, "add", "add points with their labels", ADD_EXAMPLES)
    adding.add_argument("file", metavar="FILE", nargs="?", help='JSON lines with "text", "labels" and perhaps "key"')
    adding.add_argument("--text", help="text of one point, instead of a file")
    adding.add_argument("--label", action="append", default=[], metavar="KEY", help="a label of that point; repeatable")
    adding.add_argument("--key", help="key of that point (default: its text)")
    removing = edit_command(edits, "remove", "remove points: nothing of them is kept", REMOVE_EXAMPLES)
    removing.add_argument("keys", metavar="KEY", nargs="*", help="key of a point")
    removing.add_argument("--text", action="append", default=[], help="text of a point without a key; repeatable")
    weighing = edit_command(edits, "weigh", "set how much the memory counts", WEIGH_EXAMPLES)
    for some in (adding, weighing):
        some.add_argument("--share", type=float, metavar="λ", help="share of labels, from 0 to 1; points have the rest")
    weighing.add_argument("--temperature", type=float, metavar="τ", help="lower: only the nearest count")
    weighing.add_argument("--neighbours", type=int, metavar="B", help="points and labels that are looked up")


def run(args: argparse.Namespace) -> None:
    """Load the model, change its memory, save it."""
    from longtail.store import describe, load, sweep_model

    if args.overwrite and args.out is None:
        raise ParameterError("--overwrite needs --out; without --out, MODEL itself is edited")
    check_out(args)
    began = describe(args.model)["generation"]
    model: Any = load(args.model)
    if not hasattr(model, "remember"):
        raise UnsupportedError(
            f"recipe {model.recipe.name!r} has no memory; dual encoders have one: unidec, depsl, ngame and others "
            "(longtail recipes)"
        )
    edited, done = {"add": added, "remove": removed, "weigh": weighed}[args.edit](model, args)
    if edited is model:
        log.warning("nothing to do: %s; the model was not changed", done)
    elif args.out is None:
        edited.save(args.model, replaces=began)  # refused if another process has edited the model meanwhile
    else:
        edited.save(args.out, overwrite=args.overwrite)
    size, share, changed = 0 if edited.memory is None else len(edited.memory), edited.lookup.share, edited is not model
    if args.edit == "remove" and args.out is None:
        del model, edited  # Windows deletes no files that are mapped
        gc.collect()
        sweep_model(args.model)  # an error if files with removed points, also of an earlier removal, cannot be deleted
    if changed:
        shown = f"{size:,} point{'s' * (size != 1)}"
        log.info("%s; %s remembered; saved in %s", done, shown, args.out or args.model)
    if changed and size and share == 1:
        log.warning("the memory has no weight in this model (share 1): longtail memory weigh MODEL --share 0.8")


def added(model: DualModel, args: argparse.Namespace) -> tuple[DualModel, str]:
    """The model with points of a file, or of --text, in its memory."""
    import numpy as np
    import scipy.sparse as sp

    from longtail.core.texts import Texts
    from longtail.data.parse.memory_points import read_memory_points

    if (args.file is None) == (args.text is None):
        raise ParameterError("give either a file of points, or one point with --text and --label")
    if args.file is not None:
        if args.label or args.key:
            raise ParameterError("--label and --key go with --text; a file contains the labels of its points")
        points = read_memory_points(Path(args.file), model.labels)
        edited, count = model.remember(*points), len(points.texts)
    else:
        if not args.label and args.key is None:
            raise ParameterError("a point needs a label: give --label KEY, as often as needed")
        columns = sorted({model.labels.index(key) for key in args.label})
        gone = [] if model.labels.removed is None else [i for i in columns if model.labels.removed[i]]
        if gone:
            key = model.labels.keys[gone[0]]
            raise ParameterError(
                f"label {key!r} was removed from the model; restore it first (longtail labels restore)"
            )
        ones = np.ones(len(columns), np.float32)
        row = sp.csr_matrix((ones, columns, [0, len(columns)]), shape=(1, len(model.labels)))
        keys = None if args.key is None else [args.key]
        edited, count = model.remember(Texts.of([args.text]), row, keys), 1
    if args.share is not None:
        edited = with_lookup(edited, share=args.share)
    return edited, f"{count:,} point(s) added"


def removed(model: DualModel, args: argparse.Namespace) -> tuple[DualModel, str]:
    """The model without some points."""
    keys = [*args.keys, *args.text]
    if not keys:
        raise ParameterError("remove needs the keys of points, or their texts with --text")
    edited, count = model.forget(keys)
    return (edited, f"{count:,} point(s) removed") if count else (model, "no point has one of these keys or texts")


def weighed(model: DualModel, args: argparse.Namespace) -> tuple[DualModel, str]:
    """The model with another weight of its memory."""
    if model.memory is None:
        raise ParameterError("this model has no memory yet; add points first (longtail memory add)")
    given = {name: getattr(args, name) for name in ("share", "temperature", "neighbours")}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        raise ParameterError("say what to set: --share, --temperature or --neighbours")
    edited = with_lookup(model, **given)
    if edited.lookup == model.lookup:
        return model, "the memory already has these settings"
    return edited, f"a lookup in the memory now has {edited.lookup} (the share is that of labels)"


def with_lookup(model: DualModel, **given: Any) -> DualModel:
    """The model whose memory counts as given."""
    lookup = model.lookup._replace(**given)
    if not (0 <= lookup.share <= 1 and 0 < lookup.temperature < math.inf and lookup.neighbours >= 1):
        raise ParameterError(f"a share is 0 to 1, a temperature above 0, neighbours at least 1; got {lookup}")
    return model.with_lookup(lookup)
