"""Losses over logits and targets. A loss knows nothing of levels, trees or label weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from longtail.scoring.targets import Truth

BLOCK = 64  # points whose part of a sum fits into the cache


class PoolLoss(ABC):
    """Base class of losses that compare a batch with labels that all its points share: all of a level, or a pool."""

    @abstractmethod
    def of_all(self, logits: Tensor, truth: Truth, ignored: Truth | None = None) -> Tensor:
        """The loss, a scalar, of logits (B, P); `truth` and `ignored` are pairs of the same shape."""

    def both_ways(self, logits: Tensor, truth: Truth, ignored: Truth | None, forth: float) -> Tensor:
        """`forth` · (each point against all labels) + (1 − `forth`) · (each label against all points)."""
        loss = torch.zeros((), device=logits.device)
        if forth > 0:
            loss = loss + forth * self.of_all(logits, truth, ignored)
        if forth < 1:
            turned = None if ignored is None else ignored.turned()
            loss = loss + (1 - forth) * self.of_all(logits.T, truth.turned(), turned)
        return loss


class Loss(PoolLoss):
    """Base class of losses that can also be taken of candidates, which are others for each point."""

    @abstractmethod
    def __call__(self, logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
        """The loss of candidates: logits, soft targets in [0, 1] and `counted` are (B, C).

        `counted` is 1 for pairs that take part and 0 for pads and ignored pairs. Returns a scalar.
        """

    def of_all(self, logits: Tensor, truth: Truth, ignored: Truth | None = None) -> Tensor:
        """The loss of all nodes of a level: logits (B, K), with few true pairs and few ignored ones."""
        counted = torch.ones_like(logits)
        if ignored is not None:
            counted[ignored.rows, ignored.labels] = 0
        return self(logits, truth.dense(), counted)


class BCE(Loss):
    """Binary cross-entropy −y·log σ(x) − (1 − y)·log(1 − σ(x)), the mean over counted pairs.

    The loss of every cascade here. As it is a mean over batch × candidates, learning rates must be tuned again when the
    number of candidates changes.
    """

    def __call__(self, logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
        total = functional.binary_cross_entropy_with_logits(logits, targets, weight=counted, reduction="sum")
        return total / counted.sum().clamp(min=1)

    def of_all(self, logits: Tensor, truth: Truth, ignored: Truth | None = None) -> Tensor:
        """The same value as the base class computes, without targets of the size (B, K)."""
        true, left_out = [truth.rows, truth.labels, truth.values], [truth.rows[:0], truth.labels[:0]]
        if ignored is not None:
            counted = torch.isin(truth.keys, ignored.keys, invert=True)
            true, left_out = [part[counted] for part in true], [ignored.rows, ignored.labels]
        loss: Tensor = SparseBCE.apply(logits.float(), *true, *left_out)  # type: ignore[no-untyped-call]
        return loss


class SquaredHinge(Loss):
    """y·max(0, 1 − x)² + α·(1 − y)·max(0, 1 + x)², the mean over pairs weighted by `counted` (XR-Transformer, eq. 9).

    The loss of the linear engine, whose weights can therefore begin a level. `counted` may be any cost of a pair, and
    `negative` is α.
    """

    def __init__(self, negative: float = 1.0):
        self.negative = negative

    def __call__(self, logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
        x = logits.float()
        false = self.negative * (1 - targets)
        each = targets * functional.relu(1 - x).square() + false * functional.relu(1 + x).square()
        return (counted * each).sum() / counted.sum().clamp(min=1)


class SparseBCE(torch.autograd.Function):
    """(Σ over all entries of ln(1 + e^x) − Σ over true ones of y·x) / number of entries; some are left out.

    The gradient σ(x) − y is the only tensor of the size B·K that it creates. With thousands of clusters, such tensors
    cost as much time as memory can deliver them, and a plain loss would take a third of a step.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, *pairs: Tensor) -> Tensor:
        rows, labels, values, *left_out = pairs
        ctx.save_for_backward(logits, *pairs)
        ctx.counted = max(logits.numel() - len(left_out[0]), 1)
        of_none = torch.stack([functional.softplus(part).sum() for part in logits.split(BLOCK)]).sum()
        of_none = of_none - functional.softplus(logits[tuple(left_out)]).sum()
        return (of_none - (values * logits[rows, labels]).sum()) / ctx.counted

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        logits, rows, labels, values, *left_out = ctx.saved_tensors
        scale = grads[0] / ctx.counted
        grad = logits.sigmoid().mul_(scale)
        grad[tuple(left_out)] = 0
        grad.index_put_((rows, labels), -values * scale, accumulate=True)
        return grad, None, None, None, None, None
