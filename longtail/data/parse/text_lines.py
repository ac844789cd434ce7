"""Files with one text per line."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.texts import Texts, TextsBuilder
from longtail.data.checks import Checks
from longtail.data.options import ReadOptions
from longtail.data.parse.lines import LineBlock, blocks, decode_line, split_lines

LF, CR = ord("\n"), ord("\r")


@dataclass(frozen=True)
class TextFile:
    """The texts of a file, one for each line; `good` says which could be read, the others are empty."""

    path: Path
    texts: Texts
    good: NDArray[np.bool_]


def read_texts(path: Path, options: ReadOptions, ids: bool = False) -> TextFile:
    """Read one text per line, unchanged except for the line end. Blank texts are kept, with a warning.

    With `ids`, an "id->" before the text is dropped, if every non-empty line has one.
    """
    pieces = _pieces(path, options, options.checks)
    texts, bad = TextsBuilder(), [np.empty(0, np.int64)]
    for piece in _without_ids(pieces) if ids else pieces:
        rows = np.setdiff1d(np.arange(len(piece.texts)), piece.wrong)
        options.checks.note_empty(piece.texts.take(rows) if len(piece.wrong) else piece.texts, path, rows + piece.first)
        texts.extend_utf8(piece.texts.data, piece.texts.byte_lengths)
        bad.append(piece.wrong + (piece.first - 1))
    good = np.ones(len(texts), bool)
    good[np.concatenate(bad)] = False
    return TextFile(path, texts.finish(), good)


def read_list(path: Path, options: ReadOptions, ids: bool = False) -> Texts:
    """Read a list whose line numbers matter, such as label texts: no line may be skipped; blank lines are fine."""
    texts = TextsBuilder()
    pieces = _pieces(path, options, Checks())
    for piece in _without_ids(pieces) if ids else pieces:
        texts.extend_utf8(piece.texts.data, piece.texts.byte_lengths)
    if not len(texts):
        raise DataError("the list is empty", where=path)
    return texts.finish()


class Piece(NamedTuple):
    """The texts of some lines: the number of the first line (from 1), and which are not UTF-8 (and left empty)."""

    first: int
    texts: Texts
    wrong: NDArray[np.int64]


def _pieces(path: Path, options: ReadOptions, checks: Checks) -> Iterator[Piece]:
    for block in blocks(path, options.progress):
        data, lengths, wrong = _cut(block, path, checks)
        yield Piece(block.first, Texts.from_utf8(data, lengths), wrong)


def _without_ids(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Return the texts without the "id->" before them, if every non-empty text has one; this is known only at the end.

    Until then all pieces are kept; they are released one by one, so that no text is in memory twice.
    """
    waiting: deque[tuple[Piece, NDArray[np.int64] | None]] = deque()
    every = True
    for piece in pieces:
        sizes = id_lengths(piece.texts)
        waiting.append((piece, sizes))
        if sizes is None:
            every = False
            break
    while waiting:
        piece, sizes = waiting.popleft()
        yield piece._replace(texts=without_starts(piece.texts, sizes)) if every and sizes is not None else piece
    yield from pieces


def id_lengths(texts: Texts) -> NDArray[np.int64] | None:
    """Return the bytes of the "id->" before each text, 0 for an empty one; None if a non-empty text has none."""
    sizes = np.zeros(len(texts), np.int64)
    arrows = np.flatnonzero((texts.data[:-1] == ord("-")) & (texts.data[1:] == ord(">")))
    rows = np.searchsorted(texts.offsets, arrows, side="right") - 1
    inside = arrows + 1 < texts.offsets[rows + 1]  # the two characters may belong to two texts
    rows, first = np.unique(rows[inside], return_index=True)
    sizes[rows] = arrows[inside][first] + 2 - texts.offsets[rows]
    named = texts.byte_lengths > 0
    if not sizes[named].all():
        return None
    names = without_starts(texts, np.maximum(sizes - 2, 0), keep=True)
    return sizes if (_native.count_words(names.data, names.offsets)[named] == 1).all() else None


def without_starts(texts: Texts, sizes: NDArray[np.int64], keep: bool = False) -> Texts:
    """Return the texts without their first `sizes` bytes; with `keep`, only these texts."""
    starts = np.repeat(texts.offsets[:-1] + sizes, texts.byte_lengths)
    before = np.arange(len(texts.data)) < starts
    return Texts.from_utf8(texts.data[before == keep], sizes if keep else texts.byte_lengths - sizes)


def _cut(
    block: LineBlock, path: Path, checks: Checks
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return the lines of a block joined together, their lengths, and which are not UTF-8 (and left empty)."""
    data, wrong = block.data, np.empty(0, np.int64)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        data, wrong = without_invalid(block, path, checks)
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets == LF)
    keep = octets != LF
    lengths = np.diff(ends, prepend=-1) - 1
    if b"\r\n" in data:
        before = ends[(lengths > 0) & (octets[ends - 1] == CR)] - 1
        keep[before] = False
        lengths[np.searchsorted(ends, before)] -= 1
    return octets[keep], lengths, wrong


def without_invalid(block: LineBlock, path: Path, checks: Checks) -> tuple[bytes, NDArray[np.int64]]:
    """Return a block with the lines that are not UTF-8 emptied, and their numbers; each is a bad line."""
    lines, wrong = split_lines(block.data), []
    for at, line in enumerate(lines):
        try:
            decode_line(line, path, block.first + at)
        except DataError as error:
            checks.bad(error)
            lines[at] = b""
            wrong.append(at)
    return b"".join(line + b"\n" for line in lines), np.array(wrong, np.int64)
