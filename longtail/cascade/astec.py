"""Astec: word vectors on clusters of labels, then free classifiers on a shortlist of what is near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from longtail.cascade.bags import BLOCK, BagCascade
from longtail.cascade.level import Level
from longtail.cascade.mixing import LABELS, META, Mixing
from longtail.cascade.nearby import Nearby
from longtail.cascade.network import Corpus, cluster, tree_arrays
from longtail.cascade.weights import Free
from longtail.encoders.bag import BagEncoder
from longtail.encoders.table import Table
from longtail.labels.represent import pifa
from longtail.store.parts import pack_csr
from longtail.train.learner import Phase, Structure


@dataclass(frozen=True)
class Shape:
    """How large it is, and what its clusters and shortlists are made of."""

    clusters: int
    neighbours: int
    shortlist: int
    dropout: float
    seed: int
    graph: sp.csr_matrix  # Ĝ (L, L), by which centroids are smoothed before they are clustered


class AstecNetwork(BagCascade):
    """Phase `surrogate`: word vectors and residual block, on clusters; `labels`: residual block and classifiers."""

    def __init__(self, corpus: Corpus, E: Table, phases: list[Phase], shape: Shape, mixing: Mixing | None = None):
        # `near` is what shortlists are made by; from where it is when they are, `text` goes on
        super().__init__(corpus, BagEncoder(E, ("near", "text"), "astec", shape.dropout), phases, 1, mixing)
        self.shape = shape
        self.nearby: Nearby | None = None

    def structure(self, phase: Phase) -> Structure:
        """Clusters of smoothed TF-IDF centroids; then, with word vectors as they are, everyone's shortlist."""
        if phase.name == "surrogate":
            Z = self.shape.graph @ pifa(self.rows_of_points(), self.corpus.Y)
            return tree_arrays(cluster(Z, self.shape.clusters, self.shape.seed))
        features = self.features("near")
        nearby = Nearby.of(features, self.corpus.Y, self.shape.neighbours, self.shape.shortlist)
        blocks = np.array_split(np.arange(self.points), -(-self.points // BLOCK))
        found = [nearby.shortlist(features[rows], own=rows)[0] for rows in blocks]
        return {"features": features, "shortlist": np.concatenate(found)}

    def build(self, phase: Phase, structure: Structure) -> None:
        """The level that the phase trains; the clusters' is of no more use after its phase."""
        D = self.bags.E.width
        if phase.name == "surrogate":
            self.set_tree(structure)
            K = len(structure["clusters"]) - 1
            self.set_level(META, Level(K, "near", Free(Table.random(K, D, 0.02)), self.cluster_bias()))
            return
        if str(META) in self.levels:
            self.levels.pop(str(META))
        self.copy_residual("near", "text")
        self.static = torch.from_numpy(np.require(structure["shortlist"], np.int32, "W"))
        size = (self.shape.neighbours, self.shape.shortlist)
        self.nearby = Nearby.of(structure["features"], self.corpus.Y, *size)
        L = self.corpus.Y.shape[1]
        bias = self.label_bias(self.static.shape[1])
        self.set_level(LABELS, Level(L, "text", Free(Table.random(L, D, 0.02)), bias))

    def static_labels(self, points: Tensor) -> Tensor:
        """(B, S)."""
        if self.static is None:
            raise RuntimeError("labels are trained on a shortlist made beforehand")
        return self.static[points].long()

    @torch.no_grad()
    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What prediction needs."""
        if self.nearby is None:
            raise RuntimeError("it is not trained")
        self.eval()
        arrays, meta = self.bags.arrays()
        arrays |= self.level_arrays(LABELS, "label")
        arrays |= {"near.centroids": self.nearby.centroids, "near.points": self.nearby.points}
        arrays |= pack_csr("near.Y", self.nearby.Y)
        near = {"neighbours": self.shape.neighbours, "size": self.shape.shortlist, "beta": 0.5}
        return arrays, meta | {"label": "text", "near": near}
