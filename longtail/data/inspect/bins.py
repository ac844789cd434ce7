"""Counts sorted into bins, and the curve of label frequencies: the numbers behind the plots of `longtail inspect`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_BINS = 40
LONG = 60  # if more than a few lengths are above this, bins are spaced by the logarithm


@dataclass(frozen=True)
class Histogram:
    """Counts of whole numbers: bin i holds those from `edges[i]` up to, not including, `edges[i + 1]`.

    With `more` the last bin holds all that lie above, too. With `log` the edges are evenly spaced in the
    logarithm, and `zeros` values of 0 stand in no bin.
    """

    edges: tuple[int, ...]
    counts: tuple[int, ...]
    log: bool = False
    more: bool = False
    zeros: int = 0

    def name(self, i: int) -> str:
        """The numbers of bin i: `7`, `10–14`, `≥ 60`."""
        low, high = self.edges[i], self.edges[i + 1] - 1
        if self.more and i == len(self.counts) - 1:
            return f"≥ {low:,}"
        return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def linear_bins(values: NDArray[np.integer]) -> Histogram:
    """At most 40 bins of equal width from 0, and one for the few that may lie above them."""
    if not len(values):
        return Histogram((0, 1), (0,))
    bulk, top = (int(value) for value in np.quantile(values, (0.98, 0.998)))
    width = next(w for w in round_numbers() if bulk // w < MOST_BINS)
    bins = min(top // width + 1, MOST_BINS)
    more = int(values.max()) >= bins * width
    counts = np.bincount(np.minimum(values // width, bins), minlength=bins)
    return Histogram(tuple(range(0, (bins + more + 1) * width, width)), tuple(counts.tolist()), more=more)


def log_bins(values: NDArray[np.integer]) -> Histogram:
    """At most 30 bins of equal width in the logarithm, over the values of at least 1."""
    positive = values[values > 0]
    if not len(positive):
        return Histogram((1, 2), (0,), log=True, zeros=len(values))
    low, high = int(positive.min()), int(positive.max()) + 1
    # rounded to whole numbers, narrow bins would be of uneven width: eight numbers in a typical one are enough
    bins = int(np.clip(math.log(high / low) / math.log1p(8 / np.median(positive)), 1, 30))
    edges = np.unique(np.round(np.geomspace(low, high, bins + 1)).astype(np.int64))
    counts = np.histogram(positive, edges)[0]
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), log=True, zeros=len(values) - len(positive))


def length_bins(values: NDArray[np.integer]) -> Histogram:
    """Bins for lengths: by the logarithm, but one by one where nearly all are short (titles, names)."""
    long = len(values) and np.quantile(values, 0.995) > LONG
    return log_bins(values) if long else linear_bins(values)


def rank_curve(counts: NDArray[np.integer], points: int = 300) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rank (from 1) and count of the largest, second largest, … count above 0, at most `points` of them.

    The ranks are evenly spaced in the logarithm, with the first and the last among them.
    """
    falling = np.sort(counts[counts > 0])[::-1].astype(np.int64)
    if not len(falling):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ranks = np.unique(np.round(np.geomspace(1, len(falling), points)).astype(np.int64))
    return ranks, falling[ranks - 1]


def round_numbers() -> list[int]:
    """1, 2, 5, 10, 20, 50, … up to 5·10¹¹: widths of bins and places of ticks."""
    return [m * 10**d for d in range(12) for m in (1, 2, 5)]
