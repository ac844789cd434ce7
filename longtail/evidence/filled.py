"""The papers' tables filled from recorded runs: on the paper's own corpora where they were measured, and on ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from longtail.core.errors import LongtailError
from longtail.core.recipe import recipes
from longtail.evidence.bench import Bench
from longtail.evidence.claim import SEEDS
from longtail.evidence.papers.table import GIGABYTES, HOURS, RECALL, TEST_POINTS, PaperTable
from longtail.evidence.table import SystemRuns, pools_of
from longtail.evidence.trials import System, Trial, trials_of

SMALL = "small"  # the preset that stands in for the paper's settings where those were not run
Kind = Literal["here", "paper", "elsewhere"]


@dataclass(frozen=True)
class Block:
    """The columns of one corpus.

    `kind`: measured here; the paper's figures on the same corpus; the paper's figures on another corpus than the one
    measured. `figures` has a value for each row and metric, None where there is none. `systems` says for each row what
    was trained, and `seeds` with which seeds; both are empty for the paper's figures. `points`: of the test part, for
    the paper's figures where the paper says it.
    """

    corpus: str
    kind: Kind
    figures: list[list[float | None]]
    systems: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    points: int | None = None
    decimals: int = 2


@dataclass(frozen=True)
class Panel:
    """Blocks side by side: what was measured on a corpus, and beside it the paper's figures; or those alone."""

    rows: tuple[int, ...]  # rows of the table that have a figure here
    blocks: tuple[Block, ...]

    @property
    def measured(self) -> bool:
        """Whether some of it was measured here."""
        return any(block.kind == "here" for block in self.blocks)


@dataclass(frozen=True)
class Filled:
    """A paper's table with its panels: first what was measured, on the paper's corpora and on ours, then the rest."""

    table: PaperTable
    panels: tuple[Panel, ...]


def fill(bench: Bench, table: PaperTable, seeds: Sequence[int] = SEEDS) -> Filled:
    """Fill a table from what is recorded."""
    measured: list[Panel] = []
    alone: list[Panel] = []
    for corpus in table.corpora:
        paper = of_paper(table, corpus, "paper")
        here = measured_block(bench, table, corpus, seeds)
        (alone if here is None else measured).append(_panel([paper] if here is None else [here, paper]))
    for corpus, like in table.beside.items():
        here = measured_block(bench, table, corpus, seeds)
        if here is not None:
            measured.append(_panel([here, of_paper(table, like, "elsewhere")]))
    shown = {block.corpus for panel in measured for block in panel.blocks}
    return Filled(table, (*measured, *(panel for panel in alone if panel.blocks[0].corpus not in shown)))


def of_paper(table: PaperTable, corpus: str, kind: Kind) -> Block:
    """The paper's figures on one of its corpora."""
    points, decimals = TEST_POINTS.get(corpus), table.decimals(corpus)
    return Block(corpus, kind, table.printed(corpus), points=points, decimals=decimals)


def _panel(blocks: list[Block]) -> Panel:
    rows = range(len(blocks[0].figures))
    return Panel(tuple(i for i in rows if any(any_of(block.figures[i]) for block in blocks)), tuple(blocks))


def any_of(figures: Sequence[float | None]) -> bool:
    """Whether one of them is there."""
    return any(figure is not None for figure in figures)


def measured_block(bench: Bench, table: PaperTable, corpus: str, seeds: Sequence[int]) -> Block | None:
    """What is recorded for the rows of a table on a corpus; None if nothing is."""
    if bench.results.of(corpus).digest is None:
        return None
    pools = [pool_of_row(bench, table, row, corpus, seeds) for row in range(len(table.rows))]
    if not any(pools):
        return None
    empty: list[float | None] = [None] * len(table.metrics)
    figures = [[figure(pool, metric) for metric in table.metrics] if pool else empty for pool in pools]
    used = sorted({trial.seed for pool in pools if pool for trial in pool.trials})
    systems = tuple(str(pool.trials[0].system) if pool else "" for pool in pools)
    points = next((pool.records[0].get("points") for pool in pools if pool), None)
    return Block(corpus, "here", figures, systems, tuple(used), points)


def pool_of_row(bench: Bench, table: PaperTable, row: int, corpus: str, seeds: Sequence[int]) -> SystemRuns | None:
    """The recorded runs of a row; where the paper's settings were not run on its corpus, those of the small preset."""
    for system in systems_of_row(table, row, corpus):
        pools = pools_of(bench, _trials(bench, corpus, system, seeds))
        if pools:
            return pools[0]
    return None


def systems_of_row(table: PaperTable, row: int, corpus: str) -> list[System]:
    """What can fill a row on a corpus, in this order."""
    found = [table.rows[row].on(corpus, table)]
    if corpus in table.figures:
        found.append(table.rows[row].on(corpus, table, SMALL))
    return [system for system in found if system is not None and system.lacks is None and _has(system)]


def _has(system: System) -> bool:
    """Whether its recipe has the preset."""
    return system.preset is None or system.preset in recipes[system.recipe].presets


def _trials(bench: Bench, corpus: str, system: System, seeds: Sequence[int]) -> list[Trial]:
    try:
        return trials_of(corpus, str(bench.results.of(corpus).digest), [system], seeds)
    except LongtailError:  # a value or a package that is not there
        return []


def figure(pool: SystemRuns, metric: str) -> float | None:
    """A metric in percent, or the hours, gigabytes and shortlist recall that some tables have."""
    if metric == HOURS:
        seconds = pool.mean("seconds", "train")
        return None if seconds is None else seconds / 3600
    if metric == GIGABYTES:
        memory = pool.mean("peak_mb")
        return None if memory is None else memory / 1000
    if metric.startswith(RECALL):
        level = int(metric.removeprefix(RECALL)) - 1
        levels = [record.get("shortlist_recall_levels", []) for record in pool.records]
        return sum(own[level] for own in levels) / len(levels) if all(len(own) > level for own in levels) else None
    return pool.mean("scores", metric)


def runs_of_table(
    bench: Bench, table: PaperTable, corpus: str, seeds: Sequence[int], preset: str | None, only: Sequence[str]
) -> list[Trial]:
    """The runs that fill a table on a corpus that is available; `only` keeps to some of its systems."""
    systems = [row.on(corpus, table, preset) for row in table.rows]
    wanted = [s for s in systems if s is not None and s.lacks is None and (not only or s.recipe in only)]
    return bench.trials(corpus, [system for system in wanted if _has(system)], seeds)
