"""Vectors by which labels are clustered: from their training points, their texts, and their neighbours."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail._native.linear import label_sums
from longtail.data.sparse import csr, normalise_rows
from longtail.labels.graph import row_normalised
from longtail.labels.kept import kept_graph

BLOCK = 8192  # labels whose sums are in memory at a time
NEIGHBOURS = 20  # kept for each label, including itself
FEATURES = 1000  # kept for each label after its neighbours are added (ECLARE, CascadeXML)


def pifa(X: sp.csr_matrix, Y: sp.csr_matrix) -> sp.csr_matrix:
    """Z_l = Σ_i y_il x_i, scaled to unit length, from X (N, d) and Y (N, L): (L, d) (paper 003, eq. 4)."""
    return csr(*label_sums(X, Y), (Y.shape[1], X.shape[1]), canonical=True)


def pifa_of_blocks(X: sp.csr_matrix, E: NDArray[np.float32], Y: sp.csr_matrix) -> sp.csr_matrix:
    """PIFA of points whose features are sparse, X (N, d), and dense, E (N, e), side by side: (L, d + e), unit length.

    Only vectors of labels are copied into a sparse matrix, not those of points.
    """
    shape = (Y.shape[1], X.shape[1])
    sums = csr(*label_sums(X, Y, unit=False), shape, canonical=True)
    return normalise_rows(sp.hstack([sums, sp.csr_matrix(np.asarray(Y.T @ E, np.float32))], format="csr"))


def centroids(V: NDArray[np.float32], Y: sp.csr_matrix, instead: NDArray[np.float32]) -> NDArray[np.float32]:
    """Σ_i y_il v_i of dense vectors V (N, D), scaled to unit length (L, D).

    A label without points has its row of `instead` (L, D).
    """
    Z = np.asarray(Y.T @ V, np.float32)
    without = np.asarray(Y.sum(0)).ravel() == 0
    Z[without] = instead[without]
    return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)


def combined(Z: sp.csr_matrix, texts: sp.csr_matrix) -> sp.csr_matrix:
    """The normalised sum of unit vectors from points and from label texts, (L, d); one may be empty for a label."""
    return normalise_rows((Z + texts).tocsr().astype(np.float32))


def with_neighbours(Z: sp.csr_matrix, Y: sp.csr_matrix) -> sp.csr_matrix:
    """G·Z, scaled to unit length: the vector of a label mixed with those of the labels it occurs with, (L, d).

    G is the co-occurrence of labels of Y (N, L): the NEIGHBOURS strongest entries of each row, normalised to sum 1. The
    FEATURES largest features of each mixed vector are kept. Labels without examples keep their own vector.
    """
    G = row_normalised(kept_graph("counts", Y, top=NEIGHBOURS))
    blocks = (G[first : first + BLOCK] for first in range(0, G.shape[0], BLOCK))
    return normalise_rows(sp.vstack([largest((block @ Z).tocsr(), FEATURES) for block in blocks]).tocsr())


def largest(rows: sp.csr_matrix, count: int) -> sp.csr_matrix:
    """The `count` largest entries of each row."""
    if not np.diff(rows.indptr).max(initial=0) > count:
        return rows
    found, values = _native.top_k(rows, count)
    real = found >= 0
    kept = csr(np.append(0, np.cumsum(real.sum(1))), found[real], values[real], rows.shape)
    kept.sort_indices()
    return kept
