"""Is the difference between two systems more than chance? Paired bootstrap with 95 % percentile intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core import defaults
from longtail.core.errors import ParameterError
from longtail.core.how_many import check_ks
from longtail.core.labels import Labels
from longtail.core.progress import Progress
from longtail.core.ranking import Ranking
from longtail.metrics.evaluate import KS, count
from longtail.metrics.judged import Judged, Predicted
from longtail.metrics.measures import Measure, chosen, label_measures, percent, point_measures

Runs: TypeAlias = Predicted | Sequence[Predicted]  # one run, or several seeds of one system
Verdict = Literal["a ahead", "b ahead", "not separable"]

RESAMPLES = defaults.RESAMPLES
INTERVAL = (2.5, 97.5)  # percentiles
CHUNK = 500  # resamples between two updates of the progress bar; Ctrl-C works in between


@dataclass(frozen=True)
class Interval:
    """One metric of one system with its 95 % interval, in percent."""

    metric: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """One metric of two systems, in percent; `low` and `high` are the 95 % interval of the difference b − a."""

    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Which system is ahead; "not separable" if the interval contains 0."""
        return "b ahead" if self.low > 0 else "a ahead" if self.high < 0 else "not separable"


@dataclass(frozen=True)
class Intervals:
    """The metrics of one system; `points` and `labels` are the numbers of points and labels resampled."""

    rows: tuple[Interval, ...]
    points: int
    labels: int
    resamples: int
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain JSON values."""
        return asdict(self) | {"rows": [asdict(row) for row in self.rows]}


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same test set; `points` and `labels` are the numbers of points and labels resampled."""

    rows: tuple[Difference, ...]
    points: int
    labels: int
    resamples: int
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain JSON values."""
        return asdict(self) | {"rows": [asdict(row) | {"verdict": row.verdict} for row in self.rows]}


def compare(
    a: Runs,
    b: Runs,
    Y: sp.csr_matrix,
    labels: Labels | None = None,
    *,
    ks: Iterable[int] = KS,
    ignore: sp.csr_matrix | None = None,
    resamples: int = RESAMPLES,
    seed: int = defaults.SEED,
    metrics: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two systems by a paired bootstrap of b − a, for every metric or those named in `metrics`.

    `a` and `b` are rankings (or sparse scores), or sequences of them: runs of one system with different seeds,
    whose values are averaged point by point first. Each resample draws points with replacement; for PSP and PSnDCG it
    takes numerator and denominator of the drawn points together. Coverage and macro measures draw labels instead.
    Other arguments as in `evaluate`.
    """
    _check(resamples, seed)
    left, right = _runs(a), _runs(b)
    labels = _labels_of([*left, *right]) if labels is None else labels
    first = _gather(left, Y, labels, ignore, check_ks(ks))
    second = _gather(right, Y, labels, ignore, check_ks(ks))
    draws = Resampling(resamples, seed, progress or Progress())
    spread = _spread(first, second, metrics, draws)
    rows = []
    for name, (low, high) in spread.items():
        was, now = first.scores[name], second.scores[name]
        rows.append(Difference(name, was, now, now - was, low, high))
    return Comparison(tuple(rows), len(first.points), len(first.labels), resamples, seed)


