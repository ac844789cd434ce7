"""The soft targets of label texts: one row for each (paper 001, section 1.3)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.augment.settings import Augmentation
from longtail.core.progress import Progress
from longtail.data.sparse import csr
from longtail.labels.graph import cooccurrence, symmetric, walk


def label_targets(
    Y: sp.csr_matrix, rows: NDArray[np.int64], settings: Augmentation, seed: int, progress: Progress | None = None
) -> sp.csr_matrix:
    """Return the targets (len(rows), L) of the texts of labels `rows`, from the original Y (N, L) only.

    A label's target at its own text is 1, even if the label never occurs; only in `glas` it may be σ(1).
    """
    if settings.method == "self":
        return csr(np.arange(len(rows) + 1), rows, np.ones(len(rows), np.float32), (len(rows), Y.shape[1]))
    if settings.method == "glas":
        return glas(symmetric(Y, labels=rows, progress=progress), rows, one=settings.self_target == "one")
    if settings.method == "walk":
        options = {name: getattr(settings, name) for name in ("hops", "restart", "top", "head")}
        return of_visits(walk(Y, **options, seed=seed, labels=rows, progress=progress), rows, settings.delta)
    shrink = settings.shrink if settings.method == "gandalf-shrunk" else 0.0
    return cooccurrence(Y, threshold=settings.delta, shrink=shrink, labels=rows, progress=progress)  # eq. 1.6


def glas(S: sp.csr_matrix, rows: NDArray[np.int64], one: bool) -> sp.csr_matrix:
    """Return σ(S) where labels occur together, S = ½(P[i|j] + P[j|i]) (eq. 1.9); elsewhere 0, not σ(0)."""
    S.data = (1 / (1 + np.exp(-S.data))).astype(np.float32)
    if one:
        S.data[own(S, rows)] = 1
    return S


def of_visits(visits: sp.csr_matrix, rows: NDArray[np.int64], delta: float) -> sp.csr_matrix:
    """Convert visit counts to targets: each row divided by the count of its own label, capped at 1, and 0 if at most δ.

    The row's own label has target 1.
    """
    home = own(visits, rows)
    visits.data = np.minimum(visits.data / np.repeat(visits.data[home], np.diff(visits.indptr)), 1).astype(np.float32)
    visits.data[(visits.data <= delta) & ~home] = 0
    visits.eliminate_zeros()
    return visits


def own(graph: sp.csr_matrix, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the stored entries on the rows' own labels: one in each row."""
    return np.asarray(graph.indices == np.repeat(rows, np.diff(graph.indptr)))
