"""Where a new label belongs in a label tree, by its text and those of the labels that are near it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail._native.linear import BeamSearch
from longtail.core.ranking import scores_csr
from longtail.core.texts import Texts
from longtail.data.sparse import csr
from longtail.linear.blocks import FeatureBlock, in_column_order
from longtail.linear.ranker import BIAS, Ranker
from longtail.search.sparse import SparseIndex

NEAREST = 10  # known labels with the nearest texts: they vote on the cluster of a new one
CLUSTERS = 10  # best clusters of a text that count
BLOCK = 8192  # new labels placed at a time


@dataclass(frozen=True)
class Newcomers:
    """M new labels of a model of L: features of the texts of both, and the similarity of the nearest (M, L).

    Removed labels have empty rows in `known` (L, d) and are near nothing. Similar are texts with the same words; a
    dense block, whose columns come last here too, has no part in that.
    """

    known: sp.csr_matrix
    own: sp.csr_matrix
    near: sp.csr_matrix

    @classmethod
    def of(cls, texts: Texts, L: int, removed: NDArray[np.bool_] | None, blocks: Sequence[FeatureBlock]) -> Newcomers:
        """The labels from index L on, from the texts and tombstones of all; `blocks` are the model's and read texts."""
        placed = [block for _, block in in_column_order(blocks)]
        words = sp.hstack([block.encode(texts) for block in placed if not block.dense], format="csr")
        dense = [sp.csr_matrix(block.encode(texts)) for block in placed if block.dense]
        vectors = sp.hstack([words, *dense], format="csr") if dense else words
        kept = np.ones(L, bool) if removed is None else ~removed[:L]
        near, similarity = SparseIndex.of(without_rows(words[:L], kept)).nearest(words[L:], min(NEAREST, L))
        return cls(without_rows(vectors[:L], kept), vectors[L:], scores_csr(near, similarity, L))

    @property
    def silent(self) -> NDArray[np.bool_]:
        """The new labels (M,) whose text holds no known word."""
        return np.diff(self.own.indptr) == 0


def without_rows(rows: sp.csr_matrix, kept: NDArray[np.bool_]) -> sp.csr_matrix:
    """The same with empty rows where `kept` is false."""
    if kept.all():
        return rows
    left = (sp.diags(kept.astype(np.float32)) @ rows).tocsr().astype(np.float32)
    left.eliminate_zeros()
    return left


def places(ranker: Ranker, new: Newcomers, post: str) -> NDArray[np.int64]:
    """The cluster (M,) of the last level of clusters that each new label joins.

    The tree's own classifiers choose it: the best cluster over the label's text and the texts of its nearest labels,
    weighted by the square of their similarity. Points that should get the label resemble these texts, and so take the
    same path. A label without known words goes to the smallest cluster.
    """
    M, tree = new.own.shape[0], ranker.tree
    if len(tree.levels) == 1:
        return np.zeros(M, np.int64)
    search = BeamSearch(ranker.width, ranker.levels[:-1])
    sizes = np.diff(tree.levels[-2])
    clusters = np.empty(M, np.int64)
    for first in range(0, M, BLOCK):
        own, near = new.own[first : first + BLOCK], new.near[first : first + BLOCK]
        asked, columns = np.unique(near.indices, return_inverse=True)
        shares = csr(near.indptr, columns.astype(np.int32), near.data**2, (near.shape[0], len(asked)))
        votes = reached(search, own, len(sizes), post)
        if len(asked):
            votes = (votes + shares @ reached(search, new.known[asked], len(sizes), post)).tocsr()
        clusters[first : first + BLOCK] = _native.top_k(votes, 1)[0][:, 0]
    silent = np.flatnonzero(new.silent | (clusters < 0))
    roomy = np.argsort(sizes, kind="stable")
    clusters[silent] = roomy[np.arange(len(silent)) % len(roomy)]
    return clusters


def reached(search: BeamSearch, rows: sp.csr_matrix, K: int, post: str) -> sp.csr_matrix:
    """The scores of the best of K clusters for each row (N, K)."""
    best = search.search(rows, bias=BIAS, beam=CLUSTERS, k=min(CLUSTERS, K), post=post)
    return scores_csr(*best, K)
