"""Collects points chunk by chunk into a Dataset; beside the result only one chunk is held."""

from __future__ import annotations

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
from longtail.data.dataset import Dataset, move_columns
from longtail.data.parse.labelspace import WRONG_TYPE, LabelSpace, Values


@dataclass(frozen=True)
class Chunk:
    """Some points of a file, with their labels laid flat: row i has the next `lengths[i]` of `values`.

    `lines` (n,) is the line each point stands on, for messages; `texts` is None when features come from
    elsewhere; `weights` run beside `values`.
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
        """From one list of labels a point."""
        return cls(
            np.asarray(lines, np.int64),
            None if texts is None else Texts.of(texts),
            [value for row in labels for value in row],
            np.fromiter(map(len, labels), np.int64, len(labels)),
            None if weights is None else np.array([w for row in weights for w in row], np.float64),
            None if groups is None else Texts.of(groups),
        )

    def rows(self) -> NDArray[np.int64]:
        """The point of each value."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def only(self, good: NDArray[np.bool_]) -> Chunk:
        """The points where `good` holds; `values` must be an array by now."""
        inside = good[self.rows()]
        return replace(
            self,
            lines=self.lines[good],
            texts=None if self.texts is None else self.texts[good],
            values=np.asarray(self.values)[inside],
            lengths=self.lengths[good],
            weights=None if self.weights is None else self.weights[inside],
            groups=None if self.groups is None else self.groups[good],
        )


class PointsBuilder:
    """The points of one part of a corpus, as its file is read."""

    def __init__(self, space: LabelSpace, checks: Checks, path: Path):
        self.space, self.checks, self.path = space, checks, path
        self._texts, self._groups = TextsBuilder(), TextsBuilder()
        self._columns, self._weights, self._lengths, self._lines = bytearray(), bytearray(), bytearray(), bytearray()

    def add(self, chunk: Chunk) -> None:
        """Add points. One with a bad label or weight is refused, or skipped."""
        values = chunk.values
        columns = self.space.columns(values)
        good = self._first_per_row(chunk, columns < 0, lambda at: self._label_error(values[at], int(columns[at])))
        chunk = replace(chunk, values=columns)
        if chunk.weights is not None:
            weights = chunk.weights
            wrong = ~((weights > 0) & (weights <= 1))  # NaN fails both
            problem = "a label's weight must be above 0 and at most 1"
            good &= self._first_per_row(chunk, wrong, lambda at: DataError(problem, found=float(weights[at])))
        if not good.all():
            chunk = chunk.only(good)
        if chunk.texts is not None:
            self._note_empty(chunk.texts, chunk.lines)
            self._texts.extend_utf8(chunk.texts.data, chunk.texts.byte_lengths)
        if chunk.groups is not None:
            self._groups.extend_utf8(chunk.groups.data, chunk.groups.byte_lengths)
        self._lines += chunk.lines.tobytes()
        self._add_targets(chunk)

    def _first_per_row(self, chunk: Chunk, wrong: NDArray[np.bool_], error: Any) -> NDArray[np.bool_]:
        """Report the first wrong value of each row that has one; which rows have none."""
        good = np.ones(len(chunk.lengths), bool)
        if wrong.any():
            rows = chunk.rows()
            for at in np.flatnonzero(wrong):
                if good[rows[at]]:
                    good[rows[at]] = False
                    found: DataError = error(at)
                    line = int(chunk.lines[rows[at]])
                    self.checks.bad(
                        DataError(found.problem, where=self.path, line=line, found=found.found, fix=found.fix)
                    )
        return good

    def _add_targets(self, chunk: Chunk) -> None:
        """Append rows of Y, columns sorted within rows, repeated ones merged (the largest weight stays)."""
        rows, columns = chunk.rows(), np.asarray(chunk.values)
        weights = np.ones(len(columns)) if chunk.weights is None else chunk.weights
        lengths = chunk.lengths
        rising = (columns[1:] > columns[:-1]) | (rows[1:] != rows[:-1])
        if not rising.all():
            order = np.lexsort((-weights, columns, rows))
            rows, columns, weights = rows[order], columns[order], weights[order]
            again = np.zeros(len(rows), bool)
            again[1:] = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
            if again.any():
                line = int(chunk.lines[rows[np.argmax(again)]])
                what = "a label stood twice in one line and was counted once"
                self.checks.mend(what, self.path, line, int(again.sum()))
                rows, columns, weights = rows[~again], columns[~again], weights[~again]
                lengths = np.bincount(rows, minlength=len(lengths))
        self._columns += columns.astype(np.int32).tobytes()
        self._weights += weights.astype(np.float32).tobytes()
        self._lengths += lengths.astype(np.int64).tobytes()

    def _note_empty(self, texts: Texts, lines: NDArray[np.int64]) -> None:
        # only short texts can be blank: the few there are, if any, are looked at
        short = np.flatnonzero(texts.byte_lengths < 16)
        empty = [i for i in short if not texts[int(i)].strip()]
        if empty:
            self.checks.mend("an empty text was kept", self.path, int(lines[empty[0]]), len(empty))

    def _label_error(self, value: Any, code: int) -> DataError:
        value = value.item() if isinstance(value, np.generic) else value
        if code == WRONG_TYPE:
            return DataError("a label must be a key (text) or a whole number of at least 0", found=value)
        if isinstance(value, str):
            fix = "add it to the list, or leave such points out with --on-bad-line skip"
            return DataError("the label is not in the label list", found=value, fix=fix)
        size = len(self.space.labels) if hasattr(self.space, "labels") else 0
        fix = "indices count the rows of the label list from 0"
        return DataError(f"a label index lies outside 0 … {size - 1}", found=value, fix=fix)

    def check_some(self, seen: int) -> None:
        """Refuse a file with no point, or with none that was kept of the `seen` it has."""
        if not seen:
            raise DataError("the file holds no point", where=self.path)
        if not len(self):
            first = self.checks.first_skipped
            raise DataError(f"all {seen:,} points were skipped as bad; the first bad line: {first}", where=self.path)

    def __len__(self) -> int:
        return len(self._lengths) // 8

    @property
    def lines(self) -> NDArray[np.int64]:
        """The line each kept point stands on."""
        return np.frombuffer(self._lines, np.int64)

    def finish(self, L: int, final: NDArray[np.int64] | None, features: sp.csr_matrix | None = None) -> Dataset:
        """The Dataset over L labels; `final` maps provisional columns to final ones."""
        indptr = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.frombuffer(self._lengths, np.int64), out=indptr[1:])
        if indptr[-1] < 2**31:
            indptr = indptr.astype(np.int32)  # as scipy keeps it; avoids a copy of the indices to int64
        data = np.frombuffer(self._weights, np.float32)
        Y = sp.csr_matrix((data, np.frombuffer(self._columns, np.int32), indptr), shape=(len(self), L), copy=False)
        if final is not None:
            Y = move_columns(Y, final, L)
        groups = self._groups.finish() if len(self._groups) else None
        return Dataset(self._texts.finish() if features is None else features, Y, groups=groups)
