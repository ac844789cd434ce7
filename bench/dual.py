"""The dual engine: what its training loop costs, what it holds in memory, how soon it answers.

    python bench/dual.py [--only PART …] [--threads 2] [--rounds 5] [--model FOLDER | --untrained] [--json FILE]

Each part runs in a process of its own, in which BLAS has as many threads as everything else.

- step: `unidec` with a transformer on debian-related: documents a second of the training loop, and of nothing but
  forward and backward of transformers' own model on the same texts and label texts, which are in memory as tokens. Both
  take turns; medians. Once the bare model has the chunks that the encoder makes (the bar: the loop reaches 85 % of it),
  once all texts in one chunk and all labels in another, padded to the longest, as a plain script has it. The bare
  model's gradient of word vectors is sparse, as the loop's is: a dense one takes long, and would flatter the loop.
- static: `unidec --preset small`: documents a second, and the parts of a step, by timers around the calls.
- mining: negatives of N points among L labels, against what Faiss's examples do, exact and with lists. These leave no
  true labels out.
- large: 1.3 M labels × 256, tokens drawn at random: training steps, mining, prediction, in a process each. The bar:
  24 GB at the peak.
- latency: a model of debian-related, saved and loaded: one text at a time on one thread. The bar: DE's p50 within 1 ms.
- approximate: the approximate index against the exact one. The bar: at most 0.1 of P@1 lost at 10 times the queries a
  second.

The last two need a saved model (`--model`); without one they train it. `--untrained` is enough for latency.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from accelerate import Accelerator
from cascade import Timed
from graph import draw, peak_gb
from search import drawn, unit
from torch import Tensor

import longtail
from longtail import _native
from longtail.core.run import Run
from longtail.dual import parts
from longtail.dual.model import DualModel
from longtail.encoders.bag import Bags
from longtail.encoders.pretrained import quiet
from longtail.encoders.reader import CountReader
from longtail.encoders.source import encoder_files
from longtail.encoders.specials import chunk_sizes
from longtail.encoders.transformer import CPU_CHUNK
from longtail.metrics import depth
from longtail.search.index import Index, SearchSettings
from longtail.search.memory import Lookup
from longtail.search.mining import nearest_negatives
from longtail.train.loop import Loop, seed_everything
from longtail.train.optimise import Optimisers
from longtail.train.settings import LoopParameters

LEAST_SHARE, MOST_GB, MOST_MS, MOST_LOST, LEAST_RATIO = 0.85, 24.0, 1.0, 0.1, 10.0
CORPUS, BATCH, K = "debian-related", 1000, 5
NEGATIVES = 15  # mined for each point: three for each of five epochs, as recipes do
V, WORDS, SHORT, EACH = (
    30_522,
    20.0,
    5.0,
    5.0,
)  # of the large run: tokens, those of a text and a label, labels of a point
TASKS = ("steps", "refresh", "refresh, approximate", "prediction")  # of the large run
PROBES = (4, 8, 16, 32, 64)
INDEXES = {
    "exact, int8": SearchSettings(storage="int8"),
    "exact, float32": SearchSettings(),
    "approximate": SearchSettings(index="approximate", storage="int8"),
}
Rows = list[dict[str, Any]]


def verdict(reached: bool) -> str:
    return "reached" if reached else "NOT reached"


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of a call, and its result."""
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def learner_of(recipe: Any, points: int | None, threads: int) -> tuple[parts.Dual, float]:
    """The network of a recipe on debian-related (or its first points), after mining; and the seconds of that."""
    corpus: Any = longtail.read(CORPUS)
    run, data = Run(threads=threads), corpus.train.take(np.arange(min(points or len(corpus.train), len(corpus.train))))
    learner: parts.Dual = recipe.network(recipe.read(data, corpus.labels, run), 0)
    loop = Loop(learner, LoopParameters(), run)
    with loop.threads():
        seconds, _ = timed(lambda: loop.build(0))
    return learner, seconds


# --- step ------------------------------------------------------------------------------------------------------------

Chunk = tuple[Tensor, Tensor]  # tokens with special ones (b, T), and which of them are no pads


def encoded_texts(learner: parts.Dual, loop: Timed) -> list[list[Chunk]]:
    """What the encoder reads in each step of a loop: all texts, then all label texts of the pool."""
    encoder: Any = learner.encoder
    found = []
    for step, points in enumerate(loop.batches()):
        seed_everything(loop.run.seed, 0, step)
        _, pools = learner.batch(points)  # the first that a step draws, so that it is the pool of the loop
        both = learner.tokens.value.take(points), learner.label_tokens.value.take(pools.texts.labels)
        placed = [encoder.specials.place(tokens.words.numpy(), encoder.length) for tokens in both]
        found.append([(torch.from_numpy(ids), torch.from_numpy(mask)) for ids, mask in placed])
    return found


