"""Label graphs: the time of co-occurrence counting, compared with scipy's matrix product.

    python bench/graph.py [--points 2200000 --labels 1300000] [--threads 2] [--repeats 3] [--only large]

Synthetic targets: labels are drawn with probabilities ∝ 1/rank (Zipf), 22 per point on average.

- large: the shape of LF-AmazonTitles-1.3M (2.2 M points, 1.3 M labels) with threshold 0.1, in its own process. Target:
  under 120 s and 8 GB. For information, also the 10 strongest neighbours of each label, and random walks.
- scipy: at a size where scipy's product fits in memory, `Y.T @ Y` alone against the finished graph, with and without
  threshold, alternating. Target: 3 times as fast with the threshold. The graphs are compared entry by entry.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import _native
from longtail.labels.graph import cooccurrence, walk

EACH, THRESHOLD = 22, 0.1
MOST_SECONDS, MOST_GB, LEAST_RATIO = 120.0, 8.0, 3.0
SMALL = 200_000, 120_000  # points and labels of the comparison: like large, but so small that scipy's product fits
STEPS: dict[str, Any] = {
    "threshold": lambda Y: cooccurrence(Y, threshold=THRESHOLD),
    "top": lambda Y: cooccurrence(Y, top=10),
    "walk": walk,
}


def draw(rng: np.random.Generator, N: int, L: int, mean: float) -> sp.csr_matrix:
    """Return N rows of about `mean` labels out of L, drawn with probabilities ∝ 1/rank; duplicates count once."""
    chances = np.cumsum(1 / np.arange(1, L + 1))
    lengths = np.maximum(rng.poisson(mean, N), 1)
    names = rng.permutation(L).astype(np.int32)  # so that a label's number is independent of its frequency
    drawn = np.concatenate(
        [
            names[np.searchsorted(chances, rng.random(int(part.sum())) * chances[-1])]
            for part in np.array_split(lengths, max(1, N // 100_000))
        ]
    )
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int32)
    matrix = sp.csr_matrix((np.ones(len(drawn), np.float32), drawn, indptr), (N, L))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def zipf_targets(N: int, L: int, seed: int = 0) -> sp.csr_matrix:
    """Return targets (N, L) with EACH labels per point on average, corrected for duplicate draws."""
    mean = float(EACH)
    for _ in range(4):
        mean *= EACH * 20_000 / draw(np.random.default_rng(seed), 20_000, L, mean).nnz
    return draw(np.random.default_rng(seed), N, L, mean)


def peak_gb() -> float:
    """Return the peak resident memory of this process."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024 / 1e9


def timed(call: Any) -> tuple[float, float, Any]:
    """Return wall-clock seconds, processor seconds, and the result."""
    began, processor = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - began, time.process_time() - processor, result


def measure(path: str, step: str, threads: int) -> dict[str, float]:
    """Measure one step on saved targets, in this process, which does nothing else."""
    _native.set_threads(threads)
    Y = sp.load_npz(path)
    before = peak_gb()
    seconds, processor, graph = timed(lambda: STEPS[step](Y))
    return {"seconds": seconds, "processor": processor, "edges": graph.nnz, "targets GB": before, "peak GB": peak_gb()}


