"""Forward and backward of one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
    from longtail.train.loop import Loop
    from longtail.train.phase import Phase


class Step(Protocol):
    """Computes the gradients of a batch; the loop then moves the weights.

    An encoder too large for its batch needs another step than the plain one: encode in chunks without a graph, take the
    loss on the embeddings, encode again with the gradient at hand.
    """

    def __call__(self, loop: Loop, points: NDArray[np.int64], phase: Phase, done: float) -> dict[str, float]:
        """Gradients of these points (B,) after the share `done` of the phase; returns figures, "loss" among them."""
        ...


@dataclass(frozen=True)
class Plain:
    """The loss of the batch and its gradient, in `phase.accumulate` parts to save memory."""

    def __call__(self, loop: Loop, points: NDArray[np.int64], phase: Phase, done: float) -> dict[str, float]:
        sums = Averages()
        for part in np.array_split(points, phase.accumulate or 1):
            if not len(part):
                continue
            with loop.accelerator.autocast():
                rows = torch.from_numpy(part).to(loop.accelerator.device)
                loss, figures = loop.network(rows, phase, done)
            share = len(part) / len(points)
            loop.accelerator.backward(loss * share)
            sums.add({"loss": float(loss.detach()), **{name: float(x) for name, x in figures.items()}}, share)
        return sums.means()


class Averages:
    """Weighted means of figures by name."""

    def __init__(self, sums: dict[str, float] | None = None):
        self.sums: dict[str, float] = dict(sums or {})
        self.count = 0

    def add(self, figures: dict[str, Any], weight: float = 1.0) -> None:
        """One more value of each figure."""
        self.count += 1
        for name, value in {**figures, "": 1.0}.items():
            self.sums[name] = self.sums.get(name, 0.0) + weight * value

    def means(self) -> dict[str, float]:
        """The mean of each figure."""
        return {name: value / self.sums[""] for name, value in self.sums.items() if name}
