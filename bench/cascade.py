"""The cascade engine: speed of the training loop, memory, and response time.

    python bench/cascade.py [--only throughput | memory | latency] [--threads 2] [--rounds 5] [--json FILE]

- throughput: documents per second of the training loop, compared with only forward, backward and the steps of both
  optimisers on the same batches, held in memory with their targets (and with candidates, if these are made before
  training). The two alternate; medians; the ratio is computed per round. Target: the loop reaches 85 %.
- memory: 1.3 M labels × 300 dimensions with a free row each, 65,536 clusters, targets and words drawn with
  probabilities ∝ 1/rank; some steps, each system in its own process. Target: at most 24 GB.
- latency: models of debian-related after a few steps, saved and loaded: one text at a time, and many at once. Target:
  a few milliseconds for one text.
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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from graph import draw, peak_gb
from longtail.cascade.candidates import Shortlist, below_parents, with_truth
from longtail.cascade.joint import Joint
from longtail.cascade.joint import Shape as JointShape
from longtail.cascade.losses import bce, bce_of_all
from longtail.cascade.network import Cascade, Corpus
from longtail.cascade.shallow import Shallow
from longtail.cascade.shallow import Shape as ShallowShape
from longtail.cascade.targets import Truth
from torch import Tensor

import longtail
from longtail import _native
from longtail.core.run import Run
from longtail.encoders.bag import Bags
from longtail.encoders.inception import Inception
from longtail.encoders.sequence import SequenceEncoder, Sequences
from longtail.encoders.table import Table
from longtail.train.adam import BETAS, EPS, TableAdam
from longtail.train.learner import Phase
from longtail.train.loop import Loop, batch_of
from longtail.train.settings import LoopParameters

LEAST_SHARE, MOST_GB = 0.85, 24.0
WARM = 150  # steps of each earlier phase, so that shortlists differ between points
SETTINGS: dict[str, dict[str, Any]] = {
    "decaf": {"dimension": 128, "clusters": 4096, "beam": 25, "batch": 256},
    "inceptionxml": {"dimension": 128, "clusters": 4096, "batch": 256},
}
LABELS, D, V, CLUSTERS, EACH = 1_300_000, 300, 200_000, 65_536, 5.0  # sizes of the memory run; EACH: labels per point
WORDS, SHORT = 8.0, 3.0  # words per text, and per label text


class Batch(NamedTuple):
    """The points of one training step, with everything the step needs."""

    tokens: Any
    truths: dict[int, Truth]
    ignored: Truth | None  # pairs of points and clusters
    ready: tuple[Shortlist, Tensor] | None  # candidate labels and their targets, if made beforehand


def learner_of(name: str, steps: int, data: Any, labels: Any) -> Cascade:
    """Build a recipe's network on a training set, and run a few steps of all phases before its last."""
    recipe: Any = longtail.recipe(name, **SETTINGS[name])
    learner = recipe.network(recipe.read(data, labels, Run()), 0)
    *before, last = learner.phases
    learner.phases = before
    if before:
        Loop(learner, LoopParameters(batch=recipe.batch, steps=steps * len(before)), Run()).train()
    learner.phases = [last]
    learner.build(last, learner.structure(last))
    return learner


class Timed(Loop):
    """A loop that records when its steps start. One-time work of a phase, including the first step, is left out."""

    def _step(self, number: int, step: int) -> dict[str, float]:
        if step == 1:
            self.began = time.perf_counter()
        return super()._step(number, step)


def by_loop(learner: Cascade, batch: int, steps: int, threads: int) -> float:
    """Return the seconds per step of the training loop."""
    loop = Timed(learner, LoopParameters(batch=batch, steps=steps + 1), Run(threads=threads))
    loop.structures = {phase.name: {} for phase in learner.phases}  # already built
    loop.train()
    return (time.perf_counter() - loop.began) / steps


def batches_of(learner: Cascade, batch: int, steps: int) -> list[Batch]:
    """Return the batches that the loop would draw."""
    made, phase = [], learner.phases[0]
    for step in range(steps):
        points = torch.from_numpy(batch_of(0, 0, step, learner.points, batch))
        truths = {t: learner.targets(t).of(points) for t in phase.levels}
        if 0 in truths:
            made.append(Batch(learner.corpus.tokens.take(points), truths, learner.ignored_of(0, points), None))
        else:
            shortlist = with_truth(learner.static_labels(points), truths[1])
            ignored = learner.ignored_of(1, points)
            if ignored is not None:
                held = ignored.at(shortlist.candidates) == 0
                shortlist = shortlist._replace(counted=shortlist.counted * held)
            ready = (shortlist, truths[1].at(shortlist.candidates))
            made.append(Batch(learner.corpus.tokens.take(points), truths, None, ready))
    return made


