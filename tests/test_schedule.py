"""Factors of the learning rate against torch's schedulers and the formulas."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from longtail.train.schedule import factor  # noqa: E402

OTHERS = ("constant", "linear", "cosine")


def optimiser(lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)


@given(steps=st.integers(6, 90))
def test_one_cycle_is_torchs(steps: int) -> None:
    own = optimiser(1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        own, max_lr=1.0, total_steps=steps, pct_start=1 / 3, div_factor=10, final_div_factor=1e4,
        anneal_strategy="cos", cycle_momentum=False,
    )  # fmt: skip
    for step in range(steps):
        assert factor("one-cycle", step, steps) == pytest.approx(own.param_groups[0]["lr"], rel=1e-9), step
        own.step()
        if step + 1 < steps:
            theirs.step()


@pytest.mark.parametrize("steps", range(1, 6))
def test_one_cycle_of_very_few_steps(steps: int) -> None:
    """Torch divides by zero there."""
    found = [factor("one-cycle", i, steps) for i in range(steps)]
    assert found[0] == pytest.approx(0.1)
    assert all(0 < one <= 1 for one in found)


def test_one_cycle_ends() -> None:
    found = [factor("one-cycle", step, 300) for step in range(300)]
    assert found[0] == pytest.approx(0.1)
    assert found[99] == max(found) == pytest.approx(1.0)
    assert found[299] == pytest.approx(1e-5)
    assert found[:100] == sorted(found[:100]) and found[99:] == sorted(found[99:], reverse=True)


@pytest.mark.parametrize("schedule", OTHERS)
def test_warmup_rises_in_a_line_to_the_peak(schedule: str) -> None:
    found = [factor(schedule, step, 40, warmup=8) for step in range(9)]
    assert found == pytest.approx([(step + 1) / 8 for step in range(8)] + [1.0])


@given(steps=st.integers(1, 60), warmup=st.integers(0, 70))
def test_after_the_warmup(steps: int, warmup: int) -> None:
    for step in range(min(warmup, steps), steps):
        done = (step - warmup) / (steps - warmup)
        assert factor("constant", step, steps, warmup) == 1
        assert factor("linear", step, steps, warmup) == pytest.approx(1 - done)
        assert factor("cosine", step, steps, warmup) == pytest.approx((1 + math.cos(math.pi * done)) / 2)
    for step in range(min(warmup, steps)):
        for schedule in OTHERS:
            assert factor(schedule, step, steps, warmup) == pytest.approx((step + 1) / warmup)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_line_and_a_cosine_end_near_nothing_but_still_move(schedule: str) -> None:
    found = [factor(schedule, step, 100) for step in range(100)]
    assert found[0] == 1 and 0 < found[-1] <= 0.011
    assert found == sorted(found, reverse=True)


def test_the_line_is_torchs() -> None:
    own = optimiser(1.0)
    theirs = torch.optim.lr_scheduler.LinearLR(own, 1.0, 0.0, total_iters=20)
    for step in range(20):
        assert factor("linear", step, 20) == pytest.approx(own.param_groups[0]["lr"])
        own.step()
        theirs.step()
