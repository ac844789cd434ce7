"""Speed and memory of the metrics. Run: `python bench/metrics.py [--rows 1000000]`.

Prints the seconds and the peak memory of `evaluate` on a large ranking (each in its own process, including inputs),
its speed compared with a plain Python loop over rows, and the seconds of a paired bootstrap.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import _native
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.core.texts import Texts
from longtail.metrics import compare, evaluate

LABELS, TRUE, TOP, KS = 500_000, 5, 10, (1, 3, 5, 10)
SLICE = 20_000  # number of rows for timing the plain loop


def example(N: int, seed: int = 0) -> tuple[Ranking, sp.csr_matrix]:
    """Return a ranking of the best 10 of 500,000 labels with a long tail, and 5 true labels per row, two found."""
    rng = np.random.default_rng(seed)
    head = (rng.random((N, 1), np.float32) ** 4 * LABELS).astype(np.int32)  # few labels are frequent
    indices = (head + np.arange(TOP, dtype=np.int32) * 7919) % LABELS
    places = rng.integers(0, TOP // 2, N)[:, None] + np.array([0, TOP // 2])
    missed = (head + rng.integers(1, 7000, (N, 1), np.int32) + np.arange(TRUE - 2, dtype=np.int32) * 7919) % LABELS
    true = np.concatenate([np.take_along_axis(indices, places, 1), missed], 1)
    true.sort(1)
    Y = sp.csr_matrix((np.ones(true.size, np.float32), true.ravel(), np.arange(0, true.size + 1, TRUE)), (N, LABELS))
    keys = Texts.of(str(i) for i in range(LABELS))
    labels = Labels(keys, counts=np.bincount(true.ravel(), minlength=LABELS), points=N)
    scores = np.tile(-np.arange(TOP, dtype=np.float32), (N, 1))
    return Ranking(indices, scores, labels), Y


def plain(ranking: Ranking, Y: sp.csr_matrix, ks: tuple[int, ...]) -> dict[str, float]:
    """Compute the metrics in the obvious way: a loop over rows, with sets, lists and dicts."""
    inverse = (1 / ranking.labels.propensities).tolist()
    sums: dict[str, float] = {f"{name}@{k}": 0.0 for name in ("P", "nDCG", "R", "RP") for k in ks}
    parts: dict[str, list[float]] = {f"{name}@{k}": [0.0, 0.0] for name in ("PSP", "PSnDCG") for k in ks}
    positives: Counter[int] = Counter()
    picked: dict[int, Counter[int]] = {k: Counter() for k in ks}
    right: dict[int, Counter[int]] = {k: Counter() for k in ks}
    for i, row in enumerate(ranking.indices.tolist()):
        true = set(Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist())
        best = sorted((inverse[label] for label in true), reverse=True)
        positives.update(true)
        for k in ks:
            picked[k].update(row[:k])
            right[k].update(label for label in row[:k] if label in true)
            found = [(rank, label) for rank, label in enumerate(row[:k], 1) if label in true]
            ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(true)) + 1))
            sums[f"P@{k}"] += len(found) / k
            sums[f"R@{k}"] += len(found) / max(len(true), 1)
            sums[f"RP@{k}"] += len(found) / max(min(k, len(true)), 1)
            sums[f"nDCG@{k}"] += sum(1 / math.log2(rank + 1) for rank, _ in found) / ideal if true else 0
            parts[f"PSP@{k}"][0] += sum(inverse[label] for _, label in found)
            parts[f"PSP@{k}"][1] += sum(best[:k])
            parts[f"PSnDCG@{k}"][0] += sum(inverse[label] / math.log2(rank + 1) for rank, label in found)
            parts[f"PSnDCG@{k}"][1] += sum(w / math.log2(rank + 1) for rank, w in enumerate(best[:k], 1))
    means = {name: 100 * value / len(ranking) for name, value in sums.items()}
    for k in ks:
        got, tried = right[k], picked[k]
        means[f"C@{k}"] = 100 * len(got) / len(positives)
        means[f"macroR@{k}"] = 100 * sum(got[x] / n for x, n in positives.items()) / len(positives)
        means[f"macroF1@{k}"] = 100 * sum(2 * got[x] / (tried[x] + n) for x, n in positives.items()) / len(positives)
    return means | {name: 100 * top / bottom for name, (top, bottom) in parts.items()}


def timed(call: Any, *arguments: Any, **options: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call(*arguments, **options)
    return time.perf_counter() - start, result


def peak_mb() -> float:
    """Return the peak resident memory of this process in MB."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def measure(rows: int) -> dict[str, float]:
    ranking, Y = example(rows)
    inputs = peak_mb()
    cpu = time.process_time()
    seconds, report = timed(evaluate, ranking, Y, ks=KS)
    cpu = time.process_time() - cpu
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_mb": peak_mb(), "inputs_mb": inputs, "P@5": report["P@5"]}


