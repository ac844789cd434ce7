"""Kernels for label graphs: co-occurrence and random walks, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail._native import Csr, _kernels, csr_arrays

CsrArrays = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
MOST = 2**31  # above any number of labels or points
NO_VECTORS = (np.empty((0, 0), np.float32), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))


class LabelGraph:
    """Graphs over the labels of Y (N, L). Each stored entry counts as 1; a row must not contain a label twice.

    Rows are returned as CSR arrays with ascending columns, one for each requested label, in the requested order.
    """

    def __init__(self, Y: Csr):
        self._graph = _kernels.LabelGraph(*csr_arrays(Y)[:2], Y.shape[1])

    def cooccurrence(
        self, labels: NDArray[np.int32], *, threshold: float, shrink: float, symmetric: bool, top: int | None
    ) -> CsrArrays:
        """Return G_ij/(G_jj + shrink), or ½(G_ij/G_jj + G_ij/G_ii), if above `threshold`; 1 at j itself.

        A row has at most `top` entries, including j.
        """
        return self._graph.cooccurrence(labels, threshold, shrink, symmetric, 0 if top is None else min(top, MOST))

    def walk(
        self,
        labels: NDArray[np.int32],
        *,
        hops: int,
        restart: float,
        top: int,
        head: int,
        seed: int,
        vectors: Csr | NDArray[np.float32] | None,
    ) -> CsrArrays:
        """Count visits to each label in `hops` hops from j; `vectors` (L, d) exclude labels that point away from j."""
        arrays: tuple[NDArray[np.generic], ...] = NO_VECTORS
        if isinstance(vectors, np.ndarray):
            arrays = (np.ascontiguousarray(vectors, np.float32), *NO_VECTORS[1:])
        elif vectors is not None:
            arrays = (NO_VECTORS[0], *csr_arrays(vectors))
        return self._graph.walk(labels, hops, restart, min(top, MOST), min(head, MOST), seed % 2**64, *arrays)
