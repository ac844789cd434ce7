"""NGAME (Dahiya et al., WSDM 2023): batches of similar texts, whose labels are each other's hard negatives.

longtail train DATA --recipe ngame --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.dual.recipe import STATIC, DualRecipe

if TYPE_CHECKING:
    from longtail.dual import parts
else:
    parts = Lazy("longtail.dual.parts")

# Clusters of 1 point until epoch 10 of 300, then 2, 4, … as shares of the training (paper: epochs of 300)
DOUBLINGS = tuple(epoch / 300 for epoch in (10, 20, 25, 50, 75, 100, 125, 150, 200))


@dataclass(frozen=True)
class NGAME(DualRecipe):
    """Stage M1 trains the encoder, stage M2 classifiers on top of it.

    M1: triplets of a query, one of its labels, and the ten hardest labels that the batch has for other queries. Batches
    are small clusters of similar texts, laid end to end in random order, so hard negatives cost nothing extra; clusters
    are renewed every few epochs and double in size as training goes on. M2: the encoder is frozen, classifiers begin at
    the label texts, and triplets have the three hardest positives and five hardest negatives of the batch. To predict,
    both cosines are added with a weight chosen on validation; the authors' code instead feeds both to a small tree.
    """

    name = "ngame"
    version = 6
    title = "a dual encoder on batches of similar texts, then classifiers"
    paper = "NGAME, Dahiya et al. 2023"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            **STATIC,
            "batch": 1024,
            "epochs": 15,
            "lr": 2e-3,
            "refresh": 1,  # 15 epochs double the clusters as often as the paper's 300
            "table_epochs": 5,
            "table_lr": 4e-3,
        }
    }

    batch: int = param(1600, "points of a step", at_least=1)  # paper: 1,600
    epochs: int = param(300, "epochs of M1", at_least=1)  # paper: 300
    lr: float = param(2e-4, "learning rate of M1", above=0.0)  # paper: 2e-4
    margin: float = param(0.3, "γ of M1", above=0.0)  # paper: 0.3
    refresh: int = param(5, "epochs between two clusterings of the texts", at_least=1)  # paper: 5
    table_epochs: int = param(100, "epochs of M2", at_least=1)  # paper: 100
    table_lr: float = param(1e-3, "learning rate of M2", above=0.0)  # paper: 1e-3
    table_margin: float = param(0.2, "γ of M2", above=0.0)  # paper: 0.2
    table_batch: int = param(2048, "points of a step of M2", at_least=1)  # paper: 2,048

    def network(self, read: parts.Points, seed: int) -> parts.Dual:
        """Encoder and the losses of both stages; all vectors have unit length."""
        about: dict[str, Any] = {}
        encoder = self.text_encoder(read, about)
        D = encoder.widths["text"]
        heads = parts.Head(D, linear=False), parts.Head(D, dropout=self.head_dropout)
        M1 = parts.Contrast(parts.Triplet(self.margin, negatives=10, temperature=0.1), 1.0, 1.0, 1.0, one_positive=True)
        M2 = parts.Contrast(parts.Triplet(self.table_margin, negatives=5, positives=3), 1.0, 1.0, 1.0)
        return parts.Dual(read, encoder, heads, (M1, M2), self.phases(), parts.Draws(positives=1), seed, about)

    def phases(self) -> list[parts.Phase]:
        """M1, then M2."""
        words, plan = self.encoder_groups(self.lr), parts.Clustered(lambda net: net.clusters)
        again = parts.Refresh(self.refresh, self.clustered, self.take_up)
        table = (self.group("heads.1", self.table_lr), self.group("table", self.table_lr))
        largest, then, batch = self.clustered_at_last, self.table_epochs, self.table_batch
        return [
            parts.Phase("M1", self.epochs, words, (parts.DE,), self.clustered, self.take_up, again, plan, self.step()),
            parts.Phase("M2", then, table, (parts.CLF,), largest, self.build, None, plan, self.step(), batch=batch),
        ]

    def clustered(self, net: parts.Dual) -> parts.Structure:
        """Clusters of 1, 2, 4, 8 … similar texts, by how much of M1 is over."""
        return self.clusters(net, sum(net.done >= share for share in DOUBLINGS))

    def clustered_at_last(self, net: parts.Dual) -> parts.Structure:
        """The largest clusters, for M2."""
        return self.clusters(net, len(DOUBLINGS))

    def clusters(self, net: parts.Dual, doublings: int) -> parts.Structure:
        """Clusters (N,) of 2^`doublings` similar texts; single texts need no vectors."""
        if not doublings:
            return {"clusters": np.arange(net.points, dtype=np.int32)}
        return {"clusters": parts.clusters_of(net.text_vectors(net.head(parts.DE)), 2**doublings, net.seed)}

    def take_up(self, net: parts.Dual, structure: parts.Structure) -> None:
        """Use new clusters."""
        net.clusters = structure["clusters"]

    def build(self, net: parts.Dual, structure: parts.Structure) -> None:
        """Classifiers begin at Φ(z_l); several positives of a query are in the pool now."""
        self.take_up(net, structure)
        self.build_table(net, structure)
        net.draws = parts.Draws(positives=3)
