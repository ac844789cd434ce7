"""MixUp: training on points between points (paper 001, Table 1.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from longtail.encoders.encoder import Embedded
from longtail.scoring.targets import Truth

if TYPE_CHECKING:
    from longtail.cascade.cascade import Cascade

LEAST = 1e-4  # share of either in a mixture


@dataclass(frozen=True)
class Mixing:
    """Each point's word vectors become λ·its own + (1 − λ)·those of a partner, λ ~ Beta(alpha, alpha) for the batch.

    With `mixup` the partner is another point of the batch; targets are mixed in the same way, and a pair that is
    ignored for either is ignored. With `label-mixup` it is the text of one of the point's own labels, drawn at random;
    the targets are mixed with that label's alone. A point without labels, or whose label has no text, stays as it is.
    """

    method: Literal["mixup", "label-mixup"]
    alpha: float

    def apply(
        self, network: Cascade, points: Tensor, embedded: Embedded, truths: dict[int, Truth], ignored: dict[int, Truth]
    ) -> tuple[Embedded, dict[int, Truth], dict[int, Truth]]:
        """Word vectors, targets and ignored pairs after mixing."""
        # never quite 0 or 1, which small alphas would give: a target of 0 would be among the true ones
        share = float(torch.distributions.Beta(self.alpha, self.alpha).sample().clamp(LEAST, 1 - LEAST))
        if self.method == "mixup":
            return with_points(network, points, embedded, truths, ignored, share)
        return *with_labels(network, points, embedded, truths, share), ignored


def with_points(
    network: Cascade,
    points: Tensor,
    embedded: Embedded,
    truths: dict[int, Truth],
    ignored: dict[int, Truth],
    share: float,
) -> tuple[Embedded, dict[int, Truth], dict[int, Truth]]:
    """Mix each point with another of the batch (perhaps itself)."""
    partner = torch.randperm(len(points)).to(points.device)
    others = {t: network.targets(t).of(points[partner]) for t in truths}
    mixed = {t: truth.scaled(share).plus(others[t].scaled(1 - share)) for t, truth in truths.items()}
    for t, own in ignored.items():
        other = network.ignored(t, points[partner])
        ignored = ignored | {t: own if other is None else own.plus(other)}
    return network.encoder.mix(embedded, take(embedded, partner), share), mixed, ignored


def with_labels(
    network: Cascade, points: Tensor, embedded: Embedded, truths: dict[int, Truth], share: float
) -> tuple[Embedded, dict[int, Truth]]:
    """Mix each point with the text of one of its labels."""
    if network.label_tokens is None:
        raise RuntimeError("label-mixup needs label texts; the recipe should have refused the corpus")
    tokens = network.label_tokens.value
    drawn = one_of_each(network.targets(network.depth - 1).of(points))  # (B,), −1: none
    rows = ((drawn >= 0) & network.label_known[drawn]).nonzero().flatten()  # (R,): the points that have a partner
    if not len(rows):
        return embedded, truths
    labels = drawn[rows]  # (R,)
    shares = torch.ones(len(points), device=points.device).index_fill_(0, rows, share)
    rest = torch.full((len(rows),), 1 - share, device=rows.device)
    mixed = {}
    for t, truth in truths.items():
        mixed[t] = truth.scaled(shares).plus(Truth(rows, network.nodes_of(labels, t), rest, truth.shape))
    texts = network.encoder.embed(tokens.take(labels))
    return put(embedded, rows, network.encoder.mix(take(embedded, rows), texts, share)), mixed


def one_of_each(truth: Truth) -> Tensor:
    """A label of each point, drawn evenly (B,); −1 where there is none."""
    counts = torch.bincount(truth.rows, minlength=truth.shape[0])
    draws = (torch.rand(len(counts)).to(counts.device) * counts).long()  # which of its labels, for each point
    have = counts > 0
    chosen = torch.full_like(counts, -1)
    chosen[have] = truth.labels[(counts.cumsum(0) - counts + torch.minimum(draws, counts - 1))[have]]
    return chosen


def take(embedded: Embedded, rows: Tensor) -> Embedded:
    """Some rows of embedded texts."""
    return tuple(part[rows] for part in embedded)


def put(embedded: Embedded, rows: Tensor, others: Embedded) -> Embedded:
    """Embedded texts with some rows replaced."""
    parts = zip(embedded, others, strict=True)
    return tuple(part.index_copy(0, rows, other.to(part.dtype)) for part, other in parts)
