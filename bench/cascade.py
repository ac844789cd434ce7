"""The cascade engine: what its training loop costs, what it holds in memory, how soon it answers.

    python bench/cascade.py [--only throughput | memory | latency] [--threads 2] [--rounds 5] [--json FILE]

- throughput: documents a second of the training loop, and of nothing but forward, backward and the moves of all
  optimisers on the same batches, whose tokens and targets (and candidates, where these are made before training) are
  in memory already. Both in turn, medians; the ratio is that of each round. The bar: the loop reaches 85 %.
- memory: 1.3 M labels × 300 dimensions with a free row each, 65,536 clusters, targets and words drawn at chances that
  fall as 1/rank; some steps, in a process of its own for each system. The bar: 24 GB at the peak.
- latency: models of debian-related after a few steps, saved and loaded: one text at a time, and many at once. The bar:
  a few milliseconds for one.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
import torch
from graph import draw, peak_gb
from torch import Tensor

import longtail
from longtail import _native
from longtail.cascade import parts
from longtail.core.run import Run
from longtail.encoders.reader import BagReader, SequenceReader
from longtail.encoders.sequence import Sequences
from longtail.train.loop import Loop
from longtail.train.optimise import Optimisers
from longtail.train.settings import LoopParameters

LEAST_SHARE, MOST_GB = 0.85, 24.0
SETTINGS: dict[str, dict[str, Any]] = {
    "decaf": {"dimension": 128, "clusters": 4096, "beam": 25, "batch": 256},
    "inceptionxml": {"dimension": 128, "clusters": 4096, "batch": 256},
}
LABELS, D, V, CLUSTERS, EACH = 1_300_000, 300, 200_000, 65_536, 5.0  # of the memory run; EACH: labels of a point
WORDS, SHORT, LENGTH = 8.0, 3.0, 32  # words of a text, of a label's text, and of a sequence at most
LARGE: dict[str, dict[str, Any]] = {"decaf": {"beam": 100}, "inceptionxml": {"shortlist": 1140}}  # of the memory run


def learner_of(name: str, corpus: Any, warm: int, run: Run) -> parts.Cascade:
    """A recipe's network on a corpus, ready for its last phase after `warm` steps of each phase before."""
    recipe: Any = longtail.recipe(name, **SETTINGS[name])
    learner: parts.Cascade = recipe.network(recipe.read(corpus.train, corpus.labels, run), 0)
    *before, last = learner.phases
    if before:
        learner.phases = before
        Loop(learner, LoopParameters(batch=recipe.batch, steps=warm * len(before)), run).train()
    learner.phases = [last]
    Loop(learner, LoopParameters(), run).build(0)
    return learner


class Timed(Loop):
    """A loop over one phase, which is built already, that notes when its steps begin.

    What a phase does once is left out, and so is its first step.
    """

    def __init__(self, learner: parts.Cascade, batch: int, steps: int, threads: int):
        super().__init__(learner, LoopParameters(batch=batch, steps=steps + 1), Run(threads=threads))
        self.structures = {self.phases[0].name: {}}  # nothing to prepare

    def seconds(self) -> float:
        """Train, and return the seconds of a step."""
        self.train()
        return (time.perf_counter() - self.began) / (self.steps[0] - 1)

    def step(self, number: int, step: int) -> dict[str, float]:
        if step == 1:
            self.began = time.perf_counter()
        return super().step(number, step)

    def batches(self) -> list[Tensor]:
        """The points (B,) of every step."""
        return [torch.from_numpy(self._points(0, step)) for step in range(self.steps[0])]


