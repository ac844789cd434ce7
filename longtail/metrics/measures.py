"""Names of the metrics, and which column of a value matrix (one row per point, or one per label) each one uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import ParameterError, nearest

MEANS = ("P", "nDCG", "R", "RP")  # averaged over points
RATIOS = ("PSP", "PSnDCG")  # a sum over points divided by the sum of the best possible values
BY_LABEL = ("C", "macroF1", "macroR")  # averaged over labels with a test positive


@dataclass(frozen=True)
class Measure:
    """A metric as a ratio of two sums: `column` over column `over`, or over `per` times the number of rows."""

    name: str
    column: int
    over: int | None = None
    per: int = 1

    @property
    def family(self) -> str:
        """The name of the metric without its cut-off k."""
        return self.name.partition("@")[0]


def point_measures(ks: Sequence[int], propensities: bool) -> tuple[Measure, ...]:
    """Return the metrics over points, in the column order of `point_values`."""
    n = len(ks)
    means = [
        # P@k divides by k only at the end: sums of hard targets stay integers, so P is exact
        Measure(f"{name}@{k}", f * n + i, per=k if name == "P" else 1)
        for f, name in enumerate(MEANS)
        for i, k in enumerate(ks)
    ]
    first = len(means)
    ratios = [
        Measure(f"{name}@{k}", first + 2 * f * n + i, first + (2 * f + 1) * n + i)
        for f, name in enumerate(RATIOS)
        for i, k in enumerate(ks)
    ]
    return (*means, *ratios) if propensities else tuple(means)


def label_measures(ks: Sequence[int]) -> tuple[Measure, ...]:
    """Return the metrics over labels, in the column order of `LabelTally.values`."""
    names = [f"{name}@{k}" for name in BY_LABEL for k in ks]
    return tuple(Measure(name, column) for column, name in enumerate(names))


def percent(measures: Sequence[Measure], sums: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Return the metrics (…, measures) from column sums (…, columns) over `rows` rows; 0 if the denominator is 0."""
    tops = sums[..., [m.column for m in measures]]
    bottoms = np.empty_like(tops)
    for i, measure in enumerate(measures):
        bottoms[..., i] = rows * measure.per if measure.over is None else sums[..., measure.over]
    return np.divide(100 * tops, bottoms, out=np.zeros_like(tops), where=bottoms > 0)


def chosen(measures: Iterable[Measure], wanted: Iterable[str] | None) -> tuple[Measure, ...]:
    """Return the measures requested by name ("PSP@5") or by family ("PSP"); all of them for None."""
    every = tuple(measures)
    if wanted is None:
        return every
    names = {wanted} if isinstance(wanted, str) else set(wanted)
    known = {m.name for m in every} | {m.family for m in every}
    for name in sorted(names - known):
        if name.partition("@")[0] in RATIOS and not known & set(RATIOS):
            raise ParameterError(f"{name} needs the label counts of a training set; pass labels that have them")
        raise ParameterError(f"unknown metric {name!r}.{nearest(name, known)}")
    return tuple(m for m in every if m.name in names or m.family in names)
