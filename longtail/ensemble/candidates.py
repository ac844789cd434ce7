"""The candidates of an ensemble: every (point, label) pair that a member names, with what each member says of it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.ranking import Ranking
from longtail.data.sparse import csr

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """P candidate pairs of N points, ordered by point, then by label; M members.

    `rows`, `labels` (P,): which pair it is. `scores` (P, M): each member's score, −inf where it does not name the
    label. `ranks` (P, M): its rank from 0; `depth` where it does not. `depth`: how many labels a member names at most.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    scores: Floats
    ranks: NDArray[np.int64]
    depth: int
    points: int
    width: int  # L

    @classmethod
    def of(
        cls, rankings: Sequence[Ranking], columns: Sequence[NDArray[np.int32] | None], L: int, depth: int
    ) -> Candidates:
        """What M rankings of the same N points name, at most `depth` labels each, in one label space of L labels.

        `columns[m]` maps the labels of ranking m to that space; None: they are the same. −1 drops a label.
        """
        moved = [
            ranking.indices if to is None else np.where(ranking.indices < 0, np.int32(-1), to[ranking.indices])
            for ranking, to in zip(rankings, columns, strict=True)
        ]
        indices = np.concatenate(moved, axis=1)  # (N, Σ k)
        N = len(indices)
        real = indices >= 0
        keys = (np.arange(N)[:, None] * L + indices)[real]
        pairs, place = np.unique(keys, return_inverse=True)
        scores = np.full((len(pairs), len(rankings)), -np.inf)
        ranks = np.full((len(pairs), len(rankings)), depth)
        member = np.broadcast_to(np.repeat(np.arange(len(rankings)), [r.k for r in rankings]), indices.shape)[real]
        at = np.broadcast_to(np.concatenate([np.arange(r.k) for r in rankings]), indices.shape)[real]
        scores[place, member] = np.concatenate([r.scores for r in rankings], axis=1)[real]
        ranks[place, member] = at
        rows = pairs // L
        return cls(rows, pairs - rows * L, scores, ranks, depth, N, L)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def members(self) -> int:
        """M."""
        return self.scores.shape[1]

    @functools.cached_property
    def named(self) -> NDArray[np.bool_]:
        """Whether each member names the label (P, M)."""
        return self.ranks < self.depth

    @functools.cached_property
    def indptr(self) -> NDArray[np.int64]:
        """Where the pairs of each point begin (N + 1,)."""
        return np.searchsorted(self.rows, np.arange(self.points + 1))

    @functools.cached_property
    def best(self) -> Floats:
        """Each member's highest score of the point (P, M); 0 for a point of which it names no label."""
        return self._by_point(np.maximum, -np.inf)

    @functools.cached_property
    def lowest(self) -> Floats:
        """Each member's lowest score among the labels that it names for the point (P, M)."""
        return self._by_point(np.minimum, np.inf)

    def _by_point(self, reduce: Any, nothing: float) -> Floats:
        found = np.full((self.points, self.members), nothing)
        some = np.flatnonzero(np.diff(self.indptr))
        if len(some):
            found[some] = reduce.reduceat(np.where(self.named, self.scores, nothing), self.indptr[some], axis=0)
        return np.where(np.isfinite(found), found, 0.0)[self.rows]

    @functools.cached_property
    def gaps(self) -> Floats:
        """How far each member's score is below the next better one of the point (P, M); 0 for its best, or unnamed."""
        rows, ranks = self.rows[:, None], self.ranks
        table = np.full((self.points, self.depth + 1, self.members), np.nan)
        member = np.arange(self.members)
        table[rows, ranks, member] = np.where(self.named, self.scores, np.nan)
        above = table[rows, np.maximum(ranks - 1, 0), member] - np.where(self.named, self.scores, np.nan)
        return np.where(np.isfinite(above), above, 0.0)

    def places(self, values: Floats) -> NDArray[np.int64]:
        """The place of each pair among those of its point by falling values (P,), from 0; ties by lower label."""
        order = np.lexsort((-values, self.rows))
        places = np.empty(len(self), np.int64)
        places[order] = np.arange(len(self)) - self.indptr[self.rows]
        return places

    def take(self, points: NDArray[np.bool_]) -> Candidates:
        """The candidates of some points (N,), numbered from 0 anew."""
        kept = points[self.rows]
        number = np.cumsum(points) - 1
        return Candidates(
            number[self.rows[kept]],
            self.labels[kept],
            self.scores[kept],
            self.ranks[kept],
            self.depth,
            int(points.sum()),
            self.width,
        )

    def of_members(self, members: Sequence[int]) -> Candidates:
        """What some of the members name."""
        scores, ranks = self.scores[:, list(members)], self.ranks[:, list(members)]
        found = Candidates(self.rows, self.labels, scores, ranks, self.depth, self.points, self.width)
        return found.keep(np.asarray(found.named.any(1)))

    def keep(self, kept: NDArray[np.bool_]) -> Candidates:
        """Some of the pairs (P,)."""
        return Candidates(
            self.rows[kept],
            self.labels[kept],
            self.scores[kept],
            self.ranks[kept],
            self.depth,
            self.points,
            self.width,
        )

    def matrix(self, values: NDArray[Any]) -> sp.csr_matrix:
        """A value for each pair (P,) as a sparse matrix (N, L), float32; zeros are stored too."""
        return csr(self.indptr, self.labels.astype(np.int32), values.astype(np.float32), (self.points, self.width))

    def at(self, matrix: sp.csr_matrix) -> NDArray[np.float32]:
        """The entries of a sparse matrix (N, L) at the pairs (P,); 0 where it stores nothing."""
        at = np.searchsorted(entry_keys(matrix), self.keys)
        keys, data = np.append(entry_keys(matrix), -1), np.append(matrix.data, 0)
        return np.where(keys[at] == self.keys, data[at], 0).astype(np.float32)

    @functools.cached_property
    def keys(self) -> NDArray[np.int64]:
        """The pairs as numbers (P,), rising: row · L + label."""
        return self.rows * self.width + self.labels


def entry_keys(matrix: sp.csr_matrix) -> NDArray[np.int64]:
    """The entries of a sparse matrix (N, L) with sorted columns as numbers row · L + column, rising."""
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return rows * matrix.shape[1] + matrix.indices


def top(candidates: Candidates, values: NDArray[Any], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k labels of largest value for each point (N, k), and the values; −1 and −inf where there are fewer."""
    return _native.top_k(candidates.matrix(values), k)
