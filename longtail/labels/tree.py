"""The label tree: labels in clusters, clusters in clusters (XR-Transformer, section 3; PECOS; Parabel; Bonsai)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.linear import cluster_order, cluster_wide
from longtail.core.errors import DataError, ParameterError

ROUNDS = 20  # of k-means at each split, at most


@dataclass(frozen=True, eq=False)
class LabelTree:
    """A tree over L labels; on every level, each node is a range of one common order of the labels.

    `order` (L,) lists the labels from left to right. `levels[t]` (K_t + 1,) are the boundaries of the K_t nodes of
    level t; each level divides the ranges of the level before it, and on the last level every label is a node. The root
    is not stored as a level.
    """

    order: NDArray[np.int32]
    levels: tuple[NDArray[np.int64], ...]

    @classmethod
    def flat(cls, L: int) -> LabelTree:
        """The tree with all L labels directly under the root: plain one-vs-all."""
        return cls(np.arange(L, dtype=np.int32), (np.arange(L + 1),))

    @classmethod
    def balanced(
        cls, Z: sp.csr_matrix, branching: int, leaf_size: int, seed: int, depth: int | None = None
    ) -> LabelTree:
        """Balanced spherical 2-means on the label vectors Z (L, d), until clusters have at most `leaf_size` labels.

        Each node has `branching` children, made by repeated halving; the first level may have fewer. If `depth` (levels
        of clusters) is given, the branching follows from it. Cluster sizes of a level differ by at most one. Labels
        with an empty vector are placed too. A halving stops after ROUNDS rounds, or earlier when a round changes almost
        nothing.
        """
        L = Z.shape[0]
        if leaf_size < 2:  # clusters of fewer labels would be empty, or the labels themselves
            raise ParameterError(f"leaf_size must be at least 2, but is {leaf_size}")
        return cls._halved(Z, level_sizes(L, branching, leaf_size, depth), seed)

    @classmethod
    def in_clusters(cls, Z: Any, sizes: Sequence[int], seed: int) -> LabelTree:
        """Balanced clusters of the label vectors Z (L, d), sparse or dense: `sizes[t]` of them on level t.

        Each size must be a multiple of the one before. A level of at least L clusters has one for each label.
        """
        L = Z.shape[0]
        for size, before in zip(sizes[1:], sizes, strict=False):
            if size % before:
                raise ParameterError(
                    f"levels of {before:,} and {size:,} clusters: each must be a multiple of the one before"
                )
        coarse = [size for size in sizes if size < L]
        tree = cls._halved(sp.csr_matrix(Z), coarse, seed)
        return cls(tree.order, (*tree.levels[:-1], *[np.arange(L + 1)] * (len(sizes) - len(coarse) + 1)))

    @classmethod
    def _halved(cls, Z: sp.csr_matrix, sizes: Sequence[int], seed: int) -> LabelTree:
        """The balanced tree with `sizes[t]` clusters on level t."""
        L = Z.shape[0]
        order = cluster_order(Z, cuts(L, sizes), rounds=ROUNDS, seed=seed)
        return cls(order, (*(np.unique(stretches(L, size)) for size in sizes), np.arange(L + 1)))

    @classmethod
    def wide(cls, Z: sp.csr_matrix, branching: int, leaf_size: int, seed: int, depth: int) -> LabelTree:
        """Spherical k-means without balancing (Bonsai): clusters of more than `leaf_size` labels are divided further.

        Each is divided into up to `branching` clusters, on at most `depth` levels. A cluster that is small enough
        before the last level has one child, which is the same cluster.
        """
        L = Z.shape[0]
        nodes: list[NDArray[np.int64]] = []
        current = np.zeros(L, np.int64)
        for level in range(depth):
            counts = np.bincount(current)
            large = np.flatnonzero(counts > leaf_size)
            if not len(large):
                break
            parts = np.zeros(L, np.int64)
            by_node = np.split(np.argsort(current, kind="stable"), np.cumsum(counts)[:-1])
            for node in large.tolist():  # few nodes: at most `branching` to the power of the level
                members = by_node[node]
                k = min(branching, len(members))
                parts[members] = cluster_wide(Z[members], k, rounds=ROUNDS, seed=seed + (level << 32) + node)
            current = np.unique(current * branching + parts, return_inverse=True)[1]
            nodes.append(current)
        return cls.from_nodes(L, nodes)

    @classmethod
    def from_nodes(cls, L: int, nodes: Sequence[NDArray[np.int64]]) -> LabelTree:
        """The tree in which label l is below node nodes[t][l] of level t; nodes[t] is (L,), coarse levels first."""
        order = np.lexsort((np.arange(L), *reversed(nodes))).astype(np.int32)
        first = np.zeros(max(L - 1, 0), bool)  # whether a new node starts after this label
        ends = []
        for at in nodes:
            along = at[order]
            first = first | (along[1:] != along[:-1])
            ends.append(np.concatenate([[0], np.flatnonzero(first) + 1, [L]]).astype(np.int64))
        return cls(order, (*ends, np.arange(L + 1)))

    def __len__(self) -> int:
        return len(self.order)

    def down_to(self, t: int) -> LabelTree:
        """The levels 0 … t alone: a tree whose labels are the nodes of level t, by their numbers."""
        if t == len(self.levels) - 1:
            return self
        K = len(self.levels[t]) - 1
        ends = (np.searchsorted(self.levels[t], own).astype(np.int64) for own in self.levels[:t])
        return LabelTree(np.arange(K, dtype=np.int32), (*ends, np.arange(K + 1)))

    def all_of(self, pairs: sp.csr_matrix, t: int) -> sp.csr_matrix:
        """From pairs of points and labels (N, L) those of points and nodes of level t (N, K_t) all of whose labels are
        in a pair with the point."""
        found = self.counts(pairs, t)
        found.data = (found.data == np.diff(self.levels[t])[found.indices]).astype(np.float32)
        found.eliminate_zeros()
        return found

    def child_ptr(self, t: int) -> NDArray[np.int64]:
        """For each node of level t − 1 (for t = 0: the root), where its children start among the nodes of level t."""
        parents = np.array([0, len(self)]) if t == 0 else self.levels[t - 1]
        return np.searchsorted(self.levels[t], parents).astype(np.int64)

    def nodes(self, t: int) -> NDArray[np.int64]:
        """The node of level t that contains each label, by label index: (L,)."""
        above = np.empty(len(self), np.int64)
        above[self.order] = np.repeat(np.arange(len(self.levels[t]) - 1), np.diff(self.levels[t]))
        return above

    def targets(self, Y: sp.csr_matrix, t: int) -> sp.csr_matrix:
        """Y^(t) (N, K_t), eq. 5: the target of a node is the largest target of the labels below it."""
        nodes, K = self.nodes(t)[Y.indices], len(self.levels[t]) - 1
        if (Y.data == 1).all():  # then the largest is always 1
            coarse = self._summed(Y, nodes, K)
            coarse.data[:] = 1
            return coarse
        pairs = np.repeat(np.arange(Y.shape[0]) * K, np.diff(Y.indptr)) + nodes  # (row, node) as one number
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        first = np.flatnonzero(np.diff(pairs, prepend=-1))
        values, found = np.maximum.reduceat(Y.data[order], first), pairs[first]
        indptr = np.searchsorted(found, np.arange(Y.shape[0] + 1) * K)
        return sp.csr_matrix((values, (found % K).astype(np.int32), indptr), shape=(Y.shape[0], K))

    def counts(self, Y: sp.csr_matrix, t: int) -> sp.csr_matrix:
        """R^(t) (N, K_t), eq. 6: how many labels of a point are below a node; entries in the places of `targets`."""
        return self._summed(Y, self.nodes(t)[Y.indices], len(self.levels[t]) - 1)

    def shares(self, Y: sp.csr_matrix, t: int) -> sp.csr_matrix:
        """R̂^(t) (N, K_t), eq. 9: the same as shares of the point's labels, so that rows add up to 1."""
        R = self.counts(Y, t)
        R.data /= np.repeat(np.maximum(np.asarray(R.sum(1)).ravel(), 1), np.diff(R.indptr))
        return R

    def check(self, L: int) -> None:
        """Raise an error unless the tree holds each of L labels once."""
        if len(self) != L or not np.array_equal(np.sort(self.order), np.arange(L)):
            raise DataError(
                f"the tree has {len(self):,} labels, the data {L:,}", fix="a tree must hold each label once"
            )

    @staticmethod
    def _summed(Y: sp.csr_matrix, nodes: NDArray[np.int64], K: int) -> sp.csr_matrix:
        ones = np.ones(Y.nnz, np.float32)
        summed = sp.csr_matrix((ones, nodes.astype(np.int32), Y.indptr.copy()), shape=(Y.shape[0], K))
        summed.sum_duplicates()
        return summed


