"""How many threads the kernels may use."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "LONGTAIL_THREADS"
MOST_THREADS = 4096


def available_threads() -> int:
    """Return the number of CPUs this process may use: its affinity mask, limited by the cgroup's CPU quota."""
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
    """Return a number of threads, or None if `value` is not an integer from 1 to MOST_THREADS."""
    text = str(value)
    return int(text) if text.isdecimal() and 0 < int(text) <= MOST_THREADS else None


def default_threads() -> int:
    """Return `LONGTAIL_THREADS` if valid, else the available number. An import must not raise for a bad value."""
    return parse_threads(os.environ.get(VARIABLE)) or available_threads()
