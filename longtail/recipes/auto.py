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
from longtail.recipes.xr_linear import XRLinear

log = logging.getLogger("longtail")


@dataclass(frozen=True)
class Auto(DecidingRecipe):
    """Trains `xr-linear`, and decides on the validation part what label texts are to add to its training points.

    The model is saved as what was chosen.
    """

    name = "auto"
    title = "the default: xr-linear, augmented as is best on the validation part"
    keeps_to = XRLinear.keeps_to
    other_parameters = " Name the recipe whose parameter you mean, as --recipe xr-linear."

    augment: Augmentation = param(  # noqa: RUF009
        Augmentation("auto"), "more training points, most often from label texts (docs/augment.md)"
    )

    def fit(self, corpus: Corpus, run: Run | None = None) -> Model:
        """Train the recipe that was picked."""
        log.info("auto: training the recipe 'xr-linear' with augment=%s", self.augment.spelled)
        chosen = XRLinear(calibration=self.calibration, cut_off=self.cut_off, augment=self.augment)
        return chosen.fit(corpus, run)
