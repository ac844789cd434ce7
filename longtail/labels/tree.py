"""The label tree: labels in clusters, clusters in clusters (XR-Transformer, section 3; PECOS; Parabel; Bonsai)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.linear import cluster_order
from longtail.core.errors import DataError, ParameterError

ROUNDS = 20  # of 2-means at each split, at most


@dataclass(frozen=True, eq=False)
class LabelTree:
    """`order` (L,) lists the labels from left to right. Level t has K_t nodes, each a stretch of that order.

    `levels[t]` (K_t + 1,) are the ends of the stretches; a level cuts those of the one before, and on the last every
    label is a node. The root is not a level: K_0 = 1.
    """

    order: NDArray[np.int32]
    levels: tuple[NDArray[np.int64], ...]

    @classmethod
    def balanced(cls, Z: sp.csr_matrix, branching: int, leaf_size: int, seed: int) -> LabelTree:
        """Balanced 2-means of the label vectors Z (L, d), cut in halves until a cluster has at most `leaf_size` labels.

        Halves of halves are then joined to levels of `branching` children (a power of two); the first level takes
        what is left over. Sizes of clusters differ by at most one. A label with an empty vector gets a place too.
        A split ends after ROUNDS rounds, or sooner when a round moves next to nothing.
        """
        L = Z.shape[0]
        if leaf_size < 2:  # halving would leave empty clusters
            raise ParameterError(f"leaf_size must be at least 2, but is {leaf_size}")
        depth = max(0, math.ceil(math.log2(L / leaf_size))) if leaf_size < L else 0
        step = branching.bit_length() - 1
        order = cluster_order(Z, depth, rounds=ROUNDS, seed=seed)
        depths = range(depth - (depth - 1) // step * step, depth + 1, step) if depth else ()
        return cls(order, (*(halves(L, d) for d in depths), np.arange(L + 1)))

    def __len__(self) -> int:
        return len(self.order)

    def child_ptr(self, t: int) -> NDArray[np.int64]:
        """For each node of level t − 1 (the root for t = 0) where its children begin among the nodes of level t."""
        parents = np.array([0, len(self)]) if t == 0 else self.levels[t - 1]
        return np.searchsorted(self.levels[t], parents).astype(np.int64)

    def nodes(self, t: int) -> NDArray[np.int64]:
        """The node of level t above each label (L,), by label index."""
        above = np.empty(len(self), np.int64)
        above[self.order] = np.repeat(np.arange(len(self.levels[t]) - 1), np.diff(self.levels[t]))
        return above

    def targets(self, Y: sp.csr_matrix, t: int) -> sp.csr_matrix:
        """Y^(t) (N, K_t), eq. 5: a node's target is the largest of the labels below it."""
        nodes, K = self.nodes(t)[Y.indices], len(self.levels[t]) - 1
        if (Y.data == 1).all():  # the largest is 1: no need to look which
            coarse = sp.csr_matrix((Y.data.copy(), nodes.astype(np.int32), Y.indptr.copy()), shape=(Y.shape[0], K))
            coarse.sum_duplicates()
            coarse.data[:] = 1
            return coarse
        rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
        order = np.lexsort((-Y.data, nodes, rows))  # the largest target of a node comes first
        rows, nodes, values = rows[order], nodes[order], Y.data[order]
        first = np.ones(len(rows), bool)
        first[1:] = (rows[1:] != rows[:-1]) | (nodes[1:] != nodes[:-1])
        indptr = np.append(0, np.cumsum(np.bincount(rows[first], minlength=Y.shape[0])))
        return sp.csr_matrix((values[first], nodes[first], indptr), shape=(Y.shape[0], K))

    def check(self, L: int) -> None:
        """Refuse a tree that is not one of L labels."""
        if len(self) != L or not np.array_equal(np.sort(self.order), np.arange(L)):
            raise DataError(
                f"the tree has {len(self):,} labels, the data {L:,}", fix="a tree must hold each label once"
            )


def halves(size: int, depth: int) -> NDArray[np.int64]:
    """The ends of the 2^depth stretches that `size` falls into when it is halved `depth` times."""
    ends = np.array([0, size])
    for _ in range(depth):
        middles = ends[:-1] + (np.diff(ends) + 1) // 2
        ends = np.sort(np.concatenate([ends, middles]))
    return ends
