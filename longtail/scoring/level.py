"""One level of a cascade: the classifiers of its clusters, or of the labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from longtail.encoders.export import Exported
from longtail.encoders.sums import CandidateLogits
from longtail.encoders.table import Table, compact
from longtail.scoring.candidates import All, Below, Candidates, Static
from longtail.scoring.losses import BCE, Loss
from longtail.scoring.weights import LabelWeights

IN_COMMON = 8  # one full matrix product computes about this many times more products per second than single ones


class Level(nn.Module, ABC):
    """K classifiers, and how they are trained: on which `candidates`, by which `loss`, with which `weight` in the sum.

    A level is given all features of the encoder and reads those it needs by name. `Dot` is one kind of level; a level
    that attends to the tokens of a text is another. `kind` is the registered name of what serves it.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        K: int,
        feature: str,
        candidates: Candidates | None = None,
        loss: Loss | None = None,
        weight: float = 1.0,
    ):
        super().__init__()
        self.K, self.feature, self.weight = K, feature, weight
        self.candidates, self.loss = candidates or All(), loss or BCE()

    @abstractmethod
    def logits(self, features: dict[str, Tensor], nodes: Tensor | None = None) -> Tensor:
        """The logits of candidates (B, C), where pads (−1) get an arbitrary one; of all nodes (B, K) if None."""

    @abstractmethod
    def export(self) -> Exported:
        """The arrays and settings by which the level is served, without torch if possible."""

    def below(self) -> Below | None:
        """Which parents have which children, where candidates come from a tree."""
        own = self.candidates
        found = own.below if isinstance(own, Static) else own
        return found if isinstance(found, Below) else None

    def exported_candidates(self) -> Exported:
        """How prediction reaches this level: the children of each parent, and how many parents are kept."""
        below = self.below()
        if below is None:
            return Exported({}, {})
        children = below.family.value.children.cpu().numpy().astype(np.int32)
        return Exported({"children": children}, {"beam": below.beam})


class Dot(Level):
    """logit = weights · feature (+ bias): one weight vector for each node, wherever it comes from."""

    kind = "dot"

    def __init__(
        self,
        K: int,
        feature: str,
        weights: LabelWeights,
        bias: Table | None = None,
        dropout: float = 0.0,
        candidates: Candidates | None = None,
        loss: Loss | None = None,
        weight: float = 1.0,
    ):
        super().__init__(K, feature, candidates, loss, weight)
        self.weights, self.bias, self.dropout = weights, bias, nn.Dropout(dropout)

    def logits(self, features: dict[str, Tensor], nodes: Tensor | None = None) -> Tensor:
        """The weights of a node that is a candidate of several points are computed once (U different nodes).

        Where the points of a batch have most candidates in common, one product of all with all is faster than B·C
        single ones.
        """
        x = self.dropout(features[self.feature])  # (B, d)
        if nodes is None:
            return self.with_bias(x @ self.weights.rows(numbers(self.K, x)).T, None, None)
        different, at = found_in(nodes, self.K)  # (U,), (B, C)
        W = self.weights.rows(different)  # (U, d)
        if len(different) <= IN_COMMON * nodes.shape[1]:
            return self.with_bias((x @ W.T).gather(1, at), different, at)
        logits: Tensor = CandidateLogits.apply(x.float(), W.float(), at)  # type: ignore[no-untyped-call]
        return self.with_bias(logits, different, at)

    def with_bias(self, logits: Tensor, different: Tensor | None, at: Tensor | None) -> Tensor:
        """Logits (B, C) plus the biases of their nodes, if there are any."""
        if self.bias is None:
            return logits
        if different is None or at is None:
            return logits + self.bias.rows(numbers(self.K, logits)).T
        return logits + self.bias.rows(different)[:, 0][at]

    def export(self) -> Exported:
        """One vector and one bias for each node, whatever they were made of in training."""
        bias = np.zeros(self.K, np.float32) if self.bias is None else self.bias.weight.cpu().numpy()[:, 0]
        arrays = {"weights": self.weights.all_rows(self.K).cpu().numpy(), "bias": bias}
        return Exported(arrays, {"kind": self.kind, "feature": self.feature}).plus(self.exported_candidates())


def found_in(nodes: Tensor, K: int) -> tuple[Tensor, Tensor]:
    """The different nodes among candidates (B, C), and the place of each candidate among them.

    Pads (−1) get the place of some other node. A node of their own would be touched by nearly every step.
    """
    different, at = compact(nodes, K + 1)  # a pad is the last of these numbers
    if len(different) > 1 and different[-1] == K:
        different = different[:-1]
    return different.clamp(max=K - 1), at.clamp(max=len(different) - 1)


def numbers(K: int, like: Tensor) -> Tensor:
    """0, …, K − 1, on the device of `like`."""
    return torch.arange(K, device=like.device)
