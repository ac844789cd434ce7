"""The default: picks a recipe for the corpus, and says which.

longtail train DATA --out MODEL
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from longtail.augment import Augmentation
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.recipes.xr_linear import XRLinear
from longtail.train.recipe import TrainedRecipe

log = logging.getLogger("longtail")
# Mean of P@1, P@5, PSP@1 and PSP@5 on the validation part of debian-related, augment=self: one tree 28.6, three trees
# 31.4; pruned less (label texts give many small weights) 31.9. A wider beam changes nothing.
TREES, PRUNE = 3, 0.05


@dataclass(frozen=True)
class Auto(TrainedRecipe):
    """Trains `xr-linear` with three trees; the validation part decides how label texts are used in training.

    The saved model has the recipe that was picked; `longtail train` and `longtail info` show it.
    """

    name = "auto"
    title = "the default: xr-linear, augmented as is best on the validation part"
    supports = XRLinear.supports
    other_parameters = ' Name the recipe that has this parameter: --recipe xr-linear, or recipe="xr-linear" in Python.'

    augment: Augmentation = param(  # noqa: RUF009
        Augmentation("auto"), "more training points, most often from label texts (docs/augment.md)"
    )

    def picked(self) -> XRLinear:
        """The recipe that is trained."""
        return XRLinear(
            calibration=self.calibration, cut_off=self.cut_off, augment=self.augment, trees=TREES, prune=PRUNE
        )

    def on_trial(self) -> TrainedRecipe:
        """A cheaper form of the recipe that was picked."""
        return self.picked().on_trial()

    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> Model:
        """A model of the recipe that was picked."""
        log.info("auto: training the recipe 'xr-linear' with augment=%s", self.augment.spelled)
        return self.picked().train(data, labels, run, validation)
