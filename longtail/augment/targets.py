"""What labels the text of a label has: a row of soft targets for each (paper 001, section 1.3)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.augment.settings import Augmentation
from longtail.labels.graph import cooccurrence, symmetric, walk


def label_targets(Y: sp.csr_matrix, settings: Augmentation, seed: int) -> sp.csr_matrix:
    """The targets (L, L) of all label texts: row j is label j as a point, from the original Y (N, L) alone.

    On the diagonal stands 1, for labels that never occur too; only `glas` may have σ(1) there.
    """
    if settings.method == "self":
        return sp.identity(Y.shape[1], dtype=np.float32, format="csr")
    if settings.method == "glas":
        return glas(Y, one=settings.self_target == "one")
    if settings.method == "walk":
        visits = walk(
            Y, hops=settings.hops, restart=settings.restart, top=settings.top, head=settings.head, seed=seed
        )
        return of_visits(visits, settings.delta)
    shrink = settings.shrink if settings.method == "gandalf-shrunk" else 0.0
    return cooccurrence(Y, threshold=settings.delta, shrink=shrink)  # eq. 1.6


def glas(Y: sp.csr_matrix, one: bool) -> sp.csr_matrix:
    """σ(S) where labels occur together, S = ½(P[i|j] + P[j|i]) (eq. 1.9); elsewhere 0, not σ(0)."""
    S = symmetric(Y)
    S.data = (1 / (1 + np.exp(-S.data))).astype(np.float32)
    if one:
        S.setdiag(1)
    return S


def of_visits(visits: sp.csr_matrix, delta: float) -> sp.csr_matrix:
    """Visit counts as targets: a row divided by its diagonal, at most 1, and 0 up to δ; the diagonal is 1."""
    targets = visits.copy()
    own = np.maximum(visits.diagonal(), 1)
    targets.data = np.minimum(visits.data / np.repeat(own, np.diff(visits.indptr)), 1).astype(np.float32)
    targets.data[targets.data <= delta] = 0
    targets.setdiag(1)
    targets.eliminate_zeros()
    return targets
