"""`longtail labels`: add, remove, restore, rename and list the labels of a trained model."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from longtail.cli.options import command
from longtail.core.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from longtail.core.labels import Labels
    from longtail.core.model import Model

log = logging.getLogger("longtail")
EXAMPLES = """
longtail labels add model new-labels.jsonl         # {"key": "neovim", "text": "a fork of vim …"} a line
longtail labels remove model nano pico
longtail labels rename model vim vim-classic
longtail labels list model --removed
"""
ADD_EXAMPLES = """
longtail labels add model new-labels.jsonl         # {"key": "neovim", "text": "a fork of vim …"} a line
longtail labels add model --key neovim --text "a fork of vim that can be extended"
longtail labels add model new-labels.jsonl --out larger-model
"""
REMOVE_EXAMPLES = """
longtail labels remove model nano pico
longtail labels remove model --from old-keys.txt   # a key a line
"""
RESTORE_EXAMPLES = """
longtail labels restore model nano
longtail labels restore model --from old-keys.txt
"""
RENAME_EXAMPLES = """
longtail labels rename model vim vim-classic
longtail labels rename model --from names.tsv      # OLD<tab>NEW a line; or JSON lines with "old" and "new"
"""
LIST_EXAMPLES = """
longtail labels list model | head
longtail labels list model --removed
longtail labels list model --json > labels.jsonl   # key, text, training examples, whether it is removed
"""


def add(commands: Any) -> None:
    """Options of `labels` and its own commands."""
    parser = command(
        commands,
        "labels",
        "add, remove, rename or list labels of a model without retraining",
        EXAMPLES,
        "Change the labels of a trained model without retraining. The model is replaced in one step: what is on "
        "disk is the old one or the new one; --out writes elsewhere. Indices never move (docs/edit-labels.md).",
    )
    edits = parser.add_subparsers(dest="edit", metavar="EDIT", title="edits", required=True)
    adding = edit_command(edits, "add", "add labels by their texts", ADD_EXAMPLES)
    adding.add_argument("file", metavar="FILE", nargs="?", help='JSON lines with "key" and "text"')
    adding.add_argument("--key", help="of one label, instead of a file")
    adding.add_argument("--text", help="of that label")
    removing = edit_command(edits, "remove", "labels that are never to be suggested again", REMOVE_EXAMPLES)
    restoring = edit_command(edits, "restore", "undo a removal", RESTORE_EXAMPLES)
    for some in (removing, restoring):
        some.add_argument("keys", metavar="KEY", nargs="*", help="of a label")
        some.add_argument("--from", metavar="FILE", dest="source", help="file with a key a line")
    renaming = edit_command(edits, "rename", "give labels other keys", RENAME_EXAMPLES)
    renaming.add_argument("keys", metavar="OLD NEW", nargs="*", help="the key of a label, and its new one")
    renaming.add_argument("--from", metavar="FILE", dest="source", help="file with OLD<tab>NEW a line")
    listing = command(edits, "list", "list the labels of a model", LIST_EXAMPLES)
    listing.add_argument("model", metavar="MODEL", help="a folder made by `longtail train`")
    listing.add_argument("--removed", action="store_true", help="only those that were removed")
    listing.add_argument("--json", action="store_true", help="JSON lines instead of tab-separated key and text")


def edit_command(edits: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """The parser of an edit, with what all edits have."""
    parser = command(edits, name, summary, examples)
    parser.add_argument("model", metavar="MODEL", help="a folder made by `longtail train`")
    parser.add_argument("--out", metavar="OTHER", help="save there and leave MODEL as it is")
    parser.add_argument("--overwrite", action="store_true", help="replace the model that is in OTHER")
    return parser


def run(args: argparse.Namespace) -> None:
    """Load, edit, save; or list."""
    from longtail.store import check_model_place, describe, load

    if args.edit == "list":
        show(load(args.model).labels, args)
        return
    if args.overwrite and args.out is None:
        raise ParameterError("--overwrite goes with --out: without it the model itself is edited")
    if args.out is not None and check_model_place(args.out) and not args.overwrite:
        raise StoreError(f"{args.out} holds a model already; say --overwrite to replace it, or choose another folder")
    began = describe(args.model)["generation"]
    model = load(args.model)
    edits: dict[str, Callable[[Labels, argparse.Namespace], tuple[Labels, int]]] = {
        "add": added,
        "remove": removed,
        "restore": restored,
        "rename": renamed,
    }
    labels, count = edits[args.edit](model.labels, args)
    if not count:
        log.warning("nothing to do: the labels are as asked for already; the model is left as it is")
        return
    edited = model.edit_labels(labels)
    if args.out is None:
        edited.save(args.model, replaces=began)  # an edit that somebody else made in the meantime is not lost
    else:
        edited.save(args.out, overwrite=args.overwrite)
    tell(edited, count, args)


def added(labels: Labels, args: argparse.Namespace) -> tuple[Labels, int]:
    """With the labels of a file, or the one that options name."""
    from longtail.data.parse.label_edits import read_new_labels

    if (args.file is None) == (args.key is None):
        raise ParameterError("name a file of labels, or one label with --key and --text")
    if args.file is not None and args.text is not None:
        raise ParameterError("--text is that of --key; the labels of a file have theirs in it")
    if args.file is not None:
        keys, texts = read_new_labels(Path(args.file), labels)
        return labels.add(keys, texts), len(keys)
    if not args.key:
        raise ParameterError("--key must not be empty")
    if labels.has_text and args.text is None:
        raise ParameterError("the labels of this model have texts: give the new one its own with --text")
    return labels.add([args.key], [args.text] if labels.has_text else None), 1


def removed(labels: Labels, args: argparse.Namespace) -> tuple[Labels, int]:
    """With tombstones; those that are there already do not count."""
    after = labels.remove(keys_of(labels, args))
    return after, tombstones(after) - tombstones(labels)


def restored(labels: Labels, args: argparse.Namespace) -> tuple[Labels, int]:
    """Without some tombstones."""
    after = labels.restore(keys_of(labels, args))
    return after, tombstones(labels) - tombstones(after)


def renamed(labels: Labels, args: argparse.Namespace) -> tuple[Labels, int]:
    """With other keys."""
    from longtail.data.parse.label_edits import read_names

    if args.source is None and len(args.keys) != 2:
        raise ParameterError(f"rename takes OLD and NEW, or --from FILE; got {len(args.keys)} key(s)")
    if args.source is not None and args.keys:
        raise ParameterError("name OLD and NEW, or a file with --from, not both")
    names = read_names(Path(args.source), labels) if args.source is not None else {args.keys[0]: args.keys[1]}
    if not all(names.values()):
        raise ParameterError("a key must not be empty")
    return labels.rename(names), sum(old != new for old, new in names.items())


def keys_of(labels: Labels, args: argparse.Namespace) -> list[str]:
    """The keys that arguments or a file name."""
    from longtail.data.parse.label_edits import read_keys

    if bool(args.keys) == (args.source is not None):
        raise ParameterError(f"{args.edit} takes the keys of labels, or a file of them with --from FILE")
    return args.keys if args.source is None else read_keys(Path(args.source), labels)


def tombstones(labels: Labels) -> int:
    """How many labels are removed."""
    return 0 if labels.removed is None else int(labels.removed.sum())


def tell(model: Model, count: int, args: argparse.Namespace) -> None:
    """What was done."""
    done = {"add": "added", "remove": "removed", "restore": "restored", "rename": "renamed"}[args.edit]
    left = len(model.labels) - tombstones(model.labels)
    log.info(
        "%s label(s) %s; %s can be suggested; saved in %s", f"{count:,}", done, f"{left:,}", args.out or args.model
    )


def show(labels: Labels, args: argparse.Namespace) -> None:
    """The labels, a line each: key and text, or JSON."""
    sys.stdout.buffer.writelines(label_lines(labels, args.removed, args.json))
    sys.stdout.buffer.flush()


def label_lines(labels: Labels, only_removed: bool, json: bool) -> Iterator[bytes]:
    """Those that are left, or only those that were removed; JSON holds both unless told otherwise."""
    texts = labels.texts if labels.texts is not None else ("" for _ in range(len(labels)))
    gone = [False] * len(labels) if labels.removed is None else labels.removed.tolist()
    for key, text, count, is_gone in zip(labels.keys, texts, labels.counts.tolist(), gone, strict=True):
        if json and (is_gone or not only_removed):
            own = {"text": text} if labels.has_text else {}
            yield orjson.dumps({"key": key, **own, "examples": count, "removed": is_gone}) + b"\n"
        elif not json and is_gone == only_removed:
            yield (f"{key}\t{' '.join(text.split())}" if labels.has_text else key).encode() + b"\n"
