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
    """Whole numbers counted in bins: bin i holds the values from `edges[i]` up to, but not including, `edges[i + 1]`.

    `more`: the last bin also holds all larger values. `log`: the edges are evenly spaced in the logarithm. `zeros` is
    the number of values that are 0 and therefore in no bin of a logarithmic histogram.
    """

    edges: tuple[int, ...]
    counts: tuple[int, ...]
    log: bool = False
    more: bool = False
    zeros: int = 0

    def name(self, i: int) -> str:
        """The values of bin i as text: `7`, `10–14`, `≥ 60`."""
        low, high = self.edges[i], self.edges[i + 1] - 1
        if self.more and i == len(self.counts) - 1:
            return f"≥ {low:,}"
        return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def linear_bins(values: NDArray[np.integer]) -> Histogram:
    """At most 40 bins of equal width from 0, and one more for the few larger values if there are any."""
    if not len(values):
        return Histogram((0, 1), (0,))
    bulk, top = (int(value) for value in np.quantile(values, (0.98, 0.998)))
    width = next(w for w in round_numbers() if bulk // w < MOST_BINS)
    bins = min(top // width + 1, MOST_BINS)
    more = int(values.max()) >= bins * width
    counts = np.bincount(np.minimum(values // width, bins), minlength=bins)
    return Histogram(tuple(range(0, (bins + more + 1) * width, width)), tuple(counts.tolist()), more=more)


def log_bins(values: NDArray[np.integer]) -> Histogram:
    """At most 30 bins of equal width in the logarithm, for the values of at least 1."""
    positive = values[values > 0]
    if not len(positive):
        return Histogram((1, 2), (0,), log=True, zeros=len(values))
    low, high = int(positive.min()), int(positive.max()) + 1
    # edges are whole numbers, so narrow bins would differ in width: about eight numbers in a typical bin avoid that
    bins = int(np.clip(math.log(high / low) / math.log1p(8 / np.median(positive)), 1, 30))
    edges = np.unique(np.round(np.geomspace(low, high, bins + 1)).astype(np.int64))
    counts = np.histogram(positive, edges)[0]
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), log=True, zeros=len(values) - len(positive))


def length_bins(values: NDArray[np.integer]) -> Histogram:
    """Bins for lengths: logarithmic for long texts, of equal width if nearly all are short (titles, names)."""
    long = len(values) and np.quantile(values, 0.995) > LONG
    return log_bins(values) if long else linear_bins(values)


def rank_curve(counts: NDArray[np.integer], points: int = 300) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The counts above 0 sorted from large to small, as ranks (from 1) and the counts at these ranks.

    At most `points` ranks, evenly spaced in the logarithm; the first and the last rank are always among them.
    """
    falling = np.sort(counts[counts > 0])[::-1].astype(np.int64)
    if not len(falling):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ranks = np.unique(np.round(np.geomspace(1, len(falling), points)).astype(np.int64))
    return ranks, falling[ranks - 1]


def round_numbers() -> list[int]:
    """1, 2, 5, 10, 20, 50, … up to 5·10¹¹: widths of bins and places of ticks."""
    return [m * 10**d for d in range(12) for m in (1, 2, 5)]
