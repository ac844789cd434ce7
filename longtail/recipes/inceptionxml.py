"""InceptionXML (Kharbanda et al., SIGIR 2023): convolutions over short texts; negatives grow harder during training.

longtail train DATA --recipe inceptionxml --out MODEL
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.cascade.recipe import SequenceRecipe, WithClusters
from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")

LEAST = 64  # fewest labels of a shortlist
DETACHED = 10 / 45  # the paper's share of epochs, where there are no more epochs than `detached`


@dataclass(frozen=True)
class InceptionXML(WithClusters, SequenceRecipe):
    """Words of a title are channels of convolutions along the dimensions of their vectors (encoders/inception.py).

    One network with two tasks, trained together: clusters of labels, all of them; and labels, on those below the
    clusters that currently score best for the point, its true ones first. So negatives grow harder as the encoder
    learns. For the first `detached` epochs labels do not train the encoder; if there are no more epochs than that, for
    the paper's share of them, 10 of 45. A label's score is σ(cluster) · σ(label).
    """

    name = "inceptionxml"
    title = "convolutions over short texts, clusters and labels trained together"
    paper = "InceptionXML, Kharbanda et al. 2023"
    routed: ClassVar[bool] = False  # whether convolutions are mixed by the text: the form of -LF
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "reader": "subwords",
            "vectors": "static",
            "dimension": 128,
            "length": 24,
            "batch": 256,
            "shortlist": 400,
            "breadth": 3.0,
            "dropout": 0.2,
            "bias": True,
            "epochs": 5,
            "detached": 0,
            "lr": 0.01,
        }
    }

    labels_per_cluster: float = param(8.0, "labels in a cluster, about", at_least=1.0)  # paper: 2^14 for 131K labels
    shortlist: int | None = param(
        None, "labels that a point is trained on; prediction ranks `breadth` times as many (none: √L)", at_least=1
    )
    dropout: float = param(0.3, "dropout before classifiers", at_least=0.0, below=1.0)  # paper: 0.3 – 0.5
    epochs: int = param(45, "passes over the training set", at_least=1)  # paper: 45
    detached: int = param(10, "epochs at first in which labels do not train the encoder", at_least=0)  # paper: 10
    lr: float = param(5e-3, "highest learning rate", above=0.0)  # paper: 0.005
    schedule: Schedule = param("one-cycle", "how the learning rate changes within a phase")  # noqa: RUF009
    bias: bool = param(False, "a bias for each cluster and label, begun at log odds; saves steps")  # paper: none

    def network(self, read: parts.Points, seed: int) -> parts.Cascade:
        """Word vectors, the convolutions over them, and the phases."""
        about: dict[str, Any] = {}
        E = self.word_vectors(read.reader, about)
        encoder = parts.SequenceEncoder(E, parts.Inception(E.width, self.length, self.routed))
        return parts.Cascade(read, encoder, self.phases(), seed, self.mixing(), about)

    def phases(self) -> list[parts.Phase]:
        """One phase: both levels in every step."""
        return [self.phase("joint", prepare=self.sparse_clusters, build=self.build_both)]

    def phase(self, name: str, prepare: Any, build: Any) -> parts.Phase:
        """A phase of both levels; for a share of it labels do not train the encoder."""
        share = self.detached / self.epochs if self.detached < self.epochs else DETACHED
        return parts.Phase(
            name,
            self.epochs,
            self.everything(self.lr),
            levels=(parts.CLUSTERS, parts.LABELS),
            prepare=prepare,
            build=build,
            detached=((parts.LABELS, share),) if self.detached else (),
        )

    def sparse_clusters(self, net: parts.Cascade) -> parts.Structure:
        """Clusters of labels by the TF-IDF of their points."""
        return self.clustered(net, parts.pifa(net.data.rows, net.data.Y))

    def build_both(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """Classifiers of clusters and labels, rows of their own."""
        net.set_tree(structure)
        self.set_clusters(net)
        rows = parts.Table.xavier(net.data.labels, net.encoder.widths["label"])
        self.set_labels(net, parts.Free(rows))

    # --- shared with InceptionXML-LF

    def set_clusters(self, net: parts.Cascade) -> None:
        """New classifiers of the clusters."""
        K, bias = net.size(parts.CLUSTERS), net.bias_of_shares(parts.CLUSTERS) if self.bias else None
        rows = parts.Table.xavier(K, net.encoder.widths["meta"])
        net.set_level(parts.CLUSTERS, parts.Dot(K, "meta", parts.Free(rows), bias, self.dropout))

    def set_labels(self, net: parts.Cascade, weights: parts.LabelWeights) -> None:
        """Classifiers of the labels, on those below as many clusters as give about `shortlist` labels."""
        L = net.data.labels
        size = self.shortlist or max(math.isqrt(L), LEAST)
        widest = -(-L // net.size(parts.CLUSTERS))  # labels of the largest cluster: they are balanced
        candidates = net.below(parts.LABELS, -(-size // widest))
        bias = net.bias_of_candidates(candidates.width) if self.bias else None
        net.set_level(parts.LABELS, parts.Dot(L, "label", weights, bias, self.dropout, candidates))
