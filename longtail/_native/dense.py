"""Kernels of exact search in dense vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._native import Csr, _kernels

Floats = NDArray[np.float32]
Found = tuple[NDArray[np.int32], Floats]


class Barred(NamedTuple):
    """What a search must not find; an empty array bars nothing.

    `allowed` (L,): 0 for vectors that no query may find. `ptr` (B + 1,), `columns`: for each query the numbers of
    vectors that it may not find, in ascending order.
    """

    allowed: NDArray[np.uint8] = np.empty(0, np.uint8)
    ptr: NDArray[np.int64] = np.empty(0, np.int64)
    columns: NDArray[np.int32] = np.empty(0, np.int32)

    @classmethod
    def of(cls, allowed: NDArray[np.bool_] | None, pairs: Csr | None) -> Barred:
        """From a mask (L,) of vectors that may be found, and a CSR matrix (B, L) whose stored pairs may not."""
        nothing = cls()
        mask = nothing.allowed if allowed is None else np.ascontiguousarray(allowed, bool).view(np.uint8)
        if pairs is None:
            return cls(mask)
        if not pairs.has_sorted_indices:
            pairs = pairs.sorted_indices()
        ptr, columns = np.ascontiguousarray(pairs.indptr, np.int64), np.ascontiguousarray(pairs.indices, np.int32)
        return cls(mask, ptr, columns)

    def rows(self, first: int, last: int) -> Barred:
        """The same for the queries first … last − 1."""
        return self._replace(ptr=self.ptr[first : last + 1]) if len(self.ptr) else self


def offer_block(
    products: Floats, first: int, numbers: NDArray[np.int32], scores: Floats, barred: Barred, L: int
) -> None:
    """Update the best m vectors found so far, `numbers` and `scores` (B, m), in place.

    `products` (B, n) are those with the vectors first … first + n − 1 of L; barred ones are overwritten. Blocks must
    be offered in ascending order. The first block needs numbers of −1. Rows stay sorted: best first, ties by lower
    number, padded with −1 and −inf.
    """
    _kernels.offer_block(products, first, numbers, scores, *barred, L)


class Codes(NamedTuple):
    """Vectors in 8 bits: v_l ≈ scales[l] · codes[l], with codes (L, d) from −127 to 127.

    No vector is longer than `longest`, and none is farther than `rounding` from its rounded value.
    """

    codes: NDArray[np.int8]
    scales: Floats
    longest: float
    rounding: float


def search_codes(queries: Floats, vectors: Floats, codes: Codes, k: int, barred: Barred) -> Found:
    """Return numbers and products (B, k) of the k best of the vectors (L, d) for each query (B, d).

    The codes are scanned, and all vectors that rounding allows to be among the best are compared in float32: the
    result is exact. Memory: B·L floats.
    """
    return _kernels.search_codes(queries, vectors, *codes, k, *barred)


def widen(halves: NDArray[np.float16]) -> Floats:
    """Return 16-bit floats (n, d) as 32-bit ones, many times as fast as NumPy. Infinities and NaN are not supported."""
    return _kernels.widen(np.ascontiguousarray(halves).view(np.uint16))


def best_of(numbers: NDArray[np.integer[Any]], scores: Floats, k: int) -> Found:
    """Return the k best pairs of each row (B, m), best first, ties by lower number, padded with −1 and −inf."""
    B, m = numbers.shape
    ptr = np.arange(0, B * m + 1, max(m, 1), dtype=np.int64) if m else np.zeros(B + 1, np.int64)
    values = np.where(numbers < 0, np.float32(-np.inf), scores).astype(np.float32, copy=False)
    return _kernels.top_k_sparse(ptr, np.ascontiguousarray(numbers, np.int32).ravel(), values.ravel(), k)
