"""The linear engine compared with other projects (peers): same matrices, same threads, same machine, one run.

    python bench/linear.py --install                          # all of them on debian-related, three rounds
    python bench/linear.py --corpus EURLEX57K --system "longtail tfn" --system "pecos tfn" --repeats 1

Each system runs in its own process, a peer in its environment (that of `longtail peers`; --install makes missing ones).
Matrices are TF-IDF of words in at least two texts, computed once and given to all. Rounds alternate between the
systems; the tables show medians, our figures against each peer's, and every target with the result.
docs/bench-linear.md explains what is compared and how.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from linear.prepare import prepare
from linear.report import (
    CHOSEN,
    ENSEMBLE,
    bars_table,
    figures_table,
    judged,
    measured,
    middle,
    paired,
    paired_table,
    ratios_table,
)
from linear.systems import BENCH, ENVIRONMENTS, OWN, SYSTEMS

import longtail
from longtail.evidence.peers.environments import InstallError, made, ready
from longtail.evidence.peers.exchange import Exchange
from longtail.evidence.peers.run import run_peer
from longtail.evidence.process import How


def main() -> None:
    args = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: ends the run and shows the results so far
    if args.show:
        show_file(args.show)
        return
    pythons = environments(args)
    systems = wanted(args.system, pythons)
    log = Log(args.json, {"run": now(), "machine": machine(), "commit": commit(), "threads": args.threads})
    fine = True
    for name in args.corpus or ["debian-related"]:
        with work_folder(args.work, Path(name).name) as folder:
            fine &= one_corpus(name, folder, systems, pythons, log, args)
    sys.exit(0 if fine else 1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", metavar="DATA", help="default: debian-related; may be repeated")
    known = ", ".join(ENVIRONMENTS)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help=f"of {known}")
    parser.add_argument("--install", action="store_true", help="make the environments of peers that have none yet")
    parser.add_argument("--system", action="append", metavar="NAME", help=f"only these: {', '.join(SYSTEMS)}")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; default 3")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--timeout", type=float, default=3600, metavar="S", help="time limit per run; default an hour")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append every run as a line of JSON")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only show the tables of the last run in such a file")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep matrices and predictions here")
    return parser.parse_args()


def environments(args: argparse.Namespace) -> dict[str, str]:
    """Return the interpreter of each environment that exists; with --install, after making those that do not."""
    found = {OWN: sys.executable}
    for name, peer in ENVIRONMENTS.items():
        needed = not args.system or any(SYSTEMS[s].environment == name for s in args.system if s in SYSTEMS)
        try:
            place = made(peer) if args.install and needed else ready(peer)
        except InstallError as error:
            print(error, file=sys.stderr)
            continue
        if place is not None:
            found[name] = str(place)
    for given in args.peer:
        name, _, python = given.partition("=")
        if name not in ENVIRONMENTS or not Path(python).exists():
            raise SystemExit(f"--peer {given}: must be NAME=PYTHON, NAME one of {', '.join(ENVIRONMENTS)}")
        found[name] = python
    return found


def wanted(asked: list[str] | None, pythons: dict[str, str]) -> list[str]:
    """Return the systems to run, in the order of the table."""
    for name in asked or ():
        if name not in SYSTEMS:
            raise SystemExit(f"--system {name!r}: known are {', '.join(SYSTEMS)}")
        if SYSTEMS[name].environment not in pythons:
            raise SystemExit(f"--system {name!r} needs --install, or --peer {SYSTEMS[name].environment}=PYTHON")
    return [name for name, s in SYSTEMS.items() if s.environment in pythons and (not asked or name in asked)]


def one_corpus(
    name: str, folder: Path, systems: list[str], pythons: dict[str, str], log: Log, args: argparse.Namespace
) -> bool:
    """Run rounds of all systems on one corpus, then print the tables; a failed system is reported and not run again.

    Return whether all systems succeeded.
    """
    corpus, title = longtail.read(name), Path(name).name
    if corpus.test is None:
        raise SystemExit(f"{name} has no test part to compare on")
    if not corpus.train.has_text:
        systems = [s for s in systems if s not in CHOSEN and SYSTEMS[s].reads in ("matrices", "file")]
    exchange = prepare(name, corpus, folder, {SYSTEMS[s].reads for s in systems})
    found: dict[str, list[dict[str, float]]] = {system: [] for system in systems}
    failed: dict[str, str] = {}
    settings: dict[str, dict[str, Any]] = {}
    interrupted = False
    try:
        for turn in range(args.repeats):
            for system in (s for s in systems if s not in failed):
                told, labels = run(pythons[SYSTEMS[system].environment], system, exchange, args, seed=turn)
                if "failed" in told:
                    failed[system] = told["failed"]
                elif labels is not None:
                    np.save(prediction_file(folder, system, str(turn)), labels)
                    told["figures"] |= judged(corpus, system, labels, folder)
                if "figures" in told:
                    found[system].append(told["figures"])
                    settings[system] = told["settings"]
                log.add(corpus=title, digest=corpus.digest, system=system, turn=turn + 1, **told)
    except KeyboardInterrupt:
        interrupted = True  # the results so far are still shown
    figures = show(title, found)
    for system in (s for s in CHOSEN if s in figures and ENSEMBLE in figures):
        difference = paired(corpus, predictions(folder, ENSEMBLE), predictions(folder, system))
        print(f"\n{paired_table(system, difference['rows'])}\n\nchosen: {settings[system]}")
        log.add(corpus=title, system=system, against=ENSEMBLE, comparison=difference)
    for system, reason in failed.items():
        print(f"\n{system} failed: {reason}")
    if interrupted:
        raise SystemExit("\ninterrupted: the tables above show the results until then")
    return not failed


def show(title: str, found: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Print the tables of a corpus; return the medians they show."""
    figures = {system: middle(runs) for system, runs in found.items() if runs}
    if figures:
        print(f"\n{figures_table(title, figures)}\n\n{ratios_table(figures)}\n\n{bars_table(title, figures)}")
    return figures


