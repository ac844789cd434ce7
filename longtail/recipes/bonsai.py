"""Bonsai (Khandagale, Xiao, Babbar 2020): wide, shallow label trees without balance.

longtail train DATA --recipe bonsai --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from longtail.core.labels import Labels
from longtail.core.parameters import param
from longtail.labels.tree import LabelTree
from longtail.linear.recipe import ClusteredRecipe


@dataclass(frozen=True)
class Bonsai(ClusteredRecipe):
    """K-means with `branching` clusters at every node of more than `leaf_size` labels; clusters may differ in size.

    A shallow tree has fewer levels on which an error can be made, and clusters of any size do not force unrelated rare
    labels together. The paper clusters by points, by co-occurrence or by both: `represent` and `neighbours`.
    """

    name = "bonsai"
    title = "wide, shallow label trees without balance"
    paper = "Khandagale et al. 2020"

    trees: int = param(3, "trees trained with different seeds, their scores averaged", at_least=1, at_most=100)  # paper
    branching: int = param(100, "clusters that a node is split into, at most", at_least=2, at_most=10_000)  # paper: 100
    leaf_size: int = param(100, "clusters with more labels are split", at_least=2, at_most=100_000)
    depth: int = param(2, "levels of clusters, at most", at_least=1, at_most=10)  # paper: 2 or 3 levels in all
    prune: float = param(0.01, "weights smaller than this are dropped", at_least=0.0)  # paper: 0.01

    def tree(self, Z: sp.csr_matrix, labels: Labels, seed: int) -> LabelTree:
        """Unbalanced clusters, at most `branching` below each node."""
        return LabelTree.wide(Z, self.branching, self.leaf_size, seed, self.depth)
