"""The training loop: phases of steps, on whatever device and however many processes there are.

Built on Accelerate, which knows devices, mixed precision and processes. The order of points is a function of (seed,
phase, epoch) and what a step draws at random one of (seed, phase, step), so that a run that is taken up again does what
the unbroken one would have done.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.core.errors import DataError, ParameterError
from longtail.core.run import Run
from longtail.train.adam import BETAS, EPS, TableAdam
from longtail.train.checkpoint import Checkpoint
from longtail.train.learner import Learner, Phase, Structure, steps_of
from longtail.train.memory import Kept
from longtail.train.schedule import factor
from longtail.train.settings import LoopParameters

log = logging.getLogger("longtail")
PRECISIONS = {"float32": "no", "bfloat16": "bf16"}  # by Accelerate's names; float16 would need its losses scaled


class Loop:
    """One training.

    `watch` scores the network on the validation part, after every epoch of the last phase; the score "mean" is what
    `patience` decides by. To repeat an earlier training on other points, `planned` gives its steps of each phase (their
    schedules follow from these) and `stop` after how many steps of all phases together it ended.
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
        self.learner, self.settings, self.run, self.watch = learner, settings, run, watch
        self.steps = planned or steps_of(learner.phases, learner.points, settings)
        self.stop = stop or sum(self.steps)
        self.checkpoint = Checkpoint(run.folder, key)
        self.structures: dict[str, Structure] = {}
        self.history: list[dict[str, Any]] = []
        self.best: dict[str, Tensor] | None = None
        self.best_score, self.waited = -np.inf, 0
        self.accelerator = accelerator(run.device, settings.precision)

    def train(self) -> list[dict[str, Any]]:
        """Run all phases; the history: a row for each epoch."""
        with self.threads():
            at, step = self._resume() if self.run.resume else (0, 0)
            for number in range(at, len(self.learner.phases)):
                self._phase(number, step if number == at else 0)
            if self.best is not None:
                self.learner.load_state_dict(self.best)
        return self.history

    @contextmanager
    def threads(self) -> Iterator[None]:
        """As many for torch as the run has, and afterwards as many as there were."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.run.threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def _phase(self, number: int, first: int) -> None:
        """The steps of a phase, from the first that is not yet done."""
        phase, before = self.learner.phases[number], sum(self.steps[:number])
        steps = min(self.steps[number], self.stop - before)
        if phase.name not in self.structures:
            seed_everything(self.run.seed, number, -1)
            self.structures[phase.name] = self.learner.structure(phase)
            self.learner.build(phase, self.structures[phase.name])
        self._start(phase)
        log.info("phase %s: %d steps of %d points", phase.name, steps, self.settings.batch)
        per_epoch = -(-self.learner.points // self.settings.batch)
        epoch, kept = Averages(self.partial if first else None), Kept()
        with self.run.progress.bar(f"training ({phase.name})", steps, "steps") as bar:
            bar.advance(first)
            for step in range(first, steps):
                epoch.add(self._step(number, step))
                kept.give_back()
                bar.advance()
                if (step + 1) % per_epoch == 0 or step + 1 == steps:
                    self._tell(phase, step // per_epoch, before + step + 1, epoch)
                    enough, epoch = self._enough(number), Averages()
                    if enough:
                        break
                if self.checkpoint.due():
                    self._save(number, step + 1, epoch)
        self._save(number + 1, 0, Averages())

    def _start(self, phase: Phase) -> None:
        """Say what is trained, and make the optimisers.

        What a phase has built is on the CPU, and Accelerate moves a network only the first time it sees it.
        """
        learner = self.learner.to(self.accelerator.device)
        for name, parameter in learner.named_parameters():
            parameter.requires_grad_(phase.changes(name))
        tables = learner.tables()
        for name, table in tables.items():
            table.trainable = phase.changes(name)
        self.adams = {name: TableAdam(table) for name, table in tables.items() if table.trainable}
        # what is frozen stays as it is: in training mode spectral norms would go on and running means move
        self.frozen = [module for module in learner.modules() if is_frozen(module)]
        dense = [parameter for parameter in learner.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.Adam(dense, lr=phase.lr, betas=BETAS, eps=EPS) if dense else None
        self.network = self.accelerator.prepare(learner)
        if self.restored is not None:
            self._restore_optimisers(self.restored)
            self.restored = None

    restored: dict[str, Tensor] | None = None  # of optimisers, from a checkpoint, until they are made
    partial: dict[str, float] | None = None  # sums of the epoch that a checkpoint broke off

    def _step(self, number: int, step: int) -> dict[str, float]:
        """Forward, backward, and one move of everything that is trained; the figures of the step."""
        phase, settings = self.learner.phases[number], self.settings
        seed_everything(self.run.seed, number, step)
        points = batch_of(self.run.seed, number, step, self.learner.points, settings.batch)
        points = share_of(points, self.accelerator.process_index, self.accelerator.num_processes)
        self.network.train()
        for module in self.frozen:
            module.eval()
        sums = Averages()
        for part in np.array_split(points, settings.accumulate):
            if not len(part):
                continue
            with self.accelerator.autocast():
                rows = torch.from_numpy(part).to(self.accelerator.device)
                loss, figures = self.network(rows, phase, step / self.steps[number])
            share = len(part) / len(points)
            self.accelerator.backward(loss * share)
            sums.add({"loss": float(loss.detach()), **{name: float(x) for name, x in figures.items()}}, share)
        found = sums.means()
        if not np.isfinite(found["loss"]):
            raise DataError(
                f"the loss became {found['loss']} at step {step + 1} of phase {phase.name}",
                fix="a lower rate (--set lr=…; surrogate_lr=… in that phase) or precision=float32 most often helps",
            )
        self._move(phase.lr * factor(phase.schedule, step, self.steps[number], phase.warmup))
        return found

    def _move(self, lr: float) -> None:
        if self.optimiser is not None:
            if self.settings.clip is not None:
                self.accelerator.clip_grad_norm_(self.optimiser.param_groups[0]["params"], self.settings.clip)
            self.optimiser.param_groups[0]["lr"] = lr
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)
        for adam in self.adams.values():
            found = self._of_all_processes(adam.table.gradient(), adam.table.width)
            if found is not None:
                adam.step(*found, lr)

    def _of_all_processes(self, found: tuple[Tensor, Tensor] | None, width: int) -> tuple[Tensor, Tensor] | None:
        """The mean over processes of the gradients of touched rows; what is sent is rows and gradients alone."""
        processes = self.accelerator.num_processes
        if processes == 1:
            return found
        device = self.accelerator.device
        ids, grad = found or (torch.zeros(0, dtype=torch.long, device=device), torch.zeros(0, width, device=device))
        ids, grad = (
            self.accelerator.gather(self.accelerator.pad_across_processes(tensor, pad_index=pad))
            for tensor, pad in ((ids, -1), (grad.float(), 0))
        )
        ids, grad = ids[ids >= 0], grad[ids >= 0] / processes
        unique, at = ids.unique(return_inverse=True)
        return unique, torch.zeros(len(unique), width, device=device).index_add_(0, at, grad)

    def _tell(self, phase: Phase, epoch: int, step: int, sums: Averages) -> None:
        row = {"phase": phase.name, "epoch": epoch + 1, "step": step}
        row |= {n: round(x, 6) for n, x in sums.means().items()}
        self.history.append(row)
        shown = ", ".join(f"{name} {value:.4g}" for name, value in row.items() if isinstance(value, float))
        log.info(
            "phase %s, epoch %d: %s; %.0f points/s",
            phase.name,
            epoch + 1,
            shown,
            sums.count * self.settings.batch / max(sums.seconds(), 1e-9),
        )

    def _enough(self, number: int) -> bool:
        """After an epoch of the last phase: whether validation has not become better for too long."""
        if self.watch is None or number + 1 < len(self.learner.phases):
            return False
        self.history[-1]["validation"] = scores = self.watch()
        score = scores["mean"]
        log.info("validation: %.2f", score)
        if self.settings.patience is None:
            return False
        if score > self.best_score:
            self.best_score, self.waited = score, 0
            self.best = {name: tensor.detach().clone() for name, tensor in self.learner.state_dict().items()}
        else:
            self.waited += 1
        return self.waited >= self.settings.patience

    def _save(self, number: int, step: int, partial: Averages) -> None:
        if self.checkpoint.folder is None or not self.accelerator.is_main_process:
            return
        tensors = {f"model.{name}": tensor for name, tensor in self.learner.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in (self.best or {}).items()}
        tensors |= self._optimisers()
        structures = {f"{p}.{name}": array for p, s in self.structures.items() for name, array in s.items()}
        meta = {
            "phase": number,
            "step": step,
            "steps": self.steps,
            "history": self.history,
            "best": None if self.best is None else self.best_score,
            "waited": self.waited,
            "partial": partial.sums,
            "structures": list(self.structures),
        }
        self.checkpoint.save(tensors, structures, meta)

    def _resume(self) -> tuple[int, int]:
        """Where to go on: phase and step; (0, 0) where there is no checkpoint."""
        found = self.checkpoint.load()
        if found is None:
            log.info("there is nothing to take up again: the training begins at its beginning")
            return 0, 0
        tensors, structures, meta = found
        for phase in self.learner.phases:
            if phase.name in meta["structures"]:
                prefix = f"{phase.name}."
                own = {n.removeprefix(prefix): a for n, a in structures.items() if n.startswith(prefix)}
                self.structures[phase.name] = own
                self.learner.build(phase, own)
        self.learner.load_state_dict(under("model.", tensors))
        self.best = under("best.", tensors) or None
        self.best_score = -np.inf if meta["best"] is None else meta["best"]
        self.waited, self.history, self.partial = meta["waited"], meta["history"], meta["partial"]
        self.restored = under("optimiser.", tensors) if meta["step"] else None
        log.info("taken up again at phase %d, step %d", meta["phase"] + 1, meta["step"] + 1)
        return meta["phase"], meta["step"]

    def _optimisers(self) -> dict[str, Tensor]:
        tensors = {
            f"optimiser.table.{name}.{part}": tensor
            for name, adam in self.adams.items()
            for part, tensor in adam.state().items()
        }
        if self.optimiser is not None:
            for i, state in self.optimiser.state_dict()["state"].items():
                tensors |= {f"optimiser.dense.{i}.{part}": torch.as_tensor(value) for part, value in state.items()}
        return tensors

    def _restore_optimisers(self, tensors: dict[str, Tensor]) -> None:
        for name, adam in self.adams.items():
            adam.restore(under(f"table.{name}.", tensors))
        if self.optimiser is not None:
            whole = self.optimiser.state_dict()
            numbers = {int(name.split(".")[1]) for name in tensors if name.startswith("dense.")}
            whole["state"] = {i: under(f"dense.{i}.", tensors) for i in sorted(numbers)}
            self.optimiser.load_state_dict(whole)


class Averages:
    """Means of figures by name, weighted."""

    def __init__(self, sums: dict[str, float] | None = None):
        self.sums = dict(sums or {})
        self.count = 0
        self._began = time.monotonic()

    def add(self, figures: dict[str, float], weight: float = 1.0) -> None:
        """One more of each."""
        self.count += 1
        for name, value in {**figures, "": 1.0}.items():
            self.sums[name] = self.sums.get(name, 0.0) + weight * value

    def means(self) -> dict[str, float]:
        """Of those that were given."""
        return {name: value / self.sums[""] for name, value in self.sums.items() if name}

    def seconds(self) -> float:
        """Since it was made."""
        return time.monotonic() - self._began


def is_frozen(module: nn.Module) -> bool:
    """Whether it has parameters, none of which is trained."""
    trained = [parameter.requires_grad for parameter in module.parameters()]
    return bool(trained) and not any(trained)


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def batch_of(seed: int, phase: int, step: int, points: int, size: int) -> NDArray[np.int64]:
    """The points of a step: each epoch goes through all of them in an order of its own."""
    epoch, number = divmod(step, -(-points // size))
    return order_of(seed, phase, epoch, points)[number * size : (number + 1) * size]


def share_of(points: NDArray[np.int64], process: int, processes: int) -> NDArray[np.int64]:
    """Those of a process: as many as every other has, since they wait for each other; so some may be there twice."""
    return np.resize(points, -(-len(points) // processes) * processes)[process::processes]


@functools.lru_cache(maxsize=1)
def order_of(seed: int, phase: int, epoch: int, points: int) -> NDArray[np.int64]:
    """All points, shuffled for an epoch."""
    return np.random.default_rng([seed, phase, epoch]).permutation(points)


def seed_everything(seed: int, phase: int, step: int) -> None:
    """What torch draws from here on follows from these."""
    own = int(np.random.SeedSequence([seed, phase, step + 1]).generate_state(1, np.uint64)[0] >> 1)
    devices = getattr(torch, "accelerator", None)  # torch 2.6 and later
    if devices is None or devices.is_available():
        torch.manual_seed(own)
    else:  # the same for a CPU, without the millisecond that asking after every other device takes
        torch.default_generator.manual_seed(own)


def accelerator(device: str, precision: str) -> Accelerator:
    """Of the device asked for; `auto` is a GPU where there is one."""
    AcceleratorState._reset_state(True)  # of an earlier training of this process, which may have had other settings
    # phases leave parts of a network out; tables are kept alike by their own step
    ddp = DistributedDataParallelKwargs(find_unused_parameters=True, broadcast_buffers=False)
    mixed = PRECISIONS[precision]
    made = Accelerator(cpu=device == "cpu", mixed_precision=mixed, kwargs_handlers=[ddp])
    if device not in ("auto", made.device.type, str(made.device)):  # Accelerate takes what there is, and says nothing
        raise ParameterError(f"device {device!r} is not to be had: this process would train on {str(made.device)!r}")
    return made
