"""The pool of a step: labels that all queries of the batch are compared with (algorithm 1 of UniDEC)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from longtail.scoring.targets import Truth


class Pool(NamedTuple):
    """P labels and what is known of them for B queries.

    `truth` has every true pair of the batch whose label is in the pool, no matter which query brought it in and whether
    as a positive or as a negative. `sampled` are those that were drawn as positives of their own query.
    """

    labels: Tensor  # (P,), rising
    truth: Truth  # (B, P)
    sampled: Truth  # (B, P)
    ignored: Truth | None = None  # (B, P)

    @classmethod
    def of(cls, labels: Tensor, truth: Truth, sampled: Truth, ignored: Truth | None) -> Pool:
        """The pool of these labels, from pairs over all labels (B, L)."""
        return cls(
            labels, truth.among(labels), sampled.among(labels), None if ignored is None else ignored.among(labels)
        )


class Drawn(NamedTuple):
    """The pools of a step: that of label texts, and that of classifiers, which may have more labels."""

    texts: Pool
    classifiers: Pool


def draw_pools(
    truth: Truth, ignored: Truth | None, mined: Tensor | None, positives: int, negatives: int, extra: int = 0
) -> Drawn:
    """As `draw_pool`; that of the classifiers also has `extra` more true labels of each query (β_C), which cost little.

    A classifier is a row of a table, while each label text of the pool must be encoded.
    """
    pool = draw_pool(truth, ignored, mined, positives, negatives)
    if not extra:
        return Drawn(pool, pool)
    more = sampled_pairs(truth, extra)
    sampled = Truth(pool.sampled.rows, pool.labels[pool.sampled.labels], pool.sampled.values, truth.shape)
    return Drawn(pool, Pool.of(torch.cat([pool.labels, more.labels]).unique(), truth, sampled, ignored))


def draw_pool(truth: Truth, ignored: Truth | None, mined: Tensor | None, positives: int, negatives: int) -> Pool:
    """The union of up to `positives` true labels (β) and `negatives` mined ones (η) of each query.

    `truth` and `ignored` are those of the batch over all labels (B, L); `mined` (B, R) is each query's reservoir of
    negatives, padded by −1. Without a reservoir, the places of negatives go to further positives of the batch's
    queries.
    """
    drawn = sampled_pairs(truth, positives if mined is not None else positives + negatives)
    own = drawn if mined is not None else sampled_pairs(drawn, positives)
    parts = [drawn.labels]
    if mined is not None and negatives:
        parts.append(some_of(mined, negatives))
    return Pool.of(torch.cat(parts).unique(), truth, own, ignored)


def sampled_pairs(truth: Truth, count: int) -> Truth:
    """Up to `count` true labels of each row, drawn at random."""
    n = len(truth.rows)
    shuffled = torch.rand(n, device=truth.rows.device).argsort()
    order = shuffled[truth.rows[shuffled].argsort(stable=True)]  # row by row, in random order within
    place = torch.arange(n, device=order.device) - torch.searchsorted(truth.rows, truth.rows)  # 0, 1, … in each row
    kept = order[place < count].sort().values
    return Truth(truth.rows[kept], truth.labels[kept], truth.values[kept], truth.shape)


def some_of(mined: Tensor, count: int) -> Tensor:
    """Up to `count` random ones of each row's labels (B, R), one after another; pads (−1) are never taken."""
    chance = torch.rand(mined.shape, device=mined.device).masked_fill_(mined < 0, 2.0)
    places = chance.topk(min(count, mined.shape[1]), dim=1, largest=False).indices
    found = mined.gather(1, places)
    return found[found >= 0].long()


def whole_pool(truth: Truth, ignored: Truth | None, positives: int) -> Drawn:
    """All labels as the pool; `positives` true labels of each query are drawn."""
    labels = torch.arange(truth.shape[1], device=truth.rows.device)
    pool = Pool(labels, truth, sampled_pairs(truth, positives), ignored)
    return Drawn(pool, pool)