def measure_slice() -> dict[str, float]:
    ranking, Y = example(SLICE)
    slow, expected = timed(plain, ranking, Y, KS)
    fast = min(timed(evaluate, ranking, Y, ks=KS)[0] for _ in range(3))
    found = evaluate(ranking, Y, ks=KS).scores
    worst = max(abs(found[name] - value) for name, value in expected.items())
    return {"plain_seconds": slow, "seconds": fast, "ratio": slow / fast, "largest_difference": worst}


def measure_bootstrap(points: int = 15_000, resamples: int = 10_000) -> dict[str, float]:
    a, Y = example(points)
    b = Ranking(a.indices[:, ::-1].copy(), a.scores, a.labels)
    seconds, result = timed(compare, a, b, Y, ks=(1, 3, 5), resamples=resamples)
    over_points, _ = timed(compare, a, b, Y, ks=(1, 3, 5), resamples=resamples, metrics=("P", "nDCG", "PSP", "PSnDCG"))
    return {
        "seconds": seconds,
        "seconds_without_label_metrics": over_points,
        "points": points,
        "labels": result.labels,
        "resamples": resamples,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--part", choices=("evaluate", "slice", "bootstrap"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    parts = {
        "evaluate": lambda: measure(options.rows),
        "slice": measure_slice,
        "bootstrap": measure_bootstrap,
    }
    if options.part:
        print(json.dumps(parts[options.part]()))
        return
    found: dict[str, dict[str, float]] = {}
    for part in parts:
        command = [sys.executable, __file__, "--rows", str(options.rows), "--part", part]
        found[part] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    whole, few, draws = found["evaluate"], found["slice"], found["bootstrap"]
    print(f"threads {_native.get_threads()}, kernels {_native.simd_name()}")
    print(f"evaluate {options.rows:,} rows × top {TOP}, {TRUE} true labels a row, {LABELS:,} labels, ks {KS}:")
    print(f"  {whole['seconds']:.2f} s ({whole['cpu_seconds']:.2f} s of processor time)")
    print(f"  peak {whole['peak_mb']:,.0f} MB, of which {whole['inputs_mb']:,.0f} MB before it started")
    print(f"{SLICE:,} rows of the same: {few['seconds']:.3f} s, a plain loop over rows {few['plain_seconds']:.2f} s:")
    print(
        f"  {few['ratio']:.0f} times faster; per row of the large ranking {ratio(whole, few, options.rows):.0f} times"
    )
    print(f"  largest difference {few['largest_difference']:.1e} percentage points")
    sizes = f"{draws['points']:,} points, {draws['labels']:,} labels, {draws['resamples']:,} resamples"
    print(f"compare two systems, {sizes}:")
    print(f"  {draws['seconds']:.2f} s; metrics over points alone {draws['seconds_without_label_metrics']:.2f} s")


def ratio(whole: dict[str, float], few: dict[str, float], rows: int) -> float:
    """Return how much longer the plain loop takes per row: on few rows, most of our time is spent on 500,000 labels."""
    return few["plain_seconds"] / SLICE / (whole["seconds"] / rows)


if __name__ == "__main__":
    main()
