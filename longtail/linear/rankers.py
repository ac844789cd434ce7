"""Rankers on Φ_cat = [TF-IDF ; embedding] (paper 003, eq. 10): linear classifiers as a transformer's last stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from longtail._native.linear import Weights
from longtail.core.parameters import Parameters, param
from longtail.core.run import Run
from longtail.labels.represent import pifa_of_blocks
from longtail.labels.tree import LabelTree
from longtail.linear.model import BeamSettings
from longtail.linear.parameters import LinearParameters
from longtail.linear.ranker import Ranker
from longtail.linear.train import Training, train_ranker


@dataclass(frozen=True)
class Rankers(Parameters):
    """Which rankers, and how they are solved and searched: the `ranker` of a recipe.

    `dismec` solves each label against all points (paper 002, A.3). `xr-linear` clusters labels anew by the same
    features (the refined tree of paper 003) and solves that tree with teacher-forced negatives, on its last level with
    matcher-aware ones too and at twice the cost. There a label's margin is its score.
    """

    kind = "ranker"
    method: Literal["none", "dismec", "xr-linear"] = param("none", "linear classifiers on TF-IDF and embedding")
    C: float = param(1.0, "cost of errors against the size of weights", above=0.0)  # papers: 1
    negative: float = param(1.0, "cost of errors on negatives, as a multiple", above=0.0)  # released: 1 – 2
    costs: Literal["equal", "counts"] = param("equal", "counts: a node costs by its share of the point's labels")
    prune: float | None = param(None, "weights smaller than this are dropped (none: by method)", at_least=0.0)
    leaf_size: int = param(100, "labels in a cluster of the refined tree, at most", at_least=2)  # released: 16 – 100
    branching: int = param(32, "children of a node of the refined tree", at_least=2)  # released: 8 – 32
    beam: int = param(75, "nodes kept at each level of the search", at_least=1)  # released: 75 – 100
    features: Literal["both", "embedding"] = param("both", "embedding: without words, to compare")
    scale: float = param(1.0, "length of an embedding beside TF-IDF rows of length 1", above=0.0)

    def settings(self) -> tuple[LinearParameters, LinearParameters]:
        """The settings of the solver on the levels above the labels, and on that of the labels."""
        if self.method == "dismec":
            flat = self.solver(prune=0.01, solver="newton", eps=0.01, post="none")
            return flat, flat
        return self.solver(), self.solver(2.0, negatives="tfn+man", post="l3-hinge+none")

    def solver(self, times: float = 1.0, prune: float = 0.001, **others: Any) -> LinearParameters:
        """Settings of the solver with these costs, `times` as high; most weights of embeddings are below 0.1."""
        C = times * self.C
        prune = prune if self.prune is None else self.prune
        return LinearParameters(C=C, C_negative=self.negative * C, costs=self.costs, prune=prune, **others)

    def tree(self, data: Training, seed: int) -> LabelTree:
        """The refined tree, from PIFA of all features; for dismec no clusters."""
        if self.method == "dismec" or data.features.dense is None:
            return LabelTree.flat(data.Y.shape[1])
        Z = pifa_of_blocks(data.features.sparse, data.features.dense, data.Y)  # (L, V + d)
        return LabelTree.balanced(Z, self.branching, self.leaf_size, seed)

    def train(
        self, data: Training, run: Run, tree: LabelTree | None = None, first: Sequence[Weights] = ()
    ) -> tuple[Ranker, BeamSettings]:
        """The ranker of a tree (None: `tree`), whose levels `first` are given, and how it is searched."""
        above, last = self.settings()
        tree = self.tree(data, run.seed) if tree is None else tree
        ranker = train_ranker(data, tree, above, run, last=last, solved_before=first)
        return ranker, BeamSettings(self.beam, last.post)
