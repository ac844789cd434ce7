"""Which labels belong together: graphs over the label space, from the targets Y (N, L) of a training set.

Every graph is a CSR matrix of float32 (L, L), columns rising, the diagonal always stored: row j is label j taken as a
point of its own, column i what it says about label i. G = YᵀY counts the points two labels share, so that G_jj is the
frequency of label j; an entry of Y above 0 counts 1, whatever its weight. Rows are counted one by one and thresholded
as they are: G itself is never held, and results are the same bits for any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.graph import CsrArrays, LabelGraph
from longtail.core.errors import DataError, ParameterError, shorten
from longtail.core.progress import Progress
from longtail.data.sparse import csr, is_canonical, targets, with_data

BLOCK = 1 << 16  # rows made between two steps of the bar
MOST_HOPS = 1 << 24  # visits are counted in float32


def cooccurrence(
    Y: Any,
    *,
    threshold: float = 0.0,
    top: int | None = None,
    shrink: float = 0.0,
    labels: Any = None,
    progress: Progress | None = None,
) -> sp.csr_matrix:
    """P[i | j] = G_ij / (G_jj + shrink), where that is above `threshold` (paper 001, eq. 1.6); the diagonal is 1.

    `shrink` takes weight from what was seen at few points: without it, a label with one point gives each of its
    co-labels a 1. A row keeps its `top` largest entries, the diagonal always one of them, ties by lower label. With
    `labels` only their rows are made, in their order.
    """
    check_share("threshold", threshold)
    check_top(top)
    if not (is_number(shrink) and 0 <= shrink < math.inf):
        raise ParameterError(f"shrink must be a number of at least 0; got {shorten(shrink)}")
    graph, L = graph_of(Y)
    make = partial(graph.cooccurrence, threshold=float(threshold), shrink=float(shrink), symmetric=False, top=top)
    return rows_of(make, L, labels, progress)


def symmetric(
    Y: Any,
    *,
    threshold: float = 0.0,
    top: int | None = None,
    labels: Any = None,
    progress: Progress | None = None,
) -> sp.csr_matrix:
    """S_ij = ½(P[i | j] + P[j | i]), where i and j share a point and it is above `threshold` (GLaS); the diagonal is 1.

    `top` and `labels` as for `cooccurrence`; with `top` the graph as a whole need not be symmetric.
    """
    check_share("threshold", threshold)
    check_top(top)
    graph, L = graph_of(Y)
    make = partial(graph.cooccurrence, threshold=float(threshold), shrink=0.0, symmetric=True, top=top)
    return rows_of(make, L, labels, progress)


def walk(
    Y: Any,
    *,
    hops: int = 400,
    restart: float = 0.8,
    top: int = 10,
    head: int = 500,
    seed: int = 0,
    vectors: Any = None,
    labels: Any = None,
    progress: Progress | None = None,
) -> sp.csr_matrix:
    """How often a random walk from label j met each label (ECLARE): visit counts.

    A hop goes from a label to a random point that has it, and to a random label of that point; with probability
    `restart` the next hop begins at label j again, else where the last one ended. Labels with more than `head` points
    take no part: no walk begins at one or steps on one, and it has an edge of 1 to itself only, as has a label without
    points. With `vectors` (L, d) of the label texts, edges to texts at a cosine distance above 1 are left out. A row
    keeps its `top` largest entries, the diagonal always one of them (1 where the walk never came home). What is random
    follows from `seed` and the label alone. `labels` as for `cooccurrence`.
    """
    check_whole("hops", hops, 1, MOST_HOPS)
    check_share("restart", restart)
    check_whole("top", top, 1)
    check_whole("head", head, 0)
    check_whole("seed", seed, 0)
    graph, L = graph_of(Y)
    make = partial(
        graph.walk,
        hops=hops,
        restart=float(restart),
        top=top,
        head=head,
        seed=seed,
        vectors=None if vectors is None else check_vectors(vectors, L),
    )
    return rows_of(make, L, labels, progress)


def row_normalised(G: sp.csr_matrix) -> sp.csr_matrix:
    """The graph with rows adding up to 1: D_r⁻¹ G; empty rows stay empty."""
    return scaled(G, over(sums(G, 1)), None)


def normalised(G: sp.csr_matrix) -> sp.csr_matrix:
    """D_r^{-1/2} G D_c^{-1/2}, by the sums of rows and of columns: the graph of GALE (ECLARE)."""
    return scaled(G, over(np.sqrt(sums(G, 1))), over(np.sqrt(sums(G, 0))))


def graph_of(Y: Any) -> tuple[LabelGraph, int]:
    """What rows are made from, and the number of labels; refuses what holds no labels."""
    Y = targets(Y)
    if not Y.shape[1] or not Y.nnz:
        found = f"{Y.shape[0]:,} points, {Y.shape[1]:,} labels, none of them at any point"
        raise DataError("a label graph needs points with labels", where="Y", found=found)
    return LabelGraph(Y), Y.shape[1]


def rows_of(
    make: Callable[[NDArray[np.int32]], CsrArrays], L: int, labels: Any, progress: Progress | None
) -> sp.csr_matrix:
    """The rows of these labels (None: of all), made block by block."""
    wanted = np.arange(L, dtype=np.int32) if labels is None else check_labels(labels, L)
    lengths, columns, values = [np.zeros(1, np.int64)], [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    with (progress or Progress()).bar("label graph", len(wanted), "labels") as bar:
        for first in range(0, len(wanted), BLOCK):
            block = wanted[first : first + BLOCK]
            ptr, found, value = make(block)
            lengths.append(np.diff(ptr))
            columns.append(found)
            values.append(value)
            bar.advance(len(block))
    indptr = np.cumsum(np.concatenate(lengths))
    joined = np.concatenate(columns)
    columns.clear()  # of two copies of a large graph, one at a time
    return csr(indptr, joined, np.concatenate(values), (len(wanted), L), canonical=True)


def sums(G: sp.csr_matrix, axis: int) -> NDArray[np.float64]:
    """Sums of rows (axis 1) or of columns (axis 0); refuses a graph with entries below 0."""
    if G.nnz and not G.data.min() >= 0:
        raise DataError(
            "a graph to normalise must hold numbers of at least 0", where="G.data", found=float(G.data.min())
        )
    return np.asarray(G.sum(axis, dtype=np.float64)).ravel()


def over(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """1/total, 0 where there is none."""
    return np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)


def scaled(G: sp.csr_matrix, rows: NDArray[np.float64], columns: NDArray[np.float64] | None) -> sp.csr_matrix:
    """diag(rows) G diag(columns)."""
    data = G.data * np.repeat(rows, np.diff(G.indptr))
    return with_data(G, (data if columns is None else data * columns[G.indices]).astype(np.float32))


def is_number(value: object) -> bool:
    """Whether it is a number, and no truth value."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_share(name: str, value: object) -> None:
    """Refuse what lies outside [0, 1)."""
    if not (is_number(value) and 0 <= value < 1):  # type: ignore[operator]
        raise ParameterError(f"{name} must be a number of at least 0 and below 1; got {shorten(value)}")


