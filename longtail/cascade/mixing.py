"""MixUp: training on points between points (paper 001, Table 1.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from longtail.cascade.targets import Truth

if TYPE_CHECKING:
    from longtail.cascade.network import Cascade

META, LABELS = 0, 1  # the two levels of the short-text systems


@dataclass(frozen=True)
class Mixing:
    """Each point's word vectors become λ·its own + (1 − λ)·those of a partner, λ ~ Beta(alpha, alpha) for the batch.

    The partner is another point of the batch (`mixup`; the targets are mixed alike, and what is ignored for either
    is), or the text of one of the point's own labels, drawn at random (`label-mixup`; the targets are mixed with that
    label's alone). A point without labels, or whose label has no text, stays as it is.
    """

    method: Literal["mixup", "label-mixup"]
    alpha: float

    def apply(
        self, network: Cascade, points: Tensor, embedded: Any, truths: dict[int, Truth], ignored: Truth | None
    ) -> tuple[Any, dict[int, Truth], Truth | None]:
        """Word vectors, targets and ignored pairs after mixing."""
        share = float(torch.distributions.Beta(self.alpha, self.alpha).sample())
        if self.method == "mixup":
            partner = torch.randperm(len(points), device=points.device)
            others = {t: network.targets(t).of(points[partner]) for t in truths}
            if ignored is not None and network.ignored is not None:
                ignored = ignored.plus(network.ignored.of(points[partner]))
            mixed = {t: truth.scaled(share).plus(others[t].scaled(1 - share)) for t, truth in truths.items()}
            return mix(embedded, take(embedded, partner), share), mixed, ignored
        tokens, known = network.corpus.label_tokens, network.corpus.label_known
        if tokens is None or known is None:
            raise RuntimeError("label-mixup needs texts of the labels")
        drawn = one_of_each(network.labels.of(points))  # (B,), −1: none
        rows = ((drawn >= 0) & known[drawn.clamp(min=0)]).nonzero().flatten()  # of points that have a partner
        shares = torch.ones(len(points), device=points.device).index_fill_(0, rows, share)
        label = network.encoder.embed(tokens.take(drawn.clamp(min=0)))  # type: ignore[operator]
        mixed = {}
        for t, truth in truths.items():
            own = drawn[rows] if t == LABELS else network.parent_of(drawn[rows])
            ones = torch.full((len(rows),), 1 - share, device=rows.device)
            mixed[t] = truth.scaled(shares).plus(Truth(rows, own, ones, truth.shape))
        return mix(embedded, label, shares), mixed, ignored


def one_of_each(truth: Truth) -> Tensor:
    """A label of each point, drawn evenly (B,); −1 where there is none."""
    draws = torch.rand(len(truth.rows), device=truth.rows.device)
    order = (truth.rows + draws).argsort()
    chosen = torch.full((truth.shape[0],), -1, dtype=torch.long, device=truth.rows.device)
    chosen[truth.rows[order]] = truth.labels[order]  # of several, the last stays
    return chosen


def take(embedded: Any, rows: Tensor) -> Any:
    """Some rows of word vectors, a tensor or a tuple of tensors."""
    return tuple(part[rows] for part in embedded) if isinstance(embedded, tuple) else embedded[rows]


def mix(one: Any, other: Any, share: float | Tensor) -> Any:
    """share · one + (1 − share) · other; of masks, what either has."""
    if isinstance(one, tuple):
        return tuple(mix(a, b, share) for a, b in zip(one, other, strict=True))
    if one.dtype == torch.bool:
        return one | other
    if isinstance(share, Tensor):
        share = share.view(-1, *[1] * (one.dim() - 1))
    return share * one + (1 - share) * other
