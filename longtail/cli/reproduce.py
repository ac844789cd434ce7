"""`longtail reproduce`: test the claims of the papers."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from longtail.cli.bench import add_bench_options, bench_of
from longtail.cli.options import command, parse_whole, progress
from longtail.core.errors import ParameterError, nearest

log = logging.getLogger("longtail")
EXAMPLES = """
longtail reproduce --list
longtail reproduce G4 --corpus debian-related
longtail reproduce --data FOLDER               # every claim on every corpus that is available
longtail reproduce --from-results              # only write the page, from recorded runs
"""
DESCRIPTION = """Test the claims of the papers: run the trainings that are not recorded yet, compare them by paired
bootstrap, decide, and write docs/results.md. Without a CLAIM, all claims are tested. A claim whose corpus is not
on this machine is decided from recorded results, or reported as "no corpus"."""
PAGE = Path("docs") / "results.md"


def add(commands: Any) -> None:
    """Options of `reproduce`."""
    parser = command(commands, "reproduce", "test the claims of the papers", EXAMPLES, DESCRIPTION)
    parser.add_argument("claims", metavar="CLAIM", nargs="*", help="for example G4 (default: all; see --list)")
    parser.add_argument("--list", action="store_true", help="only show the claims")
    parser.add_argument(
        "--corpus", metavar="NAME", nargs="+", help="only on these corpora (default: those of the claim)"
    )
    parser.add_argument(
        "--seeds", type=parse_whole, nargs="+", metavar="S", help="seeds of the runs (default: those of the claim)"
    )
    parser.add_argument("--from-results", action="store_true", help="do not train; use recorded runs only")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be run")
    parser.add_argument(
        "--page",
        metavar="FILE",
        help="file of the page (default: docs/results.md; with --results: results.md in that folder)",
    )
    add_bench_options(parser)


def run(args: argparse.Namespace) -> int:
    """Make the missing runs, decide, write the page, show the verdicts."""
    from longtail.evidence.claims import claims_of

    asked = claims_of(args.claims, args.seeds)
    if args.list:
        show_list(asked)
        return 0
    bench = bench_of(args)
    wanted = [(claim, name) for claim in asked for name in chosen_corpora(claim.corpora, asked, args.corpus)]
    if args.dry_run:
        show_runs(bench, wanted)
        return 0
    return reproduce(bench, wanted, args)


def reproduce(bench: Any, wanted: list[tuple[Any, str]], args: argparse.Namespace) -> int:
    """Run and decide the `wanted` pairs of claim and corpus; the page shows all claims."""
    from longtail.cli.show import console, table
    from longtail.evidence.claims import claims_of
    from longtail.evidence.missing import missing_runs, reproduce_command
    from longtail.evidence.publish import publish
    from longtail.evidence.reproduce import decide, run_missing, verdict_table

    bars, draw = progress(args), not args.from_results
    if draw:
        run_missing(bench, wanted)
    outcomes = [decide(bench, claim, name, draw=draw, progress=bars) for claim, name in wanted]
    every = [
        decide(bench, claim, name, draw=False)
        for claim in claims_of((), args.seeds)
        for name in dict.fromkeys([*claim.corpora, *(n for c, n in wanted if c.id == claim.id)])
    ]
    place = Path(args.page) if args.page else Path(args.results) / "results.md" if args.results else PAGE
    publish(bench, every, place, args.seeds)
    out = console()
    out.print(table(*verdict_table(outcomes)))
    for outcome in outcomes:
        if outcome.note:
            log.warning("%s on %s: %s", outcome.claim.id, outcome.corpus, outcome.note)
    for name, systems in missing_runs(outcomes).items():
        show_missing(name, systems, reproduce_command(outcomes, name, args.data or "FOLDER"))
    out.print(f"The figures are in {place}.", markup=False)
    return int(any(outcome.note for outcome in outcomes))


def chosen_corpora(own: tuple[str, ...], asked: list[Any], wanted: list[str] | None) -> list[str]:
    """The corpora of a claim that were asked for; refuses a name that is not in any of the claims."""
    if wanted is None:
        return list(own)
    known = {name for claim in asked for name in claim.corpora}
    for name in wanted:
        if name not in known:
            raise ParameterError(f"none of these claims has a corpus {name!r}.{nearest(name, known)}")
    return [name for name in own if name in wanted]


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


def show_runs(bench: Any, wanted: list[tuple[Any, str]]) -> None:
    """Show the runs of the claims, and which of them are recorded."""
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
    show_plan(bench, {name: list(trials) for name, trials in planned.items()})
