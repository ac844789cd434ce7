"""Claims and measurements: make the missing runs, compare the arms, decide."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from longtail.core.errors import LongtailError
from longtail.core.progress import Progress
from longtail.evidence.bench import Bench
from longtail.evidence.claim import Arm, Claim, Part
from longtail.evidence.curves import Curve, curves_of
from longtail.evidence.judge import (
    ArmDifference,
    Verdict,
    ahead,
    equal,
    faster,
    gain,
    over_corpora,
    tail,
    together,
    trend,
)
from longtail.evidence.paired import compare_runs, recorded_comparison
from longtail.evidence.premises import record_premise
from longtail.evidence.table import SystemRuns, pools_of
from longtail.evidence.trials import System, Trial, trials_of


@dataclass(frozen=True)
class Decided:
    """A part of a claim on one corpus: its verdict, the differences it rests on, its curves, and remarks."""

    part: Part
    verdict: Verdict
    rows: tuple[ArmDifference, ...] = ()
    note: str = ""
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """A claim on one corpus.

    `claim` has the arms and seeds for this corpus. `pools` holds the runs of each arm that has all its runs, `missing`
    the seeds that other arms still lack. `needs` names a recipe or setting that this version does not have.
    """

    claim: Claim
    corpus: str
    verdict: Verdict
    parts: tuple[Decided, ...] = ()
    pools: dict[System, SystemRuns] = field(default_factory=dict)
    missing: dict[System, tuple[int, ...]] = field(default_factory=dict)
    needs: str = ""
    note: str = ""

    @property
    def verdict_in_words(self) -> str:
        """The verdict, with what it waits for."""
        return f"{self.verdict}: needs {self.needs}" if self.needs else str(self.verdict)


def run_missing(bench: Bench, wanted: Sequence[tuple[Claim, str]]) -> None:
    """Make the runs that claims on corpora need. A run that several claims share is made once; what cannot be run is
    left out."""
    trials: dict[str, dict[str, Trial]] = {}
    for claim, name in wanted:
        if bench.corpora.available(name):
            own = claim.on(name)
            for arm in own.arms:
                with suppress(LongtailError):  # `decide` reports it
                    made = trials_of(name, bench.corpus(name).digest, [arm.system], own.seeds)
                    trials.setdefault(name, {}).update((trial.id, trial) for trial in made)
    for name, found in trials.items():
        record_premise(bench, name)
        bench.run(name, list(found.values()))


def decide(bench: Bench, claim: Claim, name: str, *, draw: bool, progress: Progress | None = None) -> Outcome:
    """Decide a claim on one corpus from its runs.

    With `draw`, differences that are not recorded yet are drawn from predictions; without it, only the results count,
    so that the verdict does not depend on this machine.
    """
    claim = claim.on(name)
    if needs := next(filter(None, (arm.system.lacks for arm in claim.arms)), None):
        return Outcome(claim, name, "not measured", needs=needs)
    available = bench.corpora.available(name)
    digest = bench.corpus(name).digest if draw and available else bench.results.of(name).digest
    if digest is None:
        missing = {arm.system: claim.seeds for arm in claim.arms}
        return Outcome(claim, name, "no corpus" if draw and not available else "not measured", missing=missing)
    try:
        trials = {arm.system: trials_of(name, digest, [arm.system], claim.seeds) for arm in claim.arms}
    except LongtailError as error:  # a value or a package that is not there
        return Outcome(claim, name, "not measured", note=str(error))
    pools = {system: pool for system, group in trials.items() if (pool := _pool(bench, group)) is not None}
    parts = tuple(_part(bench, part, name, pools, draw and available, progress) for part in claim.parts)
    verdict = together(part.verdict for part in parts)
    return Outcome(claim, name, verdict, parts, pools, _missing(bench, trials), note=_failures(bench, trials))


def _missing(bench: Bench, trials: dict[System, list[Trial]]) -> dict[System, tuple[int, ...]]:
    """The seeds of each arm that have no run yet, whether it went well or not."""
    found = {}
    for system, group in trials.items():
        seeds = tuple(t.seed for t in group if t.id not in bench.results.of(t.corpus).run)
        if seeds:
            found[system] = seeds
    return found


def by_claim(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """The outcomes of each claim together, in the order of the claims."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.claim.id, []).append(outcome)
    return list(groups.values())


