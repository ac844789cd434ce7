"""The part of `longtail reproduce` that fills the papers' tables."""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass
from typing import Any

from longtail.core import defaults

log = logging.getLogger("longtail")


@dataclass(frozen=True)
class Fill:
    """A table on a corpus, and the runs that fill it."""

    table: Any
    corpus: str
    trials: list[Any]


def wanted_tables(bench: Any, asked: list[Any], others: list[Any], args: argparse.Namespace) -> list[Fill]:
    """The tables to fill, on corpora that are on this machine: those asked for on all of theirs.

    If none was asked for, `others` on the papers' own corpora. With --from-results nothing is read or run, and what was
    asked for is shown as it is recorded.
    """
    from longtail.evidence.filled import runs_of_table

    seeds = args.seeds or [defaults.SEED]
    found = []
    for table in asked or others:
        for name in (*table.corpora, *table.beside) if asked else table.corpora:
            if args.corpus is not None and name not in args.corpus:
                continue
            if args.from_results:
                found += [Fill(table, name, [])] if asked else []
            elif bench.corpora.available(name):
                trials = runs_of_table(bench, table, name, seeds, args.preset, args.recipe)
                found.append(Fill(table, name, trials))
            elif asked and args.corpus:
                log.warning("%s: there is no corpus %s on this machine; give --data FOLDER", table.id, name)
    return found


def run_tables(bench: Any, fills: list[Fill]) -> None:
    """Make the missing runs; one that several tables share is made once."""
    trials: dict[str, dict[str, Any]] = {}
    for fill in fills:
        trials.setdefault(fill.corpus, {}).update((trial.id, trial) for trial in fill.trials)
    for name, own in trials.items():
        if own:
            bench.run(name, list(own.values()))


def show_filled(bench: Any, fills: list[Fill]) -> bool:
    """Show the filled tables; the paper's figures on the same corpus stand in brackets. True if a run has failed."""
    from longtail.cli.show import console, table
    from longtail.evidence.claim import SEEDS
    from longtail.evidence.filled import measured_block

    failed = False
    for fill in fills:
        seeds = sorted({trial.seed for trial in fill.trials}) or SEEDS
        block = measured_block(bench, fill.table, fill.corpus, seeds)
        runs = bench.results.of(fill.corpus).run
        wrong = [trial for trial in fill.trials if runs.get(trial.id, {"status": "done"})["status"] != "done"]
        for trial in wrong:
            log.warning("%s: %s: %s", fill.table.id, trial, runs[trial.id]["error"])
        failed |= bool(wrong)
        if block is not None:
            printed = fill.table.printed(fill.corpus) if fill.corpus in fill.table.figures else None
            title = f"{fill.table.id} on {fill.corpus}" + ("" if printed is None else "; in brackets: the paper")
            console().print(table(["system", *fill.table.metrics], list(rows_of(fill.table, block, printed)), title))
    return failed


def rows_of(table: Any, block: Any, printed: list[list[float | None]] | None) -> Any:
    """The rows of a filled table as text."""
    from longtail.report.paper_tables import shown

    decimals = table.decimals(block.corpus) if printed else 2
    for i, row in enumerate(table.rows):
        cells = []
        for j, metric in enumerate(table.metrics):
            paper = "" if printed is None else f" ({shown(printed[i][j], metric, decimals)})"
            cells.append(shown(block.figures[i][j], metric) + paper)
        yield [row.title, *cells]
