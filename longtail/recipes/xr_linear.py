"""XR-Linear (Yu et al., PECOS, 2022): one-vs-all linear classifiers down a tree of label clusters.

longtail train DATA --recipe xr-linear --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import scipy.sparse as sp

from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.labels.tree import LabelTree
from longtail.linear.train import label_vectors
from longtail.recipes.linear import LinearTreeRecipe


@dataclass(frozen=True)
class XRLinear(LinearTreeRecipe):
    """Labels are clustered by the mean of their training points (PIFA) with balanced 2-means.

    A node's classifier is trained on the points for which its parent is true, so each level only learns to tell
    siblings apart; prediction keeps the `beam` best nodes of each level. Left out of what the papers offer: costs by
    relevance, the logistic loss, and clustering by label texts.
    """

    name = "xr-linear"
    title = "linear classifiers down a balanced label tree, beam search"
    paper = "PECOS, Yu et al. 2022"

    branching: Literal[2, 4, 8, 16, 32, 64] = param(16, "children of a node of the tree")  # PECOS: 16
    leaf_size: int = param(100, "labels in a cluster, at most", at_least=2, at_most=1000)  # PECOS: 100

    def tree(self, X: sp.csr_matrix, Y: sp.csr_matrix, run: Run) -> LabelTree:
        """Balanced clusters of the labels' PIFA vectors."""
        return LabelTree.balanced(label_vectors(X, Y), self.branching, self.leaf_size, run.seed)
