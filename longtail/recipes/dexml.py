"""DEXML (Gupta et al., ICLR 2024): a dual encoder trained against all labels in every step.

longtail train DATA --recipe dexml --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.dual.recipe import STATIC, DualRecipe
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.dual import parts
else:
    parts = Lazy("longtail.dual.parts")


@dataclass(frozen=True)
class DEXML(DualRecipe):
    """The decoupled softmax over all labels: one true label of each query against every label that is not true of it.

    Each step encodes all label texts, `chunk` at a time and twice (gradient caching), and computes logits chunk by
    chunk, so memory holds neither the encoder's graph nor batch × labels. There are no negatives to sample and nothing
    to mine, and no head.
    """

    name = "dexml"
    version = 2
    title = "texts and label texts in one space, each true label against all others"
    paper = "DEXML, Gupta et al. 2024"
    classifies: ClassVar[bool] = False
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {**STATIC, "batch": 1024, "epochs": 5, "lr": 4e-3, "chunk": 16384}
    }

    batch: int = param(1024, "points of a step", at_least=1)
    chunk: int | None = param(512, "texts encoded at a time, to save memory (none: all labels)", at_least=1)
    lr: float = param(3e-4, "learning rate", above=0.0)  # paper: 3e-4
    schedule: Schedule = param("cosine", "how learning rates change")  # noqa: RUF009

    def network(self, read: parts.Points, seed: int) -> parts.Dual:
        """Encoder and loss; there is no head."""
        about: dict[str, Any] = {}
        encoder = self.text_encoder(read, about)
        head = parts.Head(encoder.widths["text"], linear=False)
        loss = parts.Contrast(parts.FullDecoupled(), 1.0, 1.0, self.temperature, one_positive=True)
        draws = parts.Draws(positives=1, all_labels=True)
        return parts.Dual(read, encoder, (head,), (loss,), self.phases(), draws, seed, about)

    def phases(self) -> list[parts.Phase]:
        """One phase, of steps with cached gradients."""
        groups = self.encoder_groups(self.lr)
        return [parts.Phase("texts", self.epochs, groups, (parts.DE,), step=self.step())]
