"""Computes all metrics in one pass over predictions and truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core import defaults
from longtail.core.how_many import check_ks
from longtail.core.labels import Labels
from longtail.metrics.frequency import by_frequency
from longtail.metrics.judged import Judged, Predicted
from longtail.metrics.labelwise import LabelTally
from longtail.metrics.measures import label_measures, percent, point_measures
from longtail.metrics.pointwise import point_values
from longtail.metrics.report import Report

KS = defaults.KS


def evaluate(
    predicted: Predicted,
    Y: sp.csr_matrix,
    labels: Labels | None = None,
    *,
    ks: Iterable[int] = KS,
    ignore: sp.csr_matrix | None = None,
) -> Report:
    """Return all metrics of a ranking, or of sparse scores (N, L), against the truth `Y` (N, L).

    `labels` hold the training counts that propensities and frequency bins need; the default is the ranking's own
    labels. If the counts are unknown, PSP, PSnDCG and the bins are left out. Pairs in `ignore` are removed from both
    sides, then the ranking is cut to the largest k. Predict `depth(ks, ignore)` labels: missing ranks count as misses.
    """
    cuts = check_ks(ks)
    judged = Judged.of(predicted, Y, labels, ignore, cuts[-1])
    sums = count(judged, cuts)
    k = 5 if 5 in cuts else cuts[-1]
    known = judged.counted_labels
    tally = sums.labels
    bins = () if known is None else by_frequency(known.counts, tally.hits_at(k), tally.positives, k, judged.points)
    seen = int(np.count_nonzero(sums.labels.positives))
    return Report(sums.scores(judged.points), bins, k, judged.points, seen)


def depth(ks: Iterable[int] = KS, ignore: sp.csr_matrix | None = None) -> int:
    """Return how many labels to predict so that the largest k remain in every row after removing `ignore`."""
    most = 0 if ignore is None else int(np.diff(sp.csr_matrix(ignore).indptr).max(initial=0))
    return check_ks(ks)[-1] + most


@dataclass(frozen=True, eq=False)
class Counted:
    """The result of one pass: column sums over points, counts per label, and, if requested, each point's values."""

    ks: tuple[int, ...]
    propensities: bool
    sums: NDArray[np.float64]  # (columns,)
    labels: LabelTally
    values: NDArray[np.float64] | None  # (N, columns)

    def scores(self, points: int) -> dict[str, float]:
        """Return all metrics in percent, by name."""
        over_points = point_measures(self.ks, self.propensities)
        over_labels = label_measures(self.ks)
        rows = self.labels.values()
        numbers = [*percent(over_points, self.sums, points), *percent(over_labels, rows.sum(0), len(rows))]
        names = [measure.name for measure in (*over_points, *over_labels)]
        return dict(zip(names, map(float, numbers), strict=True))


def count(judged: Judged, ks: tuple[int, ...], keep: bool = False) -> Counted:
    """Do the pass over all blocks. With `keep`, also keep the values of every point."""
    inverse = judged.inverse_propensities
    columns = 1 + max(max(m.column, m.over or 0) for m in point_measures(ks, inverse is not None))
    sums = np.zeros(columns)
    tally = LabelTally(ks, judged.Y.shape[1])
    kept: Any = np.empty((judged.points, columns)) if keep else None
    for block in judged.blocks():
        values = point_values(block, ks, inverse)
        sums += values.sum(1)
        tally.add(block)
        if keep:
            kept[block.rows] = values.T
    return Counted(ks, inverse is not None, sums, tally, kept)
