"""Phases: what a training is made of. A recipe's list of phases is where its algorithm can be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import ParameterError
from longtail.train.plan import Plan, Shuffled
from longtail.train.schedule import Schedule
from longtail.train.settings import LoopParameters
from longtail.train.step import Plain, Step

NAME = re.compile(r"[A-Za-z0-9_-]+")
Optimiser = Literal["adam", "sgd"]
Structure = dict[str, NDArray[Any]]  # trees, shortlists and the like, as arrays by name


class Group(NamedTuple):
    """Parts of a network that are trained alike, by Adam or SGD with momentum, and decoupled weight decay.

    `modules` names them: a module or parameter ("encoder.E"), a pattern ("*.bias"), or "" for everything. Where two
    groups of a phase match, the later one counts.
    """

    modules: str
    lr: float
    schedule: Schedule = "constant"
    warmup: int = 0  # steps
    decay: float = 0.0
    optimiser: Optimiser = "adam"

    def matches(self, name: str) -> bool:
        """Whether a parameter or table of this name belongs to the group."""
        whole = not self.modules or name == self.modules or name.startswith(f"{self.modules}.")
        return whole or fnmatchcase(name, self.modules)


def nothing(learner: Any) -> Structure:
    """For phases that need no structure."""
    return {}


def build_nothing(learner: Any, structure: Structure) -> None:
    """For phases that build no modules."""


class Refresh(NamedTuple):
    """Work that is repeated within a phase: new clusters of points, newly mined negatives.

    At the beginning of every `every`-th epoch but the first, `prepare` computes arrays and `apply` puts them to use.
    Optimisers go on as they are. The arrays of the last refresh are part of the checkpoint.
    """

    every: int  # epochs
    prepare: Callable[[Any], Structure]
    apply: Callable[[Any, Structure], None]


@dataclass(frozen=True)
class Phase:
    """A stretch of training.

    Before its first step, `prepare` computes expensive structures (a tree, a shortlist for every point) as arrays, and
    `build` makes modules from them. A resumed run finds the structures in its checkpoint and only builds. The losses
    of `levels` are added up. `groups` say what is trained and how fast; the rest of the network is frozen.
    """

    name: str
    epochs: int
    groups: tuple[Group, ...]
    levels: tuple[int, ...] = (0,)
    prepare: Callable[[Any], Structure] = nothing
    build: Callable[[Any, Structure], None] = build_nothing
    refresh: Refresh | None = None
    plan: Plan = Shuffled()  # noqa: RUF009  # the batches of an epoch
    step: Step = Plain()  # noqa: RUF009  # forward and backward of a batch
    detached: tuple[tuple[int, float], ...] = ()  # (level, share of the phase in which it does not train the encoder)
    average: float | None = None  # from this share of the phase on, weights are averaged (train/average.py)
    steps: int | None = None  # instead of epochs
    batch: int | None = None  # points of a step; None, here and below: as the training has it
    accumulate: int | None = None
    clip: float | None = None
    clip_recent: float | None = None  # clip gradients at so many times the largest recent norm (train/clip.py)

    def group_of(self, name: str) -> Group | None:
        """The group that trains a parameter or table; None if it is frozen, as by a group whose rate is 0."""
        found = next((group for group in reversed(self.groups) if group.matches(name)), None)
        return found if found is not None and found.lr > 0 else None

    def with_defaults(self, settings: LoopParameters) -> Phase:
        """This phase with what it leaves open taken from the training's settings."""
        return replace(
            self,
            batch=self.batch or settings.batch,
            accumulate=self.accumulate or settings.accumulate,
            clip=settings.clip if self.clip is None else self.clip,
        )


def check_phases(phases: Sequence[Phase]) -> None:
    """Refuse a name that is used twice, or cannot be part of a file's name: structures are found by it."""
    names = [phase.name for phase in phases]
    for name in names:
        if not NAME.fullmatch(name):
            raise ParameterError(f"a phase is called {name!r}; use letters, digits, _ and -")
        if names.count(name) > 1:
            raise ParameterError(f"two phases of a training are called {name!r}; each needs a name of its own")


def check_groups(phase: Phase, names: Sequence[str]) -> None:
    """Refuse a group that matches no parameter or table of the network: most often a misspelt module."""
    for group in phase.groups:
        if not any(group.matches(name) for name in names):
            raise ParameterError(
                f"phase {phase.name!r} trains {group.modules!r}, but the network has no such module; it has "
                f"{', '.join(sorted({name.rpartition('.')[0] for name in names}))}"
            )


def steps_of(phases: Sequence[Phase], points: int, settings: LoopParameters) -> list[int]:
    """The steps of each phase: those of its epochs (at least `min_steps`), or its share of `settings.steps`."""
    planned = np.array(
        [p.steps or max(p.epochs * -(-points // (p.batch or settings.batch)), settings.min_steps) for p in phases]
    )
    if settings.steps is None:
        return [int(steps) for steps in planned]
    ends = np.round(settings.steps * np.cumsum(planned) / planned.sum()).astype(int)
    return [int(steps) for steps in np.maximum(np.diff(ends, prepend=0), 1)]
