"""DiSMEC (Babbar, Schölkopf 2017): a linear classifier for every label, against all other points.

longtail train DATA --recipe dismec --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import scipy.sparse as sp

from longtail.core.labels import Labels
from longtail.core.parameters import param
from longtail.encoders.tfidf import Tfidf
from longtail.labels.tree import LabelTree
from longtail.linear.recipe import LinearRecipe
from longtail.linear.train import Training


@dataclass(frozen=True)
class Dismec(LinearRecipe):
    """No tree: the classifier of a label is trained on all points, and prediction scores every label.

    Exact where trees approximate, and therefore slower. Labels are solved in blocks. The weights of a block are pruned
    at once and, if the run has a folder, saved there: memory use stays at the size of the pruned model.
    """

    name = "dismec"
    title = "one-vs-all linear classifiers without a tree, exact search"
    paper = "Babbar & Schölkopf 2017"

    solver: Literal["dcd", "newton"] = param("newton", "dual coordinate descent, or Newton's method")  # paper: Newton
    eps: float = param(0.01, "how far from optimal the solver may stop", above=0.0)  # paper: 0.01
    prune: float = param(0.01, "weights smaller than this are dropped", at_least=0.0)  # paper: 0.01
    negatives: Literal["tfn"] = param("tfn", "every other point is a negative: there is no level above")
    trees: Literal[1] = param(1, "there is no tree, so there is nothing to average")

    def tree(self, Z: sp.csr_matrix, labels: Labels, seed: int) -> LabelTree:
        """All labels under the root."""
        return LabelTree.flat(len(labels))

    def label_vectors(self, data: Training, labels: Labels, encoder: Tfidf | None) -> sp.csr_matrix:
        """Empty vectors: nothing is clustered."""
        return sp.csr_matrix((len(labels), data.features.width), dtype="float32")
