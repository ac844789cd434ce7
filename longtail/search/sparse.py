"""Exact nearest neighbours of sparse vectors."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.progress import Progress

BLOCK = 4096  # queries between two updates of the progress bar


class SparseIndex:
    """Finds rows of a matrix by inner product. `lists` (D, N) is the transpose: the rows that contain each feature."""

    def __init__(self, lists: sp.csr_matrix):
        self.lists = lists

    @classmethod
    def of(cls, rows: sp.csr_matrix) -> SparseIndex:
        """Build the index of the rows of a matrix (N, D)."""
        return cls(rows.T.tocsr())

    def __len__(self) -> int:
        return int(self.lists.shape[1])

    def nearest(
        self, queries: sp.csr_matrix, k: int, progress: Progress | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return indices and inner products (Q, k) of the k nearest rows of each query, best first.

        Only products above 0 count; a query with fewer matches is padded with −1 and −inf.
        """
        found = [(np.empty((0, k), np.int32), np.empty((0, k), np.float32))]
        with (progress or Progress()).bar("searching", queries.shape[0], "points") as bar:
            for start in range(0, queries.shape[0], BLOCK):
                part = queries[start : start + BLOCK]
                found.append(_native.nearest_sparse(self.lists, part, k))
                bar.advance(part.shape[0])
        return np.concatenate([f for f, _ in found]), np.concatenate([s for _, s in found])
