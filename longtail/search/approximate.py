"""Approximate search: vectors in lists around centroids (Faiss), of which a query reads only the nearest ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import contains, get_threads
from longtail._native.dense import best_of
from longtail.core.errors import MissingExtraError, StoreError
from longtail.search.exact import SMALL, Exact
from longtail.search.index import Arrays, Floats, Found, Index, SearchSettings, checked, stored

LEAST = 2048  # with fewer vectors, lists save no time
POINTS = 39  # vectors of a list at least; with fewer, Faiss warns that centroids are badly known
SPARE = 16  # lists hold 8-bit codes: 2k + SPARE candidates are compared again in float32
EXCLUDED = 256  # at most so many further candidates for excluded pairs; rows that need more are searched exactly
SAMPLE = 1 << 16  # vectors that centroids are computed from, at least, if there are so many


class Approximate(Index):
    """Vectors with lists (bytes of a Faiss index of 8-bit codes); `probes` lists are read for each query.

    What is found is compared again as `exact` does it, so scores are exact. If a query finds less than it should, or
    if only a small subset may be found, `exact` answers. An index of few vectors has no lists: `lists` is empty.
    """

    kind = "approximate"

    def __init__(self, exact: Exact, lists: NDArray[np.uint8], probes: int):
        self.exact, self.lists, self.probes = exact, lists, probes

    @classmethod
    def of(cls, vectors: Floats, settings: SearchSettings) -> Approximate:
        exact = Exact.of(vectors, settings)
        if len(vectors) < LEAST:
            return cls(exact, np.empty(0, np.uint8), settings.probes)
        faiss = library()
        faiss.omp_set_num_threads(get_threads())
        count = min(settings.lists or round(2 * len(vectors) ** 0.5), len(vectors) // POINTS)
        made = faiss.index_factory(vectors.shape[1], f"IVF{count},SQ8", faiss.METRIC_INNER_PRODUCT)
        made.train(sampled(vectors, max(SAMPLE, 64 * count)))
        made.add(vectors)
        return cls(exact, faiss.serialize_index(made), settings.probes)

    @classmethod
    def check_library(cls) -> None:
        library()

    @property
    def shape(self) -> tuple[int, int]:
        return self.exact.shape

    @cached_property
    def _faiss(self) -> Any:
        """The lists as an object of Faiss. It reads the bytes where they are, so mapped ones stay mapped."""
        faiss = library()
        try:
            found = faiss.read_index(faiss.ZeroCopyIOReader(faiss.swig_ptr(self.lists), self.lists.size))
        except RuntimeError as error:
            raise StoreError(f"the search index of the model is damaged: {error}; build it again") from error
        if (found.ntotal, found.d) != self.shape:
            raise StoreError(
                f"the search index of the model is damaged: its lists hold vectors of shape {(found.ntotal, found.d)}, "
                f"but its vectors have the shape {self.shape}; build it again"
            )
        return found

    def _best(
        self, queries: Floats, k: int, allowed: NDArray[np.bool_] | None, excluded: sp.csr_matrix | None
    ) -> Found:
        share = 1.0 if allowed is None else float(allowed.mean())
        if not len(self.lists) or share * SMALL < 1 or k * SMALL > len(self) or not len(queries):
            return self.exact._best(queries, k, allowed, excluded)
        most = 0 if excluded is None else int(np.diff(excluded.indptr).max())
        numbers = self._candidates(queries, 2 * k + SPARE + min(most, EXCLUDED), allowed)
        if excluded is not None:
            numbers = np.where(contains(excluded, numbers), -1, numbers)
        found, scores = best_of(numbers, self.exact.products(queries, numbers), k)
        short = np.flatnonzero((found < 0).any(axis=1))
        if len(short):
            rows = None if excluded is None else excluded[short]
            found[short], scores[short] = self.exact._best(queries[short], k, allowed, rows)
        return found, scores

    def _candidates(self, queries: Floats, m: int, allowed: NDArray[np.bool_] | None) -> NDArray[np.int32]:
        """Return the numbers (B, m) of the best vectors by codes, padded with −1."""
        faiss = library()
        faiss.omp_set_num_threads(get_threads())
        wish = {"nprobe": self.probes}
        if allowed is not None:
            wish["sel"] = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        _, numbers = self._faiss.search(queries, m, params=faiss.SearchParametersIVF(**wish))
        return np.asarray(numbers, np.int32)

    def add(self, vectors: Floats) -> Approximate:
        vectors = checked(vectors, self.shape[1])
        more = self.exact.add(vectors)
        if not len(self.lists):
            return Approximate(more, self.lists, self.probes)
        faiss = library()
        copy = faiss.deserialize_index(np.array(self.lists))
        copy.add(vectors)
        return Approximate(more, faiss.serialize_index(copy), self.probes)

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = self.exact.state()
        return arrays | {"lists": self.lists}, meta | {"kind": self.kind, "probes": self.probes}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Approximate:
        return cls(Exact.from_state(arrays, meta), stored(arrays, "lists", (np.uint8,), 1), int(meta["probes"]))


def library() -> Any:
    """Return the module faiss, or say what to install."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("approximate search", "ann") from error
    return faiss


def sampled(vectors: Floats, count: int) -> Floats:
    """Return `count` vectors, evenly spaced, or all if there are fewer."""
    return vectors[np.linspace(0, len(vectors) - 1, count).astype(np.int64)] if count < len(vectors) else vectors
