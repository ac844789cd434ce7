"""What the training loop can be told; read without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longtail.core.parameters import Parameters, param


@dataclass(frozen=True)
class LoopParameters(Parameters):
    """How the loop runs, whatever it trains."""

    kind = "training"
    batch: int = param(128, "points of a step", at_least=1)
    accumulate: int = param(1, "a step's points are taken in so many parts, to save memory", at_least=1)
    clip: float | None = param(None, "longest gradient of the dense parts of a network", above=0.0)
    precision: Literal["float32", "bfloat16"] = param("float32", "of products; weights are always float32")
    min_steps: int = param(200, "a phase has at least so many steps, however small the corpus", at_least=1)
    steps: int | None = param(None, "of all phases together, instead of their epochs", at_least=1)
    patience: int | None = param(
        None, "end after so many epochs without a better validation score, and keep the best", at_least=1
    )
