"""How many steps fit into a budget of time: a few steps of each phase are measured, then the number is fixed.

What is fixed is the number of steps, not the time: the same number (`steps`) trains the same model again, on any
machine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from longtail.core.run import Run
from longtail.store.cache import find, keep
from longtail.train.learner import Learner
from longtail.train.loop import Loop
from longtail.train.phase import Phase, steps_of
from longtail.train.settings import LoopParameters

log = logging.getLogger("longtail")
MARGIN = 0.1  # share of the remaining time that is left unplanned
FIRST, MOST = 3, 10  # steps of a phase that are measured in any case, and at most
SHARE = 0.02  # of the budget that measuring more than the first steps may take, in each phase


@dataclass(frozen=True)
class Rehearsed:
    """Seconds that a phase takes: before its first step, and for each step."""

    before: float
    step: float


@dataclass(frozen=True)
class Costs:
    """What else a budget pays for, besides the steps of one network.

    `score` makes a model of a network and scores it on the validation part. That is done `scorings` times at the end,
    and with `every_epoch` also after each epoch of the last phase. `networks` is how many networks share the budget.
    """

    score: Callable[[Learner], None]
    networks: int = 1
    scorings: int = 1
    every_epoch: bool = False


def steps_for_budget(network: Callable[[], Learner], settings: LoopParameters, run: Run, key: str, costs: Costs) -> int:
    """How many steps of all phases the rest of the budget allows, measured on a `network` that is then thrown away.

    The number is kept under `key` in the folder of the run, so that a training that resumes has the same.
    """
    kept = find(run.folder, key) if run.resume and run.folder is not None else None
    if kept is not None:
        return int(kept["steps"][0])
    budget = run.budget or 0.0
    log.info("measuring how many steps a budget of %.0f s allows", budget)
    learner = network()
    rehearsal = Rehearsal(learner, settings, replace(run, folder=None, resume=False))
    phases = rehearsal.measure(budget)
    began = time.monotonic()
    costs.score(learner)
    once = time.monotonic() - began
    if costs.every_epoch:
        per_epoch = rehearsal.steps_per_epoch(rehearsal.phases[-1])
        phases[-1] = replace(phases[-1], step=phases[-1].step + once / per_epoch)
    planned = steps_of(learner.phases, learner.points, settings)
    phases = [rehearsal.with_refresh(*each) for each in zip(rehearsal.phases, phases, planned, strict=True)]
    until = time.monotonic() + budget if run.until is None else run.until
    left = (until - time.monotonic()) * (1 - MARGIN) / costs.networks - once * costs.scorings
    steps = rehearsal.agreed(steps_within(left, phases, planned))
    log.info("the budget of %.0f s allows %d of %d steps: --set steps=%d", budget, steps, sum(planned), steps)
    if run.folder is not None:
        keep(run.folder, key, {"steps": np.array([steps])})
    return steps


class Rehearsal(Loop):
    """A few steps of every phase of a learner that is thrown away afterwards."""

    def __init__(
        self, learner: Learner, settings: LoopParameters, run: Run, clock: Callable[[], float] = time.monotonic
    ):
        super().__init__(learner, settings, run)
        self.clock = clock

    def measure(self, budget: float) -> list[Rehearsed]:
        """The seconds of each phase; `budget` are those of the whole training, and limit how long this takes."""
        with self.threads():
            return [self._measure(number, budget) for number in range(len(self.learner.phases))]

    def with_refresh(self, phase: Phase, measured: Rehearsed, planned: int) -> Rehearsed:
        """With each step's share of the work that is repeated every few epochs, measured once."""
        interval = 0 if phase.refresh is None else phase.refresh.every * self.steps_per_epoch(phase)
        if phase.refresh is None or interval >= planned:
            return measured
        self.learner.done = 1.0  # at the end it takes longest: NGAME begins with clusters of single texts
        began = self.clock()
        with self.threads():
            phase.refresh.prepare(self.learner)
        return replace(measured, step=measured.step + (self.clock() - began) / interval)

    def _measure(self, number: int, budget: float) -> Rehearsed:
        began = self.clock()
        self.build(number)
        before = self.clock() - began
        self.open(number)  # not counted: only the first time is slow, when torch imports more of itself
        began = self.clock()
        self.learner.begin(self.phases[number])
        before += self.clock() - began
        took: list[float] = []
        # several processes must take equally many steps, and their clocks differ
        most = MOST if self.accelerator.num_processes == 1 else FIRST
        while len(took) < FIRST or (len(took) < most and sum(took) < SHARE * budget):
            began = self.clock()
            self.step(number, len(took))
            took.append(self.clock() - began)
        return Rehearsed(before, median(took[1:]))  # the first step fills caches


def steps_within(seconds: float, phases: list[Rehearsed], planned: list[int]) -> int:
    """How many steps of all phases together fit into this many seconds, if phases share them as they share `planned`.

    Never more than planned. If not even one step of each phase fits, one of each is returned, with a warning.
    """
    total = sum(planned)
    each = sum(phase.step * steps for phase, steps in zip(phases, planned, strict=True)) / total
    left = seconds - sum(phase.before for phase in phases)
    fitting = int(left / each) if each > 0 else total
    if fitting < len(phases):
        log.warning(
            "the budget is too small: %.1f s of it are left, but what comes before the first steps takes %.1f s and a "
            "step %.2f s; each phase gets one step, and little is learnt",
            max(seconds, 0.0),
            sum(phase.before for phase in phases),
            each,
        )
    return min(max(fitting, len(phases)), total)
