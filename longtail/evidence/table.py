"""The tables of a corpus: every system with its figures and intervals, by label frequency, time and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.core.errors import LongtailError, ParameterError, nearest
from longtail.core.progress import Progress
from longtail.evidence.bench import Bench
from longtail.evidence.paired import FAMILIES, intervals_of
from longtail.evidence.trials import System, Trial, name_of
from longtail.metrics.evaluate import KS
from longtail.report.markdown import table as markdown_table

TITLES = {
    "P": "Precision",
    "nDCG": "nDCG",
    "PSP": "Propensity-scored precision",
    "C": "Coverage: share of the labels of the test part that were found",
}


@dataclass(frozen=True)
class Shown:
    """A table for people: every cell is text."""

    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class SystemRuns:
    """The successful runs of a system, one for each seed."""

    trials: tuple[Trial, ...]
    records: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """The recipe and what differs from its defaults."""
        return self.trials[0].name

    def mean(self, *keys: str) -> float | None:
        """The mean over the runs of the figure at these keys of their lines; None if a line lacks it."""
        values: list[Any] = list(self.records)
        for key in keys:
            values = [value.get(key) for value in values if isinstance(value, dict)]
        numbers = [value for value in values if value is not None]
        return float(np.mean(numbers)) if len(numbers) == len(self.records) else None

    def figure(self, metric: str) -> float:
        """A metric, or the contribution of a bin of label frequency ("bin 5"), averaged over the runs."""
        bins = dict(zip([row["name"] for row in self.bins], self.of_bins("contribution"), strict=True))
        value = bins.get(metric, self.mean("scores", metric))
        if value is None:
            known = [*self.records[0]["scores"], *bins]
            raise ParameterError(f"the runs of {self.name} have no figure {metric!r}.{nearest(metric, known)}")
        return value

    @property
    def bins(self) -> list[dict[str, Any]]:
        """The bins of label frequency of the first run."""
        rows: list[dict[str, Any]] = self.records[0]["by_frequency"]["bins"]
        return rows

    def of_bins(self, key: str) -> list[float | None]:
        """A figure of each bin, averaged over the runs; None if it is not defined, as recall without true labels."""
        columns = zip(*([row[key] for row in record["by_frequency"]["bins"]] for record in self.records), strict=True)
        return [None if None in column else float(np.mean(column)) for column in columns]


def tables_of(
    bench: Bench,
    name: str,
    trials: Sequence[Trial],
    seeds: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Iterator[Shown]:
    """The tables of one corpus for the systems of `trials`, or for everything recorded if `trials` is empty."""
    trials = trials or recorded(bench, name, seeds)
    pools = pools_of(bench, trials)
    if not pools:
        raise ParameterError(f"no run on {name!r} with figures is recorded; say which recipe to run: --recipe R …")
    drawn = [intervals_of(bench, name, pool.trials, progress)["rows"] for pool in pools]
    seen = sorted({trial.seed for pool in pools for trial in pool.trials})
    points = pools[0].records[0]["points"]
    on = f"{trials[0].corpus}, {points:,} test points, seeds {', '.join(map(str, seen))}"
    for family in FAMILIES:
        metrics = [f"{family}@{k}" for k in KS]
        rows = [[pool.name, *(cell(figures[m]) for m in metrics)] for pool, figures in zip(pools, drawn, strict=True)]
        yield Shown(f"{TITLES[family]}: {on}; % [95 % interval]", ["system", *metrics], rows)
    k = pools[0].records[0]["by_frequency"]["k"]
    yield bin_table(pools, f"By label frequency, head to tail, parts of P@{k}: {on}; %", "contribution")
    yield bin_table(pools, f"Share of the true labels that are among the {k} best: {on}; %", "recall")
    yield cost_table(pools, on)


def recorded(bench: Bench, name: str, seeds: Sequence[int] | None) -> list[Trial]:
    """The recorded runs that this version of the code would make in the same way, in the order of recording."""
    corpus, digest = placed(bench, name)
    found = []
    for record in bench.results.of(corpus).run.values():
        try:
            trial = Trial.of(corpus, str(digest), System.of(record["recipe"], record["settings"]), record["seed"])
        except LongtailError:  # a recipe or setting that no longer exists
            continue
        if trial.id == record["id"] and (not seeds or trial.seed in seeds):
            found.append(trial)
    return found


def placed(bench: Bench, name: str) -> tuple[str, str | None]:
    """The name and the digest of a corpus; those in the results if it is not on this machine."""
    if bench.corpora.available(name):
        return bench.corpus(name).name, bench.corpus(name).digest
    return name, bench.results.of(name).digest


def pools_of(bench: Bench, trials: Sequence[Trial]) -> list[SystemRuns]:
    """The successful runs, grouped by system, in the order of their seeds."""
    by_system: dict[Any, list[Trial]] = {}
    for trial in trials:
        if bench.results.of(trial.corpus).done(trial.id):
            by_system.setdefault((trial.system.recipe, trial.changed), []).append(trial)
    pools = []
    for group in by_system.values():
        group.sort(key=lambda trial: trial.seed)
        records = bench.results.of(group[0].corpus).run
        pools.append(SystemRuns(tuple(group), tuple(records[trial.id] for trial in group)))
    return pools


def bin_table(pools: Sequence[SystemRuns], title: str, key: str) -> Shown:
    """A figure by label frequency; the first rows describe the bins."""
    bins = pools[0].bins
    spans = ["–" if row["fewest"] is None else f"{row['fewest']:,}–{row['most']:,}" for row in bins]
    rows = [["(labels)", *(f"{row['labels']:,}" for row in bins)], ["(their training examples)", *spans]]
    figures = [["–" if value is None else f"{value:.2f}" for value in pool.of_bins(key)] for pool in pools]
    rows += [[pool.name, *cells] for pool, cells in zip(pools, figures, strict=True)]
    return Shown(title, ["system", *(row["name"] for row in bins)], rows)


def cost_table(pools: Sequence[SystemRuns], on: str) -> Shown:
    """Time and memory, and what recipes such as `auto` have chosen."""
    columns = ["system", "train s", "predict s", "peak MB", "seeds", "threads"]
    rows = []
    for pool in pools:
        figures = [pool.mean("seconds", "train"), pool.mean("seconds", "predict"), pool.mean("peak_mb")]
        cells = ["–" if value is None else f"{value:,.1f}" for value in figures]
        threads = sorted({record["machine"]["threads"] for record in pool.records})
        rows.append([pool.name, *cells, ", ".join(str(t.seed) for t in pool.trials), "/".join(map(str, threads))])
    recalls = [pool.mean("shortlist_recall") for pool in pools]
    if any(recall is not None for recall in recalls):
        columns.append("shortlist recall %")
        rows = [
            [*cells, "–" if recall is None else f"{recall:.2f}"] for cells, recall in zip(rows, recalls, strict=True)
        ]
    chosen = [choices_of(pool) for pool in pools]
    if any(chosen):
        columns.append("chose")
        rows = [[*cells, words or "–"] for cells, words in zip(rows, chosen, strict=True)]
    return Shown(f"Time and memory, means over seeds: {on}", columns, rows)


def peers_recorded(bench: Bench, name: str) -> Iterator[Shown]:
    """A table of other projects on a corpus, if some are recorded: of each system the newest line."""
    corpus, digest = placed(bench, name)
    found = [record for record in bench.results.of(corpus).peer.values() if record["status"] == "done"]
    newest = {record["system"]: record for record in found if record["corpus"].get("digest") == digest}
    if newest:
        yield peer_table(list(newest.values()))


def peer_table(records: Sequence[dict[str, Any]]) -> Shown:
    """Figures of other projects, from their lines (`peers`)."""
    metrics = [f"{family}@{k}" for family in ("P", "PSP") for k in KS]
    rows = []
    for record in records:
        scores = [f"{record['scores'][m]:.2f}" if m in record["scores"] else "–" for m in metrics]
        costs = [record["seconds"]["train"], record["seconds"]["predict"], record["peak_mb"], record["model_mb"]]
        cells = [*(f"{cost:,.1f}" for cost in costs), f"{record['p50_us']:,.0f}", str(record["machine"]["threads"])]
        rows.append([record["system"], *scores, *cells])
    columns = ["system", *metrics, "train s", "predict s", "peak MB", "model MB", "p50 µs", "threads"]
    on = f"{records[0]['corpus']['name']}, {records[0]['points']:,} test points"
    return Shown(f"Other projects: {on}; %", columns, rows)


def choices_of(pool: SystemRuns) -> str:
    """The recipes and settings that the runs have chosen; empty for recipes that do not choose."""
    found = [record["chosen"] for record in pool.records if "chosen" in record]
    return "; ".join(dict.fromkeys(name_of(one["recipe"], one["settings"]) for one in found))


def cell(figures: Sequence[float]) -> str:
    """A value with its interval."""
    value, low, high = figures
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def markdown(table: Shown) -> str:
    """A table as Markdown, under its title."""
    return "\n".join([f"**{table.title}**", "", *markdown_table(table.columns, table.rows)]) + "\n\n"
