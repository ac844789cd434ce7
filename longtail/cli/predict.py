"""`longtail predict`."""

from __future__ import annotations

import argparse
import gzip
import io
import logging
import math
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import orjson

from longtail.cli.options import command, progress
from longtail.core.errors import DataError, ParameterError

log = logging.getLogger("longtail")
BATCH = 2048
LIKE_A_FILE = re.compile(r"\S+\.(txt|jsonl?|ndjson|csv|tsv|parquet)(\.gz)?|\S*/\S+")
TABLE = re.compile(r"\.(csv|tsv)(\.gz)?$|\.parquet$")
EXAMPLES = """
longtail predict model "a text editor for programmers" -k 5
longtail predict model notes.txt more.jsonl.gz > labels.jsonl     # a text a line
cat notes.txt | longtail predict model -k 10 --threshold 0.2
longtail predict model "a text editor" --table                    # for people
longtail predict model "a text editor" --no-cut-off -k 10         # also what is below the model's cut-off
"""


def add(commands: Any) -> None:
    """Options of `predict`."""
    parser = command(
        commands,
        "predict",
        "suggest labels for texts",
        EXAMPLES,
        "Suggest labels for texts: arguments, files (a text or a JSON object a line, CSV, TSV, Parquet), or standard "
        "input. One JSON line comes out for each text.",
    )
    parser.add_argument("model", metavar="MODEL", help="a folder made by `longtail train`")
    parser.add_argument("inputs", metavar="TEXT|FILE", nargs="*", help="a text, or a file; none or -: standard input")
    parser.add_argument(
        "-k", type=int, help="how many labels at most (default: 5, or what is above the model's cut-off if it has one)"
    )
    parser.add_argument(
        "--threshold", type=float, metavar="S", help="leave out labels that score below S; replaces the model's cut-off"
    )
    parser.add_argument("--no-cut-off", action="store_true", help="also labels below the model's cut-off")
    parser.add_argument(
        "--text",
        metavar="FIELD",
        default="text",
        help="field or column of the text in JSON lines and tables (default: text)",
    )
    parser.add_argument("--literal", action="store_true", help="arguments are texts even where a file has that name")
    parser.add_argument("--table", action="store_true", help="a table for people instead of JSON lines")


def run(args: argparse.Namespace) -> None:
    """Predict in batches, so that any amount of text streams through."""
    from longtail.core.ranking import check_k
    from longtail.core.texts import Texts
    from longtail.store import load

    if args.k is not None:
        check_k(args.k)
    if args.threshold is not None and not math.isfinite(args.threshold):
        raise ParameterError(f"--threshold must be a number; got {args.threshold}")
    model = load(args.model)
    texts = inputs(args)
    cut_off = args.threshold is None and not args.no_cut_off
    k = args.k
    if k is None and args.threshold is not None and model.decision is not None and model.decision.cut_off is not None:
        k = model.decision.cut_off.most  # another threshold, but still no fixed number of labels
    with progress(args).bar("predicting", unit="texts") as bar:
        while batch := list(Texts.of(islice(texts, BATCH))):  # what is no Unicode, as an argument may be, is mended
            ranking = model.predict(batch, k, cut_off=cut_off)
            if args.threshold is not None:
                ranking = ranking.above(args.threshold)
            show = print_table if args.table else print_json
            show(batch, ranking)
            bar.advance(len(batch))


def print_json(batch: list[str], ranking: Any) -> None:
    """One line a text."""
    lines = (
        orjson.dumps({"text": text, "labels": labels}) for text, labels in zip(batch, ranking.records(), strict=True)
    )
    sys.stdout.buffer.writelines(line + b"\n" for line in lines)
    sys.stdout.buffer.flush()


def print_table(batch: list[str], ranking: Any) -> None:
    """One table a text."""
    from longtail.cli.show import console, table

    out = console()
    for text, labels in zip(batch, ranking.records(), strict=True):
        columns = ["label", *(["text"] if ranking.labels.has_text else [])]
        rows = [[f"{label[ranking.kind]:.3f}", *(label[column] for column in columns)] for label in labels]
        shown = text if len(text) < 100 else text[:100] + "…"
        out.print(table([ranking.kind, *columns], rows, shown))


def inputs(args: argparse.Namespace) -> Iterator[str]:
    """The texts, one by one, from wherever they are given."""
    if not args.inputs:
        if sys.stdin.isatty():
            raise ParameterError("no text given: name texts or files, or send texts to standard input")
        args.inputs = ["-"]
    for item in args.inputs:
        if item == "-":
            yield from stream_texts(sys.stdin.buffer, Path("standard input"), args.text)
        elif not args.literal and is_file(item):
            log.info("reading texts from the file %s", item)
            yield from file_texts(Path(item), args.text)
        else:
            if not args.literal and LIKE_A_FILE.fullmatch(item):
                log.warning("there is no file %s: it is taken as a text (--literal says that it is one)", item)
            yield item


def is_file(item: str) -> bool:
    """Whether an argument names a file; a long text is no name at all."""
    try:
        return len(item) < 4096 and "\n" not in item and Path(item).is_file()
    except (OSError, ValueError):
        return False


def file_texts(path: Path, field: str) -> Iterator[str]:
    """The texts of a file: rows of a table, JSON lines, or plain lines."""
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
    """Each line as a text; as a JSON object where the first line is one; unpacked where it is gzip."""
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
                fix = "name the field with --text"
                raise DataError(f"no text in the field {field!r}", where=path, line=number, found=point, fix=fix)
            yield point[field]
