"""`longtail bench`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from longtail.cli.options import add_data_options, command, progress
from longtail.cli.train import parse_settings, parse_time
from longtail.core.errors import ParameterError

log = logging.getLogger("longtail")
EXAMPLES = """
longtail bench debian-related --recipe xr-linear --grid beam=1,10 --seed 0 1 2
longtail bench debian-related --recipe xr-linear parabel bonsai --dry-run
longtail bench debian-related my-corpus --data FOLDER --recipe xr-linear --set C=0.5 --table --markdown
longtail bench debian-related --recipe decaf astec --preset small
longtail bench debian-related --table                    # all that is recorded, without training
"""
DESCRIPTION = """Train and score a grid of recipes, settings and seeds on corpora: one process per run, its figures,
time, peak memory, versions and machine appended as a line of JSON to bench/results/CORPUS.jsonl. A run that is
there is never made again; a bench that was stopped goes on where it was. With --table the figures of all systems are
shown, seeds pooled, with 95 % bootstrap intervals, by label frequency, with coverage, time and memory."""


def add(commands: Any) -> None:
    """Options of `bench`."""
    parser = command(commands, "bench", "measure a grid of recipes and settings", EXAMPLES, DESCRIPTION)
    parser.add_argument("corpora", metavar="CORPUS", nargs="+", help="a folder, a file, or a name (see --data)")
    parser.add_argument("--recipe", metavar="R", nargs="+", action="extend", default=[], help="see `longtail recipes`")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="a parameter of all recipes; may be repeated"
    )
    parser.add_argument("--preset", metavar="P", help="settings that go together, which all recipes must have")
    parser.add_argument(
        "--grid",
        metavar="KEY=V,V",
        action="append",
        default=[],
        help="a parameter with several values; with several of these every combination is run",
    )
    parser.add_argument("--seed", type=int, nargs="+", metavar="S", help="default: 0; with --table: all there are")
    parser.add_argument("--table", action="store_true", help="show all figures with their intervals")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--dry-run", action="store_true", help="say what would be run")
    add_bench_options(parser)
    add_data_options(parser)


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """How and where runs are made; `reproduce` has these too."""
    group = parser.add_argument_group("making runs")
    group.add_argument("--data", metavar="FOLDER", help="folder that holds corpora by name (default: LONGTAIL_DATA)")
    group.add_argument("--results", metavar="FOLDER", help="where results are kept (default: bench/results)")
    group.add_argument("--timeout", type=parse_time, metavar="TIME", help="stop a run after it, as 90s, 10m, 2h")
    group.add_argument("--again-failed", action="store_true", help="try runs again that failed or were killed")


def bench_of(args: argparse.Namespace, options: dict[str, Any] | None = None) -> Any:
    """The bench that the arguments describe."""
    from longtail.core.run import resolve_threads
    from longtail.evidence.bench import Bench
    from longtail.evidence.corpora import Corpora
    from longtail.evidence.process import How
    from longtail.evidence.results import FOLDER, Results

    if args.data is not None and not Path(args.data).is_dir():
        raise ParameterError(f"--data must be a folder that holds corpora by name; there is no folder {args.data}")
    how = How(resolve_threads(args.threads), args.timeout, options or {})
    corpora = Corpora(args.data, options, progress(args))
    return Bench(Results(args.results or FOLDER), corpora, how, args.again_failed)


def run(args: argparse.Namespace) -> int:
    """Plan, run what is missing, show."""
    from longtail.evidence.trials import grid

    if args.markdown and not args.table:
        raise ParameterError("--markdown is a form of the table; say --table too")
    if not args.recipe and (args.set or args.grid or args.preset or not args.table):
        raise ParameterError("say which recipes to run: --recipe R … (`longtail recipes` lists them)")
    bench = bench_of(args, read_options(args))
    systems = grid(args.recipe, parse_settings(args.set), parse_grid(args.grid), args.preset)
    for system in systems:
        system.made()  # what is misspelt is refused before anything is read
    seeds = args.seed or [0]
    planned = {name: bench.trials(name, systems, seeds) if systems else [] for name in args.corpora}
    if args.dry_run:
        show_plan(bench, planned)
        return 0
    for name, trials in planned.items():
        if trials:
            bench.run(name, trials)
    if args.table:
        show_tables(bench, planned, args)
    records = [bench.results.of(trial.corpus).run[trial.id] for trials in planned.values() for trial in trials]
    failed = sum(record["status"] != "done" for record in records)
    if failed:
        log.warning("%d of %d runs have no figures; --again-failed tries them again", failed, len(records))
    return int(failed > 0)


def read_options(args: argparse.Namespace) -> dict[str, Any]:
    """What the arguments say about reading, for `read`: here and in the process of each run."""
    names = ("format", "text", "labels", "label_sep", "group_by")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return given if args.on_bad_line == "error" else given | {"on_bad_line": args.on_bad_line}


def parse_grid(settings: list[str]) -> dict[str, list[str]]:
    """KEY=V,V pairs."""
    parsed: dict[str, list[str]] = {}
    for key, text in parse_settings(settings).items():
        values = [value.strip() for value in text.split(",")]
        if not all(values):
            raise ParameterError(f"--grid takes KEY=VALUE,VALUE,…; got {key}={text}")
        parsed[key] = values
    if len(parsed) < len(settings):
        raise ParameterError("--grid names a parameter twice; give all its values at once")
    return parsed


def show_plan(bench: Any, planned: dict[str, list[Any]]) -> None:
    """The runs of the grid, and which are there."""
    from longtail.cli.show import console, table

    rows = []
    for trials in planned.values():
        for trial in trials:
            record = bench.results.of(trial.corpus).run.get(trial.id)
            state = "to run" if bench.wanted(trial) else f"recorded ({record['status']})"
            rows.append([trial.corpus, trial.name, str(trial.seed), state, trial.id[:8]])
    console().print(table(["corpus", "system", "seed", "", "run"], rows))


def show_tables(bench: Any, planned: dict[str, list[Any]], args: argparse.Namespace) -> None:
    """The full table of each corpus."""
    from longtail.cli.show import console, table
    from longtail.evidence.table import markdown, tables_of

    for name, trials in planned.items():
        for made in tables_of(bench, name, trials, args.seed, progress(args)):
            if args.markdown:
                print(markdown(made), end="")  # noqa: T201
            else:
                console().print(table(made.columns, made.rows, made.title))
