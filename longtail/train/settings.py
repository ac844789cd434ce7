"""Settings of the training loop. Importing this file needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longtail.core.parameters import Parameters, param


@dataclass(frozen=True)
class LoopParameters(Parameters):
    """How the loop runs, whatever network it trains."""

    kind = "training"
    batch: int = param(128, "points of a step", at_least=1)
    accumulate: int = param(1, "parts in which the points of a step are processed, to save memory", at_least=1)
    clip: float | None = param(None, "largest norm of the gradient of the dense parameters", above=0.0)
    precision: Literal["float32", "bfloat16"] = param("float32", "number format of products; weights stay float32")
    min_steps: int = param(200, "fewest steps of a phase, however small the corpus", at_least=1)
    steps: int | None = param(None, "steps of all phases together, instead of their epochs", at_least=1)
    patience: int | None = param(
        None, "stop after this many epochs without a better validation score, and keep the best network", at_least=1
    )
