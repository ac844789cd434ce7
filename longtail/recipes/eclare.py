"""ECLARE (Mittal et al., WWW 2021): DECAF with a graph of labels, in the classifiers and in prediction.

longtail train DATA --recipe eclare --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.core.parameters import param
from longtail.recipes.bags import Read, mixing_of
from longtail.recipes.decaf import Decaf
from longtail.recipes.walked import WithGraph

if TYPE_CHECKING:
    from longtail.train.learner import Learner


@dataclass(frozen=True)
class Eclare(WithGraph, Decaf):
    """The weights of label l are an attention-weighted sum of R₁(E z_l), R₂(Σ_m Ĝ_lm E z_m) and a free row w_l.

    Ĝ is the normalised graph of random walks over labels; clusters are made from centroids joined by their
    neighbours', and w_l starts at Ĝ E z. Phases and the small preset are those of DECAF. In prediction scores walk
    the graph once, of the clusters and then of the labels: s ← ½ s + ½ topk(s·Ĝ).
    """

    name = "eclare"
    title = "DECAF with a graph of labels in classifiers and prediction"
    paper = "ECLARE, Mittal et al. 2021"

    clusters: int = param(32768, "of labels", at_least=1)  # paper: 2^15 for 131K labels
    beam: int = param(50, "clusters whose labels are a point's shortlist", at_least=1)  # paper: 20 – 50

    def network(self, read: Read, seed: int) -> Learner:
        """The network and its phases."""
        from longtail.cascade.shallow import Shallow, Shape

        graph = self.graph(read.Y, seed)
        shape = Shape("eclare", self.clusters, self.beam, self.dropout, seed, graph)
        return Shallow(self.corpus(read), self.words(read), self.phases(), shape, mixing_of(self.augment))
