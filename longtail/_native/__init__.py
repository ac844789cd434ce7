"""The C++ kernels behind thin typed functions: arrays in the right layout go in, new arrays come out.

Kernels release the GIL and give the same result for any number of threads. `LONGTAIL_SIMD=portable` turns
the AVX2 forms off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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


def bootstrap_sums(values: NDArray[np.float64], resamples: int, seed: int, first: int = 0) -> NDArray[np.float64]:
    """For each resample the column sums (resamples, M) over N rows drawn with replacement from `values` (N, M).

    Resamples are numbered from `first`; what is drawn in one is a function of (seed, its number) alone.
    """
    return _kernels.bootstrap_sums(np.ascontiguousarray(values, np.float64), seed, first, resamples)


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


class JsonColumns(NamedTuple):
    """What `json_columns` found: n objects, in order.

    `lines` (n,): the line of each object, counted from 0. `strings`: for each field asked for (UTF-8 bytes,
    byte lengths (n,)). `values`: (row lengths (n,), is_string, integers, string bytes, string lengths), the
    flat values in order, integers and strings apart. `numbers`: (row lengths (n,), flat numbers). `integers`:
    (n,). A missing field has length −1, or the lowest int64.
    """

    lines: NDArray[np.int64]
    strings: list[tuple[NDArray[np.uint8], NDArray[np.int64]]]
    values: list[tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]]
    numbers: list[tuple[NDArray[np.int64], NDArray[np.float64]]]
    integers: list[NDArray[np.int64]]


def json_columns(
    block: bytes,
    *,
    strings: Sequence[str] = (),
    values: Sequence[str] = (),
    numbers: Sequence[str] = (),
    integers: Sequence[str] = (),
) -> JsonColumns | None:
    """Fields of a block of JSON lines by their type; None where a line is anything but a plain such object.

    None also stands for malformed JSON and invalid UTF-8: the caller finds out with a full parser.
    """
    found = _kernels.json_columns(block, list(strings), list(values), list(numbers), list(integers))
    return None if found is None else JsonColumns(*found)


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