def show_file(path: Path) -> None:
    """Print the tables of the last run in a file of JSON lines."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records = [record for record in records if record["run"] == records[-1]["run"]]
    for title in dict.fromkeys(record["corpus"] for record in records):
        found: dict[str, list[dict[str, float]]] = {}
        compared = []
        for record in (r for r in records if r["corpus"] == title):
            if "figures" in record:
                found.setdefault(record["system"], []).append(record["figures"])
            elif "comparison" in record:
                compared.append((record["system"], record["comparison"]["rows"]))
        show(title, found)
        for system, rows in compared:
            print(f"\n{paired_table(system, rows)}")
        for record in (r for r in records if r["corpus"] == title and "failed" in r):
            print(f"\n{record['system']} failed: {record['failed']}")


def prediction_file(folder: Path, system: str, turn: str) -> Path:
    """Return the file with the predicted labels of a run."""
    return folder / f"{system.replace(' ', '-')}-run{turn}.npy"


def predictions(folder: Path, system: str) -> list[np.ndarray]:
    """Return the predicted labels of every run of a system."""
    return [np.load(path) for path in sorted(folder.glob(prediction_file(folder, system, "*").name))]


def run(
    python: str, system: str, exchange: Exchange, args: argparse.Namespace, seed: int
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return what one process measured, or why it failed, and the labels that it predicted."""
    print(f"  {system} …", end=" ", flush=True, file=sys.stderr)
    driver, settings, packages = SYSTEMS[system].driver, SYSTEMS[system].settings, SYSTEMS[system].packages
    how = How(args.threads, args.timeout)
    outcome, labels = run_peer(python, driver, settings, packages, exchange, how, seed=seed, path=(BENCH,))
    if outcome["status"] != "done":
        told: dict[str, Any] = {"failed": outcome["error"]}
    else:
        told = {"figures": measured(outcome), "versions": outcome["versions"], "settings": outcome["settings"]}
    print(told.get("failed") or f"trained in {told['figures']['train s']:.2f} s", file=sys.stderr)
    return told, labels


class Log:
    """Append lines of JSON to a file, each with the fields common to all of them."""

    def __init__(self, path: Path | None, common: dict[str, Any]):
        self.path, self.common = path, common
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, **record: Any) -> None:
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps({"when": now(), **self.common, **record}, ensure_ascii=False) + "\n")


def now() -> str:
    """Return the time, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def machine() -> dict[str, Any]:
    """Return processor, cores and memory; no names."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "memory GB": round(memory, 1)}


def commit() -> str:
    """Return the version of the code, with a plus if it was changed since."""
    command = ["git", "-C", str(BENCH), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def work_folder(kept: Path | None, name: str) -> Iterator[Path]:
    """Open a folder for one corpus; it is deleted afterwards unless the user wants to keep it."""
    if kept is None:
        with tempfile.TemporaryDirectory() as place:
            yield Path(place)
    else:
        folder = kept / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in (*folder.glob("*.npy"), *folder.glob("*.json")):  # from another run, maybe with other code
            old.unlink()
        yield folder


if __name__ == "__main__":
    main()
