"""The one prediction type: for each point the best labels, best first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import orjson
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError, ParameterError
from longtail.core.how_many import check_k
from longtail.core.labels import Labels

Kind = Literal["score", "probability"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The k best labels of N points.

    `indices` (N, min(k, L)) int32, −1 where a row has fewer; `scores` the same shape, float32, best first,
    ties by lower index, −inf at pads. `kind` says whether scores are only comparable or real probabilities; labels of
    equal probability stand in the order of the scores that the probability was computed from.
    """

    indices: NDArray[np.int32]
    scores: NDArray[np.float32]
    labels: Labels
    kind: Kind = "score"

    def __post_init__(self) -> None:
        if self.indices.ndim != 2 or self.indices.shape != self.scores.shape:
            raise DataError(
                "a ranking needs indices and scores of one shape (N, k)",
                found=(self.indices.shape, self.scores.shape),
            )

    @classmethod
    def from_csr(cls, scores: Any, k: int, labels: Labels, kind: Kind = "score") -> Ranking:
        """The k best stored entries of each row of an N×L sparse score matrix, tombstones left out."""
        check_k(k)
        scores = sp.csr_matrix(scores, dtype=np.float32)
        if scores.shape[1] != len(labels):
            raise DataError(f"scores for {scores.shape[1]:,} labels given for a space of {len(labels):,}")
        if np.isnan(scores.data).any():
            raise DataError("scores hold NaN", fix="a score must be a number")
        if labels.removed is not None and labels.removed.any():
            keep = ~labels.removed[scores.indices]
            kept = np.concatenate([[0], np.cumsum(keep)])
            scores = sp.csr_matrix((scores.data[keep], scores.indices[keep], kept[scores.indptr]), shape=scores.shape)
        indices, best = _native.top_k(scores, min(k, len(labels)))
        return cls(indices, best, labels, kind)

    @classmethod
    def mean(
        cls,
        rankings: Sequence[Ranking],
        k: int | None = None,
        *,
        weights: Sequence[float] | None = None,
        by: Literal["score", "rank"] = "score",
    ) -> Ranking:
        """The k best labels (None: the most that one of the rankings holds) by the weighted mean of several rankings.

        All must rank the same N points over the same labels; a label that a ranking does not name counts 0 there.
        `by="rank"` averages places instead of scores, for systems whose scores are not comparable: with room for K
        labels, the best counts 1, the second 1 − 1/K, and so on. A mean of probabilities is a probability.
        """
        if not rankings:
            raise ParameterError("a mean needs at least one ranking; got none")
        first, room = rankings[0], max(ranking.k for ranking in rankings)
        if any(len(ranking) != len(first) for ranking in rankings):
            raise DataError("rankings must be of the same points", found=[len(ranking) for ranking in rankings])
        if any(not _same_labels(ranking.labels, first.labels) for ranking in rankings):
            raise DataError("rankings must be of the same labels", fix="rank with models of one label space")
        if by not in ("score", "rank"):
            raise ParameterError(f"`by` must be 'score' or 'rank'; got {by!r}")
        places = (1 - np.arange(room) / max(room, 1)).astype(np.float32)
        values = [r.scores if by == "score" else np.broadcast_to(places[: r.k], r.scores.shape) for r in rankings]
        indices = np.concatenate([ranking.indices for ranking in rankings], axis=1)
        each = _checked_weights(weights, len(rankings))
        weighted = np.concatenate(values, axis=1, dtype=np.float64) * np.repeat(each, [r.k for r in rankings])
        mean = _added_up(scores_csr(indices, weighted, len(first.labels), ordered=False), each.sum())
        sure = by == "score" and all(ranking.kind == "probability" for ranking in rankings)
        return cls.from_csr(mean, room if k is None else k, first.labels, "probability" if sure else "score")

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def k(self) -> int:
        """How many labels a row can hold."""
        return self.indices.shape[1]

    def __getitem__(self, rows: Any) -> Ranking:
        if isinstance(rows, (int, np.integer)):
            row = range(len(self))[rows]  # an IndexError ends `for row in ranking`
            rows = slice(row, row + 1)
        return replace(self, indices=self.indices[rows], scores=self.scores[rows])

    def cut(self, k: int) -> Ranking:
        """The first k labels of each row."""
        check_k(k)
        return replace(self, indices=self.indices[:, :k], scores=self.scores[:, :k])

    def above(self, threshold: float) -> Ranking:
        """Without the labels that score below `threshold`."""
        return self._keep(self.scores >= threshold)

    def drop(self, pairs: Any, k: int | None = None) -> Ranking:
        """Without the (point, label) pairs stored in the N×L sparse matrix `pairs`; cut to k after that."""
        pairs = sp.csr_matrix(pairs)
        if pairs.shape != (len(self), len(self.labels)):
            raise DataError(f"pairs of shape {pairs.shape} do not fit {len(self)} points, {len(self.labels)} labels")
        dropped = self._keep(~_native.contains(pairs, self.indices))
        return dropped if k is None else dropped.cut(k)

    def fill(self, order: NDArray[np.int32], scores: NDArray[np.float32]) -> Ranking:
        """Pads replaced by the labels of `order` (best first) that the row does not hold yet.

        They get the `scores` of `order`, lowered where a row would not stay best first, ties by lower index.
        """
        if not len(order) or (self.indices >= 0).all():
            return self
        indices, values = _native.fill(self.indices, self.scores, order, scores, len(self.labels))
        return replace(self, indices=indices, scores=values)

    def to_csr(self) -> sp.csr_matrix:
        """The scores as an N×L sparse matrix with sorted indices."""
        return scores_csr(self.indices, self.scores, len(self.labels))

    def keys(self) -> list[list[str]]:
        """The label keys of each row, best first."""
        names = {int(i): self.labels.keys[int(i)] for i in np.unique(self.indices) if i >= 0}
        return [[names[i] for i in row if i >= 0] for row in self.indices.tolist()]

    def records(self) -> Iterator[list[dict[str, Any]]]:
        """For each point its labels as dicts: `label` (the key), `text` where labels have one, `score`."""
        used = [int(i) for i in np.unique(self.indices) if i >= 0]
        texts = self.labels.texts
        named = {i: {"label": self.labels.keys[i]} | ({} if texts is None else {"text": texts[i]}) for i in used}
        for row, scores in zip(self.indices.tolist(), self.scores.tolist(), strict=True):
            yield [{**named[i], self.kind: round(s, 6)} for i, s in zip(row, scores, strict=True) if i >= 0]

    def json_lines(self) -> Iterator[bytes]:
        """One JSON object a point: `{"labels": [{"label": …, "text": …, "score": …}, …]}`."""
        for record in self.records():
            yield orjson.dumps({"labels": record})

    def _keep(self, mask: NDArray[np.bool_]) -> Ranking:
        """Entries where `mask` holds, moved to the left, pads to the right."""
        mask = mask & (self.indices >= 0)
        order = np.argsort(~mask, axis=1, kind="stable")
        kept = np.take_along_axis(mask, order, 1)
        indices = np.where(kept, np.take_along_axis(self.indices, order, 1), np.int32(-1))
        scores = np.where(kept, np.take_along_axis(self.scores, order, 1), np.float32(-np.inf))
        return replace(self, indices=indices, scores=scores)


