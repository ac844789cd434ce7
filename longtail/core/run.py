"""Where a training lives: seed, threads, device, folder, budget."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from longtail._native import available_threads, parse_threads
from longtail._native.threads import MOST_THREADS, VARIABLE
from longtail.core.errors import ParameterError
from longtail.core.progress import Progress


def resolve_threads(threads: int | None = None) -> int:
    """`threads` if given, else `LONGTAIL_THREADS`, else what the machine allows."""
    name, value = ("threads", threads) if threads is not None else (VARIABLE, os.environ.get(VARIABLE) or None)
    if value is None:
        return available_threads()
    count = parse_threads(value)
    if count is None:
        raise ParameterError(f"{name} must be a whole number from 1 to {MOST_THREADS}; got {value!r}")
    return count


def is_first() -> bool:
    """Whether this process is the one of a training that speaks and saves: launchers number them in `RANK`."""
    return os.environ.get("RANK", "0") == "0"


@dataclass(frozen=True)
class Run:
    """The circumstances of one training; everything random in it follows from `seed`.

    `folder` is where checkpoints go (`MODEL/.run`), None for none; `resume` takes one up again; `budget` is seconds of
    wall clock, and `until` when they are over (by `time.monotonic`), which a recipe sets as it begins. A recipe that
    cannot keep to one of `device`, `budget` and `resume` refuses it by name.
    """

    folder: Path | None = None
    seed: int = 0
    threads: int = field(default_factory=resolve_threads)
    device: str = "auto"
    budget: float | None = None
    until: float | None = None
    resume: bool = False
    train_on_dev: bool = False
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise ParameterError(f"seed must be at least 0 and below 2^63; got {self.seed}")
        object.__setattr__(self, "threads", resolve_threads(self.threads))
