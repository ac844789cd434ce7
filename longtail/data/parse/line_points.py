"""Points from files with one point per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from longtail.core.errors import DataError
from longtail.data.options import ReadOptions
from longtail.data.parse.builder import Chunk
from longtail.data.parse.lines import LineBlock, blocks, decode_line, split_lines
from longtail.data.parse.parts import RecordLines

Parse = Callable[[str], tuple[str, Sequence[Any]]]  # line → text and labels; raises a DataError without file and line


def line_points(path: Path, records: RecordLines, options: ReadOptions, parse: Parse) -> Iterator[Chunk]:
    """Yield the points of a file, line by line; blank lines are skipped."""
    for block in blocks(path, options.progress):
        numbers: list[int] = []
        texts: list[str] = []
        labels: list[Sequence[Any]] = []
        full: list[int] = []
        for number, line in _lines(block):
            full.append(number)
            try:
                text, found = parse(line if isinstance(line, str) else decode_line(line, path, number))
            except DataError as error:
                options.checks.bad(DataError(error.problem, where=path, line=number, found=error.found, fix=error.fix))
                continue
            numbers.append(number)
            texts.append(text)
            labels.append(found)
        records.add(full)
        if numbers:
            yield Chunk.of(numbers, texts, labels)


def _lines(block: LineBlock) -> Iterator[tuple[int, str | bytes]]:
    """Yield the lines that are not blank, with their numbers: as text, or as bytes if the block is not all UTF-8."""
    lines: list[str | bytes]
    try:
        lines = list(block.data.replace(b"\r\n", b"\n").decode("utf-8").split("\n"))
    except UnicodeDecodeError:
        lines = list(split_lines(block.data))
    for number, line in enumerate(lines, block.first):
        if line.strip():
            yield number, line
