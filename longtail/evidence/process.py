"""A run as a process: start it in a fresh interpreter, wait for it, and report how it ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from longtail.core.recipe import recipes
from longtail.evidence.machine import machine, peak_bytes, versions
from longtail.evidence.trials import Trial

PAUSE = 0.05  # seconds between two checks of a running process


@dataclass(frozen=True)
class How:
    """How runs are made; nothing of this changes the id of a run."""

    threads: int = 1
    timeout: float | None = None  # seconds
    options: Mapping[str, Any] = field(default_factory=dict)  # of `read`
    started: Callable[[int], None] | None = None  # called with the id of each process


def execute(trials: Sequence[Trial], place: Path, how: How, checkpoints: Path | None = None) -> list[dict[str, Any]]:
    """Make runs that share one training (`Trial.training`): a line for the results of each.

    A network continues from its checkpoint in the folder `checkpoints`, and leaves its last one there. There are lines
    whether the training succeeded, failed, was killed or took too long.
    """
    began, training = time.perf_counter(), trials[0].training
    offer = recipes.offer(training.system.recipe)
    with tempfile.TemporaryDirectory(prefix="longtail-bench-") as folder:
        out, stderr = Path(folder) / "outcome.json", Path(folder) / "stderr"
        job = {
            "runs": [{"id": trial.id, "settings": trial.after_training} for trial in trials],
            "digest": training.digest,
            "recipe": training.system.recipe,
            "folder": None if offer is None else offer.folder,
            "settings": training.system.given,
            "seed": training.seed,
            "threads": how.threads,
            "place": str(place.absolute()),
            "checkpoints": None if checkpoints is None else str(checkpoints.absolute()),
            "options": dict(how.options),
            "out": str(out),
        }
        # -P: import the installed code, not the current folder
        command = [sys.executable, "-P", "-m", "longtail.evidence.child"]
        outcome = outcome_of(run_child(command, job, stderr, how), out, stderr)
    if "error" in outcome:
        outcome["error"] = without_places(outcome["error"])
    wall = {"wall": round(time.perf_counter() - began, 3)}
    finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    made = {"versions": versions(offer), "machine": machine(how.threads), "finished": finished}
    each = outcome.pop("runs", [{}] * len(trials))  # none if the process did not get so far
    return [
        trial.record() | outcome | own | made | {"seconds": own.get("seconds", {}) | wall}
        for trial, own in zip(trials, each, strict=True)
    ]


@dataclass(frozen=True)
class Ended:
    """How a process ended, and the peak memory we saw."""

    code: int
    timed_out: float | None
    peak: int | None


def run_child(
    command: Sequence[str],
    job: Mapping[str, Any],
    stderr: Path,
    how: How,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Start a process, give it its job as a line of JSON, and wait for it; `environment` is added to ours.

    The process never outlives this function, not even after an exception.
    """
    with stderr.open("wb") as log:
        # a session of its own: Ctrl-C reaches only the bench, which then kills the run and records nothing
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=None if environment is None else {**os.environ, **environment},
        )
    timed_out, peak = None, None
    deadline = None if how.timeout is None else time.monotonic() + how.timeout
    try:
        if how.started is not None:
            how.started(child.pid)
        with contextlib.suppress(BrokenPipeError):  # it has ended already: `Ended` says why
            child.stdin.write(orjson.dumps(job) + b"\n")  # type: ignore[union-attr]
            child.stdin.flush()  # type: ignore[union-attr]
        while child.poll() is None:
            peak = peak_bytes(child.pid) or peak
            if deadline is not None and time.monotonic() > deadline:
                timed_out = how.timeout
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(PAUSE)
    finally:
        _end(child)
    return Ended(child.returncode, timed_out, peak)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the process if it is still running, with all its children."""
    if child.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL) if hasattr(os, "killpg") else child.kill()
    child.wait()
    with contextlib.suppress(OSError):
        child.stdin.close()  # type: ignore[union-attr]


def outcome_of(ended: Ended, out: Path, stderr: Path) -> dict[str, Any]:
    """The outcome that the process wrote down, or one derived from how it ended."""
    peak = {} if ended.peak is None else {"peak_mb": round(ended.peak / 1e6, 1)}
    if ended.timed_out is not None:
        return {"status": "timed-out", "error": f"stopped after {ended.timed_out:g} s"} | peak
    if ended.code < 0:
        name = signal.Signals(-ended.code).name if -ended.code in set(signal.Signals) else f"signal {-ended.code}"
        hint = "; the system does so when memory runs out" if name == "SIGKILL" else ""
        return {"status": "killed", "error": f"ended by {name}{hint}"} | peak
    try:
        outcome: dict[str, Any] = orjson.loads(out.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        last = stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] or ["no message"]
        return {"status": "failed", "error": f"the process ended with code {ended.code}: {last[0][:500]}"} | peak
    return peak | outcome


def without_places(message: str) -> str:
    """The message with every absolute path cut to its last name, so that no folder of this machine is recorded."""
    return re.sub(r"(?<![\w.~])(?:~|[A-Za-z]:)?(?:[/\\][\w.@+~ -]*\w)*[/\\](?=[\w.])", "", message)
