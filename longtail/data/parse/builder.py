"""Collects points chunk by chunk into a Dataset; besides the result, only one chunk is in memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.texts import Texts, TextsBuilder
from longtail.data.checks import Checks
from longtail.data.dataset import Dataset
from longtail.data.parse.labelspace import WRONG_TYPE, LabelSpace, ListedLabels, Values
from longtail.data.sparse import WEIGHT, csr, move_columns, order_once


@dataclass(frozen=True)
class Chunk:
    """Some points of a file, with flat labels: row i has the next `lengths[i]` of `values`.

    `lines` (n,) is the line number of each point, for messages; `texts` is None if features come from elsewhere;
    `weights` has one value for each of `values`.
    """

    lines: NDArray[np.int64]
    texts: Texts | None
    values: Values
    lengths: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    groups: Texts | None = None

    @classmethod
    def of(
        cls,
        lines: Sequence[int],
        texts: Sequence[str] | None,
        labels: Sequence[Sequence[Any]],
        weights: Sequence[Sequence[float]] | None = None,
        groups: Sequence[str] | None = None,
    ) -> Chunk:
        """Build from one list of labels per point."""
        return cls(
            np.asarray(lines, np.int64),
            None if texts is None else Texts.of(texts),
            [value for row in labels for value in row],
            np.fromiter(map(len, labels), np.int64, len(labels)),
            None if weights is None else np.array([w for row in weights for w in row], np.float64),
            None if groups is None else Texts.of(groups),
        )

    def rows(self) -> NDArray[np.int64]:
        """Return the point of each value."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def only(self, good: NDArray[np.bool_]) -> Chunk:
        """Return the points where `good` is true."""
        inside = good[self.rows()]
        if isinstance(self.values, np.ndarray):
            values: Values = self.values[inside]
        else:
            values = list(itertools.compress(self.values, inside.tolist()))
        return replace(
            self,
            lines=self.lines[good],
            texts=None if self.texts is None else self.texts[good],
            values=values,
            lengths=self.lengths[good],
            weights=None if self.weights is None else self.weights[inside],
            groups=None if self.groups is None else self.groups[good],
        )


class PointsBuilder:
    """The points of one part of a corpus, collected while its file is read."""

    def __init__(self, space: LabelSpace, checks: Checks, path: Path):
        self.space, self.checks, self.path = space, checks, path
        self._texts, self._groups = TextsBuilder(), TextsBuilder()
        self._columns, self._weights, self._lengths, self._lines = bytearray(), bytearray(), bytearray(), bytearray()

    def add(self, chunk: Chunk) -> None:
        """Add points. A point with a bad label or weight is refused, or skipped."""
        chunk = self._good_points(chunk)
        if chunk.texts is not None:
            self.checks.note_empty(chunk.texts, self.path, chunk.lines)
            self._texts.extend_utf8(chunk.texts.data, chunk.texts.byte_lengths)
        if chunk.groups is not None:
            self._groups.extend_utf8(chunk.groups.data, chunk.groups.byte_lengths)
        self._lines += chunk.lines.tobytes()
        self._add_targets(chunk)

    def _good_points(self, chunk: Chunk) -> Chunk:
        """Return the points with good labels and weights; for every other point, report its first wrong value."""
        codes = self.space.look(chunk.values)
        wrong = codes < 0
        if chunk.weights is not None:
            wrong |= ~((chunk.weights.astype(np.float32) > 0) & (chunk.weights <= 1))  # NaN fails both
        if not wrong.any():
            return chunk
        at = np.flatnonzero(wrong)
        rows, first = np.unique(chunk.rows()[at], return_index=True)
        for row, place in zip(rows.tolist(), at[first].tolist(), strict=True):
            self.checks.bad(self._error(chunk, place, int(codes[place]), int(chunk.lines[row])))
        good = np.ones(len(chunk.lengths), bool)
        good[rows] = False
        return chunk.only(good)

    def _add_targets(self, chunk: Chunk) -> None:
        """Append rows of Y: columns sorted within rows, duplicates merged (the largest weight is used)."""
        rows, columns = chunk.rows(), self.space.columns(chunk.values)
        weights = np.ones(len(columns)) if chunk.weights is None else chunk.weights
        lengths = chunk.lengths
        rising = (columns[1:] > columns[:-1]) | (rows[1:] != rows[:-1])
        if not rising.all():
            order = order_once(rows, columns, weights)
            columns, weights = columns[order], weights[order]
            left = np.bincount(rows[order], minlength=len(lengths))
            if len(order) < len(rows):
                line = int(chunk.lines[np.argmax(left < lengths)])
                what = "a label was repeated in one line and is counted once"
                self.checks.mend(what, self.path, line, len(rows) - len(order))
            lengths = left
        self._columns += columns.astype(np.int32).tobytes()
        self._weights += weights.astype(np.float32).tobytes()
        self._lengths += lengths.astype(np.int64).tobytes()

    def _error(self, chunk: Chunk, at: int, code: int, line: int) -> DataError:
        """Return what is wrong with a value, or with its weight."""
        value = chunk.values[at]
        found, fix = value.item() if isinstance(value, np.generic) else value, None
        if code >= 0:
            problem, found = WEIGHT, 0.0 if chunk.weights is None else float(chunk.weights[at])
        elif code == WRONG_TYPE:
            problem = "a label must be a key (text) or a whole number of at least 0"
        elif isinstance(found, str):
            problem = "the label is not in the label list"
            fix = "add it to the list, or leave such points out with --on-bad-line skip"
        else:
            size = len(self.space.labels) if isinstance(self.space, ListedLabels) else 0
            problem = f"a label index is outside 0 … {size - 1}"
            fix = "indices count the rows of the label list from 0"
        return DataError(problem, where=self.path, line=line, found=found, fix=fix)

    def check_some(self, seen: int) -> None:
        """Refuse a file with no points, or one whose `seen` points were all skipped."""
        if not seen:
            raise DataError("the file has no points", where=self.path)
        if not len(self):
            first = self.checks.first_skipped
            raise DataError(f"all {seen:,} points were skipped as bad; the first bad line: {first}", where=self.path)

    def __len__(self) -> int:
        return len(self._lengths) // 8

    @property
    def lines(self) -> NDArray[np.int64]:
        """Return the line number of each point kept."""
        return np.frombuffer(self._lines, np.int64)

    @property
    def occurrences(self) -> int:
        """Return the total number of labels of the points kept; a label counts once per point."""
        return len(self._columns) // 4

    def largest(self) -> tuple[int, int]:
        """Return the largest column and the line where it first occurs; −1 and 0 if no point has a label."""
        if not self.occurrences:
            return -1, 0
        columns = np.frombuffer(self._columns, np.int32)
        at = int(np.argmax(columns))
        row = np.searchsorted(np.cumsum(np.frombuffer(self._lengths, np.int64)), at, side="right")
        return int(columns[at]), int(self.lines[row])

    def finish(self, L: int, final: NDArray[np.int64] | None, x: Texts | sp.csr_matrix | None = None) -> Dataset:
        """Return the Dataset over L labels; `final` maps provisional columns to final ones; `x` replaces the texts."""
        indptr = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.frombuffer(self._lengths, np.int64), out=indptr[1:])
        columns, weights = np.frombuffer(self._columns, np.int32), np.frombuffer(self._weights, np.float32)
        width = L if final is None else len(final)
        Y = csr(indptr, columns, weights, (len(self), width), canonical=True)
        if final is not None:
            Y = move_columns(Y, final, L)
        groups = self._groups.finish() if len(self._groups) else None
        return Dataset(self._texts.finish() if x is None else x, Y, groups=groups)
