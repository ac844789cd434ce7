"""Thin typed functions around the C++ kernels: they take arrays in the right layout and return new arrays.

Kernels release the GIL and return the same result for any number of threads. `LONGTAIL_SIMD=portable` turns
the AVX2 versions off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._native import _kernels
from longtail._native.threads import available_threads as available_threads
from longtail._native.threads import default_threads
from longtail._native.threads import parse_threads as parse_threads

Csr = Any  # scipy's CSR classes, scipy is not imported just for a type

_kernels.set_threads(default_threads())

get_threads = _kernels.get_threads  # for a kernel that the calling Python thread starts now
set_threads = _kernels.set_threads  # for all Python threads that are not in a `native_threads` block
simd_name = _kernels.simd_name
has_openmp = _kernels.has_openmp


@contextmanager
def native_threads(count: int) -> Iterator[None]:
    """In the block, kernels that the calling Python thread starts have this many threads; others are not affected."""
    before = _kernels.set_own_threads(count)
    try:
        yield
    finally:
        _kernels.set_own_threads(before)


def top_k(scores: Csr | NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return indices and scores (N, k) of the k best entries of each row, ties by lower index, padded with −1 and −inf.

    `scores` is CSR (only stored entries compete) or dense (N, L); it must not contain NaN.
    """
    if isinstance(scores, np.ndarray):
        return _kernels.top_k_dense(np.ascontiguousarray(scores, np.float32), k)
    return _kernels.top_k_sparse(*csr_arrays(scores), k)


