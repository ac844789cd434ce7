"""Exact nearest neighbours of dense vectors, computed in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._native import get_threads

Floats = NDArray[np.float32]
CELLS = 1 << 25  # similarities in memory at once
LEAST = 4  # smaller groups save no time


def unit(rows: Floats) -> Floats:
    """Scale rows to unit length; a row of zeros stays unchanged."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)


def nearest(queries: Floats, base: Floats, k: int, own: NDArray[Any] | None = None) -> tuple[NDArray[np.int32], Floats]:
    """Return indices and inner products (B, k) of the k rows of `base` (N, d) closest to each query (B, d), unsorted.

    Closest means the largest inner product. If the queries are rows of the base, `own` (B,) is the row number of each
    query, which is left out of its result.
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
    """Return find(values, k), with the rows divided among threads."""
    threads = min(get_threads(), len(values))
    if threads <= 1:
        return find(values, k)
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(lambda rows: find(rows, k), np.array_split(values, threads))))


def largest(values: Floats, k: int) -> NDArray[np.intp]:
    """Return the columns (B, k) of the k largest values in each row (B, N), unsorted.

    A row is cut into groups of F. Its k largest values lie in the k groups with the largest maxima, so only these
    groups are partitioned. F balances the number of groups, N / F, against the size of k of them, k·F.
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
    """Return the same as `largest`, by partitioning whole rows."""
    N = values.shape[1]
    return np.argpartition(values, N - max(k, 1), axis=1)[:, N - k :] if k < N else np.argsort(values, axis=1)