def check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Refuse what is no whole number from `least` on."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        up_to = "" if most is None else f" and at most {most:,}"
        raise ParameterError(f"{name} must be a whole number of at least {least}{up_to}; got {shorten(value)}")


def check_top(top: object) -> None:
    """Refuse a number of entries that no row can have."""
    if top is not None:
        check_whole("top", top, 1)


def check_labels(labels: Any, L: int) -> NDArray[np.int32]:
    """Numbers of labels; refuses one that there is not."""
    wanted = np.asarray(labels)
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise ParameterError(f"labels must be a list of label numbers; got {shorten(labels)}")
    if wanted.size and not (wanted.min() >= 0 and wanted.max() < L):
        raise ParameterError(f"labels must be numbers from 0 to {L - 1}; got {shorten(labels)}")
    return np.ascontiguousarray(wanted, np.int32)


def check_vectors(vectors: Any, L: int) -> Any:
    """Vectors of the label texts, CSR or dense float32 (L, d)."""
    vectors = vectors.tocsr() if sp.issparse(vectors) else np.asarray(vectors)
    if vectors.ndim != 2 or vectors.shape[0] != L or vectors.dtype.kind not in "biuf":
        problem = f"must be numbers of the shape ({L:,}, d), a vector for each label"
        raise DataError(problem, where="vectors", found=f"{vectors.dtype} of the shape {vectors.shape}")
    data = vectors.data if sp.issparse(vectors) else vectors
    if not np.isfinite(data).all():
        raise DataError("must hold finite numbers only", where="vectors", found="NaN or infinity")
    if not sp.issparse(vectors):
        return np.ascontiguousarray(vectors, np.float32)
    if not vectors.nnz or vectors.data.min() >= 0:
        return None  # as with weights of words: no two texts can be apart
    if not is_canonical(vectors):
        vectors = vectors.copy()
        vectors.sum_duplicates()
    return vectors
