"""The default: picks a recipe for the corpus at hand, and says which.

longtail train DATA --out MODEL
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from longtail.core.model import Model
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.recipes.deciding import DecidingRecipe
from longtail.recipes.neighbours import Neighbours

log = logging.getLogger("longtail")


@dataclass(frozen=True)
class Auto(DecidingRecipe):
    """Takes `neighbours`, the strongest recipe there is so far. The model is saved as what was chosen."""

    name = "auto"
    title = "the default: picks a recipe for the corpus (for now: neighbours)"
    other_parameters = " Name the recipe whose parameter you mean, as --recipe neighbours."

    def fit(self, corpus: Corpus, run: Run | None = None) -> Model:
        """Train the recipe that was picked."""
        log.info("auto: training the recipe 'neighbours'")
        return Neighbours(calibration=self.calibration, cut_off=self.cut_off).fit(corpus, run)
