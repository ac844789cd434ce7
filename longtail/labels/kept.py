"""Label graphs that are expensive to compute, kept in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from longtail.core.errors import ParameterError, StoreError, nearest
from longtail.data.sparse import targets
from longtail.labels.graph import cooccurrence, symmetric, walk
from longtail.store.cache import cached
from longtail.store.parts import pack_csr, unpack_csr

Kind = Literal["counts", "symmetric", "walk"]
GRAPHS: dict[str, Callable[..., sp.csr_matrix]] = {"counts": cooccurrence, "symmetric": symmetric, "walk": walk}
VERSION = 1  # of the computation: raise it when the same settings start to give another graph
WORTH = 2_000_000  # targets; with fewer, computing a graph is faster than reading it


def kept_graph(kind: Kind, Y: Any, *, keep: bool = True, **settings: Any) -> sp.csr_matrix:
    """The label graph (L, L) of Y (N, L) by `cooccurrence`, `symmetric` or `walk`, computed once for the same Y.

    If Y has at least WORTH targets, the graph is kept in the cache under a digest of Y and `settings`. It is then
    memory-mapped and read-only. `keep=False` computes it again.
    """
    if kind not in GRAPHS:
        raise ParameterError(f"there is no label graph {kind!r}.{nearest(str(kind), GRAPHS)}")
    Y = targets(Y)
    if not keep or Y.nnz < WORTH:
        return GRAPHS[kind](Y, **settings)
    key = f"label graph {VERSION} {kind} {graph_digest(Y, settings)}"
    found = unpack_csr("graph", cached(key, lambda: pack_csr("graph", GRAPHS[kind](Y, **settings))))
    if found is None:  # entries are checked when opened: another program stored this one under the same key
        raise StoreError("a cache entry is not a label graph; delete the cache, or set another LONGTAIL_CACHE")
    return found


def graph_digest(Y: sp.csr_matrix, settings: dict[str, Any]) -> str:
    """SHA-256 of everything a graph depends on: the places of the targets in Y (not their weights) and the settings."""
    hasher = hashlib.sha256()
    add(hasher, Y, weights=False)
    for name, value in sorted(settings.items()):
        if name == "progress":
            continue
        hasher.update(f";{name}=".encode())
        if sp.issparse(value) or isinstance(value, np.ndarray):
            add(hasher, value)
        else:
            hasher.update(repr(value).encode())
    return hasher.hexdigest()


def add(hasher: Any, matrix: Any, weights: bool = True) -> None:
    """Add a matrix to a digest: shape, places of the entries and, with `weights`, their values."""
    hasher.update(repr(matrix.shape).encode())
    if sp.issparse(matrix):
        matrix = matrix.tocsr()
        hasher.update(np.ascontiguousarray(matrix.indptr, np.int64).data)
        hasher.update(np.ascontiguousarray(matrix.indices, np.int32).data)
        matrix = matrix.data
    if weights:
        hasher.update(np.ascontiguousarray(matrix, np.float32).data)
