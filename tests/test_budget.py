"""A time budget: how many steps fit into it, and that this number of steps repeats the training."""

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import topic_corpus, write_corpus
from hypothesis import given
from hypothesis import strategies as st

import longtail
import longtail.recipes
from longtail.cli.main import main
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.run import Run
from longtail.train.settings import LoopParameters

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402

from longtail.train import budget  # noqa: E402
from longtail.train.budget import FIRST, MOST, Rehearsal, Rehearsed, steps_within  # noqa: E402
from longtail.train.learner import Learner  # noqa: E402
from longtail.train.phase import Group, Phase, Refresh, steps_of  # noqa: E402

PLAIN = {"reader": "words", "vectors": "learnt"}  # the small presets need an installed encoder
QUICK = {**PLAIN, "preset": "small", "dimension": 32, "surrogate_epochs": 1, "epochs": 1, "min_steps": 2000}


class Clock:
    """A clock that only advances when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Sleeper(Learner):
    """Takes seconds of a fake clock: `before` a phase, and for each step."""

    def __init__(self, clock: Clock, before: list[float], each: list[float]):
        super().__init__()
        self.clock, self.before, self.each = clock, before, each
        groups = (Group("", 0.1),)
        self.phases = [Phase(str(i), 1, groups, build=self.builder(taken)) for i, taken in enumerate(before)]
        self.points, self.weight, self.steps = 10, nn.Parameter(torch.zeros(1)), [0] * len(before)

    def builder(self, seconds: float) -> Any:
        def build(learner: Any, structure: Any) -> None:
            self.clock.now += seconds

        return build

    def forward(self, points: Tensor, phase: Phase, done: float) -> tuple[Tensor, dict[str, Tensor]]:
        number = int(phase.name)
        self.clock.now += self.each[number] * (10 if self.steps[number] == 0 else 1)  # the first is slow
        self.steps[number] += 1
        return self.weight.sum() * 0, {}


def test_work_that_is_repeated_counts() -> None:
    """A refresh of 60 s every 2 epochs of 5 steps: 6 s more for each step."""
    clock = Clock()
    learner = Sleeper(clock, [1.0, 1.0], [0.5, 0.5])
    learner.points = 10

    def mined(net: Any) -> dict[str, Any]:
        clock.now += 60 * net.done
        return {}

    learner.phases[1] = replace(learner.phases[1], batch=2, refresh=Refresh(2, mined, lambda net, found: None))
    rehearsal = Rehearsal(learner, LoopParameters(batch=2), Run(device="cpu"), clock)
    phases = rehearsal.measure(100)
    assert [phase.step for phase in phases] == pytest.approx([0.5, 0.5])
    pairs = zip(rehearsal.phases, phases, strict=True)
    found = [rehearsal.with_refresh(*pair, planned).step for pair in pairs for planned in (11, 10)]
    assert found == pytest.approx([0.5, 0.5, 6.5, 0.5])  # in 10 steps there is no refresh


@pytest.mark.parametrize(("seconds", "tried"), [(0.0, FIRST), (20.0, FIRST), (1200.0, 7), (1e6, MOST)])
def test_a_rehearsal_measures_each_phase(seconds: float, tried: int) -> None:
    clock = Clock()
    learner = Sleeper(clock, [5.0, 0.25], [1.5, 0.5])
    measured = Rehearsal(learner, LoopParameters(), Run(), clock).measure(seconds)
    assert measured == [Rehearsed(5.0, 1.5), Rehearsed(0.25, 0.5)]
    assert learner.steps[0] == tried  # 1,200 s: 2 % are 24 s, reached by one of 15 s and six of 1.5 s


phases = st.lists(st.tuples(st.floats(0, 100), st.floats(1e-3, 10), st.integers(1, 1000)), min_size=1, max_size=4)


@given(phases, st.floats(-10, 1e6))
def test_what_is_planned_fits_and_is_all_that_fits(told: list[tuple[float, float, int]], seconds: float) -> None:
    measured, planned = [Rehearsed(before, step) for before, step, _ in told], [n for *_, n in told]
    steps = steps_within(seconds, measured, planned)
    assert len(told) <= steps <= max(sum(planned), len(told))

    def takes(steps: int) -> float:
        """Phases share the steps in the same proportion as planned."""
        shares = [n / sum(planned) * steps for n in planned]
        return sum(phase.before + share * phase.step for phase, share in zip(measured, shares, strict=True))

    assert steps == len(told) or takes(steps) <= seconds * (1 + 1e-9) + 1e-6
    assert steps == sum(planned) or takes(steps + 1) > seconds * (1 - 1e-9) - 1e-6


def test_a_budget_that_is_too_small_is_warned_of(caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, "longtail"):
        assert steps_within(10.0, [Rehearsed(8.0, 0.5), Rehearsed(3.0, 0.5)], [100, 100]) == 2
    assert "the budget is too small" in caplog.text
    caplog.clear()
    assert steps_within(12.0, [Rehearsed(8.0, 0.5), Rehearsed(3.0, 0.5)], [100, 100]) == 2
    assert not caplog.text


def fixed(monkeypatch: Any, before: float = 0.1, step: float = 0.01) -> list[float]:
    """Rehearsals measure these seconds on any machine; returns the budgets they were given."""
    budgets: list[float] = []

    def measure(self: Rehearsal, seconds: float) -> list[Rehearsed]:
        budgets.append(seconds)
        for number in range(len(self.phases)):
            self.build(number)
        return [Rehearsed(before, step) for _ in self.learner.phases]

    monkeypatch.setattr(budget.Rehearsal, "measure", measure)
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return budgets


def test_the_same_steps_train_the_same_model(monkeypatch: Any, caplog: Any) -> None:
    corpus = topic_corpus(200).with_validation(3)
    fixed(monkeypatch)
    with caplog.at_level(logging.INFO, "longtail"):
        model = longtail.recipe("decaf", **QUICK).fit(corpus, Run(seed=3, budget=2.0))
    # nine tenths of 2 s without three times 0.1 s, in steps of 0.01 s
    assert model.recipe.steps == 150  # type: ignore[attr-defined]
    assert "allows 150 of 6000 steps: --set steps=150" in caplog.text
    monkeypatch.undo()
    again = longtail.recipe("decaf", **QUICK, steps=150).fit(corpus, Run(seed=3))
    assert again.recipe == model.recipe
    one, other = (m.predict(corpus.train.x, 5) for m in (model, again))
    assert np.array_equal(one.indices, other.indices) and np.array_equal(one.scores, other.scores)
    assert sum(row["epoch"] for row in model.about["training"]) > 0
    assert steps_of([Phase("a", 1, 0.1)], 50, LoopParameters(steps=150)) == [150]


def test_networks_and_trials_share_it(monkeypatch: Any) -> None:
    corpus = topic_corpus(200).with_validation(0)
    budgets = fixed(monkeypatch)
    model = longtail.recipe("decaf", **QUICK, trees=2).fit(corpus, Run(budget=2.0))
    assert model.recipe.steps == 60 and budgets == [2.0]  # type: ignore[attr-defined]
    budgets.clear()
    model = longtail.recipe("astec", **QUICK, augment="auto").fit(corpus, Run(budget=4.0))
    assert budgets == [1.0] * 4  # none, self, gandalf, gandalf-shrunk
    assert model.recipe.steps == 70  # type: ignore[attr-defined]
    budgets.clear()
    model = longtail.recipe("astec", **QUICK).fit(corpus, Run(budget=4.0, train_on_dev=True))
    assert budgets == [2.0]  # what is trained again has the steps of what was scored
    budgets.clear()
    longtail.recipe("astec", **QUICK).fit(topic_corpus(200), Run(budget=4.0))
    assert budgets == [2.0]  # half of it was held out: there is a second training too
    for refit, share in ((False, 4.0), (True, 2.0)):  # with patience only on request
        budgets.clear()
        recipe = longtail.recipe("decaf", **QUICK | {"min_steps": 5}, patience=9, refit=refit)
        recipe.fit(topic_corpus(200), Run(budget=4.0))
        assert budgets == [share]
    assert model.recipe.steps == 160  # type: ignore[attr-defined]


def test_never_more_than_the_epochs(monkeypatch: Any) -> None:
    corpus = topic_corpus(60)
    fixed(monkeypatch)
    model = longtail.recipe("decaf", **QUICK | {"min_steps": 5}).fit(corpus, Run(budget=1e6))
    assert model.recipe.steps == 15  # type: ignore[attr-defined]


def test_a_training_taken_up_again_keeps_its_steps(monkeypatch: Any, tmp_path: Path) -> None:
    corpus = topic_corpus(60)
    fixed(monkeypatch)
    model = longtail.recipe("decaf", **QUICK).fit(corpus, Run(tmp_path / "run", budget=1.0))
    budgets = fixed(monkeypatch, step=1.0)
    again = longtail.recipe("decaf", **QUICK).fit(corpus, Run(tmp_path / "run", budget=1.0, resume=True))
    assert budgets == [] and again.recipe == model.recipe
    assert np.array_equal(again.predict(corpus.train.x, 3).scores, model.predict(corpus.train.x, 3).scores)


def test_who_refuses_what() -> None:
    with pytest.raises(ParameterError, match="a budget and steps=5 contradict each other"):
        longtail.recipe("decaf", steps=5).fit(topic_corpus(60), Run(budget=1.0))
    with pytest.raises(UnsupportedError, match="recipe 'parabel' has no use for budget"):
        longtail.recipe("parabel").fit(topic_corpus(60), Run(budget=1.0))


def test_the_command_keeps_to_it(tmp_path: Path, caplog: Any) -> None:
    """Takes roughly that time; all steps would take many minutes. The machine may be busy, so the bounds are wide."""
    data, model = write_corpus(topic_corpus(), tmp_path / "data"), str(tmp_path / "model")
    arguments = ["train", str(data), "--recipe", "decaf", "--set", "min_steps=100000", "--out", model]
    began = time.monotonic()
    assert main([*arguments, "--budget", "5s"]) == 0
    assert time.monotonic() - began < 40
    about = longtail.load(model)
    assert 2 < about.about["seconds"] < 30
    assert 10 < about.recipe.steps < 300_000  # type: ignore[attr-defined]
