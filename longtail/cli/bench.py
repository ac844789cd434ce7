"""`longtail bench`: measure a grid of recipes, settings and seeds."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from longtail.cli.options import add_data_options, command, parse_settings, parse_time, parse_whole, progress
from longtail.core import defaults
from longtail.core.errors import ParameterError

log = logging.getLogger("longtail")
EXAMPLES = """
longtail bench debian-related --recipe xr-linear --grid beam=1,10 --seeds 0 1 2
longtail bench debian-related --recipe xr-linear parabel bonsai --dry-run
longtail bench debian-related my-corpus --data FOLDER --recipe xr-linear --set C=0.5 --table --markdown
longtail bench debian-related --recipe decaf astec --preset small
longtail bench debian-related --table                    # all recorded runs, without training
longtail bench debian-related --prune --dry-run          # which lines no longer count
"""
DESCRIPTION = """Train and score a grid of recipes, settings and seeds on one or more corpora. Each training is a
process of its own. Its figures, time, peak memory, versions and machine are appended as one line of JSON to
bench/results/CORPUS.jsonl. Recorded runs are not repeated, so a bench that was stopped can be continued. --table shows
the figures of all systems, averaged over seeds, with 95 % bootstrap intervals, by label frequency, with coverage, time
and memory."""


def add(commands: Any) -> None:
    """Options of `bench`."""
    parser = command(commands, "bench", "measure a grid of recipes and settings", EXAMPLES, DESCRIPTION)
    parser.add_argument("corpora", metavar="CORPUS", nargs="+", help="a folder, a file, or a name (see --data)")
    parser.add_argument("--recipe", metavar="R", nargs="+", action="extend", default=[], help="see `longtail recipes`")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="a parameter of all recipes; may be repeated"
    )
    parser.add_argument("--preset", metavar="P", help="a named set of settings, which all recipes must have")
    parser.add_argument(
        "--grid",
        metavar="KEY=V,V",
        action="append",
        default=[],
        help="a parameter with several values; may be repeated, and then every combination is run",
    )
    parser.add_argument(
        "--seeds",
        type=parse_whole,
        nargs="+",
        metavar="S",
        help=f"seeds of the runs (default: {defaults.SEED}; for --table without training: all recorded ones)",
    )
    parser.add_argument("--table", action="store_true", help="show all figures with their intervals")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument(
        "--prune", action="store_true", help="drop recorded lines of earlier versions of a recipe or of the evaluation"
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be run, or dropped")
    add_bench_options(parser)
    add_data_options(parser)


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """How runs are made and where they are recorded; also options of `reproduce`."""
    group = parser.add_argument_group("runs")
    group.add_argument("--data", metavar="FOLDER", help="folder with corpora by name (default: LONGTAIL_DATA)")
    group.add_argument("--results", metavar="FOLDER", help="folder of the results (default: bench/results)")
    group.add_argument(
        "--timeout", type=parse_time, metavar="TIME", help="time limit of a run, for example 90s, 10m or 2h"
    )
    group.add_argument("--again-failed", action="store_true", help="repeat runs that failed or were killed")


def bench_of(args: argparse.Namespace, options: dict[str, Any] | None = None) -> Any:
    """The bench that the arguments describe."""
    from longtail.core.run import resolve_threads
    from longtail.evidence.bench import Bench
    from longtail.evidence.corpora import Corpora
    from longtail.evidence.process import How
    from longtail.evidence.results import FOLDER, Results

    if args.data is not None and not Path(args.data).is_dir():
        raise ParameterError(f"--data must be a folder with corpora by name; there is no folder {args.data}")
    how = How(resolve_threads(args.threads), args.timeout, options or {})
    corpora = Corpora(args.data, options, progress(args))
    return Bench(Results(args.results or FOLDER), corpora, how, args.again_failed)


def run(args: argparse.Namespace) -> int:
    """Plan the runs, make those that are missing, show the figures."""
    from longtail.evidence.trials import grid

    if args.markdown and not args.table:
        raise ParameterError("--markdown needs --table")
    if args.prune and (args.recipe or args.set or args.grid or args.preset or args.table):
        raise ParameterError("--prune takes names of corpora alone, and --dry-run")
    if not args.recipe and (args.set or args.grid or args.preset or not (args.table or args.prune)):
        raise ParameterError("give the recipes to run: --recipe R … (`longtail recipes` lists them)")
    bench = bench_of(args, read_options(args))
    if args.prune:
        return prune_results(bench, args)
    systems = grid(args.recipe, parse_settings(args.set), parse_grid(args.grid), args.preset)
    for system in systems:
        system.made()  # refuse wrong settings before data is read
    seeds = args.seeds or [defaults.SEED]
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
        log.warning("%d of %d runs have no figures; --again-failed repeats them", failed, len(records))
    return int(failed > 0)


def prune_results(bench: Any, args: argparse.Namespace) -> int:
    """Drop the lines of the corpora that no longer count, and say how many."""
    from longtail.cli.show import console
    from longtail.evidence.prune import prune

    for name in args.corpora:
        path = bench.results.path(name)
        if not path.exists():
            raise ParameterError(f"nothing is recorded on {name!r}: there is no file {path}")
        dropped = prune(path, args.dry_run)
        verb = "would be dropped" if args.dry_run else "dropped"
        console().print(f"{path}: {dropped} line{'s' * (dropped != 1)} {verb}", markup=False)
    return 0


def read_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `read` that were given; the process of each run uses them too."""
    names = ("format", "text", "labels", "label_sep", "group_by")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return given if args.on_bad_line == "error" else given | {"on_bad_line": args.on_bad_line}


def parse_grid(settings: list[str]) -> dict[str, list[str]]:
    """Parse the KEY=V,V pairs of --grid."""
    parsed: dict[str, list[str]] = {}
    for key, text in parse_settings(settings, "--grid").items():
        values = [value.strip() for value in text.split(",")]
        if not all(values):
            raise ParameterError(f"--grid takes KEY=VALUE,VALUE,…; got {key}={text}")
        parsed[key] = values
    if len(parsed) < len(settings):
        raise ParameterError("--grid has a parameter twice; give all its values at once")
    return parsed


def show_plan(bench: Any, planned: dict[str, list[Any]]) -> None:
    """Show the runs, and which of them are recorded."""
    from longtail.cli.show import console, table

    rows = []
    for trials in planned.values():
        for trial in trials:
            record = bench.results.of(trial.corpus).run.get(trial.id)
            state = "to run" if bench.wanted(trial) else f"recorded ({record['status']})"
            rows.append([trial.corpus, trial.name, str(trial.seed), state, trial.id[:8]])
    console().print(table(["corpus", "system", "seed", "", "run"], rows))


def show_tables(bench: Any, planned: dict[str, list[Any]], args: argparse.Namespace) -> None:
    """Show the full table of each corpus; with everything recorded, also that of other projects."""
    from longtail.evidence.table import peers_recorded, tables_of

    for name, trials in planned.items():
        for made in tables_of(bench, name, trials, args.seeds, progress(args)):
            show_made(made, args.markdown)
        for made in [] if trials else peers_recorded(bench, name):
            show_made(made, args.markdown)


def show_made(made: Any, as_markdown: bool) -> None:
    """Show a table of results, on the terminal or as Markdown."""
    from longtail.cli.show import console, table
    from longtail.evidence.table import markdown

    if as_markdown:
        print(markdown(made), end="")  # noqa: T201
    else:
        console().print(table(made.columns, made.rows, made.title))
