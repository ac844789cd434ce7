"""The nearest of many dense vectors, exactly, in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
CELLS = 1 << 25  # similarities held at a time


def unit(rows: Floats) -> Floats:
    """Rows of unit length; a row of zeros stays one."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)


def nearest(queries: Floats, base: Floats, k: int, own: NDArray[Any] | None = None) -> tuple[NDArray[np.int32], Floats]:
    """The k rows of `base` (N, d) with the largest inner products with each query (B, d): numbers and products (B, k).

    In no order. `own` (B,) names for each query the one row that is not to be found: itself, where queries are rows of
    the base.
    """
    k = min(k, len(base) - (own is not None))
    numbers, products = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.float32)
    step = max(1, CELLS // max(len(base), 1))
    for first in range(0, len(queries), step):
        block = queries[first : first + step] @ base.T  # (b, N)
        if own is not None:
            block[np.arange(len(block)), own[first : first + step]] = -np.inf
        N = block.shape[1]
        places = np.argpartition(block, N - max(k, 1), axis=1)[:, N - k :] if k < N else np.argsort(block, axis=1)
        numbers[first : first + step] = places
        products[first : first + step] = np.take_along_axis(block, places, 1)
    return numbers, products
