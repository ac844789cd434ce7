"""Astec's shortlist (labels near by) and the join that reads it. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import top_k
from longtail.cascade.joins import Join
from longtail.core.ranking import scores_csr
from longtail.encoders.export import Arrays, Exported
from longtail.encoders.served import sigmoid
from longtail.search.dense import nearest, unit
from longtail.search.index import Floats
from longtail.store.parts import pack_csr, unpack_csr

if TYPE_CHECKING:
    from longtail.cascade.served import ServedLevel

LEAST = 1e-12  # lowest similarity of a label that the search returned
SHARE = 0.925  # of centroids in a similarity; the rest is votes of points (the authors' setting)


@dataclass(frozen=True)
class Nearby:
    """Centroids of labels (L, D) and training points (N, D), both of unit length, and the points' labels Y (N, L).

    The similarity of a label is 0.925 · (cosine with its centroid) + 0.075 · (votes of the `neighbours` nearest
    points). A point votes for its labels with cosine · target, and votes are divided by the largest of the row.
    """

    centroids: Floats
    points: Floats
    Y: sp.csr_matrix
    neighbours: int
    size: int  # labels of a shortlist

    @classmethod
    def of(cls, features: Floats, Y: sp.csr_matrix, neighbours: int, size: int) -> Nearby:
        """From the features of the training points (N, D)."""
        points = unit(features)
        return cls(unit(np.asarray(Y.T @ points, np.float32)), points, Y, neighbours, size)

    def shortlist(self, features: Floats, own: NDArray[Any] | None = None) -> tuple[NDArray[np.int32], Floats]:
        """The most similar labels (B, size), best first, padded by −1, and their similarities.

        `own` (B,) are the numbers of the training points that features belong to: no point is its own neighbour.
        """
        queries = unit(features)
        places, near = nearest(queries, self.points, self.neighbours, own)
        votes = relative(scores_csr(places, near, len(self.points), ordered=False) @ self.Y)  # (B, L)
        labels, alike = nearest(queries, self.centroids, self.size)
        L = len(self.centroids)
        found = scores_csr(labels, alike, L, ordered=False)
        # a label without points has no centroid: it stays in the list, as the last one
        least = scores_csr(labels, np.full_like(alike, LEAST), L, ordered=False)
        scores = (SHARE * found + (1 - SHARE) * votes).maximum(least)
        return top_k(scores.tocsr().astype(np.float32), self.size)


class Sides(NamedTuple):
    """The two scores of a shortlist's labels, each divided by the largest of its row; pads have 0."""

    candidates: NDArray[np.int32]  # (B, S), padded by −1
    classified: Floats  # σ(classifier)
    near: Floats  # σ(similarity)
    L: int

    def mixed(self, beta: float) -> sp.csr_matrix:
        """β·classified + (1 − β)·near (B, L)."""
        mixed = np.asarray(beta * self.classified + (1 - beta) * self.near, np.float32)
        return scores_csr(self.candidates, mixed, self.L, ordered=False)


class NearJoin(Join):
    """Labels near by in the feature "near", scored by β·σ(classifier) + (1 − β)·σ(similarity)."""

    kind = "near"
    descends = False

    def __init__(self, nearby: Nearby, beta: float):
        self.nearby, self.beta = nearby, beta

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> NearJoin:
        """The join that `export` described."""
        Y = unpack_csr("Y", arrays)
        return cls(Nearby(arrays["centroids"], arrays["points"], Y, meta["neighbours"], meta["size"]), meta["beta"])

    def scores(self, levels: Sequence[ServedLevel], features: dict[str, Floats]) -> sp.csr_matrix:
        return self.sides(levels, features).mixed(self.beta)

    def sides(self, levels: Sequence[ServedLevel], features: dict[str, Floats]) -> Sides:
        """Both scores of the shortlist's labels. Finding them takes far longer than mixing them."""
        level = levels[-1]
        candidates, alike = self.nearby.shortlist(features["near"])  # (B, S)
        parts = [np.where(candidates < 0, 0, sigmoid(x)) for x in (level.logits(features, candidates), alike)]
        classified, near = (part / np.maximum(part.max(1, keepdims=True), 1e-12) for part in parts)
        return Sides(candidates, classified, near, level.K)

    def export(self) -> Exported:
        near = self.nearby
        arrays: dict[str, NDArray[Any]] = {"centroids": near.centroids, "points": near.points}
        meta = {"kind": self.kind, "neighbours": near.neighbours, "size": near.size, "beta": self.beta}
        return Exported(arrays | pack_csr("Y", near.Y), meta)


def relative(scores: sp.csr_matrix) -> sp.csr_matrix:
    """Each row divided by its largest entry; rows without a positive entry stay as they are."""
    largest = scores.max(1).toarray().ravel()
    return sp.diags(1 / np.where(largest > 0, largest, 1)) @ scores
