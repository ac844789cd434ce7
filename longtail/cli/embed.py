"""`longtail embed`: write the vectors of texts or labels, for a vector database."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from longtail.cli.options import add_model, add_texts, command, progress
from longtail.core.defaults import HEADS
from longtail.core.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from longtail.core.labels import Labels
    from longtail.core.model import Model

log = logging.getLogger("longtail")
BATCH = 2048  # vectors that are made and written at a time
EXAMPLES = """
longtail embed model --labels --out labels.parquet               # key, text and vector of each label
longtail embed model notes.txt more.jsonl.gz --out texts.npy     # one row for each text, in order
cat notes.txt | longtail embed model --out texts.parquet --with-text
longtail embed model --labels --out labels.npy --head de         # of the label texts only, without classifiers
"""


def add(commands: Any) -> None:
    """Options of `embed`."""
    parser = command(
        commands,
        "embed",
        "write vectors of texts or labels, for a vector database",
        EXAMPLES,
        "Write the vectors of texts, or those of all labels, to a Parquet or npy file. The inner product of a text's "
        "vector and a label's is the score that the model gives the label. Texts are arguments, files or standard "
        "input, as in `longtail predict`. Only recipes that compare texts with label texts have such vectors.",
    )
    add_model(parser)
    add_texts(parser)
    parser.add_argument("--labels", action="store_true", help="write the vectors of the labels, not those of texts")
    parser.add_argument("--out", metavar="FILE", required=True, help="file to write; ends in .parquet or .npy")
    parser.add_argument(
        "--head",
        choices=HEADS,
        help="vectors for comparing texts (de), for classifiers (clf), or both side by side; default: those that the "
        "model's own predictions use, with the texts' scaled by the weights of the heads",
    )
    parser.add_argument("--with-text", action="store_true", help="Parquet: also write each text")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def run(args: argparse.Namespace) -> None:
    """Check what was asked for, then write the vectors."""
    from longtail.store import disk, load

    out = Path(args.out)
    check_usage(args, out)
    model = load(args.model)
    width = model.label_embeddings(args.head).shape[1]  # refuses models without vectors before texts are read
    if getattr(model, "memory", None) is not None:
        log.warning("this model also looks up remembered points; these are not in the vectors, only labels are")
    disk.make_folders(out.parent)
    write = write_labels if args.labels else write_texts
    rows = write(model, out, width, args)
    log.info("wrote %s vector(s) of %s dimensions to %s", f"{rows:,}", f"{width:,}", out)


def check_usage(args: argparse.Namespace, out: Path) -> None:
    """Refuse options that do not go together, and places where something is already."""
    from longtail.data.writers.vectors import writer_of

    writer_of(out)
    if args.labels and (args.inputs or args.with_text):
        raise ParameterError("--labels writes the vectors of all labels; leave out texts, files and --with-text")
    if args.with_text and out.suffix != ".parquet":
        raise ParameterError(f"--with-text needs a file that ends in .parquet; got {out.name}")
    for path in (out, keys_place(out)) if args.labels and out.suffix == ".npy" else (out,):
        if path.is_dir():
            raise StoreError(f"{path}: is a folder; give the name of a file")
        if path.exists() and not args.overwrite:
            raise StoreError(f"{path}: already exists; use --overwrite to replace it, or choose another name")


def write_texts(model: Model, out: Path, width: int, args: argparse.Namespace) -> int:
    """Write the vectors of texts as they are read; returns how many there are."""
    from longtail.cli.predict import inputs
    from longtail.core.texts import Texts
    from longtail.data.writers.vectors import vector_file

    texts = inputs(args)
    kinds = {"row": "int"} | ({"text": "text"} if args.with_text else {})
    with vector_file(out, width, kinds if out.suffix == ".parquet" else None) as file:
        with progress(args).bar("embedding", unit="texts") as bar:
            while batch := list(Texts.of(islice(texts, BATCH))):  # repairs arguments that are not Unicode
                rows = range(file.rows, file.rows + len(batch))
                file.add(model.embed(batch, args.head), row=rows, text=batch)
                bar.advance(len(batch))
        return file.rows


def write_labels(model: Model, out: Path, width: int, args: argparse.Namespace) -> int:
    """Write the vectors of the labels that are not removed; returns how many there are."""
    from longtail.data.writers.vectors import vector_file
    from longtail.store import disk

    if out.suffix == ".parquet":
        kinds = {"key": "text"} | ({"text": "text"} if model.labels.has_text else {})
        with vector_file(out, width, kinds) as file:
            fill(file, model, args)
            return file.rows
    beside = keys_place(out)
    with disk.drafted(beside) as keys, vector_file(out, width) as file:
        disk.write_file(keys, key_lines(model.labels))
        fill(file, model, args)
    log.info("row i of %s is the label on line i + 1 of %s; removed labels are in neither", out, beside)
    return file.rows


def fill(file: Any, model: Model, args: argparse.Namespace) -> None:
    """Write the labels block by block: the vectors of a loaded model are on disk."""
    vectors, labels = model.label_embeddings(args.head), model.labels
    with progress(args).bar("writing labels", total=len(labels), unit="labels") as bar:
        for kept in blocks(labels):
            texts = {} if labels.texts is None else {"text": list(labels.texts[kept])}
            file.add(vectors[kept], key=list(labels.keys[kept]), **texts)
            bar.advance(len(kept))


def blocks(labels: Labels) -> Iterator[Any]:
    """The indices of the labels that are not removed, some at a time."""
    import numpy as np

    kept = np.arange(len(labels)) if labels.removed is None else np.flatnonzero(~labels.removed)
    for first in range(0, len(kept), BATCH):
        yield kept[first : first + BATCH]


def key_lines(labels: Labels) -> Iterator[bytes]:
    """A line of JSON for each label that is not removed. Plain lines would not do: a key may contain a line break."""
    for kept in blocks(labels):
        yield b"".join(orjson.dumps({"key": key}) + b"\n" for key in labels.keys[kept])


def keys_place(out: Path) -> Path:
    """The file of keys that goes with an npy file of labels: labels.npy and labels.keys.jsonl."""
    return out.with_name(f"{out.stem}.keys.jsonl")