def in_chunks(texts: Chunk, places: int | None) -> Iterator[Chunk]:
    """Texts from long to short in chunks of so many places, as the encoder makes them, or all in one."""
    ids, mask = texts
    lengths, order = mask.sum(1).sort(descending=True, stable=True)
    sizes = [len(ids)] if places is None else chunk_sizes(lengths.tolist(), places)
    for own in order.split(sizes):
        T = int(mask[own].sum(1).max())
        yield ids[own, :T], mask[own, :T]


def bare_model(layers: int | None) -> torch.nn.Module:
    """The library's own model, without the layer on its first token, which nothing here reads.

    Gradients of word vectors are sparse, as the loop's are.
    """
    from transformers import AutoModel

    kept = {} if layers is None else {"num_hidden_layers": layers}
    with quiet():
        model: Any = AutoModel.from_pretrained(encoder_files(None, "this script").folder, **kept)
    model.pooler = None
    model.get_input_embeddings().sparse = True
    return model.train()


def bare_seconds(model: torch.nn.Module, steps: list[list[Chunk]]) -> float:
    """Those of a step that is forward and backward of these chunks, a mean over the tokens of each text between."""
    for step, chunks in enumerate(steps):
        if step == 1:
            began = time.perf_counter()
        model.zero_grad(set_to_none=True)
        found = []
        for ids, mask in chunks:
            hidden = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state  # (b, T, d)
            weight = mask.unsqueeze(2).float()
            found.append((hidden * weight).sum(1) / weight.sum(1))
        torch.cat(found).square().mean().backward()
    return (time.perf_counter() - began) / (len(steps) - 1)


def step(args: argparse.Namespace) -> Rows:
    """The loop against the bare model."""
    settings = {"layers": args.layers, "length": args.length, "batch": args.batch}
    recipe: Any = longtail.recipe("unidec", **settings)
    learner, _ = learner_of(recipe, args.points, args.threads)
    texts = encoded_texts(learner, Timed(learner, args.batch, args.steps, args.threads))
    pool = statistics.mean(len(labels[0]) for _, labels in texts)
    model = bare_model(args.layers)
    cuts = {name: [[c for t in own for c in in_chunks(t, size)] for own in texts] for name, size in CUTS.items()}
    runs: dict[str, Callable[[], float]] = {
        "training loop": lambda: Timed(learner, args.batch, args.steps, args.threads).seconds(),
        **{name: lambda own=own: bare_seconds(model, own) for name, own in cuts.items()},
    }
    found = in_turn(runs, args.rounds)
    told = ", ".join(f"{name}={value}" for name, value in settings.items())
    print(f"unidec with {told} on {CORPUS}; {pool:,.0f} labels in a pool; {about(args)} of {args.steps} steps")
    print("| | docs/s | the loop's share | |\n| --- | ---: | ---: | --- |")
    rows = []
    for name, seconds in found.items():
        share = statistics.median(one / loop for one, loop in zip(seconds, found["training loop"], strict=True))
        rate = args.batch / statistics.median(seconds)
        reached = verdict(share >= LEAST_SHARE) if name == "bare, same chunks" else ""
        print(f"| {name} | {rate:,.1f} | {share:.1%} | {reached} |")
        rows.append({"bench": "step", "run": name, "docs/s": rate, "share": share, "pool": pool, **settings})
    return rows


CUTS = {"bare, same chunks": CPU_CHUNK, "bare, one chunk": None}


def in_turn(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[Any]]:
    """What each run returns, once in every round; every other round goes backwards."""
    found: dict[str, list[Any]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in list(runs)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(runs[name]())
    return found


def about(args: argparse.Namespace) -> str:
    return f"{args.threads} threads, {args.rounds} rounds"


# --- static ----------------------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[type, str]] = {
    "drawing pools": (parts.Dual, "batch"),
    "encoder, forward": (parts.Dual, "encoded"),
    "heads, table and losses": (parts.Dual, "loss"),
    "backward": (Accelerator, "backward"),
    "optimisers": (Optimisers, "move"),
    "": (Loop, "step"),  # all of it
}


