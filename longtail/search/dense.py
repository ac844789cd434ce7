"""The nearest of many dense vectors, exactly, in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._native import get_threads

Floats = NDArray[np.float32]
CELLS = 1 << 25  # similarities held at a time
LEAST = 4  # a group of fewer saves nothing


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
        numbers[first : first + step] = places = in_threads(largest, block, k)
        products[first : first + step] = np.take_along_axis(block, places, 1)
    return numbers, products


def in_threads(find: Callable[[Floats, int], NDArray[np.intp]], values: Floats, k: int) -> NDArray[np.intp]:
    """find(values, k), the rows shared among threads."""
    threads = min(get_threads(), len(values))
    if threads <= 1:
        return find(values, k)
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(lambda rows: find(rows, k), np.array_split(values, threads))))


def largest(values: Floats, k: int) -> NDArray[np.intp]:
    """Where the k largest of each row (B, N) stand (B, k), in no order.

    A row is cut into groups of F; its k largest lie in those k groups that have the largest maxima, so that only these
    are partitioned. F balances the number of groups, N / F, and what is in k of them, k·F.
    """
    B, N = values.shape
    F = math.isqrt(N // max(k, 1))
    if F < LEAST:
        return parted(values, k)
    M = N // F  # group m holds the columns m, M + m, 2M + m, …
    maxima = values[:, : F * M].reshape(B, F, M).max(axis=1)  # (B, M)
    within = parted(maxima, k)[:, :, None] + M * np.arange(F)  # (B, k, F)
    rest = np.broadcast_to(np.arange(F * M, N), (B, N - F * M))  # in no group
    columns = np.concatenate([within.reshape(B, -1), rest], axis=1)
    return np.take_along_axis(columns, parted(np.take_along_axis(values, columns, 1), k), 1)


def parted(values: Floats, k: int) -> NDArray[np.intp]:
    """The same, by partitioning whole rows."""
    N = values.shape[1]
    return np.argpartition(values, N - max(k, 1), axis=1)[:, N - k :] if k < N else np.argsort(values, axis=1)
