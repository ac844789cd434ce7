"""Runs of peers on corpora: what is missing is made, one at a time, and recorded beside our own runs."""

from __future__ import annotations

import functools
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.evidence.bench import Bench, share_work
from longtail.evidence.child import figures
from longtail.evidence.machine import machine
from longtail.evidence.peers.environments import InstallError, made
from longtail.evidence.peers.exchange import Exchange, write_exchange
from longtail.evidence.peers.listed import Peer, PeerSystem
from longtail.evidence.predictions import in_order, keep_predictions
from longtail.evidence.process import How, outcome_of, run_child, without_places
from longtail.evidence.score import ScoredModel
from longtail.evidence.trials import EVALUATION, digest_of

log = logging.getLogger("longtail")
OUTSIDE = Path(__file__).parent / "outside"  # on the module path of a peer's interpreter; longtail is not
TIMES = ("p50_us", "p99_us", "core_p50_us", "core_p99_us")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
LONGEST = 500  # characters of an error
SIZES = ("trained_mb", "model_mb")


@dataclass(frozen=True)
class PeerTrial:
    """One system of a peer on one corpus."""

    corpus: str
    digest: str
    peer: Peer
    system: PeerSystem

    @property
    def id(self) -> str:
        """The same for the same corpus, versions and settings, on any machine."""
        return digest_of(
            {
                "corpus": self.digest,
                "peer": self.peer.name,
                "version": self.peer.pinned,
                "system": self.system.name,
                "settings": self.system.settings,
                "evaluation": EVALUATION,
            }
        )

    @property
    def network(self) -> PeerTrial:
        """Nothing is shared between runs of peers."""
        return self

    def __str__(self) -> str:
        return f"{self.corpus}: {self.system.name}"

    def record(self) -> dict[str, Any]:
        """The first fields of a line of the results."""
        return {
            "kind": "peer",
            "id": self.id,
            "corpus": {"name": self.corpus, "digest": self.digest},
            "peer": self.peer.name,
            "system": self.system.name,
            "settings": self.system.settings,
            "version": {"peer": self.peer.pinned, "evaluation": EVALUATION},
        }


@dataclass(frozen=True)
class PeerBench:
    """Runs of peers, with the results, corpora and options of a bench.

    `again_before`: runs that ended before this time (UTC, as lines have it) are repeated.
    """

    bench: Bench
    again_before: str | None = None

    def trials(self, name: str, peers: Sequence[Peer], by_name: bool) -> list[PeerTrial]:
        """The runs of all systems of some peers on a corpus; systems that need texts are left out if it has none.

        Systems that take long are there only with `by_name`.
        """
        corpus = self.bench.corpus(name)
        systems = [(peer, system) for peer in peers for system in peer.systems if by_name or not system.by_name]
        without = [system.name for _, system in systems if not corpus.train.has_text and reads_texts(system)]
        if without:
            log.info("%s has no texts: left out: %s", corpus.name, "; ".join(without))
        return [PeerTrial(corpus.name, corpus.digest, p, s) for p, s in systems if s.name not in without]

    def recorded(self, trial: PeerTrial) -> dict[str, Any] | None:
        """The line of a run; None if there is none."""
        return self.bench.results.of(trial.corpus).peer.get(trial.id)

    def wanted(self, trial: PeerTrial) -> bool:
        """Whether a run is still missing."""
        record = self.recorded(trial)
        if record is None or (self.bench.again_failed and record["status"] != "done"):
            return True
        return self.again_before is not None and record.get("finished", "") < self.again_before

    def run(self, name: str, trials: Sequence[PeerTrial]) -> None:
        """Make the runs that are missing; a peer that cannot be installed fails, the others go on."""
        corpus, test = self.bench.corpus(name), self.bench.test(name)
        reads = {trial.system.reads for trial in trials if self.wanted(trial)}
        refused: dict[str, str] = {}
        with tempfile.TemporaryDirectory(prefix="longtail-peers-") as place:
            exchange = functools.cache(lambda: write_exchange(corpus, test, Path(place), reads))
            share_work(trials, self.wanted, lambda group: self._make(group[0], corpus, test, exchange, refused))

    def _make(
        self, trial: PeerTrial, corpus: Corpus, test: Dataset, exchange: Callable[[], Exchange], refused: dict[str, str]
    ) -> None:
        """Make one run. `refused`: peers that could not be installed, with the reason; they are not tried again."""
        began = time.perf_counter()
        try:
            if trial.peer.name in refused:
                raise InstallError(refused[trial.peer.name])
            python, folder = made(trial.peer), exchange()
            began = time.perf_counter()  # neither installing nor writing counts
            outcome = measure(trial, python, folder, corpus, test, self.bench.how)
        except InstallError as error:
            refused[trial.peer.name] = str(error)
            outcome = {"status": "failed", "error": str(error)}
        self._record(trial, outcome, began)

    def _record(self, trial: PeerTrial, outcome: Mapping[str, Any], began: float) -> None:
        seconds = {**outcome.get("seconds", {}), "wall": round(time.perf_counter() - began, 3)}
        made_on = {"machine": machine(self.bench.how.threads), "finished": now()}
        record = {**trial.record(), **outcome, **made_on, "seconds": seconds}
        self.bench.results.add(trial.corpus, record)
        tell(record)


