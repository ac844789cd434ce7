"""Points from JSON lines, with any field names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.texts import Texts
from longtail.data.options import ReadOptions
from longtail.data.parse.builder import Chunk
from longtail.data.parse.labelspace import Values
from longtail.data.parse.lines import LineBlock, blocks, decode_line, split_lines
from longtail.data.parse.parts import RecordLines


@dataclass(frozen=True)
class Fields:
    """Names of the fields of a point. Several text fields are joined by a blank; those in `optional` may be missing."""

    text: tuple[str, ...] = ("text",)
    labels: str = "labels"
    weights: str = "weights"
    group: str | None = None
    optional: frozenset[str] = frozenset()


class JsonPoints:
    """Reads points from JSON lines, block by block: natively, or line by line if a block has something unusual."""

    def __init__(self, options: ReadOptions, fields: Fields):
        self.fields, self.checks = fields, options.checks
        self.label_sep, self.progress = options.label_sep, options.progress

    def points(self, path: Path, records: RecordLines) -> Iterator[Chunk]:
        """Yield the points of one file."""
        for block in blocks(path, self.progress):
            chunk = self._columns(block)
            if chunk is not None:
                records.add(chunk.lines)
            else:
                chunk = self._line_by_line(block, path, records)
            if len(chunk.lengths):
                yield chunk

    def _columns(self, block: LineBlock) -> Chunk | None:
        fields = self.fields
        names = [*fields.text, *([] if fields.group is None else [fields.group])]
        found = _native.json_columns(block.data, strings=names, values=[fields.labels], numbers=[fields.weights])
        if found is None or not len(found.lines):
            return None
        lengths, is_string, integers, data, sizes = found.values[0]
        required = [n for name, (_, n) in zip(names, found.strings, strict=True) if name not in fields.optional]
        if min(int(n.min()) for n in (lengths, *required)) < 0:
            return None
        weight_lengths, numbers = found.numbers[0]
        weights = numbers if np.array_equal(weight_lengths, lengths) else None
        if weights is None and weight_lengths.max() >= 0:
            return None
        values = mixed_values(is_string, integers, Texts.from_utf8(data, sizes))
        texts = joined([Texts.from_utf8(data, np.maximum(n, 0)) for data, n in found.strings[: len(fields.text)]])
        groups = None if fields.group is None else Texts.from_utf8(*found.strings[-1])
        return Chunk(found.lines + block.first, texts, values, lengths, weights, groups)

    def _line_by_line(self, block: LineBlock, path: Path, records: RecordLines) -> Chunk:
        good = list(self._good_points(block, path, records))
        numbers = [number for number, _ in good]
        labels = [self._labels(point) for _, point in good]
        weights = None
        if any(self.fields.weights in point for _, point in good):
            weights = [p.get(self.fields.weights) or [1.0] * len(row) for (_, p), row in zip(good, labels, strict=True)]
        groups = None if self.fields.group is None else [group_key(point[self.fields.group]) for _, point in good]
        return Chunk.of(numbers, [self._text(point) for _, point in good], labels, weights, groups)

    def _good_points(self, block: LineBlock, path: Path, records: RecordLines) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (line, point) of the lines that are points; blank lines are skipped, others are bad."""
        full = [(number, line) for number, line in enumerate(split_lines(block.data), block.first) if line.strip()]
        records.add([number for number, _ in full])
        for number, line in full:
            try:
                point = parse_object(line, path, number)
                self._check(point, path, number)
                yield number, point
            except DataError as error:
                self.checks.bad(error)

    def _check(self, point: dict[str, Any], path: Path, number: int) -> None:
        """Refuse a point in which a field is missing or has the wrong type."""
        where: dict[str, Any] = {"where": path, "line": number}
        options = [(name, "text") for name in self.fields.text if name not in self.fields.optional]
        options.append((self.fields.labels, "labels"))
        if self.fields.group is not None:
            options.append((self.fields.group, "group-by"))
        for name, option in options:
            if name not in point:
                fix = f"name the field with --{option}"
                raise DataError(f"the field {name!r} is missing", **where, found=sorted(point), fix=fix)
        for name in self.fields.text:
            if not isinstance(point.get(name, ""), str):
                raise DataError(f"the field {name!r} must be text", **where, found=point[name])
        labels = point[self.fields.labels]
        if isinstance(labels, str) and self.label_sep is None:
            raise DataError("the labels are one string", **where, found=labels, fix="split it with --label-sep")
        if not isinstance(labels, list | str):
            raise DataError("the labels must be a list", **where, found=labels)
        weights = point.get(self.fields.weights)
        count = len(self._labels(point))
        numbers_only = isinstance(weights, list) and all(type(w) in (int, float) for w in weights)
        if weights is not None and not (numbers_only and len(weights) == count):
            problem = f"{self.fields.weights!r} must be a list of {count} numbers, one for each label"
            raise DataError(problem, **where, found=weights)

    def _labels(self, point: dict[str, Any]) -> list[Any]:
        labels = point[self.fields.labels]
        return split_labels(labels, self.label_sep or " ") if isinstance(labels, str) else labels

    def _text(self, point: dict[str, Any]) -> str:
        return " ".join(text for name in self.fields.text if (text := point.get(name, "")))


def group_key(value: Any) -> str:
    """Return the key of a group; null gives an empty key, which means no group."""
    return "" if value is None else str(value)


def parse_object(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """Return one line as a JSON object, or raise a DataError that says where it is invalid."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        decode_line(line, path, number)  # invalid UTF-8 has its own message
        problem = f"not valid JSON ({error.msg} at column {error.colno})"
        raise DataError(problem, where=path, line=number, found=line) from None
    if not isinstance(value, dict):
        raise DataError("a line must contain a JSON object", where=path, line=number, found=value)
    return value


def split_labels(cell: str, separator: str) -> list[str]:
    """Split a label cell at `separator`; blanks around labels, and empty labels, are dropped."""
    return [label for part in cell.split(separator) if (label := part.strip())]


def mixed_values(is_string: NDArray[np.uint8], integers: NDArray[np.int64], strings: Texts) -> Values:
    """Return label values in order: an array if all are integers, else a list."""
    if not len(strings):
        return integers
    if not len(integers):
        return list(strings)
    numbers, names = iter(integers.tolist()), iter(strings)
    return [next(names) if text else next(numbers) for text in is_string.tolist()]


def joined(columns: list[Texts]) -> Texts:
    """Join several text columns into one, contents separated by a blank, empty ones left out."""
    whole = columns[0]
    for column in columns[1:]:
        n, both = len(whole), (whole.byte_lengths > 0) & (column.byte_lengths > 0)
        pool = whole + column + Texts.of([" ", ""])
        rows = np.stack([np.arange(n), np.where(both, 2 * n, 2 * n + 1), np.arange(n, 2 * n)], axis=1)
        pieces = pool.take(rows.ravel())  # of each text: the first part, a blank or nothing, the second part
        whole = Texts(pieces.data, np.ascontiguousarray(pieces.offsets[::3]))
    return whole
