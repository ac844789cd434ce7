"""Networks that are trained on clusters of labels, from coarse to fine, and never see more of the labels than these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.labels.tree import LabelTree
from longtail.scoring.points import Points


def coarse_points(points: Points, tree: LabelTree, t: int) -> Points:
    """The points with the nodes of level t as their labels (eq. 5); a node all of whose labels are ignored is ignored.

    There are no label texts then.
    """
    if t == len(tree.levels) - 1:
        return points
    ignore = None if points.ignore is None else tree.all_of(points.ignore, t)
    return replace(points, Y=tree.targets(points.Y, t), ignore=ignore, label_tokens=None, label_rows=None)


def as_matches(lists: NDArray[np.int32], K: int) -> sp.csr_matrix:
    """Lists of nodes (N, S), padded by −1, as a matrix (N, K)."""
    real = lists >= 0
    ptr = np.append(0, np.cumsum(real.sum(1)))
    found = sp.csr_matrix((np.ones(int(ptr[-1]), bool), lists[real], ptr), (len(lists), K))
    found.sort_indices()
    return found


def relevance(tree: LabelTree, Y: sp.csr_matrix, t: int, normalised: bool) -> sp.csr_matrix:
    """R^(t) (N, K_t), eq. 6: how many labels of a point are below each node; or R̂^(t), its rows scaled to sum 1."""
    R = tree.counts(Y, t)
    R.sort_indices()
    if normalised:
        R.data /= np.repeat(np.maximum(np.asarray(R.sum(1)).ravel(), 1), np.diff(R.indptr))
    return R