def remembered(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call; for the very objects that it was given before, it returns what it returned then."""
    found: dict[tuple[int, ...], Any] = {}

    def answer(*given: Any) -> Any:
        key = tuple(map(id, given))
        if key not in found:
            found[key] = call(*given)
        return found[key]

    return answer


@contextmanager
def in_memory(learner: parts.Cascade, batches: list[Tensor]) -> Iterator[None]:
    """Within this context, `forward` finds the tokens, targets and shortlists of these batches ready.

    Candidates that follow from the scores of the level above cannot be made before a step, and are not.
    """
    tokens = SimpleNamespace(value=SimpleNamespace(take=remembered(learner.tokens.value.take)))
    targets = {t: learner.targets(t) for t in learner.phases[0].levels}
    static = {t: part for t in targets if isinstance(part := learner.level(t).candidates, parts.Static)}
    with ExitStack() as stack:  # what stands in the dictionary of a module itself goes before its submodules
        stack.enter_context(patch.dict(vars(learner), tokens=tokens, ignored=remembered(learner.ignored)))
        for own in targets.values():
            stack.enter_context(patch.dict(vars(own), of=remembered(own.of)))
        for part in static.values():
            stack.enter_context(patch.dict(vars(part), forward=remembered(part.forward)))
        for points in batches:
            tokens.value.take(points)
            for t, own in targets.items():
                truth = own.of(points)
                learner.ignored(t, points)
                if t in static:
                    static[t](points, truth, None)
        yield


def bare(learner: parts.Cascade, batches: list[Tensor], loop: Loop) -> float:
    """Seconds of a step that is nothing but forward, backward and optimisers; phase and threads are the loop's."""
    phase, steps = loop.phases[0], len(batches)
    optimisers = Optimisers(learner, phase, loop.accelerator)
    learner.train()
    for module in optimisers.frozen:
        module.eval()
    with loop.threads(), in_memory(learner, batches):
        for step, points in enumerate(batches):
            if step == 1:
                began = time.perf_counter()
            loss, _ = learner(points, phase, step / steps)
            loss.backward()
            optimisers.move(step, steps)
        return (time.perf_counter() - began) / (steps - 1)


def in_turn(learner: parts.Cascade, batch: int, steps: int, threads: int, first: bool) -> tuple[float, float]:
    """Seconds a step of the loop and of bare steps; the loop comes first, or second."""
    loop = Timed(learner, batch, steps, threads)
    whole = loop.seconds() if first else 0.0
    alone = bare(learner, loop.batches(), loop)
    return whole or loop.seconds(), alone


def throughput(threads: int, rounds: int, steps: int, warm: int) -> list[dict[str, Any]]:
    """The loop against bare steps."""
    corpus = longtail.read("debian-related")
    _native.set_threads(threads)
    print(f"debian-related, {threads} threads, {rounds} rounds of {steps} steps")
    print("| phase | loop, docs/s | bare steps, docs/s | share | |\n| --- | --- | --- | --- | --- |")
    rows = []
    for name, settings in SETTINGS.items():
        learner = learner_of(name, corpus, warm, Run(threads=threads))
        phase, batch = learner.phases[0], settings["batch"]
        Timed(learner, batch, 5, threads).seconds()  # warms up
        pairs = [in_turn(learner, batch, steps, threads, number % 2 == 0) for number in range(rounds)]
        loop, alone = (batch / statistics.median(pair[i] for pair in pairs) for i in (0, 1))
        share = statistics.median(pair[1] / pair[0] for pair in pairs)
        verdict = "reached" if share >= LEAST_SHARE else "NOT reached"
        print(f"| {name}, {phase.name} | {loop:,.0f} | {alone:,.0f} | {share:.1%} | {verdict} |", flush=True)
        rows.append({"bench": "throughput", "recipe": name, "loop": loop, "bare": alone, "share": share})
    return rows


def synthetic(name: str, N: int, rng: np.random.Generator) -> parts.Points:
    """N points whose words and labels are drawn at random; for DECAF, label texts too. Words are numbered from 2."""
    X, Y = words_of(rng, N, WORDS), draw(rng, N, LABELS, EACH)
    if name == "decaf":
        Z = words_of(rng, LABELS, SHORT)
        return parts.Points(BagReader("tfidf", range(V)), parts.Bags.of(X), X, Y, None, parts.Bags.of(Z), Z)
    return parts.Points(SequenceReader("words", range(V), LENGTH), sequences_of(X), X, Y)


def words_of(rng: np.random.Generator, n: int, mean: float) -> sp.csr_matrix:
    """n texts of about `mean` words each, as rows of unit length (n, V)."""
    drawn = draw(rng, n, V - 2, mean)
    return parts.normalise_rows(sp.csr_matrix((drawn.data, drawn.indices + 2, drawn.indptr), (n, V)))


def sequences_of(X: sp.csr_matrix) -> Sequences:
    """The words of each row side by side (n, LENGTH), padded by 0."""
    counts = np.diff(X.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(X.nnz) - X.indptr[:-1][rows]
    words, fits = np.zeros((len(counts), LENGTH), np.int32), places < LENGTH
    words[rows[fits], places[fits]] = X.indices[fits]
    return Sequences.of(words)


def large(name: str, N: int, rng: np.random.Generator) -> parts.Cascade:
    """A network with 1.3 M labels, ready for its last phase; clusters are drawn too, and so are shortlists."""
    recipe: Any = longtail.recipe(name, dimension=D, clusters=CLUSTERS, **LARGE[name])
    points = synthetic(name, N, rng)
    order, ends = rng.permutation(LABELS).astype(np.int32), np.linspace(0, LABELS, CLUSTERS + 1).astype(np.int64)
    tree = parts.tree_structure(parts.LabelTree(order, (ends, np.arange(LABELS + 1))))
    if name == "decaf":
        learner: parts.Cascade = recipe.network(points, 0)
        _, clusters, last = learner.phases
        clusters.build(learner, tree)
        last.build(learner, {"clusters": rng.integers(0, CLUSTERS, (N, recipe.beam), dtype=np.int32)})
    else:  # not `recipe.network`, which would give labels 480 dimensions
        E = parts.Table.random(V, D, D**-0.5)
        encoder = parts.SequenceEncoder(E, parts.Inception(D, LENGTH, width=D))
        learner = parts.Cascade(points, encoder, recipe.phases())
        (last,) = learner.phases
        last.build(learner, tree)
    learner.phases = [last]
    return learner


def measure(name: str, N: int, steps: int, batch: int, threads: int) -> dict[str, Any]:
    """The memory and time of one system, in this process, which does nothing else."""
    _native.set_threads(threads)
    learner = large(name, N, np.random.default_rng(0))
    gc.collect()
    built = peak_gb()
    Timed(learner, batch, 2, threads).seconds()
    seconds = Timed(learner, batch, steps, threads).seconds()
    row = {"bench": "memory", "recipe": name, "labels": LABELS, "dimensions": D, "clusters": CLUSTERS, "points": N}
    return row | {"steps": steps, "batch": batch, "seconds a step": seconds, "built GB": built, "peak GB": peak_gb()}


def memory(N: int, steps: int, batch: int, threads: int) -> list[dict[str, Any]]:
    """Both systems, one after the other."""
    print(f"{LABELS:,} labels × {D} dimensions, {CLUSTERS:,} clusters, {N:,} points, {steps} steps of {batch}")
    print("| system | peak GB (before training) | s a step | |\n| --- | --- | --- | --- |")
    rows = []
    for name in SETTINGS:
        told = ["--one", name, "--points", str(N), "--steps", str(steps), "--batch", str(batch)]
        command = [sys.executable, __file__, *told, "--threads", str(threads)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        verdict = "reached" if row["peak GB"] <= MOST_GB else "NOT reached"
        gb = f"{row['peak GB']:.1f} ({row['built GB']:.1f})"
        print(f"| {name} | {gb} | {row['seconds a step']:.2f} | {verdict} |", flush=True)
        rows.append(row)
    return rows


def latency(threads: int, singles: int) -> list[dict[str, Any]]:
    """How long saved models take for a text."""
    corpus: Any = longtail.read("debian-related")
    texts = corpus.test.texts[: max(singles, 4096)]
    print(f"debian-related, {threads} threads, {singles} texts one at a time, {len(texts):,} at once")
    print("| model | one text: p50, ms | p99, ms | texts/s |\n| --- | --- | --- | --- |")
    rows = []
    for name, settings in SETTINGS.items():
        recipe: Any = longtail.recipe(name, **settings, steps=60)
        made = recipe.train(corpus.train, corpus.labels, Run(threads=threads))
        with tempfile.TemporaryDirectory() as folder:
            made.save(Path(folder) / "model")
            del made
            model = longtail.load(Path(folder) / "model")
            torch.set_num_threads(threads)
            _native.set_threads(threads)
            single = [[text] for text in texts[:singles]]
            for text in single[:20]:
                model.predict(text, 5)
            each = [1000 * seconds_of(model, text) for text in single]
            many = [len(texts) / seconds_of(model, texts) for _ in range(3)]
        p50, p99, rate = *np.percentile(each, (50, 99)), statistics.median(many)
        print(f"| {name} | {p50:.2f} | {p99:.2f} | {rate:,.0f} |", flush=True)
        rows.append({"bench": "latency", "recipe": name, "p50 ms": p50, "p99 ms": p99, "texts/s": rate})
    return rows


def seconds_of(model: Any, texts: Any) -> float:
    """Those of five labels for each text."""
    began = time.perf_counter()
    model.predict(texts, 5)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("throughput", "memory", "latency"), help="one of the three")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--rounds", type=int, default=5, help="of throughput (default 5)")
    parser.add_argument(
        "--steps", type=int, default=40, help="of a round, and half as many of the memory run (default 40)"
    )
    # enough of them that shortlists differ from point to point
    parser.add_argument("--warm", type=int, default=150, help="steps of each phase before the measured one (150)")
    parser.add_argument("--points", type=int, default=300_000, help="of the memory run (default 300,000)")
    parser.add_argument("--batch", type=int, default=256, help="of the memory run (default 256)")
    parser.add_argument("--singles", type=int, default=500, help="texts of the latency run (default 500)")
    parser.add_argument("--json", type=Path, help="append the figures to this file, a line each")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.points, args.steps, args.batch, args.threads)))
        return
    rows = []
    if args.only in (None, "throughput"):
        rows += throughput(args.threads, args.rounds, args.steps, args.warm)
    if args.only in (None, "memory"):
        rows += memory(args.points, args.steps // 2, args.batch, args.threads)
    if args.only in (None, "latency"):
        rows += latency(args.threads, args.singles)
    if args.json:
        with args.json.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
