"""The one prediction type: for each point the best labels, best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import orjson
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.how_many import check_k
from longtail.core.labels import Labels

Kind = Literal["score", "probability"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The k best labels of N points.

    `indices` (N, min(k, L)) int32, −1 where a row has fewer; `scores` the same shape, float32, best first,
    ties by lower index, −inf at pads. `kind` says whether scores are only comparable or real probabilities; labels of
    one probability stand in the order of the scores it was made of.
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
        rows, columns = np.nonzero(self.indices >= 0)
        matrix = sp.csr_matrix(
            (self.scores[rows, columns], (rows, self.indices[rows, columns])),
            shape=(len(self), len(self.labels)),
        )
        matrix.sort_indices()
        return matrix

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
