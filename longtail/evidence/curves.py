"""Scores on the validation part against training steps: the curves of a claim's arms, from recorded runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from longtail.evidence.claim import Part
from longtail.evidence.table import SystemRuns
from longtail.evidence.trials import System


@dataclass(frozen=True)
class Curve:
    """Scores of an arm after each epoch: `steps` (E,) and for each metric as many values, in percent."""

    title: str
    steps: tuple[int, ...]
    values: Mapping[str, tuple[float, ...]]

    def at(self, metric: str, steps: Sequence[float]) -> list[float]:
        """The metric at these steps, on straight lines between epochs."""
        return [float(value) for value in np.interp(steps, self.steps, self.values[metric])]


def curves_of(part: Part, pools: Mapping[System, SystemRuns]) -> tuple[Curve, ...]:
    """The curves of all arms of a part, means over their runs; none where one of them has no curve."""
    found = [curve_of(arm.title, pools[arm.system], part.metrics) if arm.system in pools else None for arm in part.arms]
    return tuple(curve for curve in found if curve is not None) if None not in found else ()


def curve_of(title: str, pool: SystemRuns, metrics: Sequence[str]) -> Curve | None:
    """The mean curve of an arm's runs, at the steps of its first run; None where a run has no curve."""
    runs = [record.get("curve") for record in pool.records]
    if not all(runs):
        return None
    steps = [[row["step"] for row in run] for run in runs if run]
    values = {}
    for metric in metrics:
        at_first = [
            np.interp(steps[0], own, [row[metric] for row in run]) for own, run in zip(steps, runs, strict=True) if run
        ]
        values[metric] = tuple(float(value) for value in np.mean(at_first, axis=0))
    return Curve(title, tuple(steps[0]), values)
