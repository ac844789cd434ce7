"""InceptionXML-LF (paper 000, appendix A): InceptionXML with label texts and a label graph in its classifiers.

longtail train DATA --recipe inceptionxml-lf --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from longtail.cascade.walks import WithWalks
from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.recipes.inceptionxml import InceptionXML

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")


@dataclass(frozen=True)
class InceptionXMLLF(WithWalks, InceptionXML):
    """The weights of label l are an attention-weighted sum of Φ_l(z¹), Φ_g(z²) and a free row w_l.

    z¹ = E z⁰ is the label's text through the word table, z² = Σ_m G_lm z¹_m that of its neighbours in the graph of
    random walks, Φ(z) = α·R·GELU(z) + β·z. The three convolutions of the encoder are mixed by each text, and the
    second one is each task's own. Phase I (`texts`) trains without w_l. Then labels are clustered again by z¹, the
    clusters' classifiers begin again, w_l begins at z¹, and phase II (`joint`) repeats the training with all three;
    Φ_l and Φ_g go on from where they are. Labels train the encoder from the first step on.
    """

    name = "inceptionxml-lf"
    title = "InceptionXML with label texts and a label graph in its classifiers"
    paper = "Gandalf, Kharbanda et al. 2024, appendix"
    needs = ("text", "label text")
    routed: ClassVar[bool] = True
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "reader": "subwords",
            "vectors": "static",
            "dimension": 128,
            "length": 24,
            "labels_per_cluster": 8.0,
            "shortlist": 400,
            "breadth": 6.0,
            "dropout": 0.2,
            "bias": True,
            "batch": 512,
            "epochs": 2,
            "lr": 0.02,
        }
    }

    detached: int = param(0, "epochs at first in which labels do not train the encoder", at_least=0)  # paper: 0

    def phases(self) -> list[parts.Phase]:
        """Without free rows, and with."""
        return [
            self.phase("texts", prepare=self.sparse_clusters, build=self.build_texts),
            self.phase("joint", prepare=self.text_clusters, build=self.build_joint),
        ]

    # --- phase I

    def build_texts(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """Label weights from texts and graph: Φ_l(z¹), Φ_g(z²)."""
        net.set_tree(structure)
        self.set_clusters(net)
        E, texts, graph = net.encoder.E, parts.Bags.of(net.data.texts), parts.Bags.of(self.graph(net))
        text, around = parts.FromText(E, texts, "frugal"), parts.FromGraph(E, texts, graph, "frugal")
        self.set_labels(net, parts.Blended({"text": text, "graph": around}))

    # --- phase II

    def text_clusters(self, net: parts.Cascade) -> parts.Structure:
        """New clusters of labels, by z¹."""
        return self.clustered(net, text_vectors(net))

    def build_joint(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """The parts of phase I as they are now, beside them free rows begun at z¹, and a new attention over all."""
        net.set_tree(structure)
        self.set_clusters(net)
        level: Any = net.level(parts.LABELS)
        learnt = level.weights.parts
        free = parts.Free(parts.Table.of(text_vectors(net)))
        self.set_labels(net, parts.Blended({"text": learnt["text"], "graph": learnt["graph"], "free": free}))


def text_vectors(net: parts.Cascade) -> np.ndarray:
    """z¹ = E z of all labels (L, D)."""
    return np.asarray(net.data.texts @ net.encoder.E.weight.cpu().numpy(), np.float32)
