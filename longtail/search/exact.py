"""Exact search: products in blocks by BLAS, or for few queries a scan of 8-bit codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.dense import Barred, Codes, best_of, offer_block, search_codes, widen
from longtail._native.rows import dots
from longtail.core.errors import StoreError
from longtail.search.index import Arrays, Floats, Found, Index, SearchSettings, checked, stored

CELLS = 1 << 23  # products in memory at once
QUERIES = 1024  # of a block: enough to use each vector often once it is in a cache
FEW = 16  # up to this many queries, a scan of codes is faster than products of float32
SPARE = 8  # more than k are compared again, because BLAS rounds differently for other shapes and threads
SMALL = 8  # a subset of less than an eighth of the vectors is copied and searched on its own


@dataclass(frozen=True)
class Exact(Index):
    """All vectors (L, d) in float32, or rounded to float16; with `codes`, also in 8 bits for fast scans.

    Products are those of the stored vectors, the same for one query and for many, for any number of threads.
    """

    kind = "exact"
    vectors: NDArray[np.floating[Any]]
    codes: Codes | None = None

    @classmethod
    def of(cls, vectors: Floats, settings: SearchSettings) -> Exact:
        if settings.storage == "float16":
            return cls(halves(vectors))
        return cls(vectors, coded(vectors) if settings.storage == "int8" else None)

    @property
    def shape(self) -> tuple[int, int]:
        return (int(self.vectors.shape[0]), int(self.vectors.shape[1]))

    def _best(
        self, queries: Floats, k: int, allowed: NDArray[np.bool_] | None, excluded: sp.csr_matrix | None
    ) -> Found:
        if allowed is not None and SMALL * int(allowed.sum()) < len(self):
            chosen = np.flatnonzero(allowed)
            within = None if excluded is None else excluded[:, chosen]
            numbers, scores = Exact(self.vectors[chosen])._best(queries, k, None, within)
            return np.where(numbers < 0, -1, np.append(chosen, -1)[numbers]).astype(np.int32), scores
        barred = Barred.of(allowed, excluded)
        few = self.codes is not None and len(queries) <= FEW
        parts = [(np.empty((0, k), np.int32), np.empty((0, k), np.float32))]
        for first in range(0, len(queries), FEW if few else QUERIES):
            part = queries[first : first + (FEW if few else QUERIES)]
            own = barred.rows(first, first + len(part))
            parts.append(self._scanned(part, k, own) if few else self._multiplied(part, k, own))
        return np.concatenate([n for n, _ in parts]), np.concatenate([s for _, s in parts])

    def _scanned(self, queries: Floats, k: int, barred: Barred) -> Found:
        """For few queries: a scan of codes."""
        assert self.codes is not None
        return search_codes(queries, self.vectors, self.codes, k, barred)

    def _multiplied(self, queries: Floats, k: int, barred: Barred) -> Found:
        """For a block of queries (b, d): products with blocks of vectors, then the best ones compared again."""
        L, b = len(self), len(queries)
        numbers = np.full((b, min(k + SPARE, L)), -1, np.int32)
        scores = np.full(numbers.shape, -np.inf, np.float32)
        for first, rows in self._blocks(max(1, CELLS // max(b, 1))):
            offer_block(queries @ rows.T, first, numbers, scores, barred, L)
        return best_of(numbers, self.products(queries, numbers), k)

    def _blocks(self, size: int) -> Iterator[tuple[int, Floats]]:
        """Return the vectors in float32, in blocks (≤ size, d), each with the number of its first vector."""
        for first in range(0, len(self), size):
            rows = self.vectors[first : first + size]
            yield first, rows if rows.dtype == np.float32 else widen(rows)

    def products(self, queries: Floats, numbers: NDArray[np.int32]) -> Floats:
        """Return the inner products (B, m) of queries (B, d) and the vectors at `numbers` (B, m); 0 for −1."""
        if self.vectors.dtype == np.float32:
            return dots(queries, self.vectors, numbers)
        found = np.zeros(numbers.shape, np.float32)
        m = max(numbers.shape[1], 1)
        step = max(1, CELLS // (m * max(self.shape[1], 1)))  # queries whose vectors fit in memory
        for first in range(0, len(queries), step):
            part = numbers[first : first + step]
            rows = widen(self.vectors[part.ravel()])
            places = np.where(part < 0, -1, np.arange(part.size).reshape(part.shape))
            found[first : first + step] = dots(queries[first : first + step], rows, places)
        return found

    def add(self, vectors: Floats) -> Exact:
        vectors = checked(vectors, self.shape[1])
        if self.vectors.dtype == np.float16:
            return Exact(np.concatenate([self.vectors, halves(vectors)]))
        both = np.concatenate([self.vectors, vectors])
        return Exact(both, self.codes and joined(self.codes, coded(vectors)))

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays: Arrays = {"vectors": self.vectors}
        if self.codes is None:
            return arrays, {"kind": self.kind}
        bounds = {"longest": self.codes.longest, "rounding": self.codes.rounding}
        return arrays | {"codes": self.codes.codes, "scales": self.codes.scales}, {"kind": self.kind, **bounds}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Exact:
        vectors = stored(arrays, "vectors", (np.float32, np.float16), 2)
        if "codes" not in arrays:
            return cls(vectors)
        codes, scales = stored(arrays, "codes", (np.int8,), 2), stored(arrays, "scales", (np.float32,), 1)
        if vectors.dtype != np.float32 or codes.shape != vectors.shape or scales.shape != vectors.shape[:1]:
            raise StoreError(
                f"the search index of the model is damaged: its vectors have the shape {vectors.shape}, but its codes "
                f"{codes.shape} and scales {scales.shape}; save the model again"
            )
        return cls(vectors, Codes(codes, scales, float(meta["longest"]), float(meta["rounding"])))


def halves(vectors: Floats) -> NDArray[np.float16]:
    """Return vectors as 16-bit floats; values beyond their range become the largest ones."""
    most = np.finfo(np.float16).max
    return np.clip(vectors, -most, most).astype(np.float16)


def coded(vectors: Floats, block: int = 1 << 16) -> Codes:
    """Return vectors (L, d) in 8 bits, in units of a row's largest value / 127."""
    codes, scales = np.empty(vectors.shape, np.int8), np.zeros(len(vectors), np.float32)
    longest = rounding = 0.0
    for first in range(0, len(vectors), block):
        rows = vectors[first : first + block]
        unit = np.abs(rows).max(axis=1, initial=0) / np.float32(127)
        whole = np.rint(rows / np.where(unit > 0, unit, 1)[:, None])
        codes[first : first + block], scales[first : first + block] = np.clip(whole, -127, 127), unit
        rest = rows - codes[first : first + block].astype(np.float64) * unit[:, None]
        longest = max(longest, float(np.linalg.norm(rows.astype(np.float64), axis=1).max()))
        rounding = max(rounding, float(np.linalg.norm(rest, axis=1).max()))
    return Codes(codes, scales, longest, rounding)


def joined(first: Codes, second: Codes) -> Codes:
    """Return the codes of both sets of vectors, one after the other."""
    return Codes(
        np.concatenate([first.codes, second.codes]),
        np.concatenate([first.scales, second.scales]),
        max(first.longest, second.longest),
        max(first.rounding, second.rounding),
    )
