"""Losses over a pool of labels that a whole batch shares: each query against all labels of the pool.

All take the same three things: logits s (B, P), the pairs that are true (`truth`), and pairs that count neither way
(`ignored`, left out of every sum). P_i are the true labels of query i in the pool. Rows without a true label have no
loss. Swapped over, with logits (P, B) and `truth.turned()`, the same losses compare each label with all queries.

| loss | of a true pair (i, p) | system |
| --- | --- | --- |
| `SupCon` | −log( e^{s_ip} / Σ_l e^{s_il} ) | SupConDE; with one sampled positive: InfoNCE, as in DPR and ANCE |
| `Decoupled` | −log( e^{s_ip} / (e^{s_ip} + Σ_{l ∉ P_i} e^{s_il}) ) | DePSL, UniDEC; with one sampled positive: DEXML |
| `Triplet` | Σ_n a_n · max(0, s_in − s_ip + γ), n among the hardest negatives | NGAME |
| `scoring.losses.BCE` | binary cross-entropy of every pair | SiameseXML, UniDEC's second loss |

In `SupCon` true labels compete with each other, and none can come near probability 1 beside others; `Decoupled` leaves
the other true labels out of the denominator. References: Khosla et al. 2020 (SupCon), Gupta et al. 2024 (DEXML's
decoupled softmax), Dahiya et al. 2023 (NGAME), and paper 001, chapter 2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from longtail.scoring.losses import PoolLoss
from longtail.scoring.targets import Truth


class Averaged(NamedTuple):
    """How the losses of true pairs become one number.

    PAL-N (`normalised`, the default) gives each query the mean over its true labels, so that all queries count alike;
    PAL gives it their sum, so that queries with many labels count more. Soft targets weigh their pair in both. The
    result is the mean over queries that have true labels.
    """

    normalised: bool = True

    def __call__(self, losses: Tensor, truth: Truth) -> Tensor:
        """A scalar from the losses (n,) of the true pairs."""
        B = truth.shape[0]
        totals = torch.zeros(B, device=losses.device).index_add_(0, truth.rows, truth.values)
        queries = (totals > 0).sum().clamp(min=1)
        weights = truth.values / totals[truth.rows] if self.normalised else truth.values
        return (weights * losses).sum() / queries


class SoftmaxLoss(PoolLoss):
    """Base class of losses that compare a true pair with a sum over its row: −ln of some softmax.

    A subclass says which pairs the sum leaves out, and what the loss of a pair is.
    """

    def __init__(self, normalised: bool = True):
        self.averaged = Averaged(normalised)

    @abstractmethod
    def left_out(self, truth: Truth, ignored: Truth | None) -> list[Truth]:
        """The pairs that are not in the sums."""

    @abstractmethod
    def of_pairs(self, sums: Tensor, scores: Tensor) -> Tensor:
        """The losses (n,) of pairs with these scores (n,) and ln of the sums of their rows (n,)."""

    def of_all(self, logits: Tensor, truth: Truth, ignored: Truth | None = None) -> Tensor:
        logits, counted = logits.float(), counted_truth(truth, ignored)
        sums = log_sums(logits, *self.left_out(truth, ignored))  # (B,)
        return self.averaged(self.of_pairs(sums[counted.rows], logits[counted.rows, counted.labels]), counted)

    def both_ways(self, logits: Tensor, truth: Truth, ignored: Truth | None, forth: float) -> Tensor:
        """The same value as the base class, with one exponential of each logit in place of two."""
        logits = logits.float()
        least, largest = logits.detach().aminmax()
        if forth in (0.0, 1.0) or largest - least > SPREAD:
            return super().both_ways(logits, truth, ignored, forth)
        counted = counted_truth(truth, ignored)
        omitted = pairs_of(self.left_out(truth, ignored), logits)
        across, down, scores = SumsBothWays.apply(logits, largest, *omitted, counted.rows, counted.labels)  # type: ignore[no-untyped-call]
        there = self.averaged(self.of_pairs(across[counted.rows], scores), counted)
        swapped = Truth(counted.labels, counted.rows, counted.values, (logits.shape[1], logits.shape[0]))
        back = self.averaged(self.of_pairs(down[counted.labels], scores), swapped)
        return forth * there + (1 - forth) * back


class SupCon(SoftmaxLoss):
    """−log of the softmax over the whole pool, at each true label."""

    def left_out(self, truth: Truth, ignored: Truth | None) -> list[Truth]:
        return [] if ignored is None else [ignored]

    def of_pairs(self, sums: Tensor, scores: Tensor) -> Tensor:
        return sums - scores


class Decoupled(SoftmaxLoss):
    """−log of the softmax over one true label and all that are not true.

    With N_i = Σ_{l ∉ P_i} e^{s_il}, this is ln(1 + e^{ln N_i − s_ip}).
    """

    def left_out(self, truth: Truth, ignored: Truth | None) -> list[Truth]:
        return [truth] if ignored is None else [truth, ignored]

    def of_pairs(self, sums: Tensor, scores: Tensor) -> Tensor:
        return functional.softplus(sums - scores)


class Summed(PoolLoss):
    """A loss and `weight` times another one, as UniDEC's decoupled softmax with binary cross-entropy beside it."""

    def __init__(self, first: PoolLoss, second: PoolLoss, weight: float):
        self.first, self.second, self.weight = first, second, weight

    def of_all(self, logits: Tensor, truth: Truth, ignored: Truth | None = None) -> Tensor:
        return self.first.of_all(logits, truth, ignored) + self.weight * self.second.of_all(logits, truth, ignored)

    def both_ways(self, logits: Tensor, truth: Truth, ignored: Truth | None, forth: float) -> Tensor:
        first, second = (loss.both_ways(logits, truth, ignored, forth) for loss in (self.first, self.second))
        return first + self.weight * second