def level_sizes(L: int, branching: int, leaf_size: int, depth: int | None) -> list[int]:
    """The number of clusters on each level of a balanced tree, from coarse to fine.

    If the branching is a power of two, all clusters come from halving, as in PECOS.
    """
    clusters = -(-L // leaf_size)
    if clusters <= 1 or depth == 0:
        return []
    if depth is not None:
        branching = max(2, math.ceil(clusters ** (1 / depth) - 1e-9))
    if branching & (branching - 1) == 0:
        clusters = 1 << (clusters - 1).bit_length()
    levels = 1
    while branching**levels < clusters:
        levels += 1
    first = -(-clusters // branching ** (levels - 1))
    return [first * branching**t for t in range(levels)]


def stretches(L: int, parts: int) -> NDArray[np.int64]:
    """The boundaries (parts + 1,) that divide L labels into `parts` ranges whose sizes differ by at most one."""
    return np.arange(parts + 1, dtype=np.int64) * L // parts


def cuts(L: int, sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """The halvings that produce the clusters of all levels: rounds of (first, middle, last), see `cluster_order`."""
    rounds: list[NDArray[np.int64]] = []
    begins, parts = np.zeros(1, np.int64), 1  # where each finished node starts, counted in `parts` equal parts
    for size in sizes:
        ends, factor = stretches(L, size), size // parts
        first, last = begins * factor, (begins + 1) * factor  # range of nodes of this level inside each node above
        while (last - first > 1).any():
            divisible = last - first > 1
            low, high = first[divisible], last[divisible]
            middle = (low + high + 1) // 2
            rounds.append(np.stack([ends[low], ends[middle], ends[high]], axis=1))
            first = np.sort(np.concatenate([first, middle]))
            last = np.sort(np.concatenate([last, middle]))
        begins, parts = first, size
    return rounds
