"""DPR (Karpukhin et al., EMNLP 2020): a dual encoder whose negatives are the other labels of the batch.

longtail train DATA --recipe dpr --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.dual.recipe import STATIC, MinedRecipe
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.dual import parts
else:
    parts = Lazy("longtail.dual.parts")


@dataclass(frozen=True)
class DPR(MinedRecipe):
    """InfoNCE: one true label of each query, drawn at random, against those of all other queries of the batch.

    Batches are random, and a query's other true labels count as negatives where another query brings them in, as in the
    paper. There is no head. The paper's BM25 negatives are left out: none of the systems here has them.
    """

    name = "dpr"
    version = 2
    title = "texts and label texts in one space, one true label against those of the batch"
    paper = "DPR, Karpukhin et al. 2020"
    classifies: ClassVar[bool] = False
    presets: ClassVar[dict[str, dict[str, Any]]] = {"small": {**STATIC, "batch": 1024, "epochs": 15, "lr": 2e-3}}

    positives: int = param(1, "true labels of a query that are drawn", at_least=1)  # paper: 1
    negatives: int = param(0, "mined negatives of a query that are drawn", at_least=0)  # paper: none
    batch: int = param(128, "points of a step", at_least=1)  # paper: 128
    epochs: int = param(40, "passes over the training set", at_least=1)  # paper: 40
    lr: float = param(1e-5, "learning rate", above=0.0)  # paper: 1e-5
    schedule: Schedule = param("linear", "how learning rates change")  # noqa: RUF009  # paper: linear with warm-up

    def network(self, read: parts.Points, seed: int) -> parts.Dual:
        """Encoder and loss; there is no head."""
        about: dict[str, Any] = {}
        encoder = self.text_encoder(read, about)
        loss = parts.Contrast(parts.SupCon(), 1.0, 1.0, self.temperature, one_positive=True, others_left_out=False)
        head, draws = parts.Head(encoder.widths["text"], linear=False), parts.Draws(self.positives, self.negatives)
        return parts.Dual(read, encoder, (head,), (loss,), self.phases(), draws, seed, about)

    def phases(self) -> list[parts.Phase]:
        """One phase: the encoder on texts and label texts."""
        return [self.phase("texts", self.encoder_groups(self.lr), (parts.DE,), self.take_up)]
