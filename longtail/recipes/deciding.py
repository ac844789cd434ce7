"""The two settings by which any recipe gives probabilities, or as many labels as there are good ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from longtail.core.decision import Decision
from longtail.core.errors import DataError
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.recipe import Recipe
from longtail.data.dataset import Dataset
from longtail.decide import Rule, fit_decision


@dataclass(frozen=True)
class DecidingRecipe(Recipe):
    """A recipe that can fit, on its validation part, probabilities and a cut-off."""

    calibration: Literal["none", "isotonic", "platt"] = param("none", "how scores become probabilities")
    cut_off: str = param("none", "what is suggested: f1, precision=P or labels=N; none: the k best")

    def __post_init__(self) -> None:
        super().__post_init__()
        Rule.parse(self.cut_off, f"{self.kind}: cut_off")

    @property
    def decides(self) -> bool:
        """Whether there is anything to fit."""
        return self.calibration != "none" or Rule.parse(self.cut_off) is not None

    def decide(self, model: Model, validation: Dataset, seed: int) -> tuple[Decision | None, dict[str, Any]]:
        """What the model is to decide by, and what is known of it."""
        return fit_decision(model, validation, self.calibration, Rule.parse(self.cut_off), seed)

    def refuse_to_decide(self, reason: str) -> None:
        """Say why probabilities cannot be had, if they are wanted."""
        if self.decides:
            raise DataError(
                f"{self.kind}: calibration and cut_off are fitted on a validation part, and there is none: {reason}",
                fix="give a dev file or more points, or leave both at none",
            )
