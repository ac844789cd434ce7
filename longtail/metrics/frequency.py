"""How well frequent and rare labels are predicted: labels in five bins of equal volume, from head to tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 5


@dataclass(frozen=True)
class FrequencyBin:
    """Labels of similar training frequency.

    `labels` is their number; `fewest` and `most` are the range of their training counts (None in an empty bin);
    `contribution` is their part of P@k in percentage points. `pairs` is the number of (point, label) positives with
    these labels; `recall` is the share of those pairs among the k best, in percent (None if there are no pairs).
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
        """The range of training counts as a readable string."""
        return "–" if self.fewest is None else f"{self.fewest:,}–{self.most:,}"


def bins_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bin (L,) of each label, 0 = head … 4 = tail, from the training counts (L,).

    Labels are sorted by decreasing count, ties by lower index. The counts are added up along this order, and the
    total is cut into five equal parts; a label belongs to the part in which its own examples start. So the most
    frequent label is always in the head, and a label with more examples than a part leaves the next bin smaller or
    empty. A label without examples belongs to the tail.
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
    """Return the five bins, plus one for labels without training examples (which are also part of bin 5).

    `hits` (L,) are the sums of y among the k best, `positives` (L,) the number of points with each label. The
    contributions of the five bins add up to P@k.
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
