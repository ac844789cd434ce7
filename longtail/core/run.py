"""Where a training lives: seed, threads, device, folder, budget."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from longtail._native import available_threads, parse_threads
from longtail.core.errors import ParameterError
from longtail.core.progress import Progress


def resolve_threads(threads: int | None = None) -> int:
    """`threads` if given, else `LONGTAIL_THREADS`, else what the machine allows."""
    value = threads if threads is not None else os.environ.get("LONGTAIL_THREADS")
    if value is None:
        return available_threads()
    count = parse_threads(value)
    if count is None:
        raise ParameterError(f"threads must be a whole number of at least 1; got {value!r}")
    return count


@dataclass(frozen=True)
class Run:
    """The circumstances of one training; everything random in it follows from `seed`.

    `folder` is where checkpoints go (`MODEL/.run`), None for none; `resume` takes one up again; `budget` is seconds of
    wall clock. A recipe that cannot keep to one of `device`, `budget` and `resume` refuses it by name.
    """

    folder: Path | None = None
    seed: int = 0
    threads: int = field(default_factory=resolve_threads)
    device: str = "auto"
    budget: float | None = None
    resume: bool = False
    train_on_dev: bool = False
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ParameterError(f"seed must be at least 0; got {self.seed}")
        object.__setattr__(self, "threads", resolve_threads(self.threads))
