"""Where in the long tail the hits are: labels in five bins of equal volume, from head to tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 5


@dataclass(frozen=True)
class FrequencyBin:
    """Some labels of similar training frequency.

    `labels` is how many there are, `fewest` and `most` the range of their training counts (None in a bin
    without labels), `contribution` their part of P@k in percentage points. `pairs` is how often a point has one of
    them, `recall` the share of these that is among the k best, in percent (None where there are none).
    """

    name: str
    labels: int
    fewest: int | None
    most: int | None
    contribution: float
    pairs: int
    recall: float | None

    @property
    def span(self) -> str:
        """The range of training counts, for people."""
        return "–" if self.fewest is None else f"{self.fewest:,}–{self.most:,}"


def bins_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bin (L,) of each label, 0 = head … 4 = tail, for its training count.

    Labels stand in a row by falling frequency, ties by lower index, each as long as it has training examples;
    the row is cut into five equal lengths, and a label belongs where it begins. So the most frequent label is
    always in the head, and a label that is longer than a cut leaves the next bin short, or empty. A label
    without examples has no length and belongs to the tail.
    """
    order = np.argsort(-counts, kind="stable")
    ends = np.cumsum(counts[order])
    volume = max(int(ends[-1]) if len(ends) else 0, 1)
    bins = np.empty(len(counts), np.int64)
    bins[order] = BINS * (ends - counts[order]) // volume
    bins[counts == 0] = BINS - 1
    return bins


def by_frequency(
    counts: NDArray[np.int64], hits: NDArray[np.float64], positives: NDArray[np.int64], k: int, points: int
) -> tuple[FrequencyBin, ...]:
    """The five bins and the labels without training examples, which are also part of bin 5.

    `hits` (L,) are the sums of y in the k best, `positives` (L,) the points that have a label; the contributions of
    the five bins add up to P@k.
    """
    bins = bins_of(counts)
    masks = [(f"bin {b + 1}", bins == b) for b in range(BINS)] + [("no training examples", counts == 0)]
    rows = []
    for name, mask in masks:
        there, here = bool(mask.any()), counts[mask]
        fewest, most = (int(here.min()), int(here.max())) if there else (None, None)
        found, pairs = float(hits[mask].sum()), int(positives[mask].sum())
        part, recall = 100 * found / (k * points), 100 * found / pairs if pairs else None
        rows.append(FrequencyBin(name, int(mask.sum()), fewest, most, part, pairs, recall))
    return tuple(rows)
