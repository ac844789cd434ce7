"""`longtail reproduce`: test the claims of the papers, fill their tables, write the pages of results."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from longtail.cli.bench import add_bench_options, bench_of
from longtail.cli.fill import Fill, run_tables, show_filled, wanted_tables
from longtail.cli.options import command, parse_whole, progress
from longtail.core.errors import ParameterError, nearest

log = logging.getLogger("longtail")
EXAMPLES = """
longtail reproduce --list
longtail reproduce G4 --corpus debian-related
longtail reproduce T1.3 --corpus LF-AmazonTitles-131K --data FOLDER --recipe astec decaf   # fill a paper's table
longtail reproduce --data FOLDER               # every claim on every corpus that is available
longtail reproduce --from-results              # only write the pages, from recorded runs
longtail reproduce --from-results --rewrite README.md   # and the tables that are marked in a Markdown file
"""
DESCRIPTION = """Test the claims of the papers and fill their tables: run the trainings that are not recorded yet,
compare them by paired bootstrap, decide, and write docs/results.md and docs/results.html. Without a CLAIM, all claims
are tested, and all tables are filled on those of the papers' own corpora that are on this machine. A claim whose corpus
is not on this machine is decided from recorded results, or reported as "no corpus"."""
PAGE = Path("docs") / "results.md"


def add(commands: Any) -> None:
    """Options of `reproduce`."""
    parser = command(commands, "reproduce", "test the claims of the papers", EXAMPLES, DESCRIPTION)
    parser.add_argument(
        "claims", metavar="CLAIM", nargs="*", help="a claim or a paper's table: G4, T1.3 (default: all; see --list)"
    )
    parser.add_argument("--list", action="store_true", help="only show the claims and tables")
    parser.add_argument(
        "--corpus", metavar="NAME", nargs="+", help="only on these corpora (default: those of the claim)"
    )
    parser.add_argument(
        "--seeds", type=parse_whole, nargs="+", metavar="S", help="seeds of the runs (default: those of the claim)"
    )
    parser.add_argument(
        "--recipe", metavar="R", nargs="+", default=[], help="of a table only the rows of these recipes"
    )
    parser.add_argument("--preset", metavar="P", help="fill a table with this preset, not with the papers' settings")
    parser.add_argument("--from-results", action="store_true", help="do not train; use recorded runs only")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be run")
    parser.add_argument(
        "--page",
        metavar="FILE",
        help="file of the page, the HTML page beside it (default: docs/results.md; with --results: in that folder)",
    )
    parser.add_argument(
        "--rewrite", metavar="FILE", nargs="+", help="Markdown files whose marked tables are written anew"
    )
    add_bench_options(parser)


def run(args: argparse.Namespace) -> int:
    """Make the missing runs, decide, fill tables, write the pages, show verdicts and tables."""
    from longtail.evidence.claims import CLAIMS, claims_of
    from longtail.evidence.papers.tables import TABLES, split_ids

    ids, tables = split_ids(args.claims, [claim.id for claim in CLAIMS])
    asked = claims_of(ids, args.seeds) if ids or not tables else []
    if args.list:
        show_list(asked)
        show_tables(tables or list(TABLES))
        return 0
    bench = bench_of(args)
    others = [] if ids or tables else list(TABLES)
    check_corpora(args.corpus, asked, tables or others)
    wanted = [(claim, name) for claim in asked for name in claim.corpora if name in (args.corpus or claim.corpora)]
    fills = wanted_tables(bench, tables, others, args)
    if args.dry_run:
        show_runs(bench, wanted, fills)
        return 0
    return reproduce(bench, wanted, fills, args)


def reproduce(bench: Any, wanted: list[tuple[Any, str]], fills: list[Fill], args: argparse.Namespace) -> int:
    """Run and decide the `wanted` pairs of claim and corpus, and fill tables; the pages show all of them."""
    from longtail.cli.show import console, table
    from longtail.evidence.claims import claims_of
    from longtail.evidence.missing import missing_runs, reproduce_command
    from longtail.evidence.publish import publish
    from longtail.evidence.reproduce import decide, run_missing, verdict_table

    bars, draw = progress(args), not args.from_results
    if draw:
        run_missing(bench, wanted)
        run_tables(bench, fills)
    outcomes = [decide(bench, claim, name, draw=draw, progress=bars) for claim, name in wanted]
    every = [
        decide(bench, claim, name, draw=False)
        for claim in claims_of((), args.seeds)
        for name in dict.fromkeys([*claim.corpora, *(n for c, n in wanted if c.id == claim.id)])
    ]
    place = Path(args.page) if args.page else Path(args.results) / "results.md" if args.results else PAGE
    publish(bench, every, place, args.seeds)
    out = console()
    if outcomes:
        out.print(table(*verdict_table(outcomes)))
    for outcome in outcomes:
        if outcome.note:
            log.warning("%s on %s: %s", outcome.claim.id, outcome.corpus, outcome.note)
    for name, systems in missing_runs(outcomes).items():
        show_missing(name, systems, reproduce_command(outcomes, name, args.data or "FOLDER"))
    failed = show_filled(bench, fills)
    if args.rewrite:
        rewrite_tables(bench, args)
    out.print(f"The figures are in {place} and {place.with_suffix('.html').name}.", markup=False)
    return int(failed or any(outcome.note for outcome in outcomes))


def check_corpora(names: list[str] | None, asked: list[Any], tables: list[Any]) -> None:
    """Refuse the name of a corpus that is in none of the claims and tables."""
    known = {name for claim in asked for name in claim.corpora}
    known |= {name for table in tables for name in (*table.corpora, *table.beside)}
    for name in names or ():
        if name not in known:
            raise ParameterError(f"none of these claims and tables has a corpus {name!r}.{nearest(name, known)}")


def rewrite_tables(bench: Any, args: argparse.Namespace) -> None:
    """Rewrite the marked tables, and list the runs that the table of what to choose lacks."""
    from longtail.cli.show import console
    from longtail.evidence.choices import unrecorded
    from longtail.evidence.regions import rewrite

    rewrite(bench, [Path(name) for name in args.rewrite])
    out = console()
    lacking = unrecorded(bench, folder=args.data or "FOLDER")
    if lacking:
        out.print(f"{len(lacking)} runs of the table “what to choose” are not recorded:", markup=False)
        for command_ in lacking:
            out.print(f"  {command_}", markup=False, highlight=False, soft_wrap=True)


def show_missing(corpus: str, systems: dict[Any, tuple[int, ...]], make: str) -> None:
    """The arms that lack runs on a corpus, and the command that makes them."""
    from longtail.cli.show import console, table

    rows = [[str(system), ", ".join(map(str, seeds))] for system, seeds in systems.items()]
    out = console()
    out.print(table(["arm without all its runs", "seeds"], rows, f"Missing on {corpus}"))
    out.print("Make the missing runs; the same command in a second terminal shares the work:", markup=False)
    out.print(f"  {make}", markup=False, highlight=False, soft_wrap=True)


def show_list(claims: list[Any]) -> None:
    """Show the table of claims."""
    from longtail.cli.show import console, table

    rows = []
    for claim in claims:
        metrics = ", ".join(dict.fromkeys(metric for part in claim.parts for metric in part.metrics))
        rows.append([claim.id, claim.says, f"{claim.kind}:\n{metrics}", claim.paper, "\n".join(claim.corpora)])
    console().print(table(["claim", "it says", "kind", "paper", "corpora"], rows))


def show_tables(tables: list[Any]) -> None:
    """Show the papers' tables that can be filled."""
    from longtail.cli.show import console, table

    rows = [[t.id, f"{t.source}: {t.says}", "\n".join(t.corpora), "\n".join(t.beside)] for t in tables]
    console().print(table(["table", "it shows", "the paper's corpora", "also filled on"], rows))


def show_runs(bench: Any, wanted: list[tuple[Any, str]], fills: list[Fill]) -> None:
    """Show the runs of the claims and tables, and which of them are recorded."""
    from longtail.cli.bench import show_plan

    planned: dict[str, dict[Any, None]] = {}
    for claim, name in wanted:
        own = claim.on(name)
        systems = [arm.system for arm in own.arms if arm.system.lacks is None]
        for needs in dict.fromkeys(arm.system.lacks for arm in own.arms if arm.system.lacks is not None):
            log.warning("%s cannot be run: it needs %s", claim.id, needs)
        if bench.corpora.available(name):
            planned.setdefault(name, {}).update(dict.fromkeys(bench.trials(name, systems, own.seeds)))
        else:
            log.warning("%s: there is no corpus %s on this machine; give --data FOLDER", claim.id, name)
    for fill in fills:
        planned.setdefault(fill.corpus, {}).update(dict.fromkeys(fill.trials))
    show_plan(bench, {name: list(trials) for name, trials in planned.items()})
