"""The optimisers of a phase, each group at its own rate: Adam or SGD; of tables only touched rows are moved."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from longtail.core.errors import ParameterError
from longtail.train.adam import BETAS, EPS, MOMENTUM, TableAdam, TableSGD
from longtail.train.clip import Recent
from longtail.train.learner import Learner
from longtail.train.phase import Group, Optimiser, Phase, check_groups
from longtail.train.schedule import factor


class Optimisers:
    """What moves the weights of a network in one phase. Making it freezes everything that no group names."""

    def __init__(self, learner: Learner, phase: Phase, accelerator: Accelerator):
        self.phase, self.accelerator = phase, accelerator
        self.groups: list[Group] = []  # of `dense`, in the order of its parameter groups
        tables = learner.tables()
        check_groups(phase, [name for name, _ in learner.named_parameters()] + list(tables))
        members: dict[Group, list[nn.Parameter]] = {}
        for name, parameter in learner.named_parameters():
            group = phase.group_of(name)
            parameter.requires_grad_(group is not None)
            if group is not None:
                members.setdefault(group, []).append(parameter)
        self.tables: dict[str, tuple[TableAdam | TableSGD, Group]] = {}
        for name, table in tables.items():
            group = phase.group_of(name)
            table.trainable = group is not None
            if group is not None:
                self.tables[name] = (TableAdam if group.optimiser == "adam" else TableSGD)(table), group
        kinds = {group.optimiser for group in members}
        if len(kinds) > 1:
            raise ParameterError(
                f"phase {phase.name!r} has several optimisers for dense parameters; only tables may differ"
            )
        self.groups = list(members)
        options = [{"params": members[g], "lr": g.lr, "weight_decay": g.decay} for g in self.groups]
        self.dense = dense_optimiser(options, kinds.pop()) if options else None
        self.recent = None if phase.clip_recent is None else Recent(phase.clip_recent)
        # frozen modules stay in evaluation mode: otherwise spectral norms and running means would still move
        self.frozen = [module for module in learner.modules() if is_frozen(module)]

    def move(self, step: int, steps: int) -> None:
        """Move all trained weights against their gradients, at the rates of this step of the phase."""
        if self.dense is not None:
            self._clip([p for options in self.dense.param_groups for p in options["params"]])
            for options, group in zip(self.dense.param_groups, self.groups, strict=True):
                options["lr"] = rate(group, step, steps)
            self.dense.step()
            self.dense.zero_grad(set_to_none=True)
        for adam, group in self.tables.values():
            found = self._of_all_processes(adam.table.gradient(), adam.table.width)
            if found is not None:
                adam.step(*found, rate(group, step, steps), group.decay)

    def _clip(self, trained: list[nn.Parameter]) -> None:
        """Bound the norm of the dense gradients, as the phase says."""
        bounds = [self.phase.clip, None if self.recent is None else self.recent.bound]
        given = [bound for bound in bounds if bound is not None]
        if not given:
            return
        norm = self.accelerator.clip_grad_norm_(trained, min(given))
        if self.recent is not None:
            self.recent.add(float(norm))

    def _of_all_processes(self, found: tuple[Tensor, Tensor] | None, width: int) -> tuple[Tensor, Tensor] | None:
        """The mean of touched rows' gradients over all processes; only rows and gradients are sent."""
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

    def state(self) -> dict[str, Tensor]:
        """All moments and step counts as named tensors, for a checkpoint."""
        tensors = {
            f"table.{name}.{part}": tensor
            for name, (adam, _) in self.tables.items()
            for part, tensor in adam.state().items()
        }
        if self.dense is not None:
            for i, state in self.dense.state_dict()["state"].items():
                tensors |= {f"dense.{i}.{part}": torch.as_tensor(value) for part, value in state.items()}
        if self.recent is not None:
            tensors["clip.norms"] = torch.tensor(self.recent.norms, dtype=torch.float64)
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue from `state`."""
        for name, (adam, _) in self.tables.items():
            adam.restore(under(f"table.{name}.", tensors))
        if self.dense is not None:
            whole = self.dense.state_dict()
            numbers = {int(name.split(".")[1]) for name in tensors if name.startswith("dense.")}
            whole["state"] = {i: under(f"dense.{i}.", tensors) for i in sorted(numbers)}
            self.dense.load_state_dict(whole)
        if self.recent is not None:
            self.recent.norms = tensors["clip.norms"].tolist()


def dense_optimiser(options: list[dict[str, Any]], kind: Optimiser) -> torch.optim.Optimizer:
    """AdamW, or SGD with momentum."""
    if kind == "adam":
        return torch.optim.AdamW(options, betas=BETAS, eps=EPS)
    return torch.optim.SGD(options, momentum=MOMENTUM)


def rate(group: Group, step: int, steps: int) -> float:
    """The learning rate of a group at a step of its phase."""
    return group.lr * factor(group.schedule, step, steps, group.warmup)


def is_frozen(module: nn.Module) -> bool:
    """Whether a module has parameters, and none of them is trained."""
    trained = [parameter.requires_grad for parameter in module.parameters()]
    return bool(trained) and not any(trained)


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
