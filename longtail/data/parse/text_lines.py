"""Files with one text a line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.texts import Texts, TextsBuilder
from longtail.data.checks import Checks
from longtail.data.options import ReadOptions
from longtail.data.parse.lines import Block, blocks, decode_line, split_lines

LF, CR = ord("\n"), ord("\r")


@dataclass(frozen=True)
class TextFile:
    """The texts of a file, one for each line; `good` says which could be read, the others are empty."""

    path: Path
    texts: Texts
    good: NDArray[np.bool_]


def read_texts(path: Path, options: ReadOptions) -> TextFile:
    """One text a line, kept as it stands but for the line end. Blank ones are kept, and said."""
    return _read(path, options, options.checks, note_blank=True)


def read_list(path: Path, options: ReadOptions) -> Texts:
    """A list whose line numbers mean something, such as label texts: no line may be skipped, blank ones are fine."""
    texts = _read(path, options, Checks(), note_blank=False).texts
    if not len(texts):
        raise DataError("the list is empty", where=path)
    return texts


def strip_ids(file: TextFile) -> TextFile:
    """The texts without the "id->" before them, if every line that is not blank has one."""
    cut = [text.partition("->") for text in file.texts]
    has_id = [bool(mark) and len(name.split()) == 1 for name, mark, _ in cut]
    if not all(one or not name for one, (name, _, _) in zip(has_id, cut, strict=True)):
        return file
    return replace(file, texts=Texts.of([text for _, _, text in cut]))


def _read(path: Path, options: ReadOptions, checks: Checks, note_blank: bool) -> TextFile:
    texts, bad = TextsBuilder(), [np.empty(0, np.int64)]
    for block in blocks(path, options.progress):
        data, lengths, wrong = _cut(block, path, checks)
        if note_blank:
            _note_blank(Texts.from_utf8(data, lengths), wrong, block.first, path, checks)
        texts.extend_utf8(data, lengths)
        bad.append(wrong + (block.first - 1))
    good = np.ones(len(texts), bool)
    good[np.concatenate(bad)] = False
    return TextFile(path, texts.finish(), good)


def _cut(block: Block, path: Path, checks: Checks) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The lines of a block laid end to end, their lengths, and which of them are not UTF-8 (and left empty)."""
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


def without_invalid(block: Block, path: Path, checks: Checks) -> tuple[bytes, NDArray[np.int64]]:
    """A block with the lines that are not UTF-8 emptied, and which those are; each is a bad line."""
    lines, wrong = split_lines(block.data), []
    for at, line in enumerate(lines):
        try:
            decode_line(line, path, block.first + at)
        except DataError as error:
            checks.bad(error)
            lines[at] = b""
            wrong.append(at)
    return b"".join(line + b"\n" for line in lines), np.array(wrong, np.int64)


def _note_blank(texts: Texts, wrong: NDArray[np.int64], first: int, path: Path, checks: Checks) -> None:
    short = np.setdiff1d(np.flatnonzero(texts.byte_lengths < 16), wrong)  # only short texts can be blank: few, if any
    blank = [i for i in short.tolist() if not texts[i].strip()]
    if blank:
        checks.mend("an empty text was kept", path, first + blank[0], len(blank))
