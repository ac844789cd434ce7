"""How many threads the kernels may use."""

from __future__ import annotations

import os
from pathlib import Path


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


def default_threads() -> int:
    """`LONGTAIL_THREADS` where it is a positive number, else what is available."""
    wish = os.environ.get("LONGTAIL_THREADS", "")
    return int(wish) if wish.isdecimal() and int(wish) > 0 else available_threads()
