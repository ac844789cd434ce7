"""Astec's shortlist: labels whose centroids are near, and labels of training points that are near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import top_k
from longtail.search.dense import Floats, nearest, unit

LEAST = 1e-12  # similarity of what a search has found


@dataclass(frozen=True)
class Nearby:
    """Centroids (L, D) and training points (N, D), both of unit length, and the labels of the points Y (N, L).

    The similarity of a label is `share`·(cosine with its centroid) + (1 − share)·(the mean over the `neighbours`
    nearest points of cosine · target): of each side the labels found.
    """

    centroids: Floats
    points: Floats
    Y: sp.csr_matrix
    neighbours: int
    size: int  # labels of a shortlist
    share: float = 0.075  # paper: 0.075 of centroids, 0.925 of points

    @classmethod
    def of(cls, features: Floats, Y: sp.csr_matrix, neighbours: int, size: int) -> Nearby:
        """From the features of the training points (N, D)."""
        points = unit(features)
        return cls(unit(np.asarray(Y.T @ points, np.float32)), points, Y, neighbours, size)

    def shortlist(self, features: Floats, own: NDArray[Any] | None = None) -> tuple[NDArray[np.int32], Floats]:
        """The most similar labels (B, size), best first, padded by −1, and their similarities."""
        queries = unit(features)
        places, near = nearest(queries, self.points, self.neighbours, own)
        votes = rows_of(places, near / max(places.shape[1], 1), len(self.points)) @ self.Y  # (B, L)
        labels, alike = nearest(queries, self.centroids, self.size)
        scores = self.share * rows_of(labels, alike, len(self.centroids)) + (1 - self.share) * votes
        # a label without points has no centroid: it stays, and last
        scores = scores.maximum(rows_of(labels, np.full_like(alike, LEAST), len(self.centroids)))
        return top_k(scores.tocsr().astype(np.float32), self.size)


def rows_of(columns: NDArray[np.int32], values: Floats, width: int) -> sp.csr_matrix:
    """A sparse matrix (B, width) with so many entries in each row."""
    B, k = columns.shape
    return sp.csr_matrix((values.ravel(), columns.ravel(), k * np.arange(B + 1)), shape=(B, width))
