"""Parabel (Prabhu et al. 2018): balanced binary label trees, three of them.

longtail train DATA --recipe parabel --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from longtail.core.labels import Labels
from longtail.core.parameters import param
from longtail.labels.tree import LabelTree
from longtail.linear.recipe import ClusteredRecipe


@dataclass(frozen=True)
class Parabel(ClusteredRecipe):
    """Clusters are halved until they hold at most `leaf_size` labels; the scores of the trees are averaged.

    Nodes are squared-hinge classifiers, as in the authors' code and in omikuji; their scores go through l3-hinge.
    """

    name = "parabel"
    title = "three balanced binary label trees, averaged"
    paper = "Prabhu et al. 2018"

    trees: int = param(3, "trees trained with different seeds, their scores averaged", at_least=1, at_most=100)
    leaf_size: int = param(100, "labels in a cluster, at most", at_least=2, at_most=100_000)  # paper: 100

    def tree(self, Z: sp.csr_matrix, labels: Labels, seed: int) -> LabelTree:
        """Balanced clusters, two below each node."""
        return LabelTree.balanced(Z, 2, self.leaf_size, seed)
