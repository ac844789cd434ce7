"""`longtail labels`: add, remove, restore, rename and list the labels of a trained model."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from longtail.cli.options import add_model, check_out, command
from longtail.core.errors import ParameterError

if TYPE_CHECKING:
    from longtail.core.labels import Labels
    from longtail.core.model import Model

log = logging.getLogger("longtail")
EXAMPLES = """
longtail labels add model new-labels.jsonl         # {"key": "neovim", "text": "a fork of vim …"} on each line
longtail labels remove model nano pico
longtail labels rename model vim vim-classic
longtail labels list model --removed
"""
ADD_EXAMPLES = """
longtail labels add model new-labels.jsonl         # {"key": "neovim", "text": "a fork of vim …"} on each line
longtail labels add model --key neovim --text "a fork of vim that can be extended"
longtail labels add model new-labels.jsonl --out larger-model
"""
REMOVE_EXAMPLES = """
longtail labels remove model nano pico
longtail labels remove model --from old-keys.txt   # one key on each line
"""
RESTORE_EXAMPLES = """
longtail labels restore model nano
longtail labels restore model --from old-keys.txt
"""
RENAME_EXAMPLES = """
longtail labels rename model vim vim-classic
longtail labels rename model --from names.tsv      # OLD<tab>NEW on each line; or JSON lines with "old" and "new"
"""
LIST_EXAMPLES = """
longtail labels list model | head
longtail labels list model --removed
longtail labels list model --json > labels.jsonl   # key, text, training examples, whether it is removed
"""


def add(commands: Any) -> None:
    """Options of `labels` and its subcommands."""
    parser = command(
        commands,
        "labels",
        "add, remove, rename or list labels of a model without retraining",
        EXAMPLES,
        "Change the labels of a trained model without retraining. The model is replaced in one step: after a crash, "
        "the folder contains the old model or the new one. With --out, the new model is saved elsewhere. The "
        "indices of labels never change (docs/edit-labels.md).",
    )
    edits = parser.add_subparsers(dest="edit", metavar="EDIT", title="edits", required=True)
    adding = edit_command(edits, "add", "add labels by their texts", ADD_EXAMPLES)
    adding.add_argument("file", metavar="FILE", nargs="?", help='JSON lines with "key" and "text"')
    adding.add_argument("--key", help="key of one label, instead of a file")
    adding.add_argument("--text", help="text of that label")
    removing = edit_command(edits, "remove", "remove labels, so that they are never suggested again", REMOVE_EXAMPLES)
    restoring = edit_command(edits, "restore", "restore labels that were removed", RESTORE_EXAMPLES)
    for some in (removing, restoring):
        some.add_argument("keys", metavar="KEY", nargs="*", help="key of a label")
        some.add_argument("--from", metavar="FILE", dest="source", help="file with one key on each line")
    renaming = edit_command(edits, "rename", "give labels other keys", RENAME_EXAMPLES)
    renaming.add_argument("keys", metavar="OLD NEW", nargs="*", help="the key of a label, and its new key")
    renaming.add_argument("--from", metavar="FILE", dest="source", help="file with OLD<tab>NEW on each line")
    listing = command(edits, "list", "list the labels of a model", LIST_EXAMPLES)
    add_model(listing)
    listing.add_argument("--removed", action="store_true", help="list only labels that were removed")
    listing.add_argument("--json", action="store_true", help="JSON lines instead of tab-separated key and text")


def edit_command(edits: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    """The parser of an edit, with the options of all edits."""
    parser = command(edits, name, summary, examples)
    add_model(parser)
    parser.add_argument("--out", metavar="OTHER", help="save the new model in OTHER, and do not change MODEL")
    parser.add_argument("--overwrite", action="store_true", help="replace the model in OTHER")
    return parser


def run(args: argparse.Namespace) -> None:
    """Load the model, edit its labels, save it; or list them."""
    from longtail.store import describe, load

    if args.edit == "list":
        list_labels(load(args.model).labels, args)
        return
    if args.overwrite and args.out is None:
        raise ParameterError("--overwrite needs --out; without --out, MODEL itself is edited")
    check_out(args)
    began = describe(args.model)["generation"]
    model = load(args.model)
    edits: dict[str, Callable[[Labels, argparse.Namespace], tuple[Labels, int]]] = {
        "add": add_labels,
        "remove": remove_labels,
        "restore": restore_labels,
        "rename": rename_labels,
    }
    labels, count = edits[args.edit](model.labels, args)
    if not count:
        log.warning("nothing to do: the labels are already as requested; the model was not changed")
        return
    edited = model.edit_labels(labels)
    if args.out is None:
        edited.save(args.model, replaces=began)  # refused if another process has edited the model meanwhile
    else:
        edited.save(args.out, overwrite=args.overwrite)
    report_edit(edited, count, args)


def add_labels(labels: Labels, args: argparse.Namespace) -> tuple[Labels, int]:
    """The labels with those of a file, or the one of --key, added; and how many were added."""
    from longtail.data.parse.label_edits import read_new_labels

    if (args.file is None) == (args.key is None):
        raise ParameterError("give either a file of labels, or one label with --key and --text")
    if args.file is not None and args.text is not None:
        raise ParameterError("--text goes with --key; a file contains the texts of its labels")
    if args.file is not None:
        keys, texts = read_new_labels(Path(args.file), labels)
        return labels.add(keys, texts), len(keys)
    if not args.key:
        raise ParameterError("--key must not be empty")
    if labels.has_text and args.text is None:
        raise ParameterError("the labels of this model have texts; give the text of the new label with --text")
    return labels.add([args.key], [args.text] if labels.has_text else None), 1


def remove_labels(labels: Labels, args: argparse.Namespace) -> tuple[Labels, int]:
    """The labels with some of them marked as removed; and how many of these were not removed before."""
    after = labels.remove(keys_of(labels, args))
    return after, tombstones(after) - tombstones(labels)


def restore_labels(labels: Labels, args: argparse.Namespace) -> tuple[Labels, int]:
    """The labels with some of the removed ones restored; and how many were restored."""
    after = labels.restore(keys_of(labels, args))
    return after, tombstones(labels) - tombstones(after)


def rename_labels(labels: Labels, args: argparse.Namespace) -> tuple[Labels, int]:
    """The labels with some keys changed; and how many were changed."""
    from longtail.data.parse.label_edits import read_names

    if args.source is None and len(args.keys) != 2:
        raise ParameterError(f"rename takes OLD and NEW, or --from FILE; got {len(args.keys)} key(s)")
    if args.source is not None and args.keys:
        raise ParameterError("give either OLD and NEW, or a file with --from; not both")
    names = read_names(Path(args.source), labels) if args.source is not None else {args.keys[0]: args.keys[1]}
    if not all(names.values()):
        raise ParameterError("a key must not be empty")
    return labels.rename(names), sum(old != new for old, new in names.items())


def keys_of(labels: Labels, args: argparse.Namespace) -> list[str]:
    """The keys in the arguments, or in the file of --from."""
    from longtail.data.parse.label_edits import read_keys

    if bool(args.keys) == (args.source is not None):
        raise ParameterError(f"{args.edit} needs either the keys of labels, or a file of keys with --from FILE")
    return args.keys if args.source is None else read_keys(Path(args.source), labels)


def tombstones(labels: Labels) -> int:
    """The number of removed labels."""
    return 0 if labels.removed is None else int(labels.removed.sum())


def report_edit(model: Model, count: int, args: argparse.Namespace) -> None:
    """Log what was done."""
    done = {"add": "added", "remove": "removed", "restore": "restored", "rename": "renamed"}[args.edit]
    left = len(model.labels) - tombstones(model.labels)
    log.info(
        "%s label(s) %s; %s can be suggested; saved in %s", f"{count:,}", done, f"{left:,}", args.out or args.model
    )


def list_labels(labels: Labels, args: argparse.Namespace) -> None:
    """Print one line for each label: key and text, or JSON."""
    sys.stdout.buffer.writelines(label_lines(labels, args.removed, args.json))
    sys.stdout.buffer.flush()


def label_lines(labels: Labels, only_removed: bool, json: bool) -> Iterator[bytes]:
    """A line for each label that is not removed, or (`only_removed`) that is; in JSON for all labels by default."""
    texts = labels.texts if labels.texts is not None else ("" for _ in range(len(labels)))
    gone = [False] * len(labels) if labels.removed is None else labels.removed.tolist()
    for key, text, count, is_gone in zip(labels.keys, texts, labels.counts.tolist(), gone, strict=True):
        if json and (is_gone or not only_removed):
            own = {"text": text} if labels.has_text else {}
            yield orjson.dumps({"key": key, **own, "examples": count, "removed": is_gone}) + b"\n"
        elif not json and is_gone == only_removed:
            yield (f"{key}\t{' '.join(text.split())}" if labels.has_text else key).encode() + b"\n"
