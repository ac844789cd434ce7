"""Clusters of similar points, for batches whose labels are each other's hard negatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail.labels.tree import LabelTree
from longtail.search.dense import Floats


def clusters_of(texts: Floats, size: int, seed: int) -> NDArray[np.int32]:
    """Clusters (N,) of about `size` similar texts each, all of nearly the same size, by balanced k-means.

    `texts` are vectors (N, d).
    """
    count = max(1, round(len(texts) / size))
    if count == 1:
        return np.zeros(len(texts), np.int32)
    if count == len(texts):
        return np.arange(count, dtype=np.int32)
    return LabelTree.in_clusters(texts, [count], seed).nodes(0).astype(np.int32)