def pick(matrix: Csr, columns: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the values of a CSR matrix at (row, columns[row, j]), as (N, k); 0 for missing entries and for −1."""
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    return _kernels.pick(*csr_arrays(matrix), np.ascontiguousarray(columns, np.int32))


def contains(matrix: Csr, columns: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether a CSR matrix stores an entry at (row, columns[row, j]), as (N, k)."""
    ones = type(matrix)((np.ones(matrix.nnz, np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)
    return pick(ones, columns) > 0


def bootstrap_sums(values: NDArray[np.float64], resamples: int, seed: int, first: int = 0) -> NDArray[np.float64]:
    """Return for each resample the column sums (resamples, M) over N rows drawn with replacement from `values` (N, M).

    Resamples are numbered from `first`; the rows drawn depend only on the seed and the resample's number.
    """
    return _kernels.bootstrap_sums(np.ascontiguousarray(values, np.float64), seed, first, resamples)


def gather_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return data and offsets of the texts at `rows`."""
    return _kernels.gather_texts(data, offsets, np.ascontiguousarray(rows, np.int64))


def count_words(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the number of words in each text; a word is a run of anything but white space."""
    return _kernels.count_words(data, offsets)


def has_variants(data: NDArray[np.uint8], offsets: NDArray[np.int64], words: bool = True) -> NDArray[np.bool_]:
    """Return which texts contain a character that NFKC normalisation may change; with `words`, only word characters."""
    return _kernels.has_variants(data, offsets, words).view(bool)


def hash_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seed: int = 0, fold: bool = False
) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each text; with `fold`, of its lower-case form without digits and punctuation.

    If nothing remains after folding, the text itself is hashed.
    """
    return _kernels.hash_texts(data, offsets, seed, fold)


class JsonColumns(NamedTuple):
    """The result of `json_columns`: n objects, in order.

    `lines` (n,): the line number of each object, from 0. `strings`: for each requested field (UTF-8 bytes, byte
    lengths (n,)). `values`: (row lengths (n,), is_string, integers, string bytes, string lengths): the flat values in
    order, integers and strings stored separately. `numbers`: (row lengths (n,), flat numbers). `integers`: (n,).
    A missing field has length −1, or the lowest int64.
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
    """Extract fields from a block of JSON lines by type; None if any line is not a plain object of this form.

    Malformed JSON and invalid UTF-8 also give None: the caller then uses a full parser to report the error.
    """
    found = _kernels.json_columns(block, list(strings), list(values), list(numbers), list(integers))
    return None if found is None else JsonColumns(*found)


def nearest_sparse(lists: Csr, queries: Csr, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return for each query row the k columns of `lists` (terms × documents, CSR) with the largest product above 0."""
    return _kernels.nearest_sparse(*csr_arrays(lists), lists.shape[1], *csr_arrays(queries), k)


class SparseRows(NamedTuple):
    """The result of `sparse_rows`: n rows, in order; the entries of a bad row are left out.

    `label_lengths` (n,) and `label_indices`: the label list of each row, flat. `lengths` (n,), `indices`, `values`: its
    pairs. Both are sorted and without duplicates within rows. `bad` (m, 4): row, reason, and start and stop of the bad
    bytes in the block. `merged`: the number of duplicate labels within rows, the first such row (−1 if none), and the
    same for pairs.
    """

    label_lengths: NDArray[np.int64]
    label_indices: NDArray[np.int32]
    lengths: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    bad: NDArray[np.int64]
    merged: NDArray[np.int64]


def sparse_rows(block: bytes, columns: int, *, start: int = 0, labels: int = -1, weights: bool = False) -> SparseRows:
    """Parse rows of "index:value" with indices below `columns`, from byte `start` of a block of lines.

    With `labels` ≥ 0, a row starts with a list of label indices below it. With `weights`, values are label weights:
    above 0, at most 1; of duplicates the largest is used. Otherwise values are features, and duplicates
    are added up.
    """
    found = SparseRows(*_kernels.sparse_rows(block, start, labels, columns, weights))
    return found._replace(bad=found.bad.reshape(-1, 4))


def sparse_lines(matrix: Csr, first: int, last: int, labels: Csr | None = None) -> bytes:
    """Return rows first … last − 1 as lines of "index:value", values exact; with `labels`, their indices in front."""
    listed = matrix if labels is None else labels
    return _kernels.sparse_lines(*csr_arrays(matrix), *csr_arrays(listed)[:2], labels is not None, first, last)


def vote(
    voters: tuple[NDArray[np.int32], NDArray[np.float32]],
    Y: Csr,
    abstain: Csr | None,
    share: float,
    matches: tuple[NDArray[np.int32], NDArray[np.float32]],
    removed: NDArray[np.bool_],
    k: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k best labels (N, k) by score(l) = share·Σ_i w_i y_il / (1 − Σ_i w_i [i abstains on l]) + match_l.

    `voters` are rows of Y and their weights (N, m), which add up to 1 in each row; `matches` are labels and their
    scores (N, m′). −1 ends a row. Labels in `removed` (L,) and labels with score 0 are left out.
    """
    pairs = (np.empty(0, np.int64), np.empty(0, np.int32)) if abstain is None else csr_arrays(abstain)[:2]
    arrays = [np.ascontiguousarray(a) for a in (*voters, *matches)]
    return _kernels.vote(*arrays[:2], *csr_arrays(Y), *pairs, share, *arrays[2:], removed.astype(np.uint8), k)


def fill(
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    order: NDArray[np.int32],
    values: NDArray[np.float32],
    L: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Replace padding in a ranking (N, k) by labels of `order` that the row lacks, scored by `values` or just below."""
    filled = np.array(labels, np.int32, order="C"), np.array(scores, np.float32, order="C")
    _kernels.fill(*filled, np.ascontiguousarray(order, np.int32), np.ascontiguousarray(values, np.float32), L)
    return filled


def csr_arrays(matrix: Csr) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return indptr, indices, data in the layout the kernels need; copies only if the layout differs."""
    return (
        np.ascontiguousarray(matrix.indptr, np.int64),
        np.ascontiguousarray(matrix.indices, np.int32),
        np.ascontiguousarray(matrix.data, np.float32),
    )
