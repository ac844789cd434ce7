"""UniDEC (paper 004): a dual encoder and a table of classifiers, trained together on one pool of labels per batch.

longtail train DATA --recipe unidec --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.dual.recipe import STATIC, MinedRecipe
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.dual import parts
else:
    parts = Lazy("longtail.dual.parts")


@dataclass(frozen=True)
class UniDEC(MinedRecipe):
    """Two heads over one encoder: texts are compared with label texts (DE) and with rows of a table Ψ (CLF).

    A step draws β positives and η mined negatives of each query; their union is the pool, in which every true label
    counts. Each head has a decoupled softmax from queries to labels and one from labels to queries. Every `refresh`
    epochs, hard negatives are mined and points clustered again. In prediction a label's score is a weighted sum of both
    heads' cosines; the weight is chosen on the validation part unless it is given.
    """

    name = "unidec"
    version = 5
    title = "texts, label texts and classifiers in one space, trained together"
    paper = "UniDEC, Kharbanda et al. 2024"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            **STATIC,
            "dimension": 384,
            "epochs": 6,
            "min_steps": 400,
            "lr": 2e-3,
            "table_lr": 4e-3,
            "positives": 4,
            "temperature": 0.035,
            "forth": 0.7,
            "cluster_size": None,
        }
    }

    balance: float = param(
        0.5, "λ: weight of DE in the loss; CLF has the rest", at_least=0.0, at_most=1.0
    )  # paper: .3–.5
    forth: float = param(0.5, "weight of queries → labels; labels → queries has the rest", at_least=0.0, at_most=1.0)
    per_label: bool = param(True, "mean over a query's true labels (PAL-N); false: their sum (PAL)")  # paper: PAL-N
    extra_positives: int = param(0, "true labels more for the classifiers' pool", at_least=0)  # β_C; paper's variant: 6
    table_loss: Literal["decoupled", "bce"] = param("decoupled", "loss of the classifiers")
    bce: float = param(0.0, "weight of binary cross-entropy beside the classifiers' softmax", at_least=0.0)
    table_lr: float = param(1e-3, "learning rate of the classifiers", above=0.0)  # paper: 1e-3
    cluster_size: int | None = param(1024, "similar points that share a batch (none: shuffled)", at_least=1)
    schedule: Schedule = param("cosine", "how learning rates change")  # noqa: RUF009  # paper: cosine

    def network(self, read: parts.Points, seed: int) -> parts.Dual:
        """Encoder, heads g1 (for texts) and g2 (for classifiers), and how each compares."""
        about: dict[str, Any] = {}
        encoder = self.text_encoder(read, about)
        D = encoder.widths["text"]
        g1, g2 = parts.Head(D, D, "tanh", self.head_dropout), parts.Head(D, D, "none", self.head_dropout)
        L_D = parts.Contrast(parts.Decoupled(self.per_label), self.balance, self.forth, self.temperature)
        L_C = parts.Contrast(self.classifying(), 1 - self.balance, self.forth, self.temperature)
        draws = parts.Draws(self.positives, self.negatives, self.extra_positives)
        return parts.Dual(read, encoder, (g1, g2), (L_D, L_C), self.phases(), draws, seed, about)

    def classifying(self) -> parts.PoolLoss:
        """The loss of the classifiers: the paper's, or the variants of its Table 2.4 with binary cross-entropy."""
        if self.table_loss == "bce":
            return parts.BCE()
        softmax = parts.Decoupled(self.per_label)
        return parts.Summed(softmax, parts.BCE(), self.bce) if self.bce else softmax

    def phases(self) -> list[parts.Phase]:
        """One phase: both heads in every step, negatives and clusters renewed every few epochs."""
        groups = (*self.encoder_groups(self.lr), self.group("heads", 2 * self.lr), self.group("table", self.table_lr))
        return [self.phase("together", groups, (parts.DE, parts.CLF), self.build)]

    def build(self, net: parts.Dual, structure: parts.Structure) -> None:
        """Use what was mined; classifiers begin at the vectors of their labels' texts."""
        self.take_up(net, structure)
        self.build_table(net, structure)
