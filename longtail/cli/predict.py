"""`longtail predict`: suggest labels for texts."""

from __future__ import annotations

import argparse
import gzip
import io
import logging
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import orjson

from longtail.cli.options import add_k, add_model, add_texts, command, parse_number, progress
from longtail.core.errors import DataError, ParameterError

log = logging.getLogger("longtail")
BATCH = 2048
LIKE_A_FILE = re.compile(r"\S+\.(txt|jsonl?|ndjson|csv|tsv|parquet)(\.gz)?|\S*/\S+")
TABLE = re.compile(r"\.(csv|tsv)(\.gz)?$|\.parquet$")
EXAMPLES = """
longtail predict model "a text editor for programmers" -k 5
longtail predict model notes.txt more.jsonl.gz > labels.jsonl     # one text on each line
cat notes.txt | longtail predict model -k 10 --threshold 0.2
longtail predict model "a text editor" --table                    # easier to read
longtail predict model "a text editor" --no-cut-off -k 10         # also labels below the model's cut-off
"""


def add(commands: Any) -> None:
    """Options of `predict`."""
    parser = command(
        commands,
        "predict",
        "suggest labels for texts",
        EXAMPLES,
        "Suggest labels for texts. Texts are arguments, files (one text or one JSON object on each line; CSV, TSV, "
        "Parquet), or standard input. For each text, one line of JSON is printed.",
    )
    add_model(parser)
    add_texts(parser)
    add_k(parser)
    parser.add_argument(
        "--threshold",
        type=parse_number,
        metavar="S",
        help="leave out labels that score below S; replaces the model's cut-off",
    )
    parser.add_argument("--no-cut-off", action="store_true", help="ignore the model's cut-off: show the k best labels")
    parser.add_argument("--table", action="store_true", help="print tables instead of JSON lines")


def run(args: argparse.Namespace) -> None:
    """Predict in batches, so that memory does not grow with the number of texts."""
    from longtail.core.how_many import check_k, check_threshold
    from longtail.core.texts import Texts
    from longtail.store import load

    if args.k is not None:
        check_k(args.k)
    if args.threshold is not None:
        check_threshold(args.threshold)
    model = load(args.model)
    texts = inputs(args)
    with progress(args).bar("predicting", unit="texts") as bar:
        while batch := list(Texts.of(islice(texts, BATCH))):  # repairs arguments that are not Unicode
            ranking = model.predict(batch, args.k, cut_off=not args.no_cut_off, threshold=args.threshold)
            show = print_table if args.table else print_json
            show(batch, ranking)
            bar.advance(len(batch))


def print_json(batch: list[str], ranking: Any) -> None:
    """Print one line of JSON for each text."""
    lines = (
        orjson.dumps({"text": text, "labels": labels}) for text, labels in zip(batch, ranking.records(), strict=True)
    )
    sys.stdout.buffer.writelines(line + b"\n" for line in lines)
    sys.stdout.buffer.flush()


def print_table(batch: list[str], ranking: Any) -> None:
    """Print one table for each text."""
    from longtail.cli.show import console, table

    out = console()
    for text, labels in zip(batch, ranking.records(), strict=True):
        columns = ["label", *(["text"] if ranking.labels.has_text else [])]
        rows = [[f"{label[ranking.kind]:.3f}", *(label[column] for column in columns)] for label in labels]
        shown = text if len(text) < 100 else text[:100] + "…"
        out.print(table([ranking.kind, *columns], rows, shown))


def inputs(args: argparse.Namespace) -> Iterator[str]:
    """The texts of arguments, files and standard input, one by one."""
    if not args.inputs and sys.stdin.isatty():
        raise ParameterError("no text given: give texts or files as arguments, or send texts to standard input")
    for item in args.inputs or ["-"]:
        if item == "-":
            yield from stream_texts(sys.stdin.buffer, Path("standard input"), args.text)
        elif not args.literal and is_file(item):
            log.info("reading texts from the file %s", item)
            yield from file_texts(Path(item), args.text)
        else:
            if not args.literal and LIKE_A_FILE.fullmatch(item):
                log.warning("there is no file %s: it is used as a text (--literal suppresses this warning)", item)
            yield item


def is_file(item: str) -> bool:
    """Whether an argument is the name of a file; long texts cannot be one."""
    try:
        return len(item) < 4096 and "\n" not in item and Path(item).is_file()
    except (OSError, ValueError):
        return False


def file_texts(path: Path, field: str) -> Iterator[str]:
    """The texts of a file: the rows of a table, JSON lines, or plain lines."""
    from longtail.data.parse.lines import open_bytes

    if TABLE.search(path.name):
        yield from table_texts(path, field)
    else:
        with open_bytes(path) as stream:
            yield from stream_texts(stream, path, field)


def table_texts(path: Path, field: str) -> Iterator[str]:
    """The text column of a CSV, TSV or Parquet file."""
    from longtail.data.formats.table import texts_of

    yield from texts_of(path, field)


def stream_texts(stream: IO[bytes], path: Path, field: str) -> Iterator[str]:
    """The text of each line. Lines are JSON objects if the first one is; gzip is unpacked."""
    from longtail.data.parse.json_points import parse_object
    from longtail.data.parse.lines import GZIP_MAGIC, UTF8_BOM, decode_line

    reader: Any = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
    if reader.peek(2)[:2] == GZIP_MAGIC:
        reader = gzip.GzipFile(fileobj=reader)
    json = False
    for number, raw in enumerate(reader, 1):
        line = raw.rstrip(b"\r\n")
        if number == 1:
            line = line.removeprefix(UTF8_BOM)
            json = line.lstrip().startswith(b"{") and path.suffix != ".txt"
        if not json:
            yield decode_line(line, path, number)
        elif line.strip():
            point = parse_object(line, path, number)
            if not isinstance(point.get(field), str):
                fix = "give the name of the field with --text"
                raise DataError(
                    f"there is no text in the field {field!r}", where=path, line=number, found=point, fix=fix
                )
            yield point[field]
