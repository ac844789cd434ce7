"""One level of a cascade: the classifiers of its clusters, or of the labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from longtail.cascade.weights import LabelWeights
from longtail.encoders.sums import CandidateLogits
from longtail.encoders.table import Table, compact

IN_COMMON = 8  # a product of all with all does so many times the work in the time of single ones


class Level(nn.Module):
    """K classifiers that read the feature called `feature`: logit = weights · feature (+ bias)."""

    def __init__(self, K: int, feature: str, weights: LabelWeights, bias: Table | None = None, dropout: float = 0.0):
        super().__init__()
        self.K, self.feature, self.weights, self.bias = K, feature, weights, bias
        self.dropout = nn.Dropout(dropout)

    def logits(self, features: dict[str, Tensor], candidates: Tensor | None = None) -> Tensor:
        """Of candidates (B, C), pads (−1) getting that of some label; or of all (B, K).

        Each label that is a candidate of any point has its weights made once (U of them). Where points have most of
        these in common, one product of all with all is cheaper than B·C single ones.
        """
        x = self.dropout(features[self.feature])  # (B, d)
        if candidates is None:
            return self.with_bias(x @ self.weights.rows(numbers(self.K, x)).T, None, None)
        labels, at = found_in(candidates, self.K)  # (U,), (B, C)
        W = self.weights.rows(labels)  # (U, d)
        if len(labels) <= IN_COMMON * candidates.shape[1]:
            return self.with_bias((x @ W.T).gather(1, at), labels, at)
        logits: Tensor = CandidateLogits.apply(x.float(), W.float(), at)  # type: ignore[no-untyped-call]
        return self.with_bias(logits, labels, at)

    def with_bias(self, logits: Tensor, labels: Tensor | None, at: Tensor | None) -> Tensor:
        """Logits (B, C) and the biases of their labels, if there are any."""
        if self.bias is None:
            return logits
        if labels is None or at is None:
            return logits + self.bias.rows(numbers(self.K, logits)).T
        return logits + self.bias.rows(labels)[:, 0][at]


def found_in(candidates: Tensor, K: int) -> tuple[Tensor, Tensor]:
    """The labels among candidates (B, C), and where each stands among these; pads (−1) stand at one or other of them.

    Were they at a label of their own, it would be touched by nearly every step.
    """
    labels, at = compact(candidates, K + 1)  # a pad is the last of these numbers
    if len(labels) > 1 and labels[-1] == K:
        labels = labels[:-1]
    return labels.clamp(max=K - 1), at.clamp(max=len(labels) - 1)


def numbers(K: int, like: Tensor) -> Tensor:
    """0, …, K − 1."""
    return torch.arange(K, device=like.device)