def now() -> str:
    """The time, as lines of the results have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def reads_texts(system: PeerSystem) -> bool:
    """Whether a system needs a corpus with texts."""
    return system.reads in ("words", "texts", "both")


def measure(
    trial: PeerTrial, python: Path, exchange: Exchange, corpus: Corpus, test: Dataset, how: How
) -> dict[str, Any]:
    """Run the process of a peer; returns what is recorded about it: figures, or why there are none."""
    outcome, found = run_peer(python, trial.system.driver, trial.system.settings, trial.peer.packages, exchange, how)
    if outcome["status"] != "done":
        status = "timed-out" if outcome["status"] == "timed-out" else "failed"
        peak = {key: round(outcome[key], 1) for key in ("peak_mb",) if key in outcome}
        error = " ".join(without_places(outcome["error"]).split())
        return {"status": status, "error": error[:LONGEST], **peak}
    wrong = complaint(found, len(test), len(corpus.labels))
    if wrong or found is None:
        return {"status": "failed", "error": wrong}
    scored = ScoredModel(in_order(found, corpus.labels), test)
    keep_predictions(trial.id, scored)
    seconds = {} if trial.system.reads == "texts" else {"features": exchange.seconds}
    seconds |= outcome["seconds"]
    return {
        "status": "done",
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "peak_mb": round(outcome["peak_mb"], 1),
        **{name: round(outcome[name], 1) for name in (*SIZES, *TIMES) if name in outcome},
        "versions": outcome["versions"],
        **figures(scored.report()),
    }


def run_peer(
    python: str | Path,
    driver: str,
    settings: Mapping[str, Any],
    packages: Sequence[str],
    exchange: Exchange,
    how: How,
    *,
    seed: int = 0,
    path: Sequence[Path] = (),
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Run a driver with an interpreter: what it measured (see `peerside.measure`) and the labels that it predicted.

    `path` are more folders to import from. The outcome has a `status`, and an `error` unless that is "done".
    """
    with tempfile.TemporaryDirectory(prefix="longtail-peer-") as place:
        out, stderr, found = (Path(place) / name for name in ("outcome.json", "stderr", "found.npy"))
        job = {
            "driver": driver,
            "settings": dict(settings),
            "packages": list(packages),
            "folder": str(exchange.folder.absolute()),
            "place": place,
            "threads": how.threads,
            "seed": seed,
            "k": exchange.k,
            "out": str(out),
            "found": str(found),
        }
        environment = dict.fromkeys(THREADS, str(how.threads))
        environment |= {"PYTHONPATH": os.pathsep.join(map(str, (OUTSIDE, *path))), "TMPDIR": place}
        command = [str(python), "-P", "-m", "peerside.measure"]
        outcome = outcome_of(run_child(command, job, stderr, how, environment), out, stderr)
        return outcome, np.load(found, allow_pickle=False) if found.exists() else None


def complaint(found: np.ndarray | None, points: int, labels: int) -> str | None:
    """What is wrong with the predictions of a peer, which must be labels (M, k); None if nothing is."""
    if found is None:
        return "wrote no predictions"
    if found.ndim != 2 or found.dtype != np.int32 or len(found) != points:
        return f"wrote predictions of {found.dtype} {found.shape}, not of int32 ({points}, k)"
    if found.size and (found.min() < -1 or found.max() >= labels):
        return f"predicted label {found.max() if found.max() >= labels else found.min()}, but there are {labels:,}"
    rows = np.sort(found, axis=1)
    twice = (rows[:, 1:] == rows[:, :-1]) & (rows[:, 1:] >= 0)
    if twice.any():
        return f"predicted a label twice for {np.count_nonzero(twice.any(1)):,} points"
    return None


def tell(record: Mapping[str, Any]) -> None:
    """One line about a run that has ended."""
    if record["status"] != "done":
        log.warning("%s %s: %s", record["system"], record["status"], record["error"])
        return
    scores = record["scores"]
    shown = ", ".join(f"{name} {scores[name]:.2f}" for name in ("P@1", "P@5", "PSP@1", "PSP@5") if name in scores)
    log.info("  trained in %.1f s, %s MB: %s", record["seconds"]["train"], f"{record['peak_mb']:,.0f}", shown)
