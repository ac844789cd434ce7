"""Isotonic regression: the increasing step function closest to the truth (Zadrozny and Elkan, 2002)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail.core.decision import Isotonic


def fit_isotonic(scores: NDArray[np.float64], truth: NDArray[np.float64]) -> Isotonic:
    """Fit the non-decreasing function of the score that is closest to `truth` (n,) in squared error.

    It is constant over each block of pooled scores and linear between blocks, as scikit-learn's IsotonicRegression.
    """
    at, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    starts, levels = pool(np.bincount(place, truth, len(at)).astype(np.float64), counts)
    ends = np.append(starts[1:], len(at)) - 1
    knots = np.stack([at[starts], at[ends]], 1)  # a block is constant from its first score to its last
    twice = np.stack([np.ones(len(starts), bool), starts != ends], 1)  # a block of one score is one knot
    return Isotonic(knots[twice], np.repeat(np.clip(levels, 0, 1), twice.sum(1)))


def pool(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pool adjacent violators: return where each block starts, and its mean. Means increase from block to block.

    `sums` and `counts` (n,) belong to the distinct scores in ascending order. Each value is merged with the blocks
    before it while their means are not below its own. Every value is merged at most once, so the loop is linear.
    """
    starts: list[int] = []
    block_sums: list[float] = []
    block_counts: list[int] = []
    for i, (total, count) in enumerate(zip(sums.tolist(), counts.tolist(), strict=True)):
        start = i
        while starts and block_sums[-1] * count >= total * block_counts[-1]:  # means compared without dividing
            start = starts.pop()
            total += block_sums.pop()
            count += block_counts.pop()
        starts.append(start)
        block_sums.append(total)
        block_counts.append(count)
    return np.array(starts, np.int64), np.array(block_sums) / np.array(block_counts)
