"""Transformer cascades: what their training loop costs, how many places are pads, how fast texts are embedded.

    python bench/fine_tuning.py [--only step | padding | embedding] [--corpus FOLDER] [--recipe lightxml cascadexml]
        [--length 48] [--threads 2] [--rounds 3] [--steps 8] [--json FILE]

- step: documents a second of the training loop, and of nothing but forward and backward of transformers' own model on
  the same batches in the same chunks. The bar: the loop reaches 85 % of it.
- padding: the share of places that are pads in an epoch of training: as the recipes cut batches, and with shuffled
  batches padded to their longest text. The bar: 10 %.
- embedding: texts a second into vectors (prediction, and the features of rankers), by torch and ONNX Runtime, float32,
  bfloat16 and int8; and how near the vectors are to torch's float32. docs/decisions/embedding-speed.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cascade import Timed
from dual import LEAST_SHARE, Chunk, bare_model, bare_seconds, in_chunks, in_turn, verdict
from transformer_serving import Quantised, unit

import longtail
from longtail._native import set_threads
from longtail.cascade import parts
from longtail.core.run import Run
from longtail.encoders.specials import chunk_sizes
from longtail.encoders.transformer import CPU_CHUNK
from longtail.encoders.transformer_onnx import OnnxLayers
from longtail.encoders.transformer_served import TorchLayers, TransformerFeatures
from longtail.train.loop import Loop
from longtail.train.settings import LoopParameters

MOST_PADS = 0.10
Rows = list[dict[str, Any]]


def learner_of(name: str, corpus: Any, args: argparse.Namespace) -> tuple[Any, parts.Cascade]:
    """A recipe's network in its small preset, ready for its first step."""
    recipe: Any = longtail.recipe(name, preset="small", length=args.length)
    learner: parts.Cascade = recipe.network(recipe.read(corpus.train, corpus.labels, Run(threads=args.threads)), 0)
    loop = Loop(learner, LoopParameters(), Run(threads=args.threads))
    with loop.threads():
        loop.build(0)
    return recipe, learner


def placed(learner: parts.Cascade, points: torch.Tensor) -> Chunk:
    """The tokens of some points with special ones, and which of them are no pads."""
    encoder: Any = getattr(learner.encoder, "inner", learner.encoder)
    ids, mask = encoder.specials.place(learner.tokens.value.take(points).words.numpy(), encoder.length)
    return torch.from_numpy(ids), torch.from_numpy(mask)


def step(corpus: Any, args: argparse.Namespace) -> Rows:
    """The loop against the bare model on the same texts."""
    print(f"**Step**, {corpus.name}, {args.length} tokens, {args.threads} thread(s), median of {args.rounds} rounds\n")
    print("| recipe | docs/s of the loop | of the bare model | share | |\n| --- | ---: | ---: | ---: | --- |")
    rows = []
    for name in args.recipe:
        recipe, learner = learner_of(name, corpus, args)
        batches = Timed(learner, recipe.batch, args.steps, args.threads).batches()
        steps = [list(in_chunks(placed(learner, points), CPU_CHUNK)) for points in batches]
        model = bare_model(None)
        runs: dict[str, Callable[[], float]] = {
            "loop": lambda learner=learner, recipe=recipe: Timed(
                learner, recipe.batch, args.steps, args.threads
            ).seconds(),
            "bare": lambda model=model, steps=steps: bare_seconds(model, steps),
        }
        found = in_turn(runs, args.rounds)
        share = statistics.median(bare / loop for bare, loop in zip(found["bare"], found["loop"], strict=True))
        loop, bare = (recipe.batch / statistics.median(found[run]) for run in ("loop", "bare"))
        print(f"| `{name}` | {loop:,.1f} | {bare:,.1f} | {share:.1%} | {verdict(share >= LEAST_SHARE)} |", flush=True)
        rows.append({"bench": "step", "recipe": name, "loop": loop, "bare": bare, "share": share})
    return rows