def intervals(
    predicted: Runs,
    Y: sp.csr_matrix,
    labels: Labels | None = None,
    *,
    ks: Iterable[int] = KS,
    ignore: sp.csr_matrix | None = None,
    resamples: int = RESAMPLES,
    seed: int = defaults.SEED,
    metrics: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Intervals:
    """Return the metrics of one system with their 95 % intervals; arguments as in `compare`."""
    _check(resamples, seed)
    runs = _runs(predicted)
    labels = _labels_of(runs) if labels is None else labels
    values = _gather(runs, Y, labels, ignore, check_ks(ks))
    spread = _spread(None, values, metrics, Resampling(resamples, seed, progress or Progress()))
    rows = tuple(Interval(name, values.scores[name], low, high) for name, (low, high) in spread.items())
    return Intervals(rows, len(values.points), len(values.labels), resamples, seed)


@dataclass(frozen=True, eq=False)
class Values:
    """A system's values for each point, and for each label with a test positive, averaged over its runs."""

    over_points: tuple[Measure, ...]
    over_labels: tuple[Measure, ...]
    points: NDArray[np.float64]  # (N, columns)
    labels: NDArray[np.float64]  # (labels, columns)
    scores: dict[str, float]


@dataclass(frozen=True)
class Resampling:
    """The number of resamples and the seed they are drawn with."""

    resamples: int
    seed: int
    progress: Progress

    def limits(self, values: NDArray[np.float64], measures: Sequence[Measure], title: str) -> NDArray[np.float64]:
        """Return low and high (2, measures) of the metrics of rows (rows, columns) drawn with replacement."""
        if not measures or not len(values):
            return np.zeros((2, len(measures)))
        used = sorted({c for m in measures for c in (m.column, m.over) if c is not None})
        place = {column: i for i, column in enumerate(used)}
        moved = [replace(m, column=place[m.column], over=None if m.over is None else place[m.over]) for m in measures]
        rows = np.ascontiguousarray(values[:, used])
        drawn = np.empty((self.resamples, len(measures)))
        with self.progress.bar(title, self.resamples, "resamples") as bar:
            for start in range(0, self.resamples, CHUNK):
                size = min(CHUNK, self.resamples - start)
                sums = _native.bootstrap_sums(rows, size, self.seed, start)
                drawn[start : start + size] = percent(moved, sums, len(rows))
                bar.advance(size)
        return np.asarray(np.percentile(drawn, INTERVAL, axis=0))


def _spread(
    first: Values | None, second: Values, metrics: Iterable[str] | None, draws: Resampling
) -> dict[str, tuple[float, float]]:
    """Return low and high of each chosen metric of `second`; with `first`, of the difference second − first."""
    wanted = chosen((*second.over_points, *second.over_labels), metrics)
    spread: dict[str, tuple[float, float]] = {}
    for kind in ("points", "labels"):
        measures = [m for m in getattr(second, f"over_{kind}") if m in wanted]
        values = getattr(second, kind)
        if first is not None and measures:
            values = values - getattr(first, kind)
            # both share one denominator, the best possible value: it depends on the truth alone
            for m in measures:
                if m.over is not None:
                    values[:, m.over] = getattr(second, kind)[:, m.over]
        limits = draws.limits(values, measures, f"resampling {kind}")
        spread |= {m.name: (float(low), float(high)) for m, low, high in zip(measures, *limits, strict=True)}
    return spread


def _runs(system: Runs) -> list[Predicted]:
    """Return the runs of a system as a list."""
    runs = [system] if isinstance(system, Ranking) or sp.issparse(system) else list(system)
    if not runs:
        raise ParameterError("a system needs at least one run; got none")
    return runs


def _labels_of(runs: Sequence[Predicted]) -> Labels | None:
    """Return the labels that all runs are evaluated with: both systems need the same propensities."""
    found = [run.labels for run in runs if isinstance(run, Ranking)]
    return next((labels for labels in found if labels.points), found[0] if found else None)


def _gather(
    runs: Sequence[Predicted], Y: sp.csr_matrix, labels: Labels | None, ignore: Any, ks: tuple[int, ...]
) -> Values:
    """Return the values of a system, averaged over its runs."""
    points: Any = 0.0
    by_label: Any = 0.0
    scores: list[dict[str, float]] = []
    for run in runs:
        judged = Judged.of(run, Y, labels, ignore, ks[-1])
        counted = count(judged, ks, keep=True)
        scores.append(counted.scores(judged.points))
        points = points + counted.values
        by_label = by_label + counted.labels.values()
    means = {name: float(np.mean([row[name] for row in scores])) for name in scores[0]}
    measures = point_measures(ks, counted.propensities), label_measures(ks)
    return Values(*measures, points / len(runs), by_label / len(runs), means)


def _check(resamples: int, seed: int) -> None:
    if resamples < 1:
        raise ParameterError(f"resamples must be at least 1; got {resamples}")
    if not 0 <= seed < 1 << 64:
        raise ParameterError(f"seed must be at least 0 and fit in 64 bits; got {seed}")
