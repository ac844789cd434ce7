"""What the loop trains, and in which phases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.encoders.table import Table
from longtail.train.schedule import Schedule
from longtail.train.settings import LoopParameters

Structure = dict[str, NDArray[Any]]  # trees, shortlists and the like, by name
Figures = dict[str, Tensor]  # of a step: each a scalar that is averaged over an epoch


@dataclass(frozen=True)
class Phase:
    """A stretch of training: what may change, which levels count, for how long and how fast.

    `trains` are prefixes of the names of modules that change (None: all do); `levels` the levels whose losses add up.
    """

    name: str
    epochs: int
    lr: float
    levels: tuple[int, ...] = (0,)
    trains: tuple[str, ...] | None = None
    schedule: Schedule = "constant"
    warmup: int = 0

    def changes(self, name: str) -> bool:
        """Whether a module or parameter of this name is trained."""
        return self.trains is None or any(name == t or name.startswith(f"{t}.") for t in self.trains)


class Learner(nn.Module, ABC):
    """An engine's network with its training points; `forward` is the loss of a batch.

    Before a phase, `structure` makes what is dear (a tree, a shortlist for every point) as arrays, and `build` makes
    the modules of the phase from it. A run that is taken up again finds the structures in its checkpoint, builds them
    one after the other and then loads all weights.
    """

    phases: list[Phase]
    points: int  # N, of the training set

    def structure(self, phase: Phase) -> Structure:
        """What a phase needs to be built; by default nothing."""
        return {}

    @abstractmethod
    def build(self, phase: Phase, structure: Structure) -> None:
        """Make the modules of a phase."""

    @abstractmethod
    def forward(self, points: Tensor, phase: Phase, done: float) -> tuple[Tensor, Figures]:
        """The loss of these points (B,) and figures to log; `done` is the share of the phase that is over."""

    def tables(self) -> dict[str, Table]:
        """The tables among the modules, by name."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Table)}


def steps_of(phases: list[Phase], points: int, settings: LoopParameters) -> list[int]:
    """Of each phase: its epochs' worth (at least `min_steps`), or its share of `settings.steps` (at least one)."""
    per_epoch = -(-points // settings.batch)
    planned = np.array([max(phase.epochs * per_epoch, settings.min_steps) for phase in phases])
    if settings.steps is None:
        return [int(steps) for steps in planned]
    ends = np.round(settings.steps * np.cumsum(planned) / planned.sum()).astype(int)
    return [int(steps) for steps in np.maximum(np.diff(ends, prepend=0), 1)]
