"""Intervals of systems and of their differences: drawn once from predictions, recorded, and read from then on.

The runs of a system (its seeds) are pooled: values are averaged over the seeds for each point (for coverage: for each
label). Then points (labels) are drawn, so an interval is about the test set (docs/metrics.md, "Comparing systems").
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from longtail.core.errors import DataError
from longtail.core.progress import Progress
from longtail.core.ranking import Ranking
from longtail.evidence.bench import Bench
from longtail.evidence.predictions import predictions
from longtail.evidence.trials import EVALUATION, Trial, digest_of
from longtail.metrics.bootstrap import RESAMPLES, Comparison, Intervals, compare, intervals

log = logging.getLogger("longtail")
FAMILIES = ("P", "nDCG", "PSP", "C")  # at 1, 3 and 5, as in the papers' tables
HOW: dict[str, Any] = {"metrics": FAMILIES, "resamples": RESAMPLES, "seed": 0}
DRAWS = {"resamples": HOW["resamples"], "seed": HOW["seed"], "evaluation": EVALUATION}
DECIMALS = 4
ROUNDING = 1e-3  # means of rounded figures differ by at most this much


def comparison_id(a: Sequence[Trial], b: Sequence[Trial]) -> str:
    """The id of a comparison, from the runs of both sides and how it is drawn."""
    return digest_of({"a": [t.id for t in a], "b": [t.id for t in b], **DRAWS})


def intervals_id(trials: Sequence[Trial]) -> str:
    """The id of the intervals of a system's runs."""
    return digest_of({"runs": [t.id for t in trials], **DRAWS})


def recorded_comparison(bench: Bench, a: Sequence[Trial], b: Sequence[Trial]) -> dict[str, Any] | None:
    """The record of b − a, if it was drawn from the runs that are recorded now."""
    found = bench.results.of(a[0].corpus).comparison.get(comparison_id(a, b))
    if found is None or not (tells_of(bench, a, found, 0) and tells_of(bench, b, found, 1)):
        return None
    return found


def tells_of(bench: Bench, trials: Sequence[Trial], record: dict[str, Any], place: int) -> bool:
    """Whether column `place` of a record's rows agrees with the figures of the runs.

    It does not if a run was repeated since then, for example on another machine, and had other figures.
    """
    runs = bench.results.of(trials[0].corpus).run
    scores = [runs.get(trial.id, {}).get("scores", {}) for trial in trials]
    return all(
        abs(float(np.mean([own.get(metric, np.nan) for own in scores])) - row[place]) < ROUNDING
        for metric, row in record["rows"].items()
    )


def compare_runs(
    bench: Bench, name: str, a: Sequence[Trial], b: Sequence[Trial], progress: Progress | None = None
) -> dict[str, Any]:
    """The record of b − a for every metric: from the results, or drawn now and added to them."""
    id, found = comparison_id(a, b), recorded_comparison(bench, a, b)
    if found is not None:
        return found
    corpus, test = bench.corpus(name), bench.test(name)
    before, after = (rankings(bench, name, side) for side in (a, b))
    drawn = compare(before, after, test.Y, corpus.labels, ignore=test.ignore, progress=progress, **HOW)
    record = _record("comparison", id, a[0], drawn) | {
        "a": {"system": a[0].name, "runs": [t.id for t in a]},
        "b": {"system": b[0].name, "runs": [t.id for t in b]},
        "rows": {r.metric: _rounded(r.a, r.b, r.difference, r.low, r.high) for r in drawn.rows},
    }
    if recorded_comparison(bench, a, b) is None:  # else another process has drawn it in the meantime
        bench.results.add(a[0].corpus, record)
    return record


def intervals_of(bench: Bench, name: str, trials: Sequence[Trial], progress: Progress | None = None) -> dict[str, Any]:
    """The record of a system's figures with their intervals: from the results, or drawn now and added to them."""
    id = intervals_id(trials)
    found = bench.results.of(trials[0].corpus).intervals.get(id)
    if found is not None and tells_of(bench, trials, found, 0):
        return found
    corpus, test = bench.corpus(name), bench.test(name)
    runs = rankings(bench, name, trials)
    drawn = intervals(runs, test.Y, corpus.labels, ignore=test.ignore, progress=progress, **HOW)
    record = _record("intervals", id, trials[0], drawn) | {
        "system": trials[0].name,
        "runs": [t.id for t in trials],
        "rows": {r.metric: _rounded(r.value, r.low, r.high) for r in drawn.rows},
    }
    bench.results.add(trials[0].corpus, record)
    return record


def _record(kind: str, id: str, trial: Trial, drawn: Comparison | Intervals) -> dict[str, Any]:
    corpus = {"name": trial.corpus, "digest": trial.digest}
    sizes = {"points": drawn.points, "labels": drawn.labels, "resamples": drawn.resamples}
    return {"kind": kind, "id": id, "corpus": corpus, **sizes}


def _rounded(*values: float) -> list[float]:
    return [round(value, DECIMALS) for value in values]


def rankings(bench: Bench, name: str, trials: Sequence[Trial]) -> list[Ranking]:
    """The predictions of runs. Results contain figures only, so a run from another machine is repeated here."""
    corpus = bench.corpus(name)
    lost = [trial for trial in trials if predictions(trial.id, corpus) is None]
    if lost:
        log.info("%s: repeating %d recorded run(s) whose predictions are not on this machine", corpus.name, len(lost))
        bench.repeat(name, lost, lambda trial: predictions(trial.id, corpus) is None)
    found = [predictions(trial.id, corpus) for trial in trials]
    if any(ranking is None for ranking in found):
        raise DataError(f"{trials[0].name} on {corpus.name!r}: a recorded run failed when it was repeated")
    return [ranking for ranking in found if ranking is not None]
