"""DECAF (Mittal et al., WSDM 2021): label texts in the classifiers of a bag-of-words network.

longtail train DATA --recipe decaf --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from longtail.cascade.recipe import BagRecipe, WithClusters
from longtail.core.lazy import Lazy
from longtail.core.parameters import param

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")


@dataclass(frozen=True)
class Decaf(WithClusters, BagRecipe):
    """The weights of label l are σ(α) ⊙ R(E z_l) + σ(β) ⊙ w_l: its text z_l through the word table E, and a free row.

    A text is R(E x), x its TF-IDF. Three phases: `surrogate` trains E on clusters of labels whose weights come from
    their texts alone; then labels are clustered again by their dense centroids, and `clusters` trains new classifiers
    of the clusters; `labels` trains those of the labels, on the labels of each point's best clusters and its true
    ones. This shortlist is made once. E is trained in every phase; labels have a table of their own (as the authors'
    code keeps one for each level); `freeze_words` trains it in the first phase only, which the paper calls DECAF-lite.
    A label's score is σ(cluster) · σ(label). The authors halve rates in the middle of a phase; here `schedule` says how
    they change.
    """

    name = "decaf"
    title = "bags of words, classifiers made of label texts and free rows"
    paper = "DECAF, Mittal et al. 2021"
    needs = ("text", "label text")
    form: ClassVar[Any] = "decaf"  # of residual blocks R
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "reader": "subwords",
            "vectors": "static",
            "dimension": 256,
            "labels_per_cluster": 8.0,
            "beam": 80,
            "breadth": 3.0,
            "dropout": 0.4,
            "batch": 1024,
            "surrogate_epochs": 4,
            "surrogate_lr": 0.02,
            "epochs": 4,
            "lr": 0.02,
            "schedule": "linear",
        }
    }

    labels_per_cluster: float = param(4.0, "labels in a cluster, about", at_least=1.0)  # paper: 2^15 for 131K labels
    beam: int = param(200, "clusters whose labels are a point's shortlist", at_least=1)  # paper: 200 (131K labels)
    dropout: float = param(0.5, "dropout of a text's vector in the first phase", at_least=0.0, below=1.0)  # paper: 0.5
    label_dropout: float = param(0.2, "the same in the other phases", at_least=0.0, below=1.0)  # paper: 0.2
    freeze_words: bool = param(False, "train word vectors in the first phase only")  # paper: false; -lite: true
    batch: int = param(255, "points of a step", at_least=1)  # paper: 255
    surrogate_epochs: int = param(20, "epochs of the first phase", at_least=1)  # paper: 20
    surrogate_lr: float = param(0.01, "its learning rate", above=0.0)  # paper: 0.01
    epochs: int = param(10, "epochs of the phases `clusters` and `labels`, each", at_least=1)  # paper: 10
    lr: float = param(8e-3, "their learning rate", above=0.0)  # paper: 0.008

    def network(self, read: parts.Points, seed: int) -> parts.Cascade:
        """A bag encoder with a residual block for each level, and the phases."""
        about: dict[str, Any] = {}
        E = self.word_vectors(read.reader, about)
        encoder = parts.BagEncoder(E, ("meta", "label"), self.form, self.dropout)
        return parts.Cascade(read, encoder, self.phases(), seed, self.mixing(), about)

    def phases(self) -> list[parts.Phase]:
        """Word vectors on clusters; new clusters; labels."""
        rate = self.lr * self.word_rate
        words = () if self.freeze_words else (self.group("encoder.E", rate),)
        own_words = () if self.freeze_words else (self.group("encoder.tables.label", rate),)
        clusters = (self.group("encoder.residuals.meta", self.lr), self.group("levels.0", self.lr), *words)
        labels = (self.group("encoder.residuals.label", self.lr), self.group("levels.1", self.lr), *own_words)
        everything = self.everything(self.surrogate_lr)
        first, then = self.surrogate_epochs, self.epochs
        return [
            parts.Phase(
                "surrogate",
                first,
                everything,
                levels=(parts.CLUSTERS,),
                prepare=self.sparse_clusters,
                build=self.build_surrogate,
            ),
            parts.Phase(
                "clusters",
                then,
                clusters,
                levels=(parts.CLUSTERS,),
                prepare=self.dense_clusters,
                build=self.build_clusters,
            ),
            parts.Phase(
                "labels", then, labels, levels=(parts.LABELS,), prepare=self.shortlists, build=self.build_labels
            ),
        ]

    # --- phase 1: word vectors, on clusters of TF-IDF centroids

    def sparse_clusters(self, net: parts.Cascade) -> parts.Structure:
        """Clusters of labels by the TF-IDF of their points."""
        return self.clustered(net, parts.pifa(net.data.rows, net.data.Y))

    def build_surrogate(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """Classifiers of clusters, whose weights come from texts alone."""
        net.set_tree(structure)
        self.set_clusters(net, free=False)

    # --- phase 2: classifiers of new clusters

    def dense_clusters(self, net: parts.Cascade) -> parts.Structure:
        """Clusters of labels by the mean of their points' E x; a label without points by its text."""
        E = net.encoder.E.weight.cpu().numpy()  # (V, D)
        return self.clustered(net, parts.centroids(net.data.rows @ E, net.data.Y, net.data.texts @ E))  # (L, D)

    def build_clusters(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """New classifiers of clusters, with free rows."""
        net.set_tree(structure)
        net.encoder.dropout.p = self.label_dropout
        self.set_clusters(net, free=True)

    # --- phase 3: classifiers of labels, on the labels of each point's best clusters

    def shortlists(self, net: parts.Cascade) -> parts.Structure:
        """The best clusters of each training point (N, beam)."""
        return {"clusters": net.best_nodes(parts.CLUSTERS, self.beam)}

    def build_labels(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """Classifiers of labels; their side of the encoder begins where that of the clusters is."""
        encoder = net.encoder
        encoder.copy_residual("meta", "label")
        E = encoder.table("label") if self.freeze_words else encoder.own_table("label")
        candidates = parts.Static(structure["clusters"], net.below(parts.LABELS, self.beam))
        weights = self.weights(net, E, net.data.texts, self.label_graph(net), free=True)
        bias = net.bias_of_candidates(candidates.width)
        net.set_level(parts.LABELS, parts.Dot(net.data.labels, "label", weights, bias, candidates=candidates))

    # --- what the phases share

    def set_clusters(self, net: parts.Cascade, free: bool) -> None:
        """Classifiers of the clusters; the text of a cluster is the sum of its labels' texts."""
        C = members(net.known_tree())  # (K, L)
        texts = parts.normalise_rows((C @ net.data.texts).tocsr())  # (K, V)
        weights = self.weights(net, net.encoder.E, texts, self.cluster_graph(net, C), free)
        net.set_level(parts.CLUSTERS, parts.Dot(C.shape[0], "meta", weights, net.bias_of_shares(parts.CLUSTERS)))

    def weights(
        self, net: parts.Cascade, E: parts.Table, texts: sp.csr_matrix, graph: sp.csr_matrix | None, free: bool
    ) -> parts.LabelWeights:
        """σ(α) ⊙ R(E z) + σ(β) ⊙ w, with w begun at E z; without free rows R(E z). `texts` are (K, V)."""
        text = parts.FromText(E, parts.Bags.of(texts), self.form)
        return parts.Gated(text, parts.Free(parts.Table.of(texts @ E.weight.cpu().numpy()))) if free else text

    def label_graph(self, net: parts.Cascade) -> sp.csr_matrix | None:
        """DECAF has no graph of labels; ECLARE has."""
        return None

    def cluster_graph(self, net: parts.Cascade, C: sp.csr_matrix) -> sp.csr_matrix | None:
        """DECAF has no graph of clusters; ECLARE has."""
        return None


def members(tree: parts.LabelTree) -> sp.csr_matrix:
    """Which labels belong to which cluster (K, L)."""
    L = len(tree)
    return sp.csr_matrix((np.ones(L, np.float32), (tree.nodes(parts.CLUSTERS), np.arange(L))))