@contextmanager
def stopwatches(calls: dict[str, tuple[type, str]]) -> Iterator[dict[str, float]]:
    """Within this context, the seconds spent in each of these methods are added up."""
    spent = dict.fromkeys(calls, 0.0)

    def watched(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            seconds, result = timed(lambda: method(*given, **named))
            spent[name] += seconds
            return result

        return call

    with ExitStack() as stack:
        for name, (owner, method) in calls.items():
            stack.enter_context(patch.object(owner, method, watched(name, getattr(owner, method))))
        yield spent


def static(args: argparse.Namespace) -> Rows:
    """Documents a second of the small preset, and where the time goes."""
    recipe: Any = small()
    learner, mining = learner_of(recipe, args.points, args.threads)
    Timed(learner, recipe.batch, 3, args.threads).seconds()  # warms up
    rates, spent = [], dict.fromkeys(CALLS, 0.0)
    for _ in range(args.rounds):
        with stopwatches(CALLS) as own:
            rates.append(recipe.batch / Timed(learner, recipe.batch, args.steps, args.threads).seconds())
        spent = {name: seconds + own[name] for name, seconds in spent.items()}
    whole = spent.pop("")
    spent["the rest of the loop"] = whole - sum(spent.values())
    rate = statistics.median(rates)
    print(f"unidec --preset small on {CORPUS}, batch {recipe.batch}; {about(args)} of {args.steps} steps")
    print(f"{rate:,.0f} docs/s; mining before the first step: {mining:.1f} s for {learner.points:,} points\n")
    print("| part of a step | share of its time |\n| --- | ---: |")
    for name, seconds in spent.items():
        print(f"| {name} | {seconds / whole:.1%} |")
    shares = {name: seconds / whole for name, seconds in spent.items()}
    return [{"bench": "static", "docs/s": rate, "mining s": mining, "shares": shares}]


def small(**settings: Any) -> Any:
    """UniDEC's small preset."""
    recipe: Any = longtail.recipe("unidec")
    return longtail.recipe("unidec", **recipe.presets["small"] | settings)


# --- mining ----------------------------------------------------------------------------------------------------------


def faiss_example(labels: Any, queries: Any, kind: str, probes: int, threads: int) -> Any:
    """The k nearest as Faiss's tutorial finds them: make an index, (train it,) add, search."""
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.index_factory(labels.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    if not index.is_trained:
        index.train(labels)
        index.nprobe = probes
    index.add(labels)
    return index.search(queries, NEGATIVES)[1]


def mining(args: argparse.Namespace) -> Rows:
    """A refresh against the same search by Faiss alone."""
    N, L = args.queries, args.labels or 100_000
    labels, rng = drawn(L, args.width), np.random.default_rng(1)
    near = labels[rng.integers(0, L, N)]
    queries = unit(near + 0.7 * rng.standard_normal(near.shape, np.float32) / args.width**0.5)
    Y, lists = draw(rng, N, L, EACH), max(1, min(round(2 * L**0.5), L // 39))

    def ours(**settings: Any) -> Any:
        return nearest_negatives(queries, labels, NEGATIVES, Y, settings=SearchSettings(**settings))

    probes = args.probes
    calls: dict[str, Callable[[], Any]] = {
        "longtail, exact": ours,
        "Faiss, IndexFlatIP": lambda: faiss_example(labels, queries, "Flat", 0, args.threads),
        "longtail, approximate": lambda: ours(index="approximate", probes=probes),
        "Faiss, IVF, Flat": lambda: faiss_example(labels, queries, f"IVF{lists},Flat", probes, args.threads),
    }
    found = in_turn({name: lambda call=call: timed(call) for name, call in calls.items()}, args.rounds)
    exact = {name: found[f"{name}, {kind}"][0][1] for name, kind in (("longtail", "exact"), ("Faiss", "IndexFlatIP"))}
    print(f"the {NEGATIVES} nearest of {L:,} labels × {args.width} for {N:,} points; {about(args)};", end=" ")
    print(f"{lists} lists, {probes} probes; building the index is part of the time\n")
    print("| | s | longtail's time / Faiss's | recall |\n| --- | ---: | ---: | ---: |")
    rows: Rows = []
    for name, own in found.items():
        kind = "exact" if name in ("longtail, exact", "Faiss, IndexFlatIP") else "lists"
        ratios = [a[0] / b[0] for a, b in zip(*[found[n] for n in PAIRS[kind]], strict=True)]
        ratio = f"{statistics.median(ratios):.2f}" if name.startswith("longtail") else ""
        recall, seconds = recall_of(own[0][1], exact[name.split(",")[0]]), statistics.median(s for s, _ in own)
        print(f"| {name} | {seconds:.1f} | {ratio} | {recall:.4f} |")
        rows.append({"bench": "mining", "system": name, "s": seconds, "ratio": ratio, "recall": recall, "N": N, "L": L})
    return rows


PAIRS = {
    "exact": ("longtail, exact", "Faiss, IndexFlatIP"),
    "lists": ("longtail, approximate", "Faiss, IVF, Flat"),
}


def recall_of(found: Any, exact: Any) -> float:
    """The share of what exact search found (N, k) that was found."""
    hits = [np.isin(a, b).sum() for a, b in zip(found, exact, strict=True)]
    return float(np.sum(hits) / exact.size)


# --- large -----------------------------------------------------------------------------------------------------------


def random_points(N: int, L: int) -> parts.Points:
    """N points and L labels whose tokens are drawn at chances that fall as 1/rank."""
    rng = np.random.default_rng(0)
    X, Z, Y = draw(rng, N, V, WORDS), draw(rng, L, V, SHORT), draw(rng, N, L, EACH)
    return parts.Points(CountReader("words", range(V)), Bags.of(X), X, Y, None, Bags.of(Z), Z)


def large_task(task: str, args: argparse.Namespace) -> dict[str, Any]:
    """Memory and time of one of TASKS in this process, which does nothing else."""
    N, L = args.queries, args.labels or 1_300_000
    recipe = small(reader="words", vectors="learnt", dimension=args.width, share=0.5)
    points = random_points(N, L)
    torch.manual_seed(0)
    learner = recipe.network(points, 0)
    run = {"steps": large_steps, "prediction": large_prediction}.get(task, large_refresh)
    told = run(task, recipe, learner, args)
    return {"bench": "large", "task": task, "labels": L, "points": N, "peak GB": peak_gb(), **told}


def large_steps(_: str, recipe: Any, learner: parts.Dual, args: argparse.Namespace) -> dict[str, Any]:
    """Steps with drawn negatives. All moments are written to first, as after a training that touched every row."""
    rng = np.random.default_rng(1)
    mined = rng.integers(0, learner.data.labels, (learner.points, NEGATIVES), dtype=np.int32)
    loop = Loop(learner, LoopParameters(batch=recipe.batch, steps=args.steps + 1), Run(threads=args.threads))
    loop.structures = {loop.phases[0].name: {"negatives": mined}}
    with loop.threads():
        loop.phases[0].build(learner, loop.structures[loop.phases[0].name])
        loop.open(0)
        for moment in loop.optimisers.state().values():
            moment.mul_(1)
        loop.step(0, 0)
        seconds, _ = timed(lambda: [loop.step(0, number + 1) for number in range(args.steps)])
    return {"s": seconds / args.steps, "of": f"a step of {recipe.batch} points"}


def large_refresh(task: str, recipe: Any, learner: parts.Dual, args: argparse.Namespace) -> dict[str, Any]:
    """All texts and labels encoded, and negatives searched."""
    exact = task == "refresh"
    settings = SearchSettings(index="exact" if exact else "approximate", probes=args.probes)

    def search(*given: Any) -> Any:
        return nearest_negatives(*given, settings=settings)

    with patch.object(parts, "nearest_negatives", search):
        seconds, _ = timed(lambda: recipe.mined(learner))
    return {"s": seconds, "of": f"{learner.points:,} points"}


def large_prediction(_: str, recipe: Any, learner: parts.Dual, args: argparse.Namespace) -> dict[str, Any]:
    """The end of a training (a model is made while the network is there) and a batch of texts, given as tokens."""
    recipe.build_table(learner, {})
    labels = longtail.Labels.of(map(str, range(learner.data.labels)))
    model = recipe.model(learner.data, labels, [learner])
    rows = draw(np.random.default_rng(2), BATCH, V, WORDS)
    model.ranked(rows[:1], K, model.share, model.index)  # builds the index
    seconds, _ = timed(lambda: model.ranked(rows, K, model.share, model.index))
    one, _ = timed(lambda: model.ranked(rows[:1], K, model.share, model.index))
    return {"s": seconds, "of": f"{BATCH:,} texts; one text {1000 * one:.0f} ms"}


def large(args: argparse.Namespace) -> Rows:
    """Each task in a process of its own."""
    L = args.labels or 1_300_000
    print(f"unidec --preset small with {L:,} labels × {args.width}, {args.queries:,} points; {args.threads} threads")
    print("| | peak GB | s | of | |\n| --- | ---: | ---: | --- | --- |")
    rows = []
    for task in TASKS:
        row = json.loads(in_process(args, "large", args.threads, ["--task", task], subprocess.PIPE).splitlines()[-1])
        gb = row["peak GB"]
        print(f"| {task} | {gb:.1f} | {row['s']:.2f} | {row['of']} | {verdict(gb <= MOST_GB)} |", flush=True)
        rows.append(row)
    return rows


# --- latency, approximate --------------------------------------------------------------------------------------------


def a_model(args: argparse.Namespace, corpus: Any) -> DualModel:
    """The model of `--model`, or one trained now; with `--untrained`, one after a single step."""
    if args.model is not None:
        model = longtail.load(args.model)
    elif args.untrained:
        model = small(steps=1, negatives=0, share=0.5).train(corpus.train, corpus.labels, Run(threads=args.threads))
    else:
        model = small().fit(corpus, Run(threads=args.threads))
    if not isinstance(model, DualModel):
        raise SystemExit(f"a model of a dual encoder is needed; this one is of recipe {model.recipe.name!r}")
    return model


def variant(model: DualModel, share: float, search: SearchSettings, remembers: bool = False) -> DualModel:
    """The same model with another share of classifiers and another index; with its memory, or without."""
    memory, lookup = (model.memory, model.lookup) if remembers else (None, None)
    made = model.recipe, model.labels, model.reader, model.encoder, model.vectors, share, search
    return DualModel(*made, about=model.about, memory=memory, lookup=lookup)


def latency(args: argparse.Namespace) -> Rows:
    """One text at a time, for each head and index."""
    corpus: Any = longtail.read(CORPUS)
    base = a_model(args, corpus)
    full = base if base.memory is not None else base.remember(corpus.train.texts, corpus.train.truth())
    counted = full.lookup if full.lookup.share < 1 else Lookup(0.8, *full.lookup[1:])
    full = full.changed_to(full.memory, counted)
    both = base.share if 0 < base.share < 1 else 0.5
    heads = {"DE": (0.0, False), "CLF": (1.0, False), f"both, share {both:g}": (both, False)}
    heads |= {"DE, memory": (0.0, True), "both, memory": (both, True)}
    points = len(full.memory or ())
    print(f"{len(base.labels):,} labels, {points:,} remembered points, one thread, {args.singles} texts of {CORPUS}")
    print("| head | index | p50, ms | p99, ms | |\n| --- | --- | ---: | ---: | --- |")
    rows = []
    texts = [[text] for text in corpus.test.texts[: args.singles]]
    for head, (share, remembers) in heads.items():
        for name, search in INDEXES.items():
            p50, p99 = percentiles(variant(full, share, search, remembers), texts)
            reached = verdict(p50 <= MOST_MS) if head == "DE" else ""
            print(f"| {head} | {name} | {p50:.2f} | {p99:.2f} | {reached} |", flush=True)
            rows.append({"bench": "latency", "head": head, "index": name, "p50 ms": p50, "p99 ms": p99})
    return rows


def percentiles(model: DualModel, texts: list[list[str]]) -> tuple[float, float]:
    """Milliseconds from text to labels that half of the texts take at most, and 99 % of them; saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        loaded = longtail.load(Path(folder) / "model")
        for text in texts[:50]:
            loaded.predict(text, K)
        each = [1000 * timed(lambda text=text: loaded.predict(text, K))[0] for text in texts]
    p50, p99 = np.percentile(each, (50, 99))
    return float(p50), float(p99)


def approximate(args: argparse.Namespace) -> Rows:
    """P@1 and queries a second of both indexes, by number of probes."""
    corpus: Any = longtail.read(CORPUS)
    model = a_model(args, corpus)
    test, k = corpus.test, depth((1,), corpus.test.ignore)
    columns = np.ascontiguousarray(model.vectors[:, model.columns(model.share)])
    queries = model.queries(model.reader.read(test.texts), model.share)[: BATCH * args.rounds]
    lists = INDEXES["approximate"].build(columns)
    indexes: dict[str, tuple[int, Index]] = {"exact": (0, INDEXES["exact, int8"].build(columns))}
    indexes |= {f"approximate, {probes} probes": (probes, probing(lists, probes)) for probes in PROBES}
    rates = in_turn({name: lambda own=own: batch_rate(own[1], queries) for name, own in indexes.items()}, args.rounds)
    print(f"{len(columns):,} labels × {columns.shape[1]}, share {model.share:g}, test part of {CORPUS}; {about(args)}")
    print(f"queries a second: the {K} best, {BATCH:,} at a time, encoded before\n")
    print("| index | P@1 | lost | queries/s | ratio | |\n| --- | ---: | ---: | ---: | ---: | --- |")
    rows: Rows = []
    for name, (probes, index) in indexes.items():
        ranking = model.ranked(model.reader.read(test.texts), k, model.share, index)
        p1 = longtail.evaluate(ranking, test.Y, model.labels, ks=(1,), ignore=test.ignore)["P@1"]
        lost = rows[0]["P@1"] - p1 if rows else 0.0
        rate = statistics.median(rates[name])
        ratio = statistics.median(a / b for a, b in zip(rates[name], rates["exact"], strict=True))
        reached = verdict(lost <= MOST_LOST and ratio >= LEAST_RATIO) if probes else ""
        print(f"| {name} | {p1:.2f} | {lost:.2f} | {rate:,.0f} | {ratio:.1f} | {reached} |", flush=True)
        rows.append({"bench": "approximate", "index": name, "P@1": p1, "lost": lost, "queries/s": rate, "ratio": ratio})
    return rows


def probing(index: Any, probes: int) -> Index:
    """The same lists, of which a query reads another number."""
    return type(index)(index.exact, index.lists, probes)


def batch_rate(index: Index, queries: Any) -> float:
    """Queries a second, BATCH at a time."""
    index.search(queries[:BATCH], K)
    seconds, _ = timed(lambda: [index.search(queries[i : i + BATCH], K) for i in range(0, len(queries), BATCH)])
    return len(queries) / seconds


# --- processes -------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[argparse.Namespace], Rows]] = {
    "step": step,
    "static": static,
    "mining": mining,
    "large": large,
    "latency": latency,
    "approximate": approximate,
}


def in_process(args: argparse.Namespace, part: str, threads: int, more: list[str], out: Any = None) -> str:
    """Run a part of this script again, in a process whose libraries all have so many threads."""
    limits = {f"{kind}_NUM_THREADS": str(threads) for kind in ("OMP", "OPENBLAS", "MKL")}
    command = [sys.executable, __file__, *args.given, "--only", part, "--threads", str(threads), "--child", *more]
    done = subprocess.run(command, stdout=out, text=True, check=True, env=os.environ | limits)
    return done.stdout or ""


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="PART", help="some parts"
    )
    parser.add_argument("--threads", type=int, default=2, help="of all parts but latency, which has one (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="in which what is compared takes turns (default 5)")
    parser.add_argument("--steps", type=int, default=20, help="of a round of step, static and large (default 20)")
    parser.add_argument("--layers", type=int, default=2, help="of the transformer of step (default 2)")
    parser.add_argument("--length", type=int, default=24, help="tokens of its texts (default 24)")
    parser.add_argument("--batch", type=int, default=256, help="points of its steps (default 256)")
    parser.add_argument("--points", type=int, help="training points of step and static (default: all)")
    parser.add_argument("--queries", type=int, help="points of mining (100,000) and large (20,000)")
    parser.add_argument("--labels", type=int, help="of mining (100,000) and large (1,300,000)")
    parser.add_argument("--width", type=int, default=256, help="dimensions of mining and large (default 256)")
    parser.add_argument("--probes", type=int, default=32, help="lists that approximate mining reads (default 32)")
    parser.add_argument("--model", type=Path, help=f"a saved model of {CORPUS}, for latency and approximate")
    parser.add_argument("--untrained", action="store_true", help="a model after one step, for latency")
    parser.add_argument("--singles", type=int, default=1000, help="texts of latency (default 1,000)")
    parser.add_argument("--json", type=Path, help="append the figures to this file, a line each")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.given = sys.argv[1:]
    return args


def main() -> None:
    args = parsed()
    if not args.child:
        for part in args.only:
            print(f"\n### {part}\n", flush=True)
            in_process(args, part, 1 if part == "latency" else args.threads, [])
        return
    (part,) = args.only
    args.queries = args.queries or (20_000 if part == "large" else 100_000)
    _native.set_threads(args.threads)
    torch.set_num_threads(args.threads)
    if args.task:
        print(json.dumps(large_task(args.task, args)))
        return
    rows = PARTS[part](args)
    if args.json:
        with args.json.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
