"""Which columns of a table are text, labels and group; and how a cell of labels is split."""

from __future__ import annotations

import ast
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson

from longtail.core.errors import DataError, nearest, shorten
from longtail.data.options import ReadOptions
from longtail.data.parse.json_points import split_labels

log = logging.getLogger("longtail")

# Tried in this order, ignoring case, if the user names no column.
TEXT_NAMES = ("text", "body", "content", "title", "abstract", "description", "document", "sentence", "question")
LABEL_NAMES = ("labels", "tags", "label", "categories", "category", "tag", "classes", "class", "subjects", "topics")
SEPARATORS = (";", "|", ",")  # in the order in which the guess tries them
SAMPLE = 1000  # how many label cells the guess looks at


@dataclass(frozen=True)
class Columns:
    """Names of the columns to read."""

    text: tuple[str, ...]
    labels: str
    group: str | None = None

    @property
    def all(self) -> list[str]:
        """Return every column to read, without duplicates."""
        names = (*self.text, self.labels, *(() if self.group is None else (self.group,)))
        return list(dict.fromkeys(names))


def choose_columns(names: Sequence[str], options: ReadOptions, path: Path, group: str | None = None) -> Columns:
    """Return the columns the user named, else those with a usual name; the error lists the columns that exist."""
    text = _named(names, options.text, path) if options.text else [_usual(names, TEXT_NAMES, "text", path)]
    wanted = options.labels
    labels = _find(names, wanted, "labels", path) if wanted else _usual(names, LABEL_NAMES, "labels", path)
    group = options.group_by or group
    return Columns(tuple(text), labels, _find(names, group, "group-by", path) if group else None)


def _named(names: Sequence[str], wanted: str, path: Path) -> list[str]:
    """Parse one column, whose name may contain a comma, or several joined by commas."""
    if wanted in names:
        return [wanted]
    return [_find(names, name.strip(), "text", path) for name in wanted.split(",")]


def _find(names: Sequence[str], wanted: str, option: str, path: Path) -> str:
    same = [name for name in names if name == wanted] or [name for name in names if name.lower() == wanted.lower()]
    if len(same) == 1:
        return same[0]
    hint = nearest(wanted, names).partition(" Known:")[0]
    fix = f"name another with --{option}.{hint}"
    raise DataError(f"there is no column {wanted!r}", where=path, found=list(names), fix=fix)


def _usual(names: Sequence[str], usual: Sequence[str], option: str, path: Path) -> str:
    lower = {name.lower(): name for name in reversed(names)}
    found = next((lower[name] for name in usual if name in lower), None)
    if found is None:
        problem = f"no column is called {', '.join(usual[:-1])} or {usual[-1]}"
        fix = f"name the column that holds the {option} with --{option}"
        raise DataError(problem, where=path, found=list(names), fix=fix)
    return found


Chunk = TypeVar("Chunk")


@dataclass
class LabelCutter:
    """Splits cells of labels at a separator: the user's, or one guessed from the first cells and logged.

    The guess looks at the first 1,000 non-empty cells. If all are lists (`["a", "b"]`, as JSON or Python writes
    them), they are read as lists. Otherwise the first of `;` `|` `,` that occurs in any cell is the separator.
    Otherwise, if no cell contains a blank, each cell is one label. Cells with blanks and none of these are refused:
    only the user knows whether a blank separates labels or is part of one.
    """

    separator: str | None
    column: str
    _mode: str | None = field(default=None, init=False)  # a separator, "list" or "one"
    _sample: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.separator == "":
            raise DataError("an empty label separator", fix="give --label-sep a character, such as ';'")
        self._mode = {"\\t": "\t", "\\n": "\n"}.get(self.separator or "", self.separator)

    def after_guess(self, chunks: Iterator[Chunk], cells: Callable[[Chunk], Iterable[str] | None]) -> Iterator[Chunk]:
        """Yield the chunks of a file; the first ones are held back until the sample is full or the file ends.

        `cells` returns the label cells of a chunk; None if there is nothing to split in it.
        """
        held: list[Chunk] = []
        for chunk in chunks:
            held.append(chunk)
            found = cells(chunk) if self._mode is None else None
            if found is not None:
                self._sample += (cell for cell in map(str.strip, found) if cell)
            if self._mode is None and len(self._sample) >= SAMPLE:
                self._guess()
            if found is None or self._mode is not None or not self._sample:  # empty cells need no guess
                yield from held
                held.clear()
        if self._mode is None and self._sample:
            self._guess()
        yield from held

    def cut(self, cells: Sequence[str], path: Path, lines: Sequence[int]) -> list[list[Any] | DataError]:
        """Return the labels of each cell, after the guess; a DataError for a cell that cannot be read."""
        if self._mode is None:  # only empty cells so far
            return [[] for _ in cells]
        if self._mode == "list":
            return [_parse_list(cell, path, line) for cell, line in zip(cells, lines, strict=True)]
        if self._mode == "one":
            self._check_single(cells, path, lines)
            return [[label] if (label := cell.strip()) else [] for cell in cells]
        separator = self._mode
        return [split_labels(cell, separator) for cell in cells]

    def _guess(self) -> None:
        sample, self._sample = self._sample[:SAMPLE], []
        if all(cell.startswith("[") and cell.endswith("]") for cell in sample):
            self._mode = "list"
            log.info("column %r: each cell is read as a list of labels, such as %s", self.column, shorten(sample[0]))
            return
        there = [mark for mark in SEPARATORS if any(mark in cell for cell in sample)]
        if not there:
            self._mode = "one"  # a cell with a blank is refused when it is split
            if not any(" " in cell for cell in sample):
                log.info("column %r: each cell is one label, such as %s", self.column, shorten(sample[0]))
            return
        self._mode = mark = there[0]
        cell = next(cell for cell in sample if mark in cell)
        cut = split_labels(cell, mark)
        # "Paris, France" may be one label; and if two marks occur, the other one may be the separator
        blanks = mark == "," and any(" " in label for cell in sample for label in split_labels(cell, ","))
        doubtful = blanks or len(there) > 1
        log.log(
            logging.WARNING if doubtful else logging.INFO,
            "column %r: labels are split at %r (%s gives %s); use --label-sep to change this",
            *(self.column, mark, shorten(cell), shorten(cut)),
        )

    def _check_single(self, cells: Sequence[str], path: Path, lines: Sequence[int]) -> None:
        for mark in (*SEPARATORS, " "):
            at = next((i for i, cell in enumerate(cells) if mark in cell.strip()), None)
            if at is not None:
                what = "a blank" if mark == " " else repr(mark)
                other = ";" if mark != ";" else "|"
                raise DataError(
                    f"a cell of column {self.column!r} contains {what}, which may separate labels or be part of one",
                    where=path,
                    line=int(lines[at]),
                    found=cells[at],
                    fix=f"use --label-sep {mark!r} if it separates, or --label-sep {other!r} if a cell is one label",
                )


def _parse_list(cell: str, path: Path, line: int) -> list[Any] | DataError:
    """Return the labels in a cell that contains a list, as JSON or as Python writes it."""
    if not cell.strip():
        return []
    try:
        value = orjson.loads(cell)
    except orjson.JSONDecodeError:
        try:
            value = ast.literal_eval(cell.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = None
    if not isinstance(value, list) or not all(type(label) in (str, int) for label in value):
        problem = "the cell is not a list of labels, but the first cells are"
        return DataError(problem, where=path, line=line, found=cell)
    return value
