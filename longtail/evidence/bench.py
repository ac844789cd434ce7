"""The bench: makes the missing runs, one at a time, and no run twice."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from longtail.core.errors import DataError, StoreError
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.evidence.corpora import Corpora
from longtail.evidence.process import How, execute
from longtail.evidence.results import Results
from longtail.evidence.trials import System, Trial, trials_of
from longtail.store import disk
from longtail.store.cache import cache_folder, forget
from longtail.store.lock import locked

log = logging.getLogger("longtail")
LOCKS = "bench-locks"  # in the cache: a run in progress is locked, so that a second bench takes another one
CHECKPOINTS = "bench-runs"  # in the cache: checkpoints of networks, until their runs are recorded
PAUSE = 0.5  # seconds between two checks of a run that another bench is making


@dataclass(frozen=True)
class Bench:
    """Where results go, where corpora come from, and how runs are made; `again_failed` repeats failed runs."""

    results: Results
    corpora: Corpora
    how: How = field(default_factory=How)
    again_failed: bool = False

    def corpus(self, name: str) -> Corpus:
        """A corpus to measure on; it must have a test part."""
        self.test(name)
        return self.corpora.get(name)

    def test(self, name: str) -> Dataset:
        """The test part of a corpus."""
        corpus = self.corpora.get(name)
        if corpus.test is None or not len(corpus.test):
            raise DataError(f"{corpus.name!r} has no test part to measure on", fix="a bench needs train and test")
        return corpus.test

    def trials(self, name: str, systems: Sequence[System], seeds: Sequence[int]) -> list[Trial]:
        """The runs of a grid on one corpus."""
        corpus = self.corpus(name)
        return trials_of(corpus.name, corpus.digest, systems, seeds)

    def wanted(self, trial: Trial) -> bool:
        """Whether a run is still missing."""
        record = self.results.of(trial.corpus).run.get(trial.id)
        return record is None or (self.again_failed and record["status"] != "done")

    def run(self, name: str, trials: Sequence[Trial]) -> None:
        """Make the runs on one corpus that are not recorded yet."""
        self._all(name, trials, self.wanted, self._record)

    def repeat(self, name: str, trials: Sequence[Trial], wanted: Callable[[Trial], bool]) -> None:
        """Repeat recorded runs to get their predictions; they are recorded again only if the figures have changed."""
        self._all(name, trials, wanted, self._record_if_moved)

    def _all(
        self, name: str, trials: Sequence[Trial], wanted: Callable[[Trial], bool], take: Callable[[Trial, Any], None]
    ) -> None:
        def make(group: list[Trial]) -> None:
            folder = checkpoints_of(group[0])
            for runs in grouped(group, lambda trial: trial.training.id):
                for trial, record in zip(runs, execute(runs, self.corpora.place(name), self.how, folder), strict=True):
                    take(trial, record)
            if not any(self.unfinished(trial) for trial in group):
                forget(folder)

        share_work(trials, wanted, make)

    def unfinished(self, trial: Trial) -> bool:
        """Whether a run was stopped before its end, so that its checkpoint may still be asked for."""
        record = self.results.of(trial.corpus).run.get(trial.id)
        return record is not None and record["status"] in ("killed", "timed-out")

    def _record(self, trial: Trial, record: dict[str, Any]) -> None:
        self.results.add(trial.corpus, record)
        tell(record)

    def _record_if_moved(self, trial: Trial, record: dict[str, Any]) -> None:
        before = self.results.of(trial.corpus).run[trial.id]
        if record["status"] != "done":
            tell(record)
        elif record["scores"] != before["scores"]:
            log.warning("%s was repeated and its figures differ from the recorded ones; the new ones count", trial)
            self.results.add(trial.corpus, record)


class Work(Protocol):
    """A run that can be made; those with one `network.id` are made together."""

    @property
    def network(self) -> Any:
        """What has the id under which the run is locked while it is made."""

    @property
    def corpus(self) -> str:
        """The name of its corpus."""


W = TypeVar("W", bound=Work)


def share_work(runs: Sequence[W], wanted: Callable[[W], bool], make: Callable[[list[W]], None]) -> None:
    """Make the runs that are wanted; other processes that make the same ones at the same time get a share of them."""
    open_ = [run for run in runs if wanted(run)]
    if skipped := len(runs) - len(open_):
        log.info("%s: %d of %d runs are recorded already", runs[0].corpus, skipped, len(runs))
    began, total, done, wait = time.monotonic(), len(open_), 0, False
    while open_:
        busy = []
        for group in grouped(open_, lambda run: run.network.id):
            with claimed(group[0].network.id, wait) as ours:
                if not ours:
                    busy += group
                    continue
                left = [run for run in group if wanted(run)]  # another process may have made some meanwhile
                for number, run in enumerate(left, done + len(group) - len(left) + 1):
                    log.info("run %d of %d%s: %s", number, total, time_left(began, done, total), run)
                if left:
                    make(left)
                done += len(group)
        if busy and not wait:
            log.info("waiting for %d run(s) that another bench is making", len(busy))
        open_, wait = busy, True


def grouped(runs: Sequence[W], shared: Callable[[W], str]) -> list[list[W]]:
    """Runs in groups that have the id of something `shared` in common, in the order of their first runs.

    What differs only in settings that act after training is trained once, in one process (`Trial.training`). Trainings
    that differ only in their last stage share a network: the second finds it in the checkpoints (`Trial.network`).
    """
    groups: dict[str, list[W]] = {}
    for run in runs:
        groups.setdefault(shared(run), []).append(run)
    return list(groups.values())


def checkpoints_of(trial: Trial) -> Path:
    """Where the checkpoints of a run lie until it is recorded, so that one that was interrupted goes on there."""
    return cache_folder() / CHECKPOINTS / trial.network.id


@contextmanager
def claimed(id: str, wait: bool) -> Iterator[bool]:
    """Lock a training for the block; False if another bench is making it. With `wait`, wait a moment for that bench."""
    folder = cache_folder() / LOCKS / id
    with ExitStack() as stack:
        try:
            disk.make_folders(folder)
        except StoreError as error:  # without a cache there is no lock: at worst a run is made twice
            log.warning("runs cannot be locked, so a second bench may repeat them: %s", error)
            yield True
            return
        try:
            stack.enter_context(locked(folder, PAUSE if wait else 0.0))
        except StoreError:
            yield False
            return
        yield True


def tell(record: dict[str, Any]) -> None:
    """One line about a run that has ended."""
    if record["status"] != "done":
        log.warning("%s, seed %d %s: %s", record["recipe"], record["seed"], record["status"], record["error"])
        return
    seconds, scores = record["seconds"], record["scores"]
    memory = f", {record['peak_mb']:,.0f} MB" if "peak_mb" in record else ""
    figures = ", ".join(f"{name} {scores[name]:.2f}" for name in ("P@1", "P@5", "PSP@1", "PSP@5") if name in scores)
    log.info("  trained in %.1f s%s: %s (run %s)", seconds["train"], memory, figures, record["id"][:8])


def time_left(began: float, done: int, total: int) -> str:
    """The time left as in ", about 3 min left", estimated from the runs so far; empty before the first one."""
    if not done:
        return ""
    left = (time.monotonic() - began) / done * (total - done)
    return f", about {left:.0f} s left" if left < 90 else f", about {left / 60:.0f} min left"
