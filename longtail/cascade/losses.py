"""Losses over logits and targets of candidates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from longtail.cascade.targets import Truth

BLOCK = 64  # points whose part of a sum lies in the cache


def bce(logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over candidates (B, C) that are counted (1; 0: pads and ignored pairs)."""
    total = functional.binary_cross_entropy_with_logits(logits, targets, weight=counted, reduction="sum")
    return total / counted.sum().clamp(min=1)


def bce_of_all(logits: Tensor, truth: Truth, ignored: Truth | None = None) -> Tensor:
    """Binary cross-entropy, the mean over all (B, K) of a level but for ignored pairs; a few of them are true."""
    true, left_out = [truth.rows, truth.labels, truth.values], [truth.rows[:0], truth.labels[:0]]
    if ignored is not None:
        counted = torch.isin(truth.keys, ignored.keys, invert=True)
        true, left_out = [part[counted] for part in true], [ignored.rows, ignored.labels]
    loss: Tensor = SparseBCE.apply(logits.float(), *true, *left_out)  # type: ignore[no-untyped-call]
    return loss


class SparseBCE(torch.autograd.Function):
    """Σ ln(1 + e^x) − Σ y·x, over all entries and over true ones, divided by the number of all; some are left out.

    No targets of the size B·K are made, nor anything else but the gradient σ(x) − y: with thousands of clusters, the
    time of such tensors is that of memory, and the loss would be a third of a step.
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
