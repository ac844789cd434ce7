"""Hard negatives: for each query, the best labels that are not its own."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import ParameterError
from longtail.core.progress import Progress
from longtail.search.index import Floats, Index, SearchSettings

BLOCK = 8192  # queries between two updates of the progress bar


def nearest_negatives(
    queries: Floats,
    labels: Floats | Index,
    count: int,
    positives: sp.csr_matrix,
    ignore: sp.csr_matrix | None = None,
    *,
    settings: SearchSettings | None = None,
    without: NDArray[np.bool_] | None = None,
    progress: Progress | None = None,
) -> NDArray[np.int32]:
    """Return for each query (N, d) the `count` labels (N, count) with the largest inner products, best first.

    Pairs stored in `positives` (N, L) and `ignore` (N, L) are left out, and so are the labels marked in `without` (L,).
    A row is padded with −1 only if too few labels remain. `labels` are vectors (L, d), searched as `settings` say, or
    an index of them. Memory beyond the result does not grow with N·L.
    """
    index = labels if isinstance(labels, Index) else (settings or SearchSettings()).build(labels)
    shape = (len(queries), len(index))
    for name, pairs in (("positives", positives), ("ignored pairs", ignore)):
        if pairs is not None and pairs.shape != shape:
            raise ParameterError(
                f"mining: {name} must have the shape {shape} (queries, labels), but have {pairs.shape}"
            )
    found = np.empty((len(queries), count), np.int32)
    with (progress or Progress()).bar("mining negatives", len(queries), "points") as bar:
        for first in range(0, len(queries), BLOCK):
            rows = slice(first, first + BLOCK)
            barred = either(positives[rows], None if ignore is None else ignore[rows])
            found[rows], _ = index.search(queries[rows], count, without=without, excluded=barred)
            bar.advance(barred.shape[0])
    return found


def either(first: sp.csr_matrix, second: sp.csr_matrix | None) -> sp.csr_matrix:
    """Return a matrix of True at the pairs that are stored in one of two matrices (B, L), whatever their values."""
    marked = [stored_pairs(matrix) for matrix in (first, second) if matrix is not None]
    return marked[0] if len(marked) == 1 else marked[0] + marked[1]


def stored_pairs(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Return the same matrix with True at every stored entry."""
    return sp.csr_matrix((np.ones(matrix.nnz, bool), matrix.indices, matrix.indptr), shape=matrix.shape)
