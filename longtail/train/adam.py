"""Optimisers of tables: moments and steps for the rows that a step touched."""

from __future__ import annotations

import torch
from torch import Tensor

from longtail._native.rows import adam_rows
from longtail.encoders.table import Table

BETAS = (0.9, 0.999)
EPS = 1e-8
MOMENTUM = 0.9  # of SGD


class TableAdam:
    """Adam that leaves rows without a gradient alone: their moments do not fade either (as torch's SparseAdam).

    Moments are float32 and as large as the table. Linux provides memory only when it is first written to, so rows that
    are never touched cost nothing more.
    """

    def __init__(self, table: Table):
        self.table = table
        self.first = torch.zeros_like(table.weight)
        self.second = torch.zeros_like(table.weight)
        self.steps = 0

    @torch.no_grad()
    def step(self, ids: Tensor, grad: Tensor, lr: float, decay: float = 0.0) -> None:
        """Move the rows `ids` (U,), none given twice, against their gradients (U, d); by `decay` they shrink first."""
        self.steps += 1
        if decay:
            self.table.weight[ids] *= 1 - lr * decay
        if ids.device.type == "cpu":
            w, m, v = (tensor.numpy() for tensor in (self.table.weight, self.first, self.second))
            # one pass over memory, where the code below takes a dozen
            adam_rows(w, m, v, ids.numpy(), grad.float().numpy(), lr=lr, betas=BETAS, eps=EPS, steps=self.steps)
            return
        grad = grad.float()
        first = self.first[ids].lerp_(grad, 1 - BETAS[0])
        second = self.second[ids].mul_(BETAS[1]).addcmul_(grad, grad, value=1 - BETAS[1])
        self.first[ids], self.second[ids] = first, second
        scale = (1 - BETAS[1] ** self.steps) ** 0.5
        lower = second.sqrt_().div_(scale).add_(EPS)
        self.table.weight.index_add_(0, ids, first.div_(lower), alpha=-lr / (1 - BETAS[0] ** self.steps))

    def state(self) -> dict[str, Tensor]:
        """Moments and step count, for a checkpoint."""
        return {"first": self.first, "second": self.second, "steps": torch.tensor([self.steps])}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from `state`."""
        self.first.copy_(state["first"])
        self.second.copy_(state["second"])
        self.steps = int(state["steps"])


class TableSGD:
    """SGD with momentum for tables: m ← 0.9·m + gradient, row ← row − rate·m, for the rows that a step touched.

    The optimiser of Renee's classifiers, which touches all rows in every step; it needs half the memory of Adam.
    """

    def __init__(self, table: Table):
        self.table = table
        self.first = torch.zeros_like(table.weight)

    @torch.no_grad()
    def step(self, ids: Tensor, grad: Tensor, lr: float, decay: float = 0.0) -> None:
        """Move the rows `ids` (U,), none given twice, against their gradients (U, d); by `decay` they shrink first."""
        if len(ids) == len(self.table):  # all rows: no copies
            if decay:
                self.table.weight.mul_(1 - lr * decay)
            self.first.mul_(MOMENTUM).add_(in_order(ids, grad))
            self.table.weight.add_(self.first, alpha=-lr)
            return
        if decay:
            self.table.weight[ids] *= 1 - lr * decay
        first = self.first[ids].mul_(MOMENTUM).add_(grad)
        self.first[ids] = first
        self.table.weight.index_add_(0, ids, first, alpha=-lr)

    def state(self) -> dict[str, Tensor]:
        """The momentum, for a checkpoint."""
        return {"first": self.first}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from `state`."""
        self.first.copy_(state["first"])


def in_order(ids: Tensor, grad: Tensor) -> Tensor:
    """The gradients of all rows by rising row number."""
    return grad if bool((ids[1:] > ids[:-1]).all()) else grad[ids.argsort()]