class Triplet(PoolLoss):
    """max(0, s_n − s_p + γ) over the hardest negatives n of each query, for its true labels p.

    With a `temperature`, negative n has the weight softmax(s_n / temperature) (NGAME's encoder); without one all have
    the same (NGAME's classifiers). `positives` limits the true labels to those with the lowest scores.
    """

    def __init__(self, margin: float, negatives: int, temperature: float | None = None, positives: int | None = None):
        self.margin, self.negatives, self.temperature, self.positives = margin, negatives, temperature, positives
        self.averaged = Averaged()

    def of_all(self, logits: Tensor, truth: Truth, ignored: Truth | None = None) -> Tensor:
        logits = logits.float()
        with torch.no_grad():
            scores = logits.detach().clone()
            for pairs in [truth] if ignored is None else [truth, ignored]:
                scores[pairs.rows, pairs.labels] = -torch.inf
            best = scores.topk(min(self.negatives, scores.shape[1]), dim=1)  # (B, n)
        hardest = logits.gather(1, best.indices)  # with gradients
        exists = best.values > -torch.inf
        sharpness = 0 * best.values if self.temperature is None else best.values / self.temperature
        weights = sharpness.masked_fill(~exists, -torch.inf).softmax(1).nan_to_num(0.0)  # rows without negatives: 0
        truth = self.lowest(logits.detach(), counted_truth(truth, ignored))
        positive = logits[truth.rows, truth.labels]  # (T,)
        over = functional.relu(hardest[truth.rows] - positive[:, None] + self.margin)  # (T, n)
        return self.averaged((weights[truth.rows] * over).sum(1), truth)

    def lowest(self, logits: Tensor, truth: Truth) -> Truth:
        """The `positives` true pairs of each query that score lowest."""
        if self.positives is None or not len(truth.rows):
            return truth
        by_score = logits[truth.rows, truth.labels].argsort(stable=True)
        order = by_score[truth.rows[by_score].argsort(stable=True)]  # row by row, lowest first
        rows = truth.rows[order]
        place = torch.arange(len(rows), device=rows.device) - torch.searchsorted(rows, rows)
        kept = order[place < self.positives]
        return Truth(truth.rows[kept], truth.labels[kept], truth.values[kept], truth.shape)


def counted_truth(truth: Truth, ignored: Truth | None) -> Truth:
    """The true pairs without those that are ignored."""
    if ignored is None or not len(ignored.rows):
        return truth
    kept = torch.isin(truth.keys, ignored.keys, invert=True)
    return Truth(truth.rows[kept], truth.labels[kept], truth.values[kept], truth.shape)


def log_sums(logits: Tensor, *left_out: Truth) -> Tensor:
    """ln Σ_l e^{s_il} of each row (B,), without the pairs left out; −∞ for a row of which nothing is left."""
    sums: Tensor = LogSums.apply(logits, *pairs_of(left_out, logits))  # type: ignore[no-untyped-call]
    return sums


def pairs_of(truths: Sequence[Truth], like: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and labels of the pairs of all these, on the device of `like`."""
    none = torch.zeros(0, dtype=torch.long, device=like.device)
    return torch.cat([none, *(own.rows for own in truths)]), torch.cat([none, *(own.labels for own in truths)])


class LogSums(torch.autograd.Function):
    """`log_sums` with one tensor of the size of the logits, which the gradient then uses again."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
        largest = logits.amax(1, keepdim=True)  # of all: those left out only make the others' exponents smaller
        powers = (logits - largest).exp_()
        powers[rows, labels] = 0
        sums = powers.sum(1)  # (B,)
        if bool((sums <= LEAST).any()):  # a label that is left out dwarfs all others: take the largest of the others
            masked = logits.clone()
            masked[rows, labels] = -torch.inf
            largest = masked.amax(1, keepdim=True)
            powers = (masked - largest.clamp(min=torch.finfo(logits.dtype).min)).exp_()
            sums = powers.sum(1)
        ctx.save_for_backward(powers, sums)
        return sums.log() + largest.squeeze(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        powers, sums = ctx.saved_tensors
        scale = torch.where(sums > 0, grads[0] / sums, 0.0)
        return powers * scale[:, None], None, None


class SumsBothWays(torch.autograd.Function):
    """ln of the sums of e^logit over each row (B,) and each column (P,), and the logits of some pairs (n,).

    All powers are relative to the largest logit, so that rows and columns share them: with logits that are cosines over
    a temperature they stay far from what float32 cannot hold. The gradient is formed in one tensor.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, largest: Tensor, rows: Tensor, labels: Tensor, true_rows: Tensor, true_labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        powers = (logits - largest).exp_()
        powers[rows, labels] = 0
        across, down = powers.sum(1), powers.sum(0)
        ctx.save_for_backward(powers, across, down, true_rows, true_labels)
        return across.log() + largest, down.log() + largest, logits[true_rows, true_labels]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        powers, across, down, true_rows, true_labels = ctx.saved_tensors
        by_row = torch.where(across > 0, grads[0] / across, 0.0)
        by_column = torch.where(down > 0, grads[1] / down, 0.0)
        grad = (by_row[:, None] + by_column).mul_(powers)
        grad.index_put_((true_rows, true_labels), grads[2], accumulate=True)
        return grad, None, None, None, None, None


LEAST = 1e-30  # sums of powers below this have lost their digits
SPREAD = 60.0  # logits further apart than this have powers that float32 cannot add up beside each other
