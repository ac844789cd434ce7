"""`longtail peers`: measure other projects on a corpus."""

from __future__ import annotations

import argparse
import logging
from typing import Any

from longtail.cli.bench import add_bench_options, bench_of, read_options, show_made
from longtail.cli.options import add_data_options, command
from longtail.core.errors import ParameterError

log = logging.getLogger("longtail")
EXAMPLES = """
longtail peers --list
longtail peers debian-related --threads 1
longtail peers debian-related my-corpus --data FOLDER --peer pecos omikuji --dry-run
longtail peers debian-related --peer annif --again-failed --timeout 20m
"""
DESCRIPTION = """Train and query other projects on one or more corpora, each in an environment of its own, which is made
when it is first needed (by pip, in the cache). All get the same training points, and the features of xr-linear or the
texts. We score their predictions as our own. Figures, time, memory and versions are appended to
bench/results/CORPUS.jsonl, where the runs of `longtail bench` are too; recorded runs are not repeated."""


def add(commands: Any) -> None:
    """Options of `peers`."""
    parser = command(commands, "peers", "measure other projects on a corpus", EXAMPLES, DESCRIPTION)
    parser.add_argument("corpora", metavar="CORPUS", nargs="*", help="a folder, a file, or a name (see --data)")
    parser.add_argument(
        "--peer",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="only these; also their systems that take long (default: all peers, without these systems)",
    )
    parser.add_argument("--list", action="store_true", help="list the peers, their systems and versions")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be run")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--again", action="store_true", help="also repeat recorded runs; their newest lines count")
    add_bench_options(parser)
    add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """List the peers, or plan the runs and make those that are missing."""
    from longtail.evidence.peers.listed import peers_of
    from longtail.evidence.peers.run import PeerBench, now

    peers = peers_of(args.peer)
    if args.list:
        show_list(peers)
        return 0
    if not args.corpora:
        raise ParameterError("give the corpora to measure on, or --list to see the peers")
    bench = PeerBench(bench_of(args, read_options(args)), now() if args.again else None)
    planned = {name: bench.trials(name, peers, by_name=bool(args.peer)) for name in args.corpora}
    if args.dry_run:
        show_plan(bench, planned)
        return 0
    for name, trials in planned.items():
        if trials:
            bench.run(name, trials)
    show_figures(bench, planned, args)
    records = [bench.recorded(trial) for trials in planned.values() for trial in trials]
    failed = sum(record is None or record["status"] != "done" for record in records)
    if failed:
        log.warning("%d of %d runs have no figures; --again-failed repeats them", failed, len(records))
    return int(failed > 0)


def show_list(peers: Any) -> None:
    """Show peers and systems, their versions and licences, and which environments are ready."""
    from longtail.cli.show import console, table
    from longtail.evidence.peers.environments import ready

    rows = []
    for peer in peers:
        about = [peer.name, ", ".join(peer.pinned), peer.licence, "ready" if ready(peer) else "made when needed"]
        for number, system in enumerate(peer.systems):
            name = system.name + (" (only with --peer)" if system.by_name else "")
            rows.append([*(about if number == 0 else [""] * len(about)), name, system.reads])
    console().print(table(["peer", "versions", "licence", "environment", "systems", "reads"], rows))


def show_plan(bench: Any, planned: dict[str, list[Any]]) -> None:
    """Show the runs, and which of them are recorded."""
    from longtail.cli.show import console, table
    from longtail.evidence.peers.environments import ready

    rows = []
    for trials in planned.values():
        for trial in trials:
            record = bench.recorded(trial)
            state = "to run" if bench.wanted(trial) else f"recorded ({record['status']})"
            environment = "ready" if ready(trial.peer) else "to be made"
            rows.append([trial.corpus, trial.system.name, state, environment, trial.id[:8]])
    console().print(table(["corpus", "system", "", "environment", "run"], rows))


def show_figures(bench: Any, planned: dict[str, list[Any]], args: argparse.Namespace) -> None:
    """Show what is recorded for the runs that succeeded."""
    from longtail.evidence.table import peer_table

    for trials in planned.values():
        records = [record for record in map(bench.recorded, trials) if record and record["status"] == "done"]
        if records:
            show_made(peer_table(records), args.markdown)
