"""XR-Linear (Yu et al., PECOS, 2022): one-vs-all linear classifiers down a tree of label clusters.

longtail train DATA --recipe xr-linear --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp

from longtail.core.labels import Labels
from longtail.core.parameters import param
from longtail.labels.hierarchy import read_hierarchy
from longtail.labels.tree import LabelTree
from longtail.linear.recipe import ClusteredRecipe


@dataclass(frozen=True)
class XRLinear(ClusteredRecipe):
    """Labels are clustered by the mean of their training points (PIFA) with balanced 2-means.

    A node's classifier is trained on the points for which its parent is true, so each level only learns to tell
    siblings apart; with tfn+man also on points that the levels above send there by mistake. Prediction keeps the `beam`
    best nodes of each level. With `costs=counts` a node's cost is its share of a point's labels (paper 003, eq. 9).
    """

    name = "xr-linear"
    title = "linear classifiers down a balanced label tree, beam search"
    paper = "PECOS, Yu et al. 2022"

    branching: int = param(16, "children of a node of the tree", at_least=2, at_most=10_000)  # PECOS: 16
    leaf_size: int = param(100, "labels in a cluster, at most", at_least=2, at_most=100_000)  # PECOS: 100
    depth: int | None = param(None, "levels of clusters, instead of a branching", at_least=0, at_most=30)
    hierarchy: str | None = param(None, "file with your own hierarchy: the parent of each node and label")

    def check_corpus(self, corpus: Any) -> None:
        """Refuse a hierarchy that lacks a label, before time is spent on features."""
        super().check_corpus(corpus)
        if self.hierarchy is not None:
            read_hierarchy(self.hierarchy, corpus.labels)

    def tree(self, Z: sp.csr_matrix, labels: Labels, seed: int) -> LabelTree:
        """Balanced clusters, or the given hierarchy."""
        if self.hierarchy is not None:
            return read_hierarchy(self.hierarchy, labels)
        return LabelTree.balanced(Z, self.branching, self.leaf_size, seed, self.depth)
