"""Losses over all labels that never hold a matrix of batch × labels: logits are computed for one chunk after another.

Both take queries x (B, d), label vectors W (L, d), and true pairs (B, L). They compute their gradients together with
the loss, so memory is that of one chunk of logits, and of the gradients of x and W.

| loss | of a query i | system |
| --- | --- | --- |
| `FullBCE` | Σ_l binary cross-entropy of (σ(s_il), y_il), a sum over queries too; its gradient is σ(s) − y | Renee |
| `FullDecoupled` | the decoupled softmax of `scoring.contrast`, with all labels as the pool | DEXML |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from longtail.scoring.contrast import Averaged, counted_truth
from longtail.scoring.targets import Truth

CELLS = 1 << 24  # logits in memory at once


class ChunkedLoss(ABC):
    """Base class of losses that take vectors instead of logits."""

    @abstractmethod
    def of_vectors(
        self, x: Tensor, W: Tensor, truth: Truth, ignored: Truth | None = None, temperature: float = 1.0
    ) -> Tensor:
        """The loss, a scalar, of scores x Wᵀ / temperature (B, L)."""


class FullBCE(ChunkedLoss):
    """Binary cross-entropy, the sum over labels and queries: rates of SGD are meant for this sum."""

    def of_vectors(
        self, x: Tensor, W: Tensor, truth: Truth, ignored: Truth | None = None, temperature: float = 1.0
    ) -> Tensor:
        truth = counted_truth(truth, ignored)
        loss: Tensor = BCEOfChunks.apply(x.float(), W.float(), truth, ignored, temperature)  # type: ignore[no-untyped-call]
        return loss


class FullDecoupled(ChunkedLoss):
    """−log( e^{s_p} / (e^{s_p} + Σ_{l ∉ P_i} e^{s_l}) ), the mean over a query's true labels, then over queries."""

    def __init__(self, normalised: bool = True):
        self.averaged = Averaged(normalised)

    def of_vectors(
        self, x: Tensor, W: Tensor, truth: Truth, ignored: Truth | None = None, temperature: float = 1.0
    ) -> Tensor:
        x, W, left_out = x.float(), W.float(), [truth] if ignored is None else [truth, ignored]
        negatives: Tensor = LogSumsOfChunks.apply(x, W, left_out, temperature)  # type: ignore[no-untyped-call]
        truth = counted_truth(truth, ignored)
        positive = (x[truth.rows] * W[truth.labels]).sum(1) / temperature  # few pairs: no matrix
        return self.averaged(functional.softplus(negatives[truth.rows] - positive), truth)


class LogSumsOfChunks(torch.autograd.Function):
    """ln Σ_l e^{s_il} (B,) over all labels but the pairs left out. The backward pass computes each chunk again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, left_out: list[Truth], temperature: float) -> Tensor:
        total = torch.full((len(x),), -torch.inf, device=x.device)
        for first, last in chunks(x, W):
            logits = masked(x @ W[first:last].T / temperature, left_out, first, last)
            total = torch.logaddexp(total, logits.logsumexp(1))
        ctx.left_out, ctx.temperature = left_out, temperature
        ctx.save_for_backward(x, W, total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, W, total = ctx.saved_tensors
        dx, dW = torch.zeros_like(x), torch.empty_like(W)
        shift = torch.where(total > -torch.inf, total, 0.0)[:, None]
        scale = (grads[0] / ctx.temperature)[:, None]
        for first, last in chunks(x, W):
            logits = masked(x @ W[first:last].T / ctx.temperature, ctx.left_out, first, last)
            G = (logits - shift).exp_().mul_(scale)  # (B, C)
            dx.addmm_(G, W[first:last])
            torch.mm(G.T, x, out=dW[first:last])
        return dx, dW, None, None


class BCEOfChunks(torch.autograd.Function):
    """Σ ln(1 + e^s) − Σ over true pairs of y·s; the gradient σ(s) − y is formed in the same pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, W: Tensor, truth: Truth, ignored: Truth | None, temperature: float) -> Tensor:
        dx, dW, loss = torch.zeros_like(x), torch.empty_like(W), torch.zeros((), device=x.device)
        for first, last in chunks(x, W):
            logits = x @ W[first:last].T / temperature
            logits = masked(logits, [] if ignored is None else [ignored], first, last)
            true = within(truth, first, last)
            rows, labels, values = truth.rows[true], truth.labels[true] - first, truth.values[true]
            loss += functional.softplus(logits).sum() - (values * logits[rows, labels]).sum()
            G = logits.sigmoid_()
            G.index_put_((rows, labels), -values, accumulate=True)
            dx.addmm_(G, W[first:last])
            torch.mm(G.T, x, out=dW[first:last])
        ctx.save_for_backward(dx, dW)
        ctx.scale = 1 / temperature
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        dx, dW = ctx.saved_tensors
        scale = grads[0] * ctx.scale
        return dx.mul_(scale), dW.mul_(scale), None, None, None


def chunks(x: Tensor, W: Tensor) -> list[tuple[int, int]]:
    """First and last label of each chunk."""
    size = max(1, CELLS // max(len(x), 1))
    return [(first, min(first + size, len(W))) for first in range(0, len(W), size)]


def within(pairs: Truth, first: int, last: int) -> Tensor:
    """Which pairs have a label of the chunk (n,)."""
    return (pairs.labels >= first) & (pairs.labels < last)


def masked(logits: Tensor, left_out: list[Truth], first: int, last: int) -> Tensor:
    """Logits (B, C) of a chunk with −∞ at the pairs left out."""
    for pairs in left_out:
        own = within(pairs, first, last)
        logits[pairs.rows[own], pairs.labels[own] - first] = -torch.inf
    return logits
