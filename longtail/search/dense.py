"""Nearest neighbours of dense vectors without an index that is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.search.exact import Exact
from longtail.search.index import Floats as Floats
from longtail.search.index import Found


def unit(rows: Floats) -> Floats:
    """Scale rows to unit length; a row of zeros stays unchanged."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)


def nearest(queries: Floats, base: Floats, k: int, own: NDArray[Any] | None = None) -> Found:
    """Return indices and inner products (B, k) of the k rows of `base` (N, d) closest to each query (B, d).

    Closest means the largest inner product; best first, ties by lower index. If the queries are rows of the base,
    `own` (B,) is the row number of each query, which is left out of its result. There are fewer than k columns if the
    base has fewer rows to offer.
    """
    k = min(k, len(base) - (own is not None))
    return Exact(base).search(queries, k, excluded=None if own is None else one_each(own, len(base)))


def one_each(columns: NDArray[Any], width: int) -> sp.csr_matrix:
    """Return a matrix (B, width) with one stored entry in each row, at `columns` (B,)."""
    B = len(columns)
    return sp.csr_matrix((np.ones(B, bool), np.asarray(columns), np.arange(B + 1)), shape=(B, width))
