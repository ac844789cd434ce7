"""The default: picks a recipe for the corpus at hand, and says which.

longtail train DATA --out MODEL
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from longtail.augment import Augmentation
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.recipes.deciding import DecidingRecipe
from longtail.recipes.refit import refuse_mixing
from longtail.recipes.xr_linear import XRLinear

log = logging.getLogger("longtail")
# by the mean of P@1, P@5, PSP@1 and PSP@5 on the validation part of debian-related, augment=self: one tree 28.6, three
# 31.4, and with smaller weights kept (words of label texts are many and light) 31.9; a wider beam changes nothing
TREES, PRUNE = 3, 0.05


@dataclass(frozen=True)
class Auto(DecidingRecipe):
    """Trains `xr-linear` with three trees, and decides on the validation part what label texts add to what is learnt.

    The model is saved as what was chosen; `longtail info` and `longtail train` say what that is.
    """

    name = "auto"
    title = "the default: xr-linear, augmented as is best on the validation part"
    keeps_to = XRLinear.keeps_to
    other_parameters = " Name the recipe whose parameter you mean, as --recipe xr-linear."

    augment: Augmentation = param(  # noqa: RUF009
        Augmentation("auto"), "more training points, most often from label texts (docs/augment.md)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_mixing(self.augment, self.kind)

    def fit(self, corpus: Corpus, run: Run | None = None) -> Model:
        """Train the recipe that was picked."""
        log.info("auto: training the recipe 'xr-linear' with augment=%s", self.augment.spelled)
        chosen = XRLinear(
            calibration=self.calibration, cut_off=self.cut_off, augment=self.augment, trees=TREES, prune=PRUNE
        )
        return chosen.fit(corpus, run)