def scores_csr(
    indices: NDArray[np.integer[Any]], scores: NDArray[Any], L: int, *, ordered: bool = True
) -> sp.csr_matrix:
    """Indices (N, k) with −1 at pads, and their scores, as a sparse matrix (N, L); `ordered`: with sorted indices."""
    real = indices >= 0
    ends = np.zeros(len(indices) + 1, np.int32 if indices.size < 2**31 else np.int64)
    np.cumsum(real.sum(1), out=ends[1:])
    matrix = sp.csr_matrix((scores[real], indices[real], ends), shape=(len(indices), L), copy=False)
    if ordered:
        matrix.sort_indices()
    return matrix


def mean_scores(matrices: Iterable[Any], weights: Sequence[float] | None = None) -> sp.csr_matrix:
    """The weighted mean of sparse score matrices (N, L), float32; what a matrix does not store counts 0 there.

    What any of them stores is stored in the mean, even where it is 0: `Ranking.from_csr` ranks stored entries.
    """
    found = [sp.csr_matrix(matrix, dtype=np.float64) for matrix in matrices]
    if len({matrix.shape for matrix in found}) != 1:
        raise DataError("a mean needs score matrices of one shape", found=[matrix.shape for matrix in found])
    each = _checked_weights(weights, len(found))
    for matrix, weight in zip(found, each, strict=True):
        matrix.data = matrix.data * weight
    return _added_up(beside(found), each.sum())


def beside(matrices: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
    """The entries of several sparse matrices (N, L) in one, in which an entry may stand several times."""
    whole = sp.hstack(matrices, format="csr")
    N, L = matrices[0].shape
    return sp.csr_matrix((whole.data, whole.indices % max(L, 1), whole.indptr), shape=(N, L))


def total_scores(matrices: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
    """The sum of sparse score matrices (N, L); what any of them stores is stored, even where the sum is 0."""
    return _added_up(beside(matrices), 1.0)


def _checked_weights(weights: Sequence[float] | None, count: int) -> NDArray[np.float64]:
    """The weights of `count` rankings; 1 each unless given."""
    given = np.ones(count) if weights is None else np.asarray(weights, np.float64)
    if given.shape != (count,) or not np.isfinite(given).all() or (given < 0).any() or not given.any():
        raise ParameterError(f"weights must be {count} numbers of at least 0, not all 0; got {weights!r}")
    return given


def _added_up(matrix: sp.csr_matrix, total: float) -> sp.csr_matrix:
    """Entries that stand several times added up and divided by `total`: float64 in, float32 out.

    The sum of float64 hardly depends on its order. scipy's own sum of matrices would drop entries that become 0.
    """
    matrix.has_canonical_format = False
    matrix.has_sorted_indices = False
    matrix.sum_duplicates()
    matrix.data /= total
    return matrix.astype(np.float32)


def _same_labels(a: Labels, b: Labels) -> bool:
    return a is b or a.keys is b.keys or a.keys.digest() == b.keys.digest()
