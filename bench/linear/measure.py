"""One system in its own process: it trains and predicts, and the figures are written to a file.

    python -m linear.measure SYSTEM FOLDER THREADS OUT SEED    # OUT.json: figures; OUT.npy: labels of test rows (N, k)

The seed is used for the tree, if a system accepts one: P@1 of debian-related changes by half a point with it, so each
round of a comparison uses a different seed for both sides, and medians are compared.

A driver has these methods; only what is said to be timed is:

    load(folder)      imports, and reads what training starts from
    train()           timed: tree and solving, from memory
    save(folder)      writes the model; the size of the folder is taken
    ready()           the form in which this system predicts fastest
    points(folder)    the test points, as it takes them: a CSR matrix, or lines of words
    batch(points, k)  timed: the k best labels of every point, on all threads
    single(), one(x)  to one thread; timed: the 10 best of one point, by the system's documented call
    core(x)           optional; a function of no arguments: the same by the compiled code alone, arrays at hand
    from_texts(…)     optional; such functions for whole texts: timed, from the text to its labels
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linear.systems import SYSTEMS

SINGLES, WARM = 500, 50
TOP = 10


def peak_mb() -> float:
    """Return the peak resident memory of this process: interpreter, imports, matrices and everything else."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024 / 1e6


def size_mb(folder: Path) -> float:
    """Return the size of a folder on disk."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a call took, and its result."""
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def microseconds(calls: list[Callable[[], Any]]) -> tuple[float, float]:
    """Return p50 and p99 of single calls; the first few do not count."""
    times = [seconds(call)[0] for call in (*calls[:WARM], *calls)][WARM:]
    return 1e6 * float(np.percentile(times, 50)), 1e6 * float(np.percentile(times, 99))


def measure(made: Any, folder: Path, out: Path) -> dict[str, float]:
    """Return all figures of one system, in the order of the table."""
    made.load(folder)
    before = peak_mb()
    figures: dict[str, float] = {"train s": seconds(made.train)[0], "peak MB": peak_mb(), "loaded MB": before}
    if not hasattr(made, "batch"):
        return figures
    with tempfile.TemporaryDirectory(dir=folder) as place:
        made.save(Path(place) / "model")
        figures["model MB"] = size_mb(Path(place))
        made.ready()
        points, k = made.points(folder), json.loads((folder / "about.json").read_text())["k"]
        made.batch(points[:100], k)
        took, found = seconds(lambda: made.batch(points, k))
        np.save(out.with_suffix(".npy"), np.asarray(found, np.int32))
        figures["docs/s"] = len(found) / took
        made.single()
        some = [points[i] for i in range(min(SINGLES, len(found)))]
        figures["p50 µs"], figures["p99 µs"] = microseconds([lambda x=x: made.one(x) for x in some])
        if getattr(made, "core", None):
            figures["core p50 µs"], figures["core p99 µs"] = microseconds([made.core(x) for x in some])
        if hasattr(made, "from_texts") and (calls := made.from_texts(folder, SINGLES)):
            figures["text p50 µs"], figures["text p99 µs"] = microseconds(calls)
    return figures


def main(name: str, folder: Path, threads: int, out: Path, seed: int) -> None:
    system = SYSTEMS[name]
    module, _, driver = system.driver.partition(":")
    made = getattr(importlib.import_module(f"linear.{module}"), driver)(threads, **system.settings)
    made.seed = seed
    figures = measure(made, folder, out)
    versions = {p: importlib.metadata.version(p) for p in (system.package, "numpy", "scipy")}
    versions["python"] = platform.python_version()
    told = {"figures": figures, "versions": versions, "settings": getattr(made, "settings", system.settings)}
    out.with_suffix(".json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))
