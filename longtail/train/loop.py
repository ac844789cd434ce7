"""The training loop: phases of steps, on whatever device and however many processes there are.

Built on Accelerate, which handles devices, mixed precision and processes. The order of points is a function of (seed,
phase, epoch), and the random numbers of a step follow from (seed, phase, step). So a resumed run does what the
uninterrupted one would have done.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import numpy as np
import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast_object_list
from numpy.typing import NDArray
from torch import Tensor

from longtail.core.errors import DataError, ParameterError
from longtail.core.run import Run
from longtail.encoders.export import arrays_under
from longtail.train.average import Average
from longtail.train.checkpoint import Checkpoint
from longtail.train.learner import Learner
from longtail.train.memory import Kept
from longtail.train.optimise import Optimisers, under
from longtail.train.phase import Phase, Structure, check_phases, steps_of
from longtail.train.settings import LoopParameters
from longtail.train.step import Averages

log = logging.getLogger("longtail")
PRECISIONS = {"float32": "no", "bfloat16": "bf16"}  # by Accelerate's names; float16 would need scaled losses
T = TypeVar("T")
PREPARE, REFRESH = -1, -2  # in place of a step, where a phase draws random numbers before its steps


class Loop:
    """One training.

    `watch` scores the network on the validation part after every epoch of the last phase; `patience` decides by its
    "mean". To repeat an earlier training on other points, `planned` gives its steps of each phase (schedules follow
    from these) and `stop` after how many steps of all phases together it ended.
    """

    def __init__(
        self,
        learner: Learner,
        settings: LoopParameters,
        run: Run,
        key: str = "",
        watch: Callable[[], dict[str, float]] | None = None,
        planned: list[int] | None = None,
        stop: int | None = None,
    ):
        check_phases(learner.phases)
        self.learner, self.settings, self.run, self.watch = learner, settings, run, watch
        self.phases = [phase.with_defaults(settings) for phase in learner.phases]
        self.steps = planned or steps_of(self.phases, learner.points, settings)
        self.stop = stop or sum(self.steps)
        self.checkpoint = Checkpoint(run.folder, key)
        self.structures: dict[str, Structure] = {}  # by phase
        self.refreshed: dict[str, Structure] = {}  # by phase, the last of each
        self.average = Average()  # of the present phase
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] | None = None
        self.best_score, self.waited = -np.inf, 0
        self.seconds_before = 0.0  # that earlier processes took up to the checkpoint this one continues
        self._began = time.monotonic()
        self.accelerator = accelerator(run.device, settings.precision)
        self._at = 0, 0  # phase and step that are trained now
        self._order: tuple[tuple[int, int], NDArray[np.int64]] | None = None
        self._restored: dict[str, Tensor] | None = None  # of optimisers, from a checkpoint, until they are made
        self._partial: dict[str, float] | None = None  # sums of the epoch that a checkpoint interrupted

    def train(self) -> list[dict[str, Any]]:
        """Run all phases. Returns the history: a row for each epoch."""
        with self.threads():
            first, step = self._resume() if self.run.resume else (0, 0)
            for number in range(first, len(self.phases)):
                self._phase(number, step if number == first else 0)
            if self.best is not None:
                self.learner.load_state_dict(self.best)
        return self.history

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Within this context torch has as many threads as the run."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.run.threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def agreed(self, found: T) -> T:
        """What the first process has found, on all processes: trees and decisions must be the same everywhere."""
        if self.accelerator.num_processes == 1:
            return found
        told = [found]
        broadcast_object_list(told)
        return told[0]

    def build(self, number: int) -> None:
        """Prepare and build a phase, unless that is done already (a checkpoint has done so)."""
        phase = self.phases[number]
        if phase.name not in self.structures:
            self.learner.done = 0.0
            self.learner.to(self.accelerator.device)  # what is prepared may encode all texts
            seed_everything(self.run.seed, number, PREPARE)
            self.structures[phase.name] = self.agreed(phase.prepare(self.learner))
            phase.build(self.learner, self.structures[phase.name])

    def open(self, number: int) -> None:
        """Build a phase and make its optimisers."""
        self.build(number)
        # new modules are on the CPU, and Accelerate moves a network only the first time it sees it
        self.learner.to(self.accelerator.device)
        self.optimisers = Optimisers(self.learner, self.phases[number], self.accelerator)
        self.network = self.accelerator.prepare(self.learner)
        if self._restored is not None:
            self.optimisers.restore(self._restored)
            self._restored = None

    def _phase(self, number: int, first: int) -> None:
        """The steps of a phase, beginning with `first`."""
        phase = self.phases[number]
        steps = min(self.steps[number], self.stop - sum(self.steps[:number]))
        if not first:
            self.average = Average()
        self.open(number)
        self.learner.begin(phase)
        log.info("phase %s: %d steps of %d points", phase.name, steps, phase.batch)
        per_epoch = self.steps_per_epoch(phase)
        epoch, kept, began = Averages(self._partial if first else None), Kept(), time.monotonic()
        with self.run.progress.bar(f"training ({phase.name})", steps, "steps") as bar:
            bar.advance(first)
            for step in range(first, steps):
                if step % per_epoch == 0:
                    self._refresh(number, step // per_epoch)
                epoch.add(self.step(number, step))
                kept.give_back()
                bar.advance()
                if (step + 1) % per_epoch == 0 or step + 1 == steps:
                    self._end_epoch(number, step, epoch, time.monotonic() - began)
                    epoch, began = Averages(), time.monotonic()
                    if self._enough():
                        break
                if self.checkpoint.due():
                    self._save(number, step + 1, epoch)
        if phase.average is not None:
            self.average.put_into(self.learner)
        self._save(number + 1, 0, Averages())

    def step(self, number: int, step: int) -> dict[str, float]:
        """One step of a phase: the figures of the batch."""
        phase = self.phases[number]
        self._at = number, step
        seed_everything(self.run.seed, number, step)
        points = self._points(number, step)
        self.network.train()
        for module in self.optimisers.frozen:
            module.eval()
        found = phase.step(self, points, phase, step / self.steps[number])
        if not np.isfinite(found["loss"]):
            raise DataError(
                f"the loss became {found['loss']} at step {step + 1} of phase {phase.name}",
                fix="a lower learning rate (--set lr=…, or the rate of this phase, see `longtail recipes NAME`) or "
                "precision=float32 helps most often",
            )
        self.optimisers.move(step, self.steps[number])
        return found

    def seed_part(self, part: int) -> None:
        """Seed the random numbers of a later part of the present step."""
        seed_everything(self.run.seed, *self._at, part)

    def average_gradients(self) -> None:
        """Replace gradients by their mean over all processes, for steps that do not call `network`, which does so."""
        if self.accelerator.num_processes > 1:
            for parameter in self.learner.parameters():
                if parameter.requires_grad:
                    grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                    parameter.grad = self.accelerator.reduce(grad, "mean")

    def _points(self, number: int, step: int) -> NDArray[np.int64]:
        """The points of a step, as many as this process takes of them."""
        phase = self.phases[number]
        epoch, place = divmod(step, self.steps_per_epoch(phase))
        if self._order is None or self._order[0] != (number, epoch):
            self._order = (number, epoch), phase.plan.order(self.learner, (self.run.seed, number, epoch))
        size = phase.batch or self.settings.batch
        points = self._order[1][place * size : (place + 1) * size]
        return share_of(points, self.accelerator.process_index, self.accelerator.num_processes)

    def steps_per_epoch(self, phase: Phase) -> int:
        """The number of batches that go through all points once."""
        return -(-self.learner.points // (phase.batch or self.settings.batch))

    def _refresh(self, number: int, epoch: int) -> None:
        """At the beginning of an epoch: what the phase repeats every few epochs."""
        refresh = self.phases[number].refresh
        if refresh is None or not epoch or epoch % refresh.every:
            return
        self.learner.done = epoch * self.steps_per_epoch(self.phases[number]) / self.steps[number]
        seed_everything(self.run.seed, number, REFRESH, epoch)
        found = self.refreshed[self.phases[number].name] = self.agreed(refresh.prepare(self.learner))
        refresh.apply(self.learner, found)
        self.learner.to(self.accelerator.device)

    def _end_epoch(self, number: int, step: int, sums: Averages, seconds: float) -> None:
        """Log an epoch, take its weights into the average, and score the validation part in the last phase."""
        phase = self.phases[number]
        epoch = step // self.steps_per_epoch(phase) + 1
        row = {"phase": phase.name, "epoch": epoch, "step": sum(self.steps[:number]) + step + 1}
        row |= {name: round(value, 6) for name, value in sums.means().items()}
        self.history.append(row)
        shown = ", ".join(f"{name} {value:.4g}" for name, value in row.items() if isinstance(value, float))
        speed = sums.count * (phase.batch or self.settings.batch) / max(seconds, 1e-9)
        log.info("phase %s, epoch %d: %s; %.0f points/s", phase.name, epoch, shown, speed)
        averaging = phase.average is not None and (step + 1) / self.steps[number] >= phase.average
        if averaging:
            self.average.add(self.learner)
        last = number + 1 == len(self.phases)
        if self.watch is None or not last:
            return
        with self.average.used_in(self.learner) if averaging else nullcontext():
            scores = self.agreed(self.watch())
            row["validation"] = scores
            log.info("validation: %s", ", ".join(f"{name} {score:.2f}" for name, score in scores.items()))
            if self.settings.patience is not None:
                self._compare(scores["mean"])

    def _compare(self, score: float) -> None:
        """Keep the weights if they are the best so far; else count epochs without improvement."""
        if score > self.best_score:
            self.best_score, self.waited = score, 0
            self.best = {name: tensor.detach().clone() for name, tensor in self.learner.state_dict().items()}
        else:
            self.waited += 1

    def _enough(self) -> bool:
        return self.settings.patience is not None and self.waited >= self.settings.patience

    def _save(self, number: int, step: int, partial: Averages) -> None:
        if self.checkpoint.folder is None or not self.accelerator.is_main_process:
            return
        tensors = {f"model.{name}": tensor for name, tensor in self.learner.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in (self.best or {}).items()}
        if step:  # a new phase begins with new moments and a new average
            tensors |= {f"average.{name}": tensor for name, tensor in self.average.means.items()}
            tensors |= {f"optimiser.{name}": tensor for name, tensor in self.optimisers.state().items()}
        structures = {f"phase.{p}.{name}": array for p, s in self.structures.items() for name, array in s.items()}
        structures |= {f"refresh.{p}.{name}": array for p, s in self.refreshed.items() for name, array in s.items()}
        meta = {
            "phase": number,
            "step": step,
            "steps": self.steps,
            "history": self.history,
            "best": None if self.best is None else self.best_score,
            "waited": self.waited,
            "averaged": self.average.count if step else 0,
            "partial": partial.sums,
            "structures": list(self.structures),
            "refreshed": list(self.refreshed),
            "seconds": round(self.seconds_before + time.monotonic() - self._began, 3),
        }
        self.checkpoint.save(tensors, structures, meta)

    def _resume(self) -> tuple[int, int]:
        """Where to continue: phase and step; (0, 0) if there is no checkpoint."""
        found = self.checkpoint.load()
        if found is None:
            log.info("no checkpoint found; starting from scratch")
            return 0, 0
        tensors, structures, meta = found
        for phase in self.phases:
            self.learner.to(self.accelerator.device)  # building may encode texts, and makes modules on the CPU
            if phase.name in meta["structures"]:
                self.structures[phase.name] = arrays_under(f"phase.{phase.name}", structures)
                phase.build(self.learner, self.structures[phase.name])
            if phase.name in meta["refreshed"] and phase.refresh is not None:
                self.refreshed[phase.name] = arrays_under(f"refresh.{phase.name}", structures)
                phase.refresh.apply(self.learner, self.refreshed[phase.name])
        self.learner.load_state_dict(under("model.", tensors))
        self.best = under("best.", tensors) or None
        self.best_score = -np.inf if meta["best"] is None else meta["best"]
        self.average = Average(under("average.", tensors), meta["averaged"])
        self.waited, self.history, self._partial = meta["waited"], meta["history"], meta["partial"]
        self._restored = under("optimiser.", tensors) if meta["step"] else None
        self.seconds_before = meta.get("seconds", 0.0)
        log.info("resumed at phase %d, step %d", meta["phase"] + 1, meta["step"] + 1)
        return meta["phase"], meta["step"]


def share_of(points: NDArray[np.int64], process: int, processes: int) -> NDArray[np.int64]:
    """The points of one process: as many as every other has, since they wait for each other; some may be repeated."""
    return np.resize(points, -(-len(points) // processes) * processes)[process::processes]


def seed_everything(seed: int, phase: int, step: int, *more: int) -> None:
    """Seed torch's random numbers from these. `step` may be `PREPARE` or `REFRESH`."""
    key = [seed, phase, step + 1, *more] if step > REFRESH else [seed, phase, 0, *more]
    own = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1)
    devices = getattr(torch, "accelerator", None)  # torch 2.6 and later
    if devices is None or devices.is_available():
        torch.manual_seed(own)
    else:  # the same for a CPU, without the millisecond that asking for every other device takes
        torch.default_generator.manual_seed(own)


def accelerator(device: str, precision: str) -> Accelerator:
    """Accelerate's object for the device asked for; `auto` is a GPU if there is one."""
    AcceleratorState._reset_state(True)  # of an earlier training of this process, which may have had other settings
    # phases leave parts of a network out; `Optimisers` keeps tables equal on all processes
    ddp = DistributedDataParallelKwargs(find_unused_parameters=True, broadcast_buffers=False)
    made = Accelerator(cpu=device == "cpu", mixed_precision=PRECISIONS[precision], kwargs_handlers=[ddp])
    if device not in ("auto", made.device.type, str(made.device)):  # Accelerate silently uses what there is
        raise ParameterError(f"device {device!r} is not available: this process would train on {str(made.device)!r}")
    return made
