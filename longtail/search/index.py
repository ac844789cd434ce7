"""What finds the k best of L vectors, and how it is chosen, built, saved and loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import ParameterError, StoreError
from longtail.core.parameters import Parameters, param
from longtail.core.registry import Registry

Floats = NDArray[np.float32]
Arrays = dict[str, NDArray[Any]]
Found = tuple[NDArray[np.int32], Floats]
Storage = Literal["float32", "float16", "int8"]


class Index(ABC):
    """Finds the vectors with the largest inner products. Indexes never change: `add` makes a new one."""

    kind: ClassVar[str]

    @classmethod
    @abstractmethod
    def of(cls, vectors: Floats, settings: SearchSettings) -> Index:
        """Build the index of vectors (L, d)."""

    @classmethod
    def check_library(cls) -> None:
        """Refuse to go on if a library that this index needs is not installed."""
        return

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number and width of the vectors: (L, d)."""

    def __len__(self) -> int:
        return self.shape[0]

    def search(
        self,
        queries: Floats,
        k: int,
        *,
        without: NDArray[np.bool_] | None = None,
        among: NDArray[np.integer[Any]] | None = None,
        excluded: sp.csr_matrix | None = None,
    ) -> Found:
        """Return numbers and inner products (B, k) of the k best vectors for each query (B, d).

        Best first, ties by lower number; padded with −1 and −inf if fewer may be found. `without` (L,) marks vectors
        that must not be found, such as removed labels; `among` lists the only ones that may. `excluded` (B, L) holds
        pairs of a query and a vector that must not be found for this query; what counts is that an entry is stored.
        """
        L, d = self.shape
        queries = np.ascontiguousarray(queries, np.float32)
        if queries.ndim != 2 or queries.shape[1] != d:
            raise ParameterError(f"search: queries must have the shape (B, {d}), but have {queries.shape}")
        if k < 0:
            raise ParameterError(f"search: k must be at least 0, but is {k}")
        if excluded is not None and excluded.shape != (len(queries), L):
            raise ParameterError(
                f"search: excluded pairs must have the shape {(len(queries), L)}, but have {excluded.shape}"
            )
        allowed = allowed_of(L, without, among)
        m = min(k, L if allowed is None else int(allowed.sum()))
        numbers, scores = self._best(queries, m, allowed, excluded)
        pads = ((0, 0), (0, k - m))
        return np.pad(numbers, pads, constant_values=-1), np.pad(scores, pads, constant_values=-np.inf)

    @abstractmethod
    def _best(
        self, queries: Floats, k: int, allowed: NDArray[np.bool_] | None, excluded: sp.csr_matrix | None
    ) -> Found:
        """Do the work of `search`; `allowed` (L,) marks what may be found, and at least k may."""

    @abstractmethod
    def add(self, vectors: Floats) -> Index:
        """Return a new index with these vectors (n, d) appended: they get the numbers L … L + n − 1."""

    @abstractmethod
    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return what a model folder keeps: plain arrays, and what JSON holds, with the `kind`."""

    @classmethod
    @abstractmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Index:
        """Return the index of a `state`; memory-mapped arrays stay mapped."""


indexes: Registry[type[Index]] = Registry("kind of search index")
indexes.add("exact", "longtail.search.exact:Exact")
indexes.add("approximate", "longtail.search.approximate:Approximate")


@dataclass(frozen=True)
class SearchSettings(Parameters):
    """Which index finds vectors, and how it stores them. `lists` and `probes` only concern the approximate one."""

    kind = "search"
    index: Literal["exact", "approximate"] = param("exact", "how nearest vectors are found")
    storage: Storage = param(  # noqa: RUF009
        "float32",
        "exact: float16 halves memory and rounds values; int8 adds 8-bit codes: single queries are faster, no loss",
    )
    lists: int | None = param(None, "approximate: lists that vectors are divided among; none: twice √L", at_least=1)
    probes: int = param(32, "approximate: lists read for each query; more finds more and is slower", at_least=1)

    def check(self) -> None:
        """Refuse an index whose library is not installed."""
        indexes[self.index].check_library()

    def build(self, vectors: Floats) -> Index:
        """Build the index of vectors (L, d)."""
        return indexes[self.index].of(checked(vectors), self)


def load_index(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Index:
    """Return the index that `Index.state` described."""
    try:
        found = indexes[str(meta.get("kind"))]
    except ParameterError as error:
        raise StoreError(
            f"the model has a search index of kind {meta.get('kind')!r}, which this version of longtail does not know; "
            "install the version that saved the model, or train it again"
        ) from error
    return found.from_state(arrays, meta)


def checked(vectors: Floats, width: int | None = None) -> Floats:
    """Return vectors (L, d) as contiguous float32; other shapes and values that are not finite are refused."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.ndim != 2 or (width is not None and vectors.shape[1] != width):
        wanted = f"(L, {'d' if width is None else width})"
        raise ParameterError(f"search: vectors must have the shape {wanted}, but have {vectors.shape}")
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ParameterError(f"search: vectors must be finite, but vector {row} has infinite or missing values")
    return vectors


def allowed_of(
    L: int, without: NDArray[np.bool_] | None, among: NDArray[np.integer[Any]] | None
) -> NDArray[np.bool_] | None:
    """Return a mask (L,) of what may be found, or None for everything."""
    if without is not None and np.shape(without) != (L,):
        raise ParameterError(f"search: `without` must have the shape ({L},), but has {np.shape(without)}")
    if among is None:
        return None if without is None or not without.any() else ~np.asarray(without, bool)
    among = np.asarray(among, np.int64)
    if len(among) and not 0 <= among.min() <= among.max() < L:
        raise ParameterError(
            f"search: `among` must hold numbers from 0 to {L - 1}, but holds {among.min()} … {among.max()}"
        )
    allowed = np.zeros(L, bool)
    allowed[among] = True
    return allowed if without is None else allowed & ~np.asarray(without, bool)


def stored(arrays: Mapping[str, NDArray[Any]], name: str, kinds: tuple[type, ...], ndim: int) -> NDArray[Any]:
    """Return an array of a saved index after a check of its type and dimensions: native code will read it."""
    found = arrays.get(name)
    if found is None or found.dtype.type not in kinds or found.ndim != ndim or not found.flags.c_contiguous:
        what = "is missing" if found is None else f"has {found.ndim} dimensions of {found.dtype}"
        raise StoreError(f"the search index of the model is damaged: its array {name!r} {what}; save the model again")
    return found