def padding(corpus: Any, args: argparse.Namespace) -> Rows:
    """Pads among the places of an epoch."""
    print(f"**Padding**, {corpus.name}, {args.length} tokens, an epoch\n")
    print("| recipe | batch | pads | shuffled batches | |\n| --- | ---: | ---: | ---: | --- |")
    rows = []
    for name in args.recipe:
        recipe, learner = learner_of(name, corpus, args)
        everything = torch.arange(learner.points)
        lengths = placed(learner, everything)[1].sum(1).numpy()
        plan = learner.phases[0].plan
        own = pads(lengths, plan.order(learner, (0, 0, 0)), recipe.batch, CPU_CHUNK)
        plain = pads(lengths, np.random.default_rng(0).permutation(len(lengths)), recipe.batch, None)
        reached = verdict(own <= MOST_PADS)
        print(f"| `{name}` | {recipe.batch} | {own:.1%} | {plain:.1%} | {reached} |", flush=True)
        rows.append({"bench": "padding", "recipe": name, "pads": own, "shuffled": plain})
    return rows


def pads(lengths: Any, order: Any, batch: int, chunk: int | None) -> float:
    """The share of pads if batches run in chunks of so many places (None: in one)."""
    places = 0
    for first in range(0, len(order), batch):
        own = -np.sort(-lengths[order[first : first + batch]])
        start = 0
        for size in [len(own)] if chunk is None else chunk_sizes(own.tolist(), chunk):
            places += size * int(own[start])
            start += size
    return float(1 - lengths.sum() / places)


class Halved(TorchLayers):
    """The layers in torch, products in bfloat16."""

    def __call__(self, vectors: Any, mask: Any) -> dict[str, Any]:
        with torch.autocast("cpu", torch.bfloat16):
            return super().__call__(vectors, mask)


def embedding(corpus: Any, args: argparse.Namespace) -> Rows:
    """Texts a second of each way to run the layers."""
    _, learner = learner_of(args.recipe[0], corpus, args)
    encoder: Any = getattr(learner.encoder, "inner", learner.encoder)
    exported = encoder.export()
    tokens = learner.tokens.value.words[: args.texts].numpy()
    ways = {
        "torch": TorchLayers,
        "torch, bfloat16": Halved,
        "ONNX Runtime": OnnxLayers,
        "ONNX Runtime, int8": Quantised,
    }
    runs, vectors = {}, {}
    for name, make in ways.items():
        own = (exported.arrays, exported.meta)
        served = TransformerFeatures(*own, make(*own))
        feature = next(iter(served.widths))
        vectors[name] = unit(served.features(tokens)[feature])  # and a first run that does not count
        runs[name] = lambda served=served: seconds(lambda: served.features(tokens))
    one_by_one = TransformerFeatures(exported.arrays, exported.meta, TorchLayers(exported.arrays, exported.meta))
    runs["torch, shuffled batches of 32"] = lambda: seconds(
        lambda: [one_by_one.features(tokens[at : at + 32]) for at in range(0, len(tokens), 32)]
    )
    found = in_turn(runs, args.rounds)
    print(f"**Embedding** of {len(tokens):,} texts, {corpus.name}, {args.length} tokens, {args.threads} thread(s)\n")
    print("| way | texts/s | against torch | least cosine | mean cosine |\n| --- | ---: | ---: | ---: | ---: |")
    rows = []
    for name, times in found.items():
        rate = len(tokens) / statistics.median(times)
        ratio = statistics.median(base / own for base, own in zip(found["torch"], times, strict=True))
        alike = (vectors[name] * vectors["torch"]).sum(1) if name in vectors else np.ones(1)
        print(f"| {name} | {rate:,.0f} | {ratio:.2f} × | {alike.min():.4f} | {alike.mean():.4f} |", flush=True)
        rows.append({"bench": "embedding", "way": name, "texts/s": rate, "ratio": ratio, "cosine": float(alike.min())})
    return rows


def seconds(call: Callable[[], Any]) -> float:
    """Those of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


PARTS = {"step": step, "padding": padding, "embedding": embedding}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--corpus", default="debian-related", help="a folder, or a bundled corpus (default: %(default)s)"
    )
    parser.add_argument("--recipe", nargs="+", default=["lightxml", "cascadexml"])
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--texts", type=int, default=2000, help="texts that are embedded (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="append one line of JSON for each row")
    args = parser.parse_args()
    set_threads(args.threads)
    torch.set_num_threads(args.threads)
    corpus = longtail.read(args.corpus)
    for part in args.only:
        rows = PARTS[part](corpus, args)
        print()
        if args.json is not None:
            with args.json.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
