"""How many threads the kernels may use."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "LONGTAIL_THREADS"
MOST_THREADS = 4096


def available_threads() -> int:
    """What this process may use: the affinity mask, cut by the cgroup's CPU quota."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        count = os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            count = min(count, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return count


def parse_threads(value: object) -> int | None:
    """A number of threads, None where `value` is no whole number from 1 to MOST_THREADS."""
    text = str(value)
    return int(text) if text.isdecimal() and 0 < int(text) <= MOST_THREADS else None


def default_threads() -> int:
    """`LONGTAIL_THREADS` where it makes sense, else what is available. Importing is no place to complain."""
    return parse_threads(os.environ.get(VARIABLE)) or available_threads()
