"""How the time of training and prediction grows with the number of labels.

    python bench/growth.py [--sizes 10000 100000 1000000] [--rounds 3] [--threads 2] [--json FILE]

Synthetic corpora with as many documents as labels: each document has 20 words out of 100,000 and 4 labels, both Zipf.
Tree building and solving from CSR in memory, then prediction of new documents; each size in its own process, medians
of some rounds. Target: from 100,000 to 1,000,000 labels the time may grow at most by 1.3 · 10 · log 1M / log 100k, and
the memory must stay within 24 GB.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail
from longtail import _native
from longtail.core.labels import Labels
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.data.sparse import normalise_rows

WORDS, WORDS_EACH, LABELS_EACH = 100_000, 20, 4
SIZES = [10_000, 100_000, 1_000_000]
QUERIES, TOP = 20_000, 10
ALLOWED, MOST_GB = 1.3, 24.0
STAGES = (  # functions that are timed separately; the rest is building the targets and similar work
    ("longtail.linear.recipe", "pifa"),
    ("longtail.labels.tree", "cluster_order"),
    ("longtail.linear.train", "level_problem"),
    ("longtail.linear.solve", "solve_problem"),
    ("longtail.linear.train", "pack_level"),
)


def zipf(rng: np.random.Generator, N: int, each: int, kinds: int) -> sp.csr_matrix:
    """Return N rows of `each` draws from `kinds`, with probabilities ∝ 1/rank; a kind drawn twice counts twice."""
    chances = np.cumsum(1 / np.arange(1, kinds + 1))
    drawn = np.searchsorted(chances, rng.random(N * each) * chances[-1]).astype(np.int32)
    matrix = sp.csr_matrix((np.ones(N * each, np.float32), drawn, np.arange(0, N * each + 1, each)), (N, kinds))
    matrix.sum_duplicates()
    return matrix


def corpus(N: int, L: int, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return TF-IDF rows of unit length (N, words) and labels (N, L)."""
    rng = np.random.default_rng(seed)
    counts, Y = zipf(rng, N, WORDS_EACH, WORDS), zipf(rng, N, LABELS_EACH, L)
    texts_with = np.bincount(counts.indices, minlength=WORDS)
    counts.data = (1 + np.log(counts.data)) * (np.log((1 + N) / (1 + texts_with)) + 1).astype(np.float32)[
        counts.indices
    ]
    Y.data[:] = 1
    return normalise_rows(counts), Y


def spied(module: Any, name: str, spent: dict[str, float]) -> None:
    """Make a function of a module add up the seconds spent in it, under its name."""
    inner = getattr(module, name)

    def outer(*given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return inner(*given, **named)
        finally:
            spent[name] = spent.get(name, 0.0) + time.perf_counter() - began

    setattr(module, name, outer)


def peak_gb() -> float:
    """Return the peak resident memory of this process."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) * 1024 / 1e9


def measure(size: int, threads: int) -> dict[str, float]:
    """Measure one size, in this process."""
    _native.set_threads(threads)
    X, Y = corpus(size, size, seed=0)
    queries, _ = corpus(QUERIES, LABELS_EACH, seed=1)
    data, labels = Dataset(X, Y), Labels(Texts.of(map(str, range(size))))
    figures = {"before GB": peak_gb()}
    spent: dict[str, float] = {}
    for module, name in STAGES:
        spied(importlib.import_module(module), name, spent)
    began = time.perf_counter()
    model = longtail.recipe("xr-linear").train(data, labels, Run(threads=threads))
    figures["train s"] = time.perf_counter() - began
    figures |= {f"{name} s": seconds for name, seconds in spent.items()}
    figures["rest s"] = figures["train s"] - sum(spent.values())
    figures["train GB"] = peak_gb()
    model.predict(queries[:100], TOP)
    began = time.perf_counter()
    model.predict(queries, TOP)
    figures["docs/s"] = QUERIES / (time.perf_counter() - began)
    return figures | {"peak GB": peak_gb()}


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


def show(found: dict[int, dict[str, float]]) -> None:
    """Print a line for each figure, then compare with the targets."""
    print(f"| labels | {' | '.join(f'{size:,}' for size in found)} |\n| --- |{' --- |' * len(found)}")
    for key in next(iter(found.values())):
        cells = (row.get(key, float("nan")) for row in found.values())
        print(f"| {key} | {' | '.join(f'{x:,.0f}' if x >= 1000 else f'{x:.3f}' for x in cells)} |")
    for small, large in itertools.pairwise(found):
        ratio = found[large]["train s"] / found[small]["train s"]
        allowed = ALLOWED * large / small * math.log(large) / math.log(small)
        met = "yes" if ratio <= allowed else "no"
        print(f"t({large:,}) / t({small:,}) = {ratio:.1f}, at most {allowed:.1f}: {met}")
    most = max(row["peak GB"] for row in found.values())
    print(f"peak memory {most:.1f} GB, at most {MOST_GB:g}: {'yes' if most <= MOST_GB else 'no'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="default: 10000 100000 1000000")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append the figures as a line of JSON")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.threads)))
        return
    rounds: dict[int, list[dict[str, float]]] = {size: [] for size in sorted(args.sizes)}
    for size in sorted(args.sizes) * args.rounds:
        command = [sys.executable, __file__, "--one", str(size), "--threads", str(args.threads)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            print(f"{size:,} labels failed: exit status {done.returncode}")
        else:
            rounds[size].append(json.loads(done.stdout.splitlines()[-1]))
    found = {size: medians(rows) for size, rows in rounds.items() if rows}
    if found:
        show(found)
    if args.json:
        with args.json.open("a") as file:
            file.write(json.dumps({"threads": args.threads, "growth": found}) + "\n")


if __name__ == "__main__":
    main()
