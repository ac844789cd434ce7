"""The machine and software of a run: versions, processor, memory. No host name, no path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import longtail
from longtail._native import available_threads
from longtail.core.outside import Offer

PACKAGES = ("longtail", "numpy", "scipy", "torch")


def versions(offer: Offer | None = None) -> dict[str, str]:
    """The versions of Python, longtail and its numerical packages, and the commit if the code is a git checkout.

    `offer`: where the recipe comes from, if another package offers it; then the version of that package too.
    """
    found = {"python": platform.python_version()} | ({} if offer is None else {offer.package: offer.version})
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    commit = git_commit(Path(longtail.__file__).parent)
    return found | ({"commit": commit} if commit else {})


def git_commit(package: Path) -> str | None:
    """The commit of a package's code, with a + if files have changed since; None outside a git checkout."""
    if not (package.parent / ".git").exists():
        return None
    try:
        commit = _git(package, "rev-parse", "--short=12", "HEAD")
        changed = _git(package, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changed else "")


def machine(threads: int) -> dict[str, Any]:
    """The processor, the number of cores available, and the number of threads used."""
    return {"cpu": cpu_name(), "cores": available_threads(), "threads": threads, "system": platform.system()}


def cpu_name() -> str:
    """The name of the processor as the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def peak_bytes(pid: int | str = "self") -> int | None:
    """The peak memory of a process so far, from /proc; None if there is no /proc or no such process.

    `ru_maxrss` is only the fallback: a new process inherits that figure from its parent.
    """
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return own_peak() if pid == "self" else None


def own_peak() -> int | None:
    """The peak memory of this process, from `getrusage`."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", os.fspath(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