def large(N: int, L: int, threads: int, folder: Path) -> None:
    """Measure every step at full size, then compare with the targets."""
    Y = zipf_targets(N, L)
    counts = np.bincount(Y.indices, minlength=L)
    print(f"{N:,} points, {L:,} labels, {Y.nnz / N:.1f} to a point, {threads} threads")
    print(
        f"points of a label: most {counts.max():,}, median {int(np.median(counts))}; {(counts == 0).sum():,} have none"
    )
    path = folder / f"graph-{N}-{L}.npz"
    sp.save_npz(path, Y, compressed=False)
    del Y
    print("| step | seconds (processor) | edges | peak GB (targets alone) |\n| --- | --- | --- | --- |")
    found = {}
    try:
        for step in STEPS:
            command = [sys.executable, __file__, "--one", str(path), step, "--threads", str(threads)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[step] = f = json.loads(done.stdout.splitlines()[-1])
            memory = f"{f['peak GB']:.1f} ({f['targets GB']:.1f})"
            print(f"| {step} | {f['seconds']:.1f} ({f['processor']:.1f}) | {f['edges']:,} | {memory} |", flush=True)
    finally:
        path.unlink()
    seconds, gb = found["threshold"]["seconds"], found["threshold"]["peak GB"]
    print(f"share of the {MOST_SECONDS:g} s allowed: {seconds / MOST_SECONDS:.2f}")
    print(f"share of the {MOST_GB:g} GB allowed: {gb / MOST_GB:.2f}")


def by_scipy(product: sp.csr_matrix, threshold: float) -> sp.csr_matrix:
    """Return the same graph from a finished product G = YᵀY, which is symmetric."""
    counts = product.diagonal().astype(np.float64)
    value = product.data / np.repeat(counts, np.diff(product.indptr))
    graph = sp.csr_matrix((value * (value > threshold), product.indices, product.indptr), product.shape, copy=True)
    graph.eliminate_zeros()
    graph = graph + sp.diags((counts == 0).astype(np.float64))  # a label without points keeps its own entry
    return sp.csr_matrix(graph.astype(np.float32))


def against_scipy(N: int, L: int, threads: int, repeats: int) -> None:
    """Measure scipy's product and our graphs, alternating."""
    _native.set_threads(threads)
    Y = zipf_targets(N, L)
    print(f"{N:,} points, {L:,} labels, {Y.nnz / N:.1f} to a point, {threads} threads, median of {repeats}")
    times: dict[str, list[tuple[float, float]]] = {"scipy": [], "0.1": [], "0": []}
    for repeat in range(repeats):
        *clocks, product = timed(lambda: (Y.T @ Y).tocsr())
        times["scipy"].append((clocks[0], clocks[1]))
        for name, threshold in (("0.1", THRESHOLD), ("0", 0.0)):
            *clocks, graph = timed(lambda threshold=threshold: cooccurrence(Y, threshold=threshold))
            times[name].append((clocks[0], clocks[1]))
            if not repeat:
                same = by_scipy(product, threshold)
                equal = graph.shape == same.shape and (graph != same).nnz == 0
                print(f"threshold {name}: {graph.nnz:,} edges, {'the same' if equal else 'NOT the same'} as scipy's")
    wall, processor = (
        {name: statistics.median(run[i] for run in runs) for name, runs in times.items()} for i in (0, 1)
    )
    print("| threshold | the graph, s (processor) | scipy's product alone, s (processor) | ratio |")
    print("| --- | --- | --- | --- |")
    for name, bar in (("0.1", f", bar {LEAST_RATIO:g}×"), ("0", "")):
        ratios = f"{wall['scipy'] / wall[name]:.1f}× ({processor['scipy'] / processor[name]:.1f}×){bar}"
        cells = (f"{wall[which]:.2f} ({processor[which]:.2f})" for which in (name, "scipy"))
        print(f"| {name} | {' | '.join(cells)} | {ratios} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=2_200_000, help="points of the large set (default 2,200,000)")
    parser.add_argument("--labels", type=int, default=1_300_000, help="labels of the large set (default 1,300,000)")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of the comparison with scipy (default 3)")
    parser.add_argument("--only", choices=("large", "scipy"), help="run only one of the two")
    parser.add_argument("--folder", type=Path, default=Path(), help="folder for temporary targets (default .)")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one, args.threads)))
        return
    if args.only != "large":
        against_scipy(*SMALL, args.threads, args.repeats)
    if args.only != "scipy":
        large(args.points, args.labels, args.threads, args.folder)


if __name__ == "__main__":
    main()
