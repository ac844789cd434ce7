"""ECLARE (Mittal et al., WWW 2021): DECAF with a graph of labels, in the classifiers and in prediction.

longtail train DATA --recipe eclare --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import scipy.sparse as sp

from longtail.cascade.walks import WithWalks
from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.recipes.decaf import Decaf, members

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")


@dataclass(frozen=True)
class Eclare(WithWalks, Decaf):
    """The weights of label l are an attention-weighted sum of R₁(E z_l), R₂(Σ_m Ĝ_lm E z_m) and a free row w_l.

    Ĝ is the normalised graph of random walks over labels. Labels are clustered by their centroids joined by those of
    their neighbours, and w_l begins at Ĝ E z. Phases are those of DECAF, with word vectors frozen after the first. In
    prediction scores walk the graph once, of the clusters and then of the labels: s ← ½ s + ½ topk(s·Ĝ).
    """

    name = "eclare"
    title = "DECAF with a graph of labels in classifiers and prediction"
    paper = "ECLARE, Mittal et al. 2021"
    form: ClassVar[Any] = "eclare"
    # clusters of 8, as DECAF's, cost 10 points of PSP@5 on the validation part of man-seealso
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            **Decaf.presets["small"],
            "labels_per_cluster": 4.0,
            "beam": 100,
            "dropout": 0.5,
            "label_dropout": 0.5,
        }
    }

    beam: int = param(50, "clusters whose labels are a point's shortlist", at_least=1)  # paper: 20 – 50
    freeze_words: bool = param(True, "train word vectors in the first phase only")  # paper: true
    surrogate_lr: float = param(5e-3, "its learning rate", above=0.0)  # paper: 0.005
    lr: float = param(4e-3, "their learning rate", above=0.0)  # paper: 0.004
    cluster_neighbours: int = param(
        10, "edges that each cluster keeps in the graph of clusters", at_least=1
    )  # paper: 10

    def clustered(self, net: parts.Cascade, Z: Any) -> parts.Structure:
        """Clusters of labels by their centroids, joined by those of their neighbours in the graph."""
        return super().clustered(net, self.label_graph(net) @ Z)

    def build_labels(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """As DECAF; prediction walks the graphs of clusters and labels."""
        super().build_labels(net, structure)
        net.join = parts.WalkJoin([self.cluster_graph(net, members(net.known_tree())), self.label_graph(net)])

    def weights(
        self, net: parts.Cascade, E: parts.Table, texts: sp.csr_matrix, graph: sp.csr_matrix | None, free: bool
    ) -> parts.LabelWeights:
        """Attention over text, graph and free rows, which begin at Ĝ E z. `texts` are (K, V), `graph` Ĝ (K, K)."""
        bags = parts.Bags.of(texts)
        text = parts.FromText(E, bags, self.form)
        around = parts.FromGraph(E, bags, parts.Bags.of(graph), self.form)
        rows = {"free": parts.Free(parts.Table.of(graph @ (texts @ E.weight.cpu().numpy())))} if free else {}
        return parts.Blended({"text": text, "graph": around, **rows})

    def label_graph(self, net: parts.Cascade) -> sp.csr_matrix:
        """Ĝ (L, L)."""
        return self.graph(net)

    def cluster_graph(self, net: parts.Cascade, C: sp.csr_matrix) -> sp.csr_matrix:
        """What clusters have of the graph of their labels (K, K), the strongest edges of each kept, normalised."""
        return parts.normalised(parts.largest((C @ self.graph(net) @ C.T).tocsr(), self.cluster_neighbours))
