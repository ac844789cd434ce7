"""Which labels belong together: graphs over the label space, from the targets Y (N, L) of a training set.

Every graph is a CSR matrix of float32 (L, L) with sorted columns; the diagonal is always stored. Row j treats label j
as a point of its own, and column i is what it says about label i. G = YᵀY counts the points that two labels share, so
G_jj is the frequency of label j; an entry of Y above 0 counts 1, whatever its weight. Rows are counted and cut one by
one: G itself is never in memory, and results are the same bits for any number of threads.
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

BLOCK = 1 << 16  # rows computed between two steps of the progress bar
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
    """P[i | j] = G_ij / (G_jj + shrink) of Y (N, L), where it is above `threshold` (paper 001, eq. 1.6); diagonal 1.

    `shrink` lowers the entries of labels with few points: without it, a label with one point gives each of its
    co-labels a 1. A row keeps its `top` largest entries (ties: the lower label), always including the diagonal. With
    `labels` only the rows of these labels are computed, in their order: the result is (len(labels), L), else (L, L).
    """
    check_share("threshold", threshold)
    check_top(top)
    check_shrink("shrink", shrink)
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
    """S_ij = ½(P[i | j] + P[j | i]) where i and j share a point and S_ij is above `threshold` (GLaS); diagonal 1.

    `top` and `labels` as in `cooccurrence`; with `top` the graph as a whole may not be symmetric.
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
    """How often a random walk from label j visited each label (ECLARE): visit counts, (L, L).

    A hop goes from a label to a random point that has it, then to a random label of that point. With probability
    `restart` the next hop starts at label j again, otherwise where the last one ended. Labels with more than `head`
    points are left out: no walk starts at one or visits one. They have a single edge, of 1 to themselves, as do labels
    without points. With `vectors` (L, d) of the label texts, edges between texts at a cosine distance above 1 are
    removed. A row keeps its `top` largest entries, always including the diagonal (1 if the walk never returned). Random
    choices depend only on `seed` and the label. `labels` as in `cooccurrence`.
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
    """D_r⁻¹ G: the graph with the entries of each row divided by their sum; empty rows stay empty."""
    return scaled(G, over(sums(G, 1)), None)


def normalised(G: sp.csr_matrix) -> sp.csr_matrix:
    """D_r^{-1/2} G D_c^{-1/2}, with the sums of rows and columns: the graph of GALE (ECLARE)."""
    return scaled(G, over(np.sqrt(sums(G, 1))), over(np.sqrt(sums(G, 0))))


def graph_of(Y: Any) -> tuple[LabelGraph, int]:
    """The native graph that rows are computed from, and the number of labels; a Y without labels is an error."""
    Y = targets(Y)
    if not Y.shape[1] or not Y.nnz:
        found = f"{Y.shape[0]:,} points, {Y.shape[1]:,} labels, none of them at any point"
        raise DataError("a label graph needs points with labels", where="Y", found=found)
    return LabelGraph(Y), Y.shape[1]


def rows_of(
    make: Callable[[NDArray[np.int32]], CsrArrays], L: int, labels: Any, progress: Progress | None
) -> sp.csr_matrix:
    """The rows of these labels (None: of all), computed block by block, as CSR (rows, L)."""
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
    columns.clear()  # frees one of the two copies of a large graph
    return csr(indptr, joined, np.concatenate(values), (len(wanted), L), canonical=True)


def sums(G: sp.csr_matrix, axis: int) -> NDArray[np.float64]:
    """Sums of rows (axis 1) or of columns (axis 0); a graph with entries below 0 is an error."""
    if G.nnz and not G.data.min() >= 0:
        raise DataError(
            "a graph to normalise must hold numbers of at least 0", where="G.data", found=float(G.data.min())
        )
    return np.asarray(G.sum(axis, dtype=np.float64)).ravel()


def over(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """1/total for each total, 0 where the total is 0."""
    return np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)


def scaled(G: sp.csr_matrix, rows: NDArray[np.float64], columns: NDArray[np.float64] | None) -> sp.csr_matrix:
    """diag(rows) G diag(columns)."""
    data = G.data * np.repeat(rows, np.diff(G.indptr))
    return with_data(G, (data if columns is None else data * columns[G.indices]).astype(np.float32))


def is_number(value: object) -> bool:
    """Whether the value is a number and not a bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_share(name: str, value: object) -> None:
    """Raise an error unless the value is a number in [0, 1)."""
    if not (is_number(value) and 0 <= value < 1):  # type: ignore[operator]
        raise ParameterError(f"{name} must be a number of at least 0 and below 1; got {shorten(value)}")


def check_shrink(name: str, value: object) -> None:
    """Raise an error unless the value is a finite number of at least 0."""
    if not (is_number(value) and 0 <= value < math.inf):  # type: ignore[operator]
        raise ParameterError(f"{name} must be a number of at least 0; got {shorten(value)}")


def check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise an error unless the value is a whole number of at least `least` (and at most `most`)."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        up_to = "" if most is None else f" and at most {most:,}"
        raise ParameterError(f"{name} must be a whole number of at least {least}{up_to}; got {shorten(value)}")


def check_top(top: object) -> None:
    """Raise an error unless `top` is None or at least 1."""
    if top is not None:
        check_whole("top", top, 1)


def check_labels(labels: Any, L: int) -> NDArray[np.int32]:
    """The label numbers as an int32 array; a number outside 0 … L − 1 is an error."""
    wanted = np.asarray(labels)
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise ParameterError(f"labels must be a list of label numbers; got {shorten(labels)}")
    if wanted.size and not (wanted.min() >= 0 and wanted.max() < L):
        raise ParameterError(f"labels must be numbers from 0 to {L - 1}; got {shorten(labels)}")
    return np.ascontiguousarray(wanted, np.int32)


def check_vectors(vectors: Any, L: int) -> Any:
    """The vectors of the label texts as CSR or dense float32 (L, d); None if no two can be far apart."""
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
        return None  # no negative entries, as in TF-IDF: no cosine distance can be above 1
    if not is_canonical(vectors):
        vectors = vectors.copy()
        vectors.sum_duplicates()
    return vectors
