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
LEAST = 1e-4  # share of either in a mixture


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
        self, network: Cascade, points: Tensor, embedded: Any, truths: dict[int, Truth], ignored: dict[int, Truth]
    ) -> tuple[Any, dict[int, Truth], dict[int, Truth]]:
        """Word vectors, targets and ignored pairs after mixing."""
        # not quite 0 or 1, as small alphas would have it: a target of 0 would stand among what is true
        share = float(torch.distributions.Beta(self.alpha, self.alpha).sample().clamp(LEAST, 1 - LEAST))
        if self.method == "mixup":
            return with_points(network, points, embedded, truths, ignored, share)
        return *with_labels(network, points, embedded, truths, share), ignored


def with_points(
    network: Cascade,
    points: Tensor,
    embedded: Any,
    truths: dict[int, Truth],
    ignored: dict[int, Truth],
    share: float,
) -> tuple[Any, dict[int, Truth], dict[int, Truth]]:
    """Each point and another of the batch (perhaps itself)."""
    partner = torch.randperm(len(points)).to(points.device)
    others = {t: network.targets(t).of(points[partner]) for t in truths}
    mixed = {t: truth.scaled(share).plus(others[t].scaled(1 - share)) for t, truth in truths.items()}
    for t, own in ignored.items():
        other = network.ignored_of(t, points[partner])
        ignored = ignored | {t: own if other is None else own.plus(other)}
    return mix(embedded, take(embedded, partner), share), mixed, ignored


def with_labels(
    network: Cascade, points: Tensor, embedded: Any, truths: dict[int, Truth], share: float
) -> tuple[Any, dict[int, Truth]]:
    """Each point and the text of one of its labels."""
    tokens, known = network.corpus.label_tokens, network.corpus.label_known
    if tokens is None or known is None:
        raise RuntimeError("label-mixup needs texts of the labels")
    drawn = one_of_each(network.labels.of(points))  # (B,), −1: none
    rows = ((drawn >= 0) & known[drawn]).nonzero().flatten()  # (R,): those of points that have a partner
    if not len(rows):
        return embedded, truths
    labels = drawn[rows]  # (R,)
    shares = torch.ones(len(points), device=points.device).index_fill_(0, rows, share)
    rest = torch.full((len(rows),), 1 - share, device=rows.device)
    mixed = {}
    for t, truth in truths.items():
        own = labels if t == LABELS else network.parent_of(labels)
        mixed[t] = truth.scaled(shares).plus(Truth(rows, own, rest, truth.shape))
    texts = network.encoder.embed(tokens.take(labels))  # type: ignore[operator]
    return put(embedded, rows, mix(take(embedded, rows), texts, share)), mixed


def one_of_each(truth: Truth) -> Tensor:
    """A label of each point, drawn evenly (B,); −1 where there is none."""
    counts = torch.bincount(truth.rows, minlength=truth.shape[0])
    draws = (torch.rand(len(counts)).to(counts.device) * counts).long()  # which of its labels, for each point
    have = counts > 0
    chosen = torch.full_like(counts, -1)
    chosen[have] = truth.labels[(counts.cumsum(0) - counts + torch.minimum(draws, counts - 1))[have]]
    return chosen


def take(embedded: Any, rows: Tensor) -> Any:
    """Some rows of word vectors: a tensor, or of sequences one of vectors and one that says which are words."""
    return tuple(part[rows] for part in embedded) if isinstance(embedded, tuple) else embedded[rows]


def put(embedded: Any, rows: Tensor, others: Any) -> Any:
    """The same with some rows replaced."""
    if isinstance(embedded, tuple):
        return tuple(put(part, rows, other) for part, other in zip(embedded, others, strict=True))
    return embedded.index_copy(0, rows, others.to(embedded.dtype))


def mix(one: Any, other: Any, share: float) -> Any:
    """share · one + (1 − share) · other, place by place; where a sequence has no word its vector counts as 0."""
    if not isinstance(one, tuple):
        return share * one + (1 - share) * other
    (x, words), (y, others) = one, other  # (B, T, D), (B, T)
    return share * x * words.unsqueeze(2) + (1 - share) * y * others.unsqueeze(2), words | others
