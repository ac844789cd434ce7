"""The input of an evaluation: predictions and truth, checked, and split into blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError, ParameterError, shorten
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.data.dataset import without

Predicted: TypeAlias = Ranking | sp.csr_matrix  # CSR: only stored entries are predictions

MOST_ROWS, MOST_CELLS = 1 << 16, 1 << 20  # limits of a block: a few MB of float64 for any number of points


@dataclass(frozen=True, eq=False)
class RowBlock:
    """A block of rows ready for counting; ignored pairs are already removed from both sides.

    `picks` (n, K) int32: the predicted labels, best first, −1 as padding. `hits` (n, K) float64: the true value y of
    each, 0 for a miss. `truth` (n, L): canonical CSR, float32, without stored zeros.
    """

    rows: slice
    picks: NDArray[np.int32]
    hits: NDArray[np.float64]
    truth: sp.csr_matrix

    @property
    def positives(self) -> NDArray[np.int64]:
        """|P_i| (n,): the number of labels with y > 0 in each row."""
        return np.diff(self.truth.indptr).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions for N points and their truth `Y` (N, L), with matching shapes.

    `width` is the number of ranks that count after removing the ignored pairs; None for all.
    """

    predicted: Predicted
    Y: sp.csr_matrix
    labels: Labels | None
    ignore: sp.csr_matrix | None
    width: int | None

    @classmethod
    def of(cls, predicted: Any, Y: Any, labels: Labels | None, ignore: Any, width: int | None) -> Judged:
        """Check that all shapes match; `labels` default to the ranking's own."""
        if isinstance(predicted, Ranking):
            labels = predicted.labels if labels is None else labels
            shape = (len(predicted), len(predicted.labels))
        elif sp.issparse(predicted):
            predicted = sp.csr_matrix(predicted)
            shape = predicted.shape
        else:
            raise ParameterError(f"predictions must be a Ranking or a sparse score matrix; got {shorten(predicted)}")
        if not sp.issparse(Y):
            raise ParameterError(f"the truth must be a sparse matrix (N, L); got {shorten(Y)}")
        Y = sp.csr_matrix(Y)
        if shape != Y.shape:
            raise DataError(f"predictions of shape {shape} do not fit a truth of shape {Y.shape}")
        if labels is not None and len(labels) != Y.shape[1]:
            raise DataError(f"{len(labels):,} labels do not fit a truth of shape {Y.shape}")
        if ignore is not None and ignore.shape != Y.shape:
            raise DataError(f"ignored pairs of shape {ignore.shape} do not fit a truth of shape {Y.shape}")
        if not Y.shape[0]:
            raise DataError("there is nothing to evaluate: the truth has no rows", found=Y.shape)
        return cls(predicted, Y, labels, None if ignore is None else sp.csr_matrix(ignore), width)

    @property
    def points(self) -> int:
        """The number of points, N."""
        return int(self.Y.shape[0])

    @property
    def counted_labels(self) -> Labels | None:
        """The labels, if they hold training counts (propensities and bins need them); otherwise None."""
        return self.labels if self.labels is not None and self.labels.points else None

    @property
    def inverse_propensities(self) -> NDArray[np.float64] | None:
        """1 / p_l (L,); None if the training counts are unknown."""
        return None if self.counted_labels is None else 1 / self.counted_labels.propensities

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows, in order, one block at a time."""
        wide = self.predicted.k if isinstance(self.predicted, Ranking) else self.width or 1
        step = max(1, min(MOST_ROWS, MOST_CELLS // max(wide, 1)))
        for start in range(0, self.points, step):
            yield self._block(slice(start, min(start + step, self.points)))

    def _block(self, rows: slice) -> RowBlock:
        truth = _truth(self.Y, rows)
        ignore = None if self.ignore is None else _rows(self.ignore, rows)
        most = 0 if ignore is None else int(np.diff(ignore.indptr).max(initial=0))
        if isinstance(self.predicted, Ranking):
            picks = _ranking_rows(self.predicted, self.Y.shape[1], rows)
        else:
            picks = self._score_rows(rows, most)
        if ignore is not None and ignore.nnz:
            truth = without(truth, ignore)
            picks = _drop(picks, _native.contains(ignore, picks))
        picks = picks[:, : self.width]
        if not picks.shape[1]:  # no label at all: one rank of misses, so that nobody has to handle the empty case
            picks = np.full((len(picks), 1), -1, np.int32)
        return RowBlock(rows, picks, _native.pick(truth, picks).astype(np.float64), truth)

    def _score_rows(self, rows: slice, ignored: int) -> NDArray[np.int32]:
        """Return the best stored entries of some rows of a score matrix, enough to remove `ignored` of them."""
        scores = _rows(self.predicted, rows)
        if np.isnan(scores.data).any():
            raise DataError("the scores contain NaN", fix="a score must be a number")
        k = int(np.diff(scores.indptr).max(initial=0))
        k = max(1, k if self.width is None else min(k, self.width + ignored))
        if self.labels is not None:
            return Ranking.from_csr(scores, k, self.labels).indices
        return _native.top_k(scores, k)[0]


def _ranking_rows(ranking: Ranking, L: int, rows: slice) -> NDArray[np.int32]:
    """Return the labels of some rows, checked: a bad index in a hand-made ranking must not count as a miss."""
    picks = ranking.indices[rows]
    if picks.dtype.kind not in "iu":
        raise DataError("the indices of a ranking must be integers", found=str(picks.dtype))
    outside = (picks < -1) | (picks >= L)
    if outside.any():
        row, rank = np.argwhere(outside)[0]
        place = f"row {rows.start + row}, rank {rank + 1} of the ranking"
        raise DataError(f"{place} is not the index of one of {L:,} labels", found=int(picks[row, rank]))
    if np.isnan(ranking.scores[rows]).any():
        row = rows.start + int(np.flatnonzero(np.isnan(ranking.scores[rows]).any(1))[0])
        raise DataError(f"row {row} of the ranking has NaN as a score", fix="a score must be a number")
    ordered = np.sort(picks, 1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, rank = np.argwhere(twice)[0]
        raise DataError(f"row {rows.start + row} of the ranking contains a label twice", found=int(ordered[row, rank]))
    return picks.astype(np.int32, copy=False)


def _rows(matrix: Any, rows: slice) -> sp.csr_matrix:
    """Return some rows in canonical form: ascending columns without duplicates. The caller's matrix is not changed."""
    first, last = int(matrix.indptr[rows.start]), int(matrix.indptr[rows.stop])
    indptr = matrix.indptr[rows.start : rows.stop + 1] - first
    data, indices = matrix.data[first:last], matrix.indices[first:last]
    part = sp.csr_matrix((data, indices, indptr), shape=(rows.stop - rows.start, matrix.shape[1]))
    if not part.has_canonical_format:
        part = part.copy()
        part.sum_duplicates()
    return part


def _truth(Y: sp.csr_matrix, rows: slice) -> sp.csr_matrix:
    """Return some rows of the truth. Duplicate entries are added up and capped at 1; stored zeros are removed."""
    values = Y.data[int(Y.indptr[rows.start]) : int(Y.indptr[rows.stop])]
    bad = ~((values >= 0) & (values <= 1))  # NaN is neither
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(Y.indptr, Y.indptr[rows.start] + at, "right")) - 1
        raise DataError(f"row {row} of the truth contains a value outside (0, 1]", found=values[at].item())
    part = _rows(Y, rows).astype(np.float32)  # this makes a copy
    np.minimum(part.data, 1, out=part.data)
    part.eliminate_zeros()
    return part


def _drop(picks: NDArray[np.int32], dropped: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the picks without the dropped ones: later ranks move up, and −1 fills the end."""
    rows = np.flatnonzero(dropped.any(1))
    if not len(rows):
        return picks
    order = np.argsort(dropped[rows], 1, kind="stable")
    moved = np.take_along_axis(picks[rows], order, 1)
    moved[np.take_along_axis(dropped[rows], order, 1)] = -1
    left = picks.copy()
    left[rows] = moved
    return left
