"""DECAF and ECLARE: bags of words, clusters first, then labels on a shortlist made once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from longtail.cascade.bags import BagCascade
from longtail.cascade.level import Level
from longtail.cascade.mixing import LABELS, META, Mixing
from longtail.cascade.network import Corpus, cluster, tree_arrays
from longtail.cascade.weights import Added, Attended, Free, FromGraph, FromText, LabelWeights
from longtail.data.sparse import normalise_rows
from longtail.encoders.bag import BagEncoder, Bags
from longtail.encoders.residual import Form
from longtail.encoders.table import Table
from longtail.labels.graph import normalised
from longtail.labels.represent import pifa
from longtail.store.parts import pack_csr
from longtail.train.learner import Phase, Structure


@dataclass(frozen=True)
class Shape:
    """What DECAF and ECLARE differ in, and how large they are."""

    form: Form  # of residual blocks
    clusters: int
    beam: int
    dropout: float
    seed: int
    graph: sp.csr_matrix | None = None  # Ĝ (L, L): with it, labels have a graph's side and w_l starts at Ĝ E z (ECLARE)


class Shallow(BagCascade):
    """Phase `surrogate`: word vectors, on clusters without free rows; `meta`: new clusters, E frozen; `labels`."""

    def __init__(self, corpus: Corpus, E: Table, phases: list[Phase], shape: Shape, mixing: Mixing | None = None):
        super().__init__(
            corpus, BagEncoder(E, ("meta", "label"), shape.form, shape.dropout), phases, shape.beam, mixing
        )
        if corpus.texts is None:
            raise RuntimeError("label texts are needed")
        self.shape, self.texts = shape, corpus.texts

    def structure(self, phase: Phase) -> Structure:
        """Clusters from TF-IDF centroids at first, from dense ones before `meta`; shortlists before `labels`."""
        if phase.name == "surrogate":
            return tree_arrays(self.clustered(pifa(self.rows_of_points(), self.corpus.Y)))
        if phase.name == "meta":
            return tree_arrays(self.clustered(self.centroids()))
        return {"clusters": self.best_clusters()}

    def clustered(self, Z: Any) -> Any:
        """Labels by their centroids, in ECLARE joined by those of their neighbours in the graph."""
        if self.shape.graph is not None:
            Z = self.shape.graph @ Z
        return cluster(Z, self.shape.clusters, self.shape.seed)

    def build(self, phase: Phase, structure: Structure) -> None:
        """The level that the phase trains."""
        if phase.name == "labels":
            self.static = torch.from_numpy(np.require(structure["clusters"], np.int32, "W"))
            self.copy_residual("meta", "label")
            self.set_level(
                LABELS,
                self.new_level(self.texts, "label", self.shape.graph, self.label_bias(self.static_width()), free=True),
            )
            return
        self.set_tree(structure)
        texts, graph = self.cluster_texts()
        self.set_level(META, self.new_level(texts, "meta", graph, self.cluster_bias(), free=phase.name == "meta"))

    def cluster_texts(self) -> tuple[sp.csr_matrix, sp.csr_matrix | None]:
        """Of each cluster the texts of its labels, added up (K, V); and the graph of clusters (K, K)."""
        if self.tree is None:
            raise RuntimeError("there are no clusters yet")
        nodes, L = self.tree.nodes(META), len(self.tree)
        C = sp.csr_matrix((np.ones(L, np.float32), (nodes, np.arange(L))))  # (K, L)
        graph = None if self.shape.graph is None else normalised((C @ self.shape.graph @ C.T).tocsr())
        return normalise_rows((C @ self.texts).tocsr()), graph

    def static_width(self) -> int:
        """The labels of a shortlist, pads too."""
        if self.family is None or self.static is None:
            raise RuntimeError("there are no shortlists yet")
        return int(self.static.shape[1] * self.family.children.shape[1])

    def new_level(
        self, texts: sp.csr_matrix, feature: str, graph: sp.csr_matrix | None, bias: Table, free: bool
    ) -> Level:
        """Weights from texts (and the graph), with free rows or without."""
        E, K = self.bags.E, texts.shape[0]
        text = FromText(E, Bags.of(texts), self.shape.form)
        rows = None
        if graph is None:
            if free:
                rows = Free(Table.random(K, E.width, 0.02))
            weights: LabelWeights = text if rows is None else Added(text, rows)
        else:
            around = FromGraph(E, Bags.of(texts), Bags.of(graph), self.shape.form)
            parts: dict[Any, LabelWeights] = {"text": text, "graph": around}
            if free:  # w_l starts at Ĝ E z
                start = graph @ (texts @ E.weight.cpu().numpy())
                parts["free"] = Free(Table(torch.from_numpy(np.asarray(start, np.float32))))
            weights = Attended(parts)
        return Level(K, feature, weights, bias)

    @torch.no_grad()
    def centroids(self) -> np.ndarray:
        """Means of the points' word vectors, label by label (L, D), unit length; without points, the label's text."""
        E = self.bags.E.weight.cpu().numpy()
        v = np.asarray(self.rows_of_points() @ E, np.float32)  # (N, D)
        Z = np.asarray(self.corpus.Y.T @ v, np.float32)
        none = np.asarray(self.corpus.Y.sum(0)).ravel() == 0
        Z[none] = np.asarray(self.texts[none] @ E, np.float32)
        return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)

    @torch.no_grad()
    def best_clusters(self) -> np.ndarray:
        """The `beam` best clusters of each training point (N, beam)."""
        self.eval()
        found = []
        for points in self.blocks():
            logits = self.level(META).logits(self.encoder(self.corpus.tokens.take(points)))
            found.append(logits.topk(min(self.shape.beam, logits.shape[1])).indices.int())
        return torch.cat(found).cpu().numpy()

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What prediction needs."""
        self.eval()
        arrays, meta = self.bags.arrays()
        if self.family is None:
            raise RuntimeError("it is not trained")
        arrays["children"] = self.family.children.cpu().numpy().astype(np.int32)
        arrays |= self.level_arrays(META, "meta") | self.level_arrays(LABELS, "label")
        if self.shape.graph is not None:
            arrays |= pack_csr("graph.label", self.shape.graph) | pack_csr("graph.meta", self.cluster_texts()[1])
        return arrays, meta | {"parents": self.parents, "meta": "meta", "label": "label"}