def loss_of(learner: Cascade, batch: Batch, done: float, detached: float) -> Tensor:
    """Return the network's own loss, without work that could be done beforehand."""
    if isinstance(learner, Joint):
        learner.sequences.net.detached = frozenset({"label"} if done < detached else ())
    features = learner.encoder(batch.tokens)
    if batch.ready is not None:
        shortlist, targets = batch.ready
        return bce(learner.level(1).logits(features, shortlist.candidates), targets, shortlist.counted)
    logits = learner.level(0).logits(features)
    if learner.family is None:
        raise RuntimeError("there are no clusters")
    shortlist = below_parents(logits, batch.truths[0], batch.truths[1], learner.family, learner.parents)
    targets = batch.truths[1].at(shortlist.candidates)
    own = learner.level(1).logits(features, shortlist.candidates)
    return bce_of_all(logits, batch.truths[0], batch.ignored) + bce(own, targets, shortlist.counted)


def bare(learner: Cascade, batches: list[Batch], lr: float, threads: int) -> float:
    """Return the seconds per step of forward, backward and optimisers."""
    torch.set_num_threads(threads)
    learner.train()
    phase = learner.phases[0]
    detached = learner.shape.detached if isinstance(learner, Joint) else 0.0
    adams = [TableAdam(table) for name, table in learner.tables().items() if phase.changes(name)]
    dense = torch.optim.Adam([p for p in learner.parameters() if p.requires_grad], lr=lr, betas=BETAS, eps=EPS)
    for number, batch in enumerate(batches):
        if number == 1:
            began = time.perf_counter()
        loss_of(learner, batch, number / len(batches), detached).backward()  # type: ignore[no-untyped-call]
        dense.step()
        dense.zero_grad(set_to_none=True)
        for adam in adams:
            found = adam.table.gradient()
            if found is not None:
                adam.step(*found, lr)
    return (time.perf_counter() - began) / (len(batches) - 1)


def in_turn(learner: Cascade, batches: list[Batch], batch: int, threads: int, first: bool) -> tuple[float, float]:
    """Return the seconds per step of the loop and of bare steps; `first` says which is measured first."""
    steps = len(batches) - 1
    loop = by_loop(learner, batch, steps, threads) if first else 0.0
    alone = bare(learner, batches, learner.phases[0].lr, threads)
    return loop or by_loop(learner, batch, steps, threads), alone


def throughput(threads: int, rounds: int, steps: int) -> list[dict[str, Any]]:
    """Compare the loop with bare steps."""
    corpus = longtail.read("debian-related")
    _native.set_threads(threads)
    print(f"debian-related, {threads} threads, {rounds} rounds of {steps} steps")
    print("| phase | loop, docs/s | bare steps, docs/s | share | |\n| --- | --- | --- | --- | --- |")
    rows = []
    for name, settings in SETTINGS.items():
        learner = learner_of(name, WARM, corpus.train, corpus.labels)
        phase, batch = learner.phases[0], settings["batch"]
        by_loop(learner, batch, 5, threads)  # warms up, and selects the trainable parameters
        batches = batches_of(learner, batch, steps + 1)
        pairs = [in_turn(learner, batches, batch, threads, number % 2 == 0) for number in range(rounds)]
        loop, alone = (batch / statistics.median(pair[i] for pair in pairs) for i in (0, 1))
        share = statistics.median(pair[1] / pair[0] for pair in pairs)
        verdict = "reached" if share >= LEAST_SHARE else "NOT reached"
        print(f"| {name}, {phase.name} | {loop:,.0f} | {alone:,.0f} | {share:.1%} | {verdict} |", flush=True)
        rows.append({"bench": "throughput", "recipe": name, "loop": loop, "bare": alone, "share": share})
    return rows


def synthetic(N: int, rng: np.random.Generator) -> Corpus:
    """Return points and labels whose texts are random words."""
    X, Z = draw(rng, N, V - 2, WORDS), draw(rng, LABELS, V - 2, SHORT)
    Y = draw(rng, N, LABELS, EACH)
    for part in (X, Z):
        part.data /= np.sqrt(np.repeat(np.diff(part.indptr), np.diff(part.indptr)))
    wide = [sp.csr_matrix((part.data, part.indices + 2, part.indptr), (part.shape[0], V)) for part in (X, Z)]
    return Corpus(Bags.of(wide[0]), Y, None, wide[1])


