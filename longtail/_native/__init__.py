"""The C++ kernels behind thin typed functions: arrays in the right layout go in, new arrays come out.

Kernels release the GIL and give the same result for any number of threads. `LONGTAIL_SIMD=portable` turns
the AVX2 forms off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._native import _kernels
from longtail._native.threads import available_threads as available_threads
from longtail._native.threads import default_threads

Csr = Any  # scipy's CSR classes, without importing scipy for a type

_kernels.set_threads(default_threads())

get_threads = _kernels.get_threads
set_threads = _kernels.set_threads
simd_name = _kernels.simd_name
has_openmp = _kernels.has_openmp


def top_k(scores: Csr | NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Indices and scores (N, k) of the k best entries of each row, ties by lower index, pads −1 and −inf.

    `scores` is CSR (only stored entries compete) or dense (N, L); it must not hold NaN.
    """
    if isinstance(scores, np.ndarray):
        return _kernels.top_k_dense(np.ascontiguousarray(scores, np.float32), k)
    return _kernels.top_k_sparse(*_csr(scores), k)


def pick(matrix: Csr, columns: NDArray[np.int32]) -> NDArray[np.float32]:
    """The values of a CSR matrix at (row, columns[row, j]), as (N, k); 0 where nothing is stored or at −1."""
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    return _kernels.pick(*_csr(matrix), np.ascontiguousarray(columns, np.int32))


def contains(matrix: Csr, columns: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether a CSR matrix stores an entry at (row, columns[row, j]), as (N, k)."""
    ones = type(matrix)((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)
    return pick(ones, columns) > 0


def gather_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Data and offsets of the texts at `rows`."""
    return _kernels.gather_texts(data, offsets, np.ascontiguousarray(rows, np.int64))


def count_words(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Words of each text: runs of anything but white space."""
    return _kernels.count_words(data, offsets)


def hash_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int = 0, fold: bool = False
) -> NDArray[np.uint64]:
    """A 64-bit hash of each text; with `fold` of its lower-cased form without digits and punctuation."""
    return _kernels.hash_texts(data, offsets, seed, fold)


def dot(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Σ a·b in float32."""
    return _kernels.dot(a, b)


def _csr(matrix: Csr) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """indptr, indices, data in the layout the kernels take; a copy only where the layout differs."""
    return (
        np.ascontiguousarray(matrix.indptr, np.int64),
        np.ascontiguousarray(matrix.indices, np.int32),
        np.ascontiguousarray(matrix.data, np.float32),
    )
