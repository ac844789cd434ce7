"""DePSL and SupConDE (paper 001, chapter 2): a dual encoder trained to pick some of its labels.

longtail train DATA --recipe depsl --preset small --out MODEL
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
class DePSL(MinedRecipe):
    """Texts and label texts through one encoder and one head; every true label in the pool of a batch counts.

    `loss=decoupled` is DePSL: a true label competes with those that are not true. `loss=supcon` is SupConDE: with all
    others. The text of the paper weighs both directions alike, its published short-text rows equal those with queries →
    labels only (`forth=1`). New labels need nothing but their text.
    """

    name = "depsl"
    version = 5
    title = "texts and label texts in one space, every true label in the batch counts"
    paper = "Kharbanda 2025, chapter 2"
    classifies: ClassVar[bool] = False
    presets: ClassVar[dict[str, dict[str, Any]]] = {"small": {**STATIC, "epochs": 15, "lr": 2e-3, "cluster_size": None}}

    loss: Literal["decoupled", "supcon"] = param("decoupled", "what a true label competes with; supcon: all others")
    per_label: bool = param(True, "mean over a query's true labels (PAL-N); false: their sum (PAL)")  # paper: PAL-N
    forth: float = param(0.5, "weight of queries → labels; labels → queries has the rest", at_least=0.0, at_most=1.0)
    cluster_size: int | None = param(1024, "similar points that share a batch (none: shuffled)", at_least=1)
    schedule: Schedule = param("cosine", "how learning rates change")  # noqa: RUF009  # paper: cosine

    def network(self, read: parts.Points, seed: int) -> parts.Dual:
        """Encoder, head g1, and the loss."""
        about: dict[str, Any] = {}
        encoder = self.text_encoder(read, about)
        g1 = parts.Head(encoder.widths["text"], None, "tanh", self.head_dropout)
        loss = (parts.Decoupled if self.loss == "decoupled" else parts.SupCon)(self.per_label)
        comparison = parts.Contrast(loss, 1.0, self.forth, self.temperature)
        draws = parts.Draws(self.positives, self.negatives)
        return parts.Dual(read, encoder, (g1,), (comparison,), self.phases(), draws, seed, about)

    def phases(self) -> list[parts.Phase]:
        """One phase; negatives and clusters are renewed every few epochs."""
        groups = (*self.encoder_groups(self.lr), self.group("heads", 2 * self.lr))
        return [self.phase("texts", groups, (parts.DE,), self.take_up)]