def verdict_table(outcomes: Sequence[Outcome]) -> tuple[list[str], list[list[str]]]:
    """The verdicts as columns and rows: one row for each claim, one column for each corpus, and the overall verdict."""
    names = list(dict.fromkeys(outcome.corpus for outcome in outcomes))
    rows = []
    for group in by_claim(outcomes):
        claim, found = group[0].claim, {outcome.corpus: outcome for outcome in group}
        cells = [found[name].verdict_in_words if name in found else "–" for name in names]
        overall = over_corpora(outcome.verdict for outcome in group)
        rows.append([claim.id, claim.says, claim.kind, claim.paper, *cells, overall])
    return ["claim", "it says", "kind", "paper", *names, "all in all"], rows


def _pool(bench: Bench, trials: Sequence[Trial]) -> SystemRuns | None:
    """The runs of an arm, if all of them succeeded."""
    pools = pools_of(bench, trials)
    return pools[0] if pools and len(pools[0].trials) == len(trials) else None


def _failures(bench: Bench, trials: dict[System, list[Trial]]) -> str:
    """A list of the runs that failed, in words."""
    said = []
    for trial in (trial for group in trials.values() for trial in group):
        record = bench.results.of(trial.corpus).run.get(trial.id)
        if record is not None and record["status"] != "done":
            said.append(f"{trial.name}, seed {trial.seed}: {record['status']} ({record['error']})")
    return "; ".join(said)


def _part(
    bench: Bench, part: Part, name: str, pools: dict[System, SystemRuns], draw: bool, progress: Progress | None
) -> Decided:
    if part.kind == "level" and any(arm.system in pools for arm in part.arms):  # whatever is there is reported
        return Decided(part, "reported")
    if part.kind == "curve":
        curves = curves_of(part, pools)
        return Decided(part, "reported" if curves else "not measured", curves=curves)
    if any(arm.system not in pools for arm in part.arms):
        return Decided(part, "not measured")
    first, second = ends(part)
    a, b = pools[second.system], pools[first.system]  # a difference is b − a
    record = recorded_comparison(bench, a.trials, b.trials)
    if record is None and draw:
        record = compare_runs(bench, name, a.trials, b.trials, progress)
    metrics = ("P@1",) if part.kind == "faster" else part.metrics
    rows = _differences(metrics, record, a, b)
    if record is None and part.kind not in ("trend", "tail"):  # these two are decided by figures alone
        return Decided(part, "not measured", rows, "the difference has not been drawn")
    return _verdict(part, rows, a, b)


def ends(part: Part) -> tuple[Arm, Arm]:
    """The two arms to subtract: the first and the second; for a rising series, the last and the first."""
    return (part.arms[-1], part.arms[0]) if part.kind == "trend" else (part.arms[0], part.arms[1])


def _verdict(part: Part, rows: tuple[ArmDifference, ...], a: SystemRuns, b: SystemRuns) -> Decided:
    if part.kind == "ahead":
        return Decided(part, ahead(rows), rows)
    if part.kind == "equal":
        return Decided(part, equal(rows, part.margin), rows)
    if part.kind == "trend":
        return Decided(part, trend(rows), rows)
    if part.kind == "tail":
        return Decided(part, tail(rows), rows, "relative: " + ", ".join(f"{100 * gain(row):+.0f} %" for row in rows))
    machines = [{str(sorted(record["machine"].items())) for record in pool.records} for pool in (a, b)]
    if len(machines[0] | machines[1]) > 1:
        return Decided(
            part,
            "not measured",
            rows,
            "the two were trained on different machines or with different numbers of threads",
        )
    ratio = (b.mean("seconds", "train") or 0.0) / max(a.mean("seconds", "train") or 0.0, 1e-9)
    return Decided(part, faster(ratio, rows[0], part.margin), rows, f"time ratio {ratio:.3f}")


def _differences(
    metrics: Sequence[str], record: dict[str, Any] | None, a: SystemRuns, b: SystemRuns
) -> tuple[ArmDifference, ...]:
    """b − a for each metric, with its interval if one was drawn."""
    made = []
    for metric in metrics:
        if record is not None and metric in record["rows"]:
            before, after, difference, low, high = record["rows"][metric]
            made.append(ArmDifference(metric, after, before, difference, low, high))
        else:
            before, after = a.figure(metric), b.figure(metric)
            made.append(ArmDifference(metric, after, before, after - before))
    return tuple(made)
