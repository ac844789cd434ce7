"""DECAF (Mittal et al., WSDM 2021): label texts in the classifiers of a bag-of-words network.

longtail train DATA --recipe decaf --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.core.parameters import param
from longtail.recipes.bags import BagRecipe, Read, mixing_of

if TYPE_CHECKING:
    from longtail.train.learner import Learner, Phase


@dataclass(frozen=True)
class Decaf(BagRecipe):
    """The weights of label l are σ(α) ⊙ R(E z_l) + σ(β) ⊙ w_l: its text z_l through the words' table, and a free row.

    Three phases. `surrogate`: word vectors E, on clusters of labels whose weights come from their texts alone. Then E
    is frozen, labels are clustered anew by their dense centroids, and `meta` trains new classifiers of the clusters.
    `labels` trains those of the labels, on the labels of each point's best clusters and its true ones; this shortlist
    is made once. A label's score is σ(cluster)·σ(label).
    """

    name = "decaf"
    title = "bags of words, classifiers made of label texts and free rows"
    paper = "DECAF, Mittal et al. 2021"
    needs = ("text", "label text")
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "dimension": 128,
            "clusters": 4096,
            "beam": 40,
            "dropout": 0.4,
            "batch": 1024,
            "surrogate_epochs": 8,
            "surrogate_lr": 0.02,
            "epochs": 6,
            "lr": 0.02,
            "schedule": "linear",
        }
    }

    clusters: int = param(8192, "of labels", at_least=1)
    beam: int = param(200, "clusters whose labels are a point's shortlist", at_least=1)  # paper: 100 – 200
    dropout: float = param(0.5, "of a text's vector", at_least=0.0, below=1.0)
    batch: int = param(255, "points of a step", at_least=1)
    surrogate_epochs: int = param(20, "of the first phase", at_least=1)
    surrogate_lr: float = param(5e-3, "its learning rate", above=0.0)
    epochs: int = param(10, "of the phases `meta` and `labels`, each", at_least=1)
    lr: float = param(4e-3, "their learning rate", above=0.0)

    def phases(self) -> list[Phase]:
        """Word vectors on clusters; new clusters; labels."""
        from longtail.train.learner import Phase

        meta, label = ("encoder.residuals.meta", "levels.0"), ("encoder.residuals.label", "levels.1")
        return [
            Phase("surrogate", self.surrogate_epochs, self.surrogate_lr, (0,), None, self.schedule, self.warmup),
            Phase("meta", self.epochs, self.lr, (0,), meta, self.schedule, self.warmup),
            Phase("labels", self.epochs, self.lr, (1,), label, self.schedule, self.warmup),
        ]

    def network(self, read: Read, seed: int) -> Learner:
        """The network and its phases."""
        from longtail.cascade.shallow import Shallow, Shape

        shape = Shape("decaf", self.clusters, self.beam, self.dropout, seed)
        return Shallow(self.corpus(read), self.words(read), self.phases(), shape, mixing_of(self.augment))
