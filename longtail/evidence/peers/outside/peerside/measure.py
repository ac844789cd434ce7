"""One system in its own process: it trains and predicts, and the figures are written to a file.

    python -P -m peerside.measure    # the job is a line of JSON on standard input

The job names the `driver` ("module:Class") with its `settings`, the exchange `folder`, a `place` for the driver's own
files, `threads`, `seed`, the number `k` of labels wanted, the `packages` whose versions are recorded, and the files to
write: `out` (figures as JSON) and `found` (labels of the test rows, (N, k), −1 at the end of shorter rows). Standard
input stays open; when it ends, the process that started this one is gone, and this one ends too.

A driver has these methods; only what is said to be timed is:

    load(folder)      imports, and reads what training starts from
    train()           timed: tree and solving, from memory
    save(folder)      writes the model; the size of the folder is taken
    ready()           the form in which this system predicts fastest
    points(folder)    the test points, as it takes them: a CSR matrix, or a list of texts
    batch(points, k)  timed: the k best labels of every point, on all threads
    single(), one(x)  to one thread; timed: the 10 best of one point, by the system's documented call
    core(x)           optional; a function of no arguments: the same by the compiled code alone, arrays at hand
    from_texts(…)     optional; such functions for whole texts: timed, from the text to its labels

Without `batch`, only training is measured.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

SINGLES, WARM = 500, 50
LONGEST = 20.0  # seconds for single queries: a slow system gets fewer of them


def main() -> None:
    """Do the job and write down its outcome; an error is an outcome too."""
    job = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        outcome = measure(job)
    except MemoryError as error:
        outcome = {"status": "failed", "error": f"out of memory: {error or 'the data does not fit'}"}
    except Exception as error:
        traceback.print_exc()
        outcome = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    Path(job["out"]).write_text(json.dumps(outcome | {"peak_mb": peak_mb()}))


def end_with_parent() -> None:
    """Wait until standard input ends, then end this process."""
    while os.read(0, 1):
        pass
    os._exit(1)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Return all figures of one system: times in seconds or, of single queries, in microseconds; sizes in MB."""
    made, folder, place = driver(job), Path(job["folder"]), Path(job["place"])
    loading, _ = seconds(lambda: made.load(folder))
    told: dict[str, Any] = {"status": "done", "loaded_mb": peak_mb()}
    training, _ = seconds(made.train)
    told |= {"trained_mb": peak_mb(), "seconds": {"load": loading, "train": training}}
    if hasattr(made, "batch"):
        saving, _ = seconds(lambda: made.save(place / "model"))
        told |= {"model_mb": size_mb(place / "model"), **queries(made, folder, job)}
        told["seconds"] |= {"load": loading, "train": training, "save": saving, "predict": told.pop("predict")}
    versions = {package: importlib.metadata.version(package) for package in job["packages"]}
    told["versions"] = {"python": platform.python_version()} | versions
    return told | {"settings": getattr(made, "settings", job["settings"])}


def driver(job: dict[str, Any]) -> Any:
    """Return the driver that the job names."""
    module, _, name = job["driver"].partition(":")
    made = getattr(importlib.import_module(module), name)(job["threads"], **job["settings"])
    made.seed, made.place = job["seed"], Path(job["place"])
    return made


def queries(made: Any, folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Predict all test points, then single ones; the labels found go to a file."""
    made.ready()
    points, k = made.points(folder), job["k"]
    made.batch(points[:100], k)
    predicting, found = seconds(lambda: made.batch(points, k))
    np.save(job["found"], np.asarray(found, np.int32))
    told: dict[str, Any] = {"predict": predicting, "points": len(found)}
    made.single()
    some = [points[i] for i in range(min(SINGLES, len(found)))]
    told |= microseconds("", [partial(made.one, x) for x in some])
    if getattr(made, "core", None):
        told |= microseconds("core_", [made.core(x) for x in some])
    if hasattr(made, "from_texts") and (calls := made.from_texts(folder, SINGLES)):
        told |= microseconds("text_", calls)
    return told


def microseconds(name: str, calls: Sequence[Callable[[], Any]]) -> dict[str, float]:
    """Return p50 and p99 of single calls; the first few do not count."""
    times: list[float] = []
    deadline = time.perf_counter() + LONGEST
    for call in (*calls[:WARM], *calls):
        times.append(seconds(call)[0])
        if time.perf_counter() > deadline and len(times) > 2:
            break
    counted = times[WARM:] or times[len(times) // 2 :]
    p50, p99 = np.percentile(counted, (50, 99))
    return {f"{name}p50_us": 1e6 * float(p50), f"{name}p99_us": 1e6 * float(p99)}


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a call took, and its result."""
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def peak_mb() -> float:
    """Return the peak resident memory of this process: interpreter, imports, matrices and everything else."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024 / 1e6
    except (OSError, StopIteration):  # no /proc: macOS tells bytes
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def size_mb(folder: Path) -> float:
    """Return the size of a folder on disk."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    main()
