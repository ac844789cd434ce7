"""Losses over logits and targets of candidates."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def bce(logits: Tensor, targets: Tensor, counted: Tensor | None = None) -> Tensor:
    """Binary cross-entropy, the mean over candidates (B, C) that are counted (1; 0: pads and ignored pairs)."""
    if counted is None:
        return functional.binary_cross_entropy_with_logits(logits, targets)
    total = functional.binary_cross_entropy_with_logits(logits, targets, weight=counted, reduction="sum")
    return total / counted.sum().clamp(min=1)
