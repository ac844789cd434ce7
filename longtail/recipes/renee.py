"""Renee (Jain et al., MLSys 2023): an encoder and one-vs-all classifiers of all labels, trained end to end.

longtail train DATA --recipe renee --preset small --out MODEL
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
class Renee(DualRecipe):
    """Binary cross-entropy of every label in every step: no negatives are sampled, no shortlist is made.

    The gradient σ − y is formed for one chunk of labels after another. Classifiers are moved by SGD with momentum, the
    encoder by Adam. Label texts have no part in training: take `augment=self`, as the authors' runs on corpora with
    label texts do, or `augment=gandalf`. They are still used for labels that are added later. The authors begin at the
    encoder of NGAME's first stage; here it begins where `vectors` says, so its rate is higher (their rate without that
    stage).
    """

    name = "renee"
    version = 2
    title = "an encoder and classifiers of all labels, trained end to end on all of them"
    paper = "Renee, Jain et al. 2023"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {**STATIC, "batch": 512, "epochs": 8, "lr": 2e-3, "table_lr": 8.0, "head_dropout": 0.5, "warmup": 50}
    }

    head_dropout: float = param(0.7, "dropout before classifiers", at_least=0.0, below=1.0)  # paper: 0.7 – 0.85
    batch: int = param(512, "points of a step", at_least=1)  # paper: 512
    lr: float = param(1e-4, "learning rate of the encoder", above=0.0)  # paper: 1e-5 after NGAME, 1e-4 without
    table_lr: float = param(0.05, "learning rate of the classifiers", above=0.0)  # paper: 0.05
    decay: float = param(1e-4, "weight decay of the classifiers", at_least=0.0)  # paper: 1e-4
    warmup: int = param(5000, "steps in which rates rise from 0", at_least=0)  # paper: 5,000
    schedule: Schedule = param("cosine", "how learning rates change")  # noqa: RUF009
    share: float | None = param(1.0, "weight of classifiers in a score", at_least=0.0, at_most=1.0)  # paper: 1

    def network(self, read: parts.Points, seed: int) -> parts.Dual:
        """Encoder and loss. Vectors keep their lengths: a classifier's length says how sure it is."""
        about: dict[str, Any] = {}
        encoder = self.text_encoder(read, about)
        D = encoder.widths["text"]
        heads = parts.Head(D, linear=False), parts.Head(D, dropout=self.head_dropout, unit=False)
        losses = parts.Contrast(parts.FullBCE(), 0.0), parts.Contrast(parts.FullBCE(), 1.0, 1.0, 1.0)
        draws = parts.Draws(positives=1, all_labels=True)
        return parts.Dual(read, encoder, heads, losses, self.phases(), draws, seed, about)

    def phases(self) -> list[parts.Phase]:
        """One phase; classifiers begin at small random numbers."""
        table = parts.Group("table", self.table_lr, self.schedule, self.warmup, self.decay, "sgd")
        groups = (*self.encoder_groups(self.lr), self.group("heads.1", self.lr), table)
        return [parts.Phase("together", self.epochs, groups, (parts.CLF,), build=self.build, step=self.step())]

    def build(self, net: parts.Dual, structure: parts.Structure) -> None:
        """Ψ ~ N(0, 0.02²)."""
        net.table = parts.Table.random(net.data.labels, net.head(parts.CLF).width, 0.02)
