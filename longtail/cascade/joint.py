"""InceptionXML and InceptionXML-LF: clusters and labels trained together, negatives found as training goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail.cascade.level import Level
from longtail.cascade.mixing import LABELS, META, Mixing
from longtail.cascade.network import Cascade, Corpus, cluster, tree_arrays
from longtail.cascade.weights import Attended, Free, FromGraph, FromText, LabelWeights
from longtail.encoders.bag import Bags
from longtail.encoders.sequence import SequenceEncoder
from longtail.encoders.table import Table
from longtail.train.learner import Phase, Structure


@dataclass(frozen=True)
class Shape:
    """How large it is, and whether labels have texts and a graph in their weights (-LF)."""

    clusters: int
    shortlist: int  # labels, about
    dropout: float  # before classifiers
    detached: float  # share of the phase in which labels do not train the encoder
    seed: int
    centroids: sp.csr_matrix  # (L, V), which labels are clustered by at first
    graph: sp.csr_matrix | None = None  # Ĝ (L, L): with it, label weights are text, graph and free rows
    bias: bool = False


class Joint(Cascade):
    """Both levels in every step: labels are candidates below the clusters that score best just now, truth first.

    Phases: `joint` alone; with label texts first `texts`, in which labels have no free rows, and then `joint`, for
    which labels are clustered anew by the vectors of their texts and free rows start at these.
    """

    encoder: SequenceEncoder

    def __init__(
        self,
        corpus: Corpus,
        encoder: SequenceEncoder,
        phases: list[Phase],
        shape: Shape,
        mixing: Mixing | None = None,
    ):
        super().__init__(corpus, encoder, phases, 1, mixing)
        self.shape = shape

    @property
    def sequences(self) -> SequenceEncoder:
        """The encoder; a second attribute would be saved a second time."""
        return self.encoder

    def structure(self, phase: Phase) -> Structure:
        """Clusters of TF-IDF centroids; after a phase on texts, of z¹ = E z."""
        again = phase.name == "joint" and len(self.phases) > 1
        Z = self.text_vectors() if again else self.shape.centroids
        return tree_arrays(cluster(Z, self.shape.clusters, self.shape.seed))

    def build(self, phase: Phase, structure: Structure) -> None:
        """New classifiers of clusters; those of labels."""
        self.set_tree(structure)
        if self.family is None:
            raise RuntimeError("there are no clusters")
        K, W = self.family.children.shape
        self.parents = max(1, min(K, -(-self.shape.shortlist // W)))
        widths, dropout = self.sequences.widths, self.shape.dropout
        meta = Free(Table.random(K, widths["meta"], widths["meta"] ** -0.5))
        biases = (self.cluster_bias(), self.label_bias(self.parents * W)) if self.shape.bias else (None, None)
        self.set_level(META, Level(K, "meta", meta, biases[0], dropout))
        L = self.corpus.Y.shape[1]
        self.set_level(LABELS, Level(L, "label", self.label_weights(phase), biases[1], dropout))

    def label_weights(self, phase: Phase) -> LabelWeights:
        """Free rows; or texts and graph, and free rows in the second phase."""
        E, texts, graph, L = self.sequences.E, self.corpus.texts, self.shape.graph, self.corpus.Y.shape[1]
        width = self.sequences.widths["label"]
        if graph is None or texts is None:
            return Free(Table.random(L, width, width**-0.5))
        bags = Bags.of(texts)
        text, around = FromText(E, bags, "frugal"), FromGraph(E, bags, Bags.of(graph), "frugal")
        parts: dict[Any, LabelWeights] = {"text": text, "graph": around}
        if phase.name == "joint":
            parts["free"] = Free(Table(torch.from_numpy(self.text_vectors())))
        before = self.level(LABELS).weights if str(LABELS) in self.levels else None
        if isinstance(before, Attended):  # Φ_l and Φ_g go on from where the first phase left them
            for name, part in (("text", text), ("graph", around)):
                part.residual.load_state_dict(before.parts[name].residual.state_dict())  # type: ignore[union-attr]
        return Attended(parts)

    def text_vectors(self) -> NDArray[np.float32]:
        """z¹ = E z of all labels (L, D)."""
        return np.asarray(self.corpus.texts @ self.sequences.E.weight.cpu().numpy(), np.float32)

    def forward(self, points: Tensor, phase: Phase, done: float) -> tuple[Tensor, dict[str, Tensor]]:
        """As every cascade; at first labels do not train the encoder."""
        self.sequences.net.detached = frozenset({"label"} if done < self.shape.detached else ())
        return super().forward(points, phase, done)

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What prediction needs."""
        self.eval()
        if self.family is None:
            raise RuntimeError("it is not trained")
        arrays, meta = self.sequences.arrays()
        arrays["children"] = self.family.children.cpu().numpy().astype(np.int32)
        arrays |= self.level_arrays(META, "meta") | self.level_arrays(LABELS, "label")
        return arrays, meta | {"parents": self.parents, "meta": "meta", "label": "label"}
