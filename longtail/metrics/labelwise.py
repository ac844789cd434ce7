"""Metrics that are averages over labels: coverage, macro F1 and macro recall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longtail.metrics.judged import RowBlock


class LabelTally:
    """Counts per label, collected block by block.

    `hits` and `picks` (|ks|, L): the sum of y, and how often the label was predicted, *between* one cut-off and the
    next. `positives` (L,): the number of points with y > 0.
    """

    def __init__(self, ks: Sequence[int], L: int):
        self.ks = tuple(ks)
        self.hits = np.zeros((len(ks), L))
        self.picks = np.zeros((len(ks), L), np.int64)
        self.positives = np.zeros(L, np.int64)

    def add(self, block: RowBlock) -> None:
        """Count the rows of a block."""
        np.add.at(self.positives, block.truth.indices, 1)
        for i, (start, stop) in enumerate(zip((0, *self.ks), self.ks, strict=False)):
            picks = block.picks[:, start:stop].ravel()
            there = picks >= 0
            np.add.at(self.picks[i], picks[there], 1)
            np.add.at(self.hits[i], picks[there], block.hits[:, start:stop].ravel()[there])

    def hits_at(self, k: int) -> NDArray[np.float64]:
        """Return Σ y (L,) over the points that have the label among their k best."""
        return np.asarray(self.hits[: self.ks.index(k) + 1].sum(0))

    def values(self) -> NDArray[np.float64]:
        """Return values (labels with a test positive, columns), with columns in the order of `label_measures`."""
        seen = np.flatnonzero(self.positives)
        positives = self.positives[seen]
        hits = np.cumsum(self.hits[:, seen], 0)  # (|ks|, labels)
        picks = np.cumsum(self.picks[:, seen], 0)
        # a label that is never predicted has no hits: its F1 and recall are 0
        return np.concatenate([hits > 0, 2 * hits / (picks + positives), hits / positives]).T
