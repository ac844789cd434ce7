"""Losses over logits and targets of candidates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from longtail.cascade.targets import Truth


def bce(logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over candidates (B, C) that are counted (1; 0: pads and ignored pairs)."""
    total = functional.binary_cross_entropy_with_logits(logits, targets, weight=counted, reduction="sum")
    return total / counted.sum().clamp(min=1)


def bce_of_all(logits: Tensor, truth: Truth) -> Tensor:
    """Binary cross-entropy, the mean over all (B, K) of a level, of which a few are true."""
    loss: Tensor = SparseBCE.apply(logits.float(), truth.rows, truth.labels, truth.values)  # type: ignore[no-untyped-call]
    return loss


class SparseBCE(torch.autograd.Function):
    """Σ ln(1 + e^x) − Σ y·x, over all entries and over true ones, divided by their number B·K.

    No targets of the size B·K are made, nor anything else but the gradient σ(x) − y: with thousands of clusters, the
    time of such tensors is that of memory, and the loss would be a third of a step.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, rows: Tensor, labels: Tensor, values: Tensor) -> Tensor:
        ctx.save_for_backward(logits, rows, labels, values)
        of_none = torch.stack([functional.softplus(part).sum() for part in logits.split(BLOCK)]).sum()
        return (of_none - (values * logits[rows, labels]).sum()) / max(logits.numel(), 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        logits, rows, labels, values = ctx.saved_tensors
        scale = grads[0] / max(logits.numel(), 1)
        grad = logits.sigmoid().mul_(scale)
        grad.index_put_((rows, labels), -values * scale, accumulate=True)
        return grad, None, None, None


BLOCK = 64  # points whose part of a sum lies in the cache
