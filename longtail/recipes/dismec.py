"""DiSMEC (Babbar & Schölkopf 2017): one-vs-all linear classifiers over all labels, small weights dropped.

longtail train DATA --recipe dismec --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.labels.tree import LabelTree
from longtail.recipes.linear import LinearTreeRecipe


@dataclass(frozen=True)
class Dismec(LinearTreeRecipe):
    """Every point is a negative of every label it does not have; prediction is exact over all labels.

    The solver is dual coordinate descent where the paper uses Newton-CG: same optimum. Labels are solved a few dozen
    at a time, and only their pruned weights are kept.
    """

    name = "dismec"
    title = "exact one-vs-all linear classifiers, pruned"
    paper = "DiSMEC, Babbar & Schölkopf 2017"

    eps: float = param(0.01, "how far from optimal the solver may stop", above=0.0)  # DiSMEC: 0.01
    prune: float = param(0.01, "weights smaller than this are dropped", at_least=0.0)  # DiSMEC: 0.01

    def tree(self, X: sp.csr_matrix, Y: sp.csr_matrix, run: Run) -> LabelTree:
        """No tree: all labels under the root."""
        return LabelTree.flat(Y.shape[1])
