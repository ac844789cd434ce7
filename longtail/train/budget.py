"""How many steps fit into a budget of time: a rehearsal of each phase, then a number that is fixed.

What is fixed is the number of steps, not the time: the same number (`steps`) trains the same model again, on any
machine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from accelerate.utils import broadcast_object_list

from longtail.core.run import Run
from longtail.train.learner import Learner
from longtail.train.loop import Loop, seed_everything
from longtail.train.settings import LoopParameters

log = logging.getLogger("longtail")
MARGIN = 0.1  # of the time left that is not planned with
FIRST, MOST = 3, 10  # steps of a phase that are tried in any case, and at most
SHARE = 0.02  # of the budget that trying more than the first may take, in each phase


@dataclass(frozen=True)
class Rehearsed:
    """What a phase takes, in seconds: before its first step, and for each."""

    before: float
    step: float


class Rehearsal(Loop):
    """A few steps of every phase of a learner that is thrown away afterwards."""

    def __init__(
        self, learner: Learner, settings: LoopParameters, run: Run, clock: Callable[[], float] = time.monotonic
    ):
        super().__init__(learner, settings, run)
        self.clock = clock

    def measure(self, budget: float) -> list[Rehearsed]:
        """The seconds of each phase, where `budget` are those of the whole training."""
        with self.threads():
            return [self._measure(number, budget) for number in range(len(self.learner.phases))]

    def _measure(self, number: int, budget: float) -> Rehearsed:
        phase = self.learner.phases[number]
        began = self.clock()
        seed_everything(self.run.seed, number, -1)
        self.learner.build(phase, self.learner.structure(phase))
        before = self.clock() - began
        self._start(phase)  # not counted: it takes no time but once, when torch imports more of itself
        took: list[float] = []
        while len(took) < FIRST or (len(took) < MOST and sum(took) < SHARE * budget):
            began = self.clock()
            self._step(number, len(took))
            took.append(self.clock() - began)
        return Rehearsed(before, median(took[1:]))  # the first has caches to fill

    def agreed(self, steps: int) -> int:
        """The number that the first process found, in all of them."""
        if self.accelerator.num_processes == 1:
            return steps
        told = [steps]
        broadcast_object_list(told)
        return told[0]


def steps_within(seconds: float, phases: list[Rehearsed], planned: list[int]) -> int:
    """How many steps of all phases together fit into so many seconds, shared out as those planned are.

    Never more than planned. Where not even one of each phase fits, so few are given nonetheless, and a warning.
    """
    total = sum(planned)
    each = sum(phase.step * steps for phase, steps in zip(phases, planned, strict=True)) / total
    left = seconds - sum(phase.before for phase in phases)
    fitting = int(left / each) if each > 0 else total
    if fitting < len(phases):
        log.warning(
            "the budget is too small: %.1f s of it are left, but what comes before the first steps takes %.1f s and a "
            "step %.2f s; each phase has one step, and little is learnt",
            max(seconds, 0.0),
            sum(phase.before for phase in phases),
            each,
        )
    return min(max(fitting, len(phases)), total)
