"""Forward and backward of one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail.encoders.table import Table

if TYPE_CHECKING:
    from longtail.train.loop import Loop
    from longtail.train.phase import Phase


class Step(Protocol):
    """Computes the gradients of a batch; the loop then moves the weights.

    `GradCached` is for encoders that are too large for their batch.
    """

    def __call__(self, loop: Loop, points: NDArray[np.int64], phase: Phase, done: float) -> dict[str, float]:
        """Gradients of these points (B,) after the share `done` of the phase; returns figures, "loss" among them."""
        ...


@dataclass(frozen=True)
class Plain:
    """The loss of the batch and its gradient, in `phase.accumulate` parts to save memory."""

    def __call__(self, loop: Loop, points: NDArray[np.int64], phase: Phase, done: float) -> dict[str, float]:
        sums = Averages()
        for number, part in enumerate(np.array_split(points, phase.accumulate or 1)):
            if not len(part):
                continue
            if number and loop.accelerator.num_processes > 1:
                loop.seed_part(number)  # so that all draw the same pool, however many numbers each has drawn so far
            with loop.accelerator.autocast():
                rows = torch.from_numpy(part).to(loop.accelerator.device)
                loss, figures = loop.network(rows, phase, done)
            share = len(part) / len(points)
            loop.accelerator.backward(loss * share)
            sums.add({"loss": float(loss.detach()), **{name: float(x) for name, x in figures.items()}}, share)
        return sums.means()


@dataclass(frozen=True)
class GradCached:
    """For batches whose encoder does not fit into memory: texts are encoded twice, `chunk` at a time.

    First without a graph; then the loss is taken on the vectors, which are few numbers; then each chunk is encoded
    again with the same random numbers, and its part of the gradient is passed on (Gao et al. 2021). Gradients are
    those of the plain step. For learners with `batch`, `chunks` and `loss`, as dual encoders have.
    """

    chunk: int

    def __call__(self, loop: Loop, points: NDArray[np.int64], phase: Phase, done: float) -> dict[str, float]:
        learner: Any = loop.learner
        rows = torch.from_numpy(points).to(loop.accelerator.device)
        with loop.accelerator.autocast():
            batch, drawn = learner.batch(rows)
            chunks = learner.chunks(rows, drawn, phase, self.chunk)
            states, found = [], []
            with torch.no_grad():
                for encode, _ in chunks:
                    states.append(random_state(rows.device))
                    found.append(encode())
            sides: list[Tensor | None] = [None, None]
            for side in {side for _, side in chunks}:
                whole = torch.cat([x for x, (_, own) in zip(found, chunks, strict=True) if own == side])
                sides[side] = whole.float().requires_grad_()
            loss, figures = learner.loss(*sides, drawn, phase, len(batch))
        loop.accelerator.backward(loss)
        last, tables = random_state(rows.device), [part for part in learner.modules() if isinstance(part, Table)]
        grads = [list(x.grad.split(self.chunk)) if x is not None and x.grad is not None else [] for x in sides]
        for (encode, side), state in zip(chunks, states, strict=True):
            set_random_state(state, rows.device)
            with loop.accelerator.autocast():
                again = encode()
            if not again.requires_grad:  # the encoder is frozen; or the pool is empty, whose chunk comes last
                break
            again.backward(grads[side].pop(0).to(again.dtype))
            for table in tables:
                table.gather()
        set_random_state(last, rows.device)
        loop.average_gradients()
        return {"loss": float(loss.detach()), **{name: float(x) for name, x in figures.items()}}


def random_state(device: torch.device) -> list[Tensor]:
    """The state of the random numbers of the CPU and of a device."""
    if device.type == "cpu":
        return [torch.get_rng_state()]
    own = torch.mps.get_rng_state() if device.type == "mps" else getattr(torch, device.type).get_rng_state(device)
    return [torch.get_rng_state(), own]


def set_random_state(state: list[Tensor], device: torch.device) -> None:
    """Continue from `random_state`."""
    torch.set_rng_state(state[0])
    if len(state) > 1 and device.type == "mps":
        torch.mps.set_rng_state(state[1])
    elif len(state) > 1:
        getattr(torch, device.type).set_rng_state(state[1], device)


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
