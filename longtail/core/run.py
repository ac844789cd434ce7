"""The circumstances of a training: seed, threads, device, folder, budget."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from longtail._native import available_threads, parse_threads
from longtail._native.threads import MOST_THREADS, VARIABLE
from longtail.core import defaults
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
    """Whether this process is the first of a training, which logs and saves; launchers number them in `RANK`."""
    return os.environ.get("RANK", "0") == "0"


@dataclass(frozen=True)
class Run:
    """The circumstances of one training; everything random in it follows from `seed`.

    `folder` is where checkpoints are saved (`MODEL/.run`); None: nowhere. `resume` continues from one. `budget` is the
    seconds a training may take (wall clock); `until`, the `time.monotonic()` at which they end, is set by `fit`.
    `train_on_dev`: after all choices are made, train on the dev part too. A recipe that does not support a `device`,
    `budget` or `resume` refuses it by name.
    """

    folder: Path | None = None
    seed: int = defaults.SEED
    threads: int = field(default_factory=resolve_threads)
    device: str = defaults.DEVICE
    budget: float | None = None
    until: float | None = None
    resume: bool = False
    train_on_dev: bool = False
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise ParameterError(f"seed must be at least 0 and below 2^63; got {self.seed}")
        object.__setattr__(self, "threads", resolve_threads(self.threads))
