"""Label graphs that are dear to make, kept in the cache; and graphs as arrays, for a model's folder."""

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
VERSION = 1  # of what the kernels compute: to be raised where the same settings come to give another graph
WORTH = 2_000_000  # targets; with fewer, a graph is made sooner than it is read


def kept_graph(kind: Kind, Y: Any, *, keep: bool = True, **settings: Any) -> sp.csr_matrix:
    """The graph of this kind, `cooccurrence`, `symmetric` or `walk` with their settings, made once for the same Y.

    From WORTH targets on it is kept in the cache under a digest of Y and settings, and comes back mapped, not to be
    written to. `keep=False` makes it anew.
    """
    if kind not in GRAPHS:
        raise ParameterError(f"there is no label graph {kind!r}.{nearest(str(kind), GRAPHS)}")
    Y = targets(Y)
    if not keep or Y.nnz < WORTH:
        return GRAPHS[kind](Y, **settings)
    key = f"label graph {VERSION} {kind} {graph_digest(Y, settings)}"
    found = unpack_csr("graph", cached(key, lambda: pack_csr("graph", GRAPHS[kind](Y, **settings))))
    if found is None:  # an entry is checked when it is opened, so that this is somebody else's under the same key
        raise StoreError("the cache holds something that is no label graph; delete it, or set LONGTAIL_CACHE elsewhere")
    return found


def graph_digest(Y: sp.csr_matrix, settings: dict[str, Any]) -> str:
    """SHA-256 of all that a graph depends on: where Y has targets, whatever their weights, and the settings."""
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
    """Have a digest depend on a matrix."""
    hasher.update(repr(matrix.shape).encode())
    if sp.issparse(matrix):
        matrix = matrix.tocsr()
        hasher.update(np.ascontiguousarray(matrix.indptr, np.int64).data)
        hasher.update(np.ascontiguousarray(matrix.indices, np.int32).data)
        matrix = matrix.data
    if weights:
        hasher.update(np.ascontiguousarray(matrix, np.float32).data)
