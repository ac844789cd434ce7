"""Chooses our settings on the validation part of a corpus: its own dev part, or a part split off from train.

    PYTHONPATH=bench python -m linear.choose CORPUS [matrices|words] [FILE]    # prints all settings tried; JSON to FILE

Each line of a grid is one training; if it does not depend on the beam (tfn), it is scored with each of BEAMS. One small
validation part and one tree say little (P@1 of debian-related changes by half a point between seeds), so each line is
tried with several seeds, each with another validation part and another tree. The best mean of P@1, P@3 and P@5 wins.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import longtail
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.metrics import depth, evaluate

SCORED = ("P@1", "P@3", "P@5")
SHOWN = (*SCORED, "PSP@1", "PSP@3", "PSP@5")
SEEDS = (0, 1, 2)
BEAMS = (10, 20)
BASE = {"name": "xr-linear", "min_texts": 2}
GRIDS: dict[str, tuple[dict[str, Any], ...]] = {
    "matrices": (  # the features that all systems get
        {},
        {"C": 0.5},
        {"leaf_size": 400, "C": 0.5},
        {"negatives": "tfn+man"},
        {"trees": 3},
        {"trees": 3, "C": 0.5},
        {"trees": 5, "C": 0.5},
        {"name": "bonsai", "C": 0.5},
    ),
    "words": (  # also our own features
        {"min_texts": 1, "trees": 3},
        {"ngrams": 2, "trees": 3},
        {"ngrams": 2, "trees": 3, "C": 0.5},
    ),
}


def choose(corpus: longtail.Corpus, grid: tuple[dict[str, Any], ...], seeds: tuple[int, ...] = SEEDS) -> dict[str, Any]:
    """The chosen `settings`, including the recipe's name and the beam, and the `table` of all settings tried."""
    found: dict[str, list[Row]] = {}  # by settings, a row for each seed
    for seed in seeds:
        split, run = corpus.with_validation(seed), Run(seed=seed)
        encoded: dict[tuple[int, int], tuple[Dataset, Dataset]] = {}
        for settings in (BASE | line for line in grid):
            words = settings.get("ngrams", 1), settings["min_texts"]
            if words not in encoded:
                encoded[words] = features(split, *words)
            for row in tried(settings, *encoded[words], split.labels, run):
                found.setdefault(json.dumps(row.settings), []).append(row)
    table = []
    for rows in found.values():
        scores = {name: float(np.mean([row.scores[name] for row in rows])) for name in SHOWN}
        mean = float(np.mean([scores[name] for name in SCORED]))
        took = float(np.mean([row.seconds for row in rows]))
        table.append({"settings": rows[0].settings, "mean": mean, **scores, "seconds": took})
    return {"settings": max(table, key=lambda row: row["mean"])["settings"], "table": table}


class Row(NamedTuple):
    """One training, scored with one beam."""

    settings: dict[str, Any]
    scores: dict[str, float]
    seconds: float


def features(split: longtail.Corpus, ngrams: int, min_texts: int) -> tuple[Dataset, Dataset]:
    """Return train and validation part as TF-IDF rows; the vocabulary comes from the train part only."""
    encoder, counts = Tfidf.fit(split.train.texts, TfidfParameters(ngrams=ngrams, min_texts=min_texts))
    return replace(split.train, x=encoder.weigh(counts)), replace(split.dev, x=encoder.encode(split.dev.texts))


def tried(settings: dict[str, Any], train: Dataset, dev: Dataset, labels: longtail.Labels, run: Run) -> list[Row]:
    """Return a row for each beam."""
    recipe = longtail.recipe(**settings)
    began = time.perf_counter()
    model = recipe.train(train, labels, run)
    took = time.perf_counter() - began
    rows = []
    for beam in BEAMS if getattr(recipe, "negatives", "tfn") == "tfn" else (recipe.beam,):
        model.recipe = replace(recipe, beam=beam)
        ranking = model.predict(dev.x, depth(ignore=dev.ignore))
        scores = evaluate(ranking, dev.Y, labels, ignore=dev.ignore).scores
        rows.append(Row(settings | {"beam": beam}, {name: scores[name] for name in SHOWN}, took))
    return rows


def main(name: str, grid: str = "matrices", file: str | None = None) -> None:
    found = choose(longtail.read(name), GRIDS[grid])
    if file:
        Path(file).write_text(json.dumps(found))
    names = [key for key in found["table"][0] if key != "settings"]
    print(f"| settings | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}")
    for row in sorted(found["table"], key=lambda row: -row["mean"]):
        told = ", ".join(f"{key} {value}" for key, value in row["settings"].items())
        print(f"| {told} | {' | '.join(f'{row[key]:.2f}' for key in names)} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