def sequences_of(bags: Bags, length: int = 32) -> Sequences:
    """Return the words of bags, one bag per row, padded with 0."""
    counts = bags.ptr.diff()
    rows = torch.repeat_interleave(torch.arange(len(bags)), counts)
    places = torch.arange(len(bags.words)) - bags.ptr[:-1][rows]
    words = torch.zeros(len(bags), length, dtype=torch.int32)
    fits = places < length
    words[rows[fits], places[fits]] = bags.words[fits].int()
    return Sequences(words)


def large(name: str, N: int, rng: np.random.Generator) -> Cascade:
    """Build a network with 1.3 M labels; clusters and shortlists are random too."""
    corpus = synthetic(N, rng)
    tree = {
        "order": rng.permutation(LABELS).astype(np.int32),
        "clusters": np.linspace(0, LABELS, CLUSTERS + 1).astype(np.int64),
    }
    E = Table.random(V, D, D**-0.5)
    if name == "decaf":
        last = Phase("labels", 1, 4e-3, levels=(1,), trains=("encoder.residuals.label", "levels.1"))
        shallow = Shallow(corpus, E, [last], ShallowShape("decaf", CLUSTERS, 100, 0.5, 0))
        shallow.build(Phase("meta", 1, 4e-3), tree)
        shallow.build(last, {"clusters": rng.integers(0, CLUSTERS, (N, 100), dtype=np.int32)})
        return shallow
    tokens = sequences_of(corpus.tokens)
    corpus = Corpus(tokens, corpus.Y)
    shape = JointShape(CLUSTERS, 1140, 0.3, 0.0, 0, sp.csr_matrix((LABELS, V), dtype=np.float32))
    encoder = SequenceEncoder(E, Inception(D, 32, width=D))
    joint = Joint(corpus, encoder, [Phase("joint", 1, 5e-3, levels=(0, 1))], shape)
    joint.build(joint.phases[0], tree)
    return joint


def measure(name: str, N: int, steps: int, batch: int, threads: int) -> dict[str, Any]:
    """Measure memory and time of one system, in this process, which does nothing else."""
    _native.set_threads(threads)
    learner = large(name, N, np.random.default_rng(0))
    gc.collect()
    built = peak_gb()
    by_loop(learner, batch, 2, threads)
    seconds = by_loop(learner, batch, steps, threads)
    row = {"bench": "memory", "recipe": name, "labels": LABELS, "dimensions": D, "clusters": CLUSTERS, "points": N}
    return row | {"steps": steps, "batch": batch, "seconds a step": seconds, "built GB": built, "peak GB": peak_gb()}


def memory(N: int, steps: int, batch: int, threads: int) -> list[dict[str, Any]]:
    """Measure both systems, one after the other."""
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
    """Measure how long saved models take per text."""
    corpus = longtail.read("debian-related")
    texts = corpus.test.texts[: max(singles, 4096)]
    print(f"debian-related, {threads} threads, {singles} texts one at a time, {len(texts):,} at once")
    print("| model | one text: p50, ms | p99, ms | texts/s |\n| --- | --- | --- | --- |")
    rows = []
    for name, settings in SETTINGS.items():
        made = longtail.recipe(name, **settings, steps=60).train(corpus.train, corpus.labels, Run(threads=threads))
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
    """Return the seconds to predict five labels for each text."""
    began = time.perf_counter()
    model.predict(texts, 5)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("throughput", "memory", "latency"), help="one of the three")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the throughput run (default 5)")
    parser.add_argument(
        "--steps", type=int, default=40, help="steps per round; the memory run makes half as many (default 40)"
    )
    parser.add_argument("--points", type=int, default=300_000, help="points of the memory run (default 300,000)")
    parser.add_argument("--batch", type=int, default=256, help="batch size of the memory run (default 256)")
    parser.add_argument("--singles", type=int, default=500, help="texts of the latency run (default 500)")
    parser.add_argument("--json", type=Path, help="append the figures to this file, a line each")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.points, args.steps, args.batch, args.threads)))
        return
    rows = []
    if args.only in (None, "throughput"):
        rows += throughput(args.threads, args.rounds, args.steps)
    if args.only in (None, "memory"):
        rows += memory(args.points, args.steps // 2, args.batch, args.threads)
    if args.only in (None, "latency"):
        rows += latency(args.threads, args.singles)
    if args.json:
        with args.json.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
