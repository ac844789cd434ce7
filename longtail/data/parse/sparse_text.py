"""The repository's sparse text: a header with counts, then one row per line, read natively block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError
from longtail.data.options import ReadOptions
from longtail.data.parse.lines import LineBlock, blocks
from longtail.data.sparse import MOST_COLUMNS, WEIGHT, csr

# Why a row is bad; the same numbers as in longtail/_native/src/sparse_text.cpp.
NOT_AN_INDEX, OUTSIDE, NO_VALUE, NOT_A_NUMBER, NOT_FINITE, GARBAGE, NOT_A_WEIGHT, NOT_A_LABEL, LABEL_OUTSIDE = range(
    1, 10
)


@dataclass(frozen=True)
class SparseFile:
    """The content of a file of sparse text.

    `matrix` (N, D): the pairs of each row. `labels` (N, L): the label list in front of them, if the file has one.
    `good` (N,): which rows could be read; the others are empty.
    """

    path: Path
    matrix: sp.csr_matrix
    good: NDArray[np.bool_]
    labels: sp.csr_matrix | None = None


def read_points(path: Path, options: ReadOptions) -> SparseFile:
    """Read a file with header "N D L" and rows "l1,l2 f:v f:v …"."""
    return _Reader(path, options, counts=3, what="feature").read()


def read_features(path: Path, options: ReadOptions) -> SparseFile:
    """Read a file with header "N D" and rows "f:v f:v …"."""
    return _Reader(path, options, counts=2, what="feature").read()


def read_weights(path: Path, options: ReadOptions) -> SparseFile:
    """Read a file with header "N L" and rows "l:w l:w …", weights above 0 and at most 1."""
    return _Reader(path, options, counts=2, what="label").read()


class _Reader:
    """Reads one file; besides the result, only one block is in memory."""

    def __init__(self, path: Path, options: ReadOptions, counts: int, what: str):
        self.path, self.checks, self.progress = path, options.checks, options.progress
        self.counts, self.what = counts, what
        self.N = self.D = 0
        self.L = -1  # no labels in front of the pairs
        self.rows = 0
        self.label_lengths, self.label_indices = bytearray(), bytearray()
        self.lengths, self.indices, self.values = bytearray(), bytearray(), bytearray()
        self.bad: list[NDArray[np.int64]] = []

    def read(self) -> SparseFile:
        found = blocks(self.path, self.progress)
        for block, start in self._after_header(found):
            self._add(block, start)
            if self.rows > self.N:
                raise self._wrong_count(self.rows + sum(block.lines for block in found))
        if self.rows < self.N:
            raise self._wrong_count(self.rows)
        good = np.ones(self.N, bool)
        good[np.concatenate([np.empty(0, np.int64), *self.bad])] = False
        matrix = _csr(self.lengths, self.indices, self.values, (self.N, self.D))
        labels = None
        if self.L >= 0:
            ones = np.ones(len(self.label_indices) // 4, np.float32)
            labels = _csr(self.label_lengths, self.label_indices, ones, (self.N, self.L))
        return SparseFile(self.path, matrix, good, labels)

    def _after_header(self, found: Iterator[LineBlock]) -> Iterator[tuple[LineBlock, int]]:
        """Yield the blocks, and where in each the rows start; the header is read on the way."""
        first = next(found, None)
        if first is None:
            raise DataError("the file is empty", where=self.path)
        end = first.data.index(b"\n") + 1
        self._read_header(first.data[:end].strip())
        yield first, end
        for block in found:
            yield block, 0

    def _read_header(self, line: bytes) -> None:
        words = line.split()
        if len(words) != self.counts or not all(word.isdigit() and len(word) < 19 for word in words):
            names = "points, features, labels" if self.counts == 3 else f"points, {self.what}s"
            problem = f"the first line must contain {self.counts} whole numbers ({names})"
            raise DataError(problem, where=self.path, line=1, found=line)
        self.N, self.D, *rest = map(int, words)
        self.L = rest[0] if rest else -1
        if not self.N:
            raise DataError("the header says that there are no points", where=self.path, line=1, found=line)
        if max(self.D, self.L) > MOST_COLUMNS:
            problem = f"the header counts more than {MOST_COLUMNS:,} features or labels"
            raise DataError(problem, where=self.path, line=1, found=line)

    def _add(self, block: LineBlock, start: int) -> None:
        line = block.first + (start > 0)  # line number of the block's first row
        rows = _native.sparse_rows(block.data, self.D, start=start, labels=self.L, weights=self.what == "label")
        n = len(rows.lengths)
        if self.rows + n > self.N:  # blank lines at the end of the file are not rows
            n = self._without_blank_end(rows)
        self.rows += n
        if self.rows > self.N:
            return
        for row, reason, begin, end in rows.bad.tolist():
            self.checks.bad(self._error(reason, line + row, block.data[begin:end]))
        self.bad.append(rows.bad[:, 0] + (self.rows - n))
        self._note_merged(rows.merged.tolist(), line)
        self.label_lengths += rows.label_lengths[:n].data
        self.label_indices += rows.label_indices.data
        self.lengths += rows.lengths[:n].data
        self.indices += rows.indices.data
        self.values += rows.values.data

    def _without_blank_end(self, rows: _native.SparseRows) -> int:
        """Return how many rows of a block remain without the empty ones at its end, but not fewer than needed for N."""
        full = (rows.lengths + rows.label_lengths) > 0
        full[rows.bad[:, 0]] = True
        return max(self.N - self.rows, 0, int(np.flatnonzero(full)[-1]) + 1 if full.any() else 0)

    def _wrong_count(self, rows: int) -> DataError:
        problem = f"the header says {self.N:,} points, but the file has {rows:,} rows"
        return DataError(problem, where=self.path, line=1, fix="the file is incomplete or damaged: get it again")

    def _note_merged(self, merged: list[int], line: int) -> None:
        labels, first_label, pairs, first_pair = merged
        if self.what == "label":
            labels, first_label, pairs = pairs, first_pair, 0
        if labels:
            what = "a label was repeated in one line and is counted once"
            self.checks.mend(what, self.path, line + first_label, labels)
        if pairs:
            what = "a feature was repeated in one line and its values are added up"
            self.checks.mend(what, self.path, line + first_pair, pairs)

    def _error(self, reason: int, line: int, found: bytes) -> DataError:
        what, from_0 = self.what, "indices count from 0, below the header's number"
        problem, fix = {
            NOT_AN_INDEX: (f"a {what} index must be a whole number", None),
            OUTSIDE: (f"a {what} index is outside 0 … {self.D - 1}", from_0),
            NO_VALUE: (f"a {what} has no value", "write it as index:value"),
            NOT_A_NUMBER: (f"the value of a {what} is not a number", None),
            NOT_FINITE: (f"the value of a {what} is not finite, or too large for a 32-bit number", None),
            GARBAGE: (f"there is extra text after the value of a {what}", "pairs are separated by blanks"),
            NOT_A_WEIGHT: (WEIGHT, None),
            NOT_A_LABEL: ("a label index must be a whole number", "labels are joined by commas, without blanks"),
            LABEL_OUTSIDE: (f"a label index is outside 0 … {self.L - 1}", from_0),
        }[reason]
        return DataError(problem, where=self.path, line=line, found=found.decode("utf-8", "replace"), fix=fix)


def _csr(
    lengths: bytearray, indices: bytearray, values: bytearray | NDArray[np.float32], shape: tuple[int, int]
) -> sp.csr_matrix:
    indptr = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.frombuffer(lengths, np.int64), out=indptr[1:])
    # sorted and merged natively
    return csr(indptr, np.frombuffer(indices, np.int32), np.frombuffer(values, np.float32), shape, canonical=True)
