"""Our settings, chosen on the validation part of a corpus: its own dev, or what is held out of train.

    PYTHONPATH=bench python -m linear.choose CORPUS      # prints the table of what was tried

Each line of GRID is a training; where that does not depend on the beam (tfn), it is scored with each of BEAMS. The best
mean of P@1, P@3 and P@5 wins.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

import longtail
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.metrics import depth, evaluate

SCORED = ("P@1", "P@3", "P@5")
BEAMS = (10, 20, 50)
BASE = {"recipe": "xr-linear", "min_texts": 2}
GRID: tuple[dict[str, Any], ...] = (
    {},
    {"C": 0.5},
    {"C": 2.0},
    {"prune": 0.02},
    {"negatives": "tfn+man"},
)


def choose(corpus: longtail.Corpus, run: Run, grid: tuple[dict[str, Any], ...] = GRID) -> dict[str, Any]:
    """`settings`, recipe name and beam among them, and the `table` they were chosen from."""
    split = corpus.with_validation(run.seed)
    encoded: dict[str, tuple[Dataset, Dataset]] = {}
    table = []
    for line in grid:
        settings = BASE | line
        words = {key: settings.get(key, 1) for key in ("ngrams", "min_texts")}
        if str(words) not in encoded:
            encoded[str(words)] = _encoded(split, words)
        train, dev = encoded[str(words)]
        table += _tried(settings, train, dev, split.labels, run)
    best = max(table, key=lambda row: row["mean"])
    return {"settings": best["settings"], "table": table, "points": len(split.dev)}


def _encoded(split: longtail.Corpus, words: dict[str, int]) -> tuple[Dataset, Dataset]:
    encoder, counts = Tfidf.fit(split.train.texts, TfidfParameters(**words))
    features = encoder.weigh(counts), encoder.encode(split.dev.texts)
    return tuple(replace(data, x=X) for data, X in zip((split.train, split.dev), features, strict=True))


def _tried(settings: dict[str, Any], train: Dataset, dev: Dataset, labels: Any, run: Run) -> list[dict[str, Any]]:
    """One row for each beam."""
    rows = []
    options = {key: value for key, value in settings.items() if key != "recipe"}
    recipe = longtail.recipe(settings["recipe"], **options)
    began = time.perf_counter()
    model = recipe.train(train, labels, run)
    took = time.perf_counter() - began
    beams = BEAMS if getattr(recipe, "negatives", "tfn") == "tfn" else (recipe.beam,)
    for beam in beams:
        model.recipe = replace(recipe, beam=beam)
        ranking = model.predict(dev.x, depth(ignore=dev.ignore))
        scores = evaluate(ranking, dev.Y, labels, ignore=dev.ignore).scores
        row = {name: scores[name] for name in (*SCORED, "PSP@1", "PSP@3", "PSP@5")}
        mean = float(np.mean([scores[name] for name in SCORED]))
        rows.append({"settings": settings | {"beam": beam}, "mean": mean, "seconds": took, **row})
    return rows


def main(name: str) -> None:
    found = choose(longtail.read(name), Run())
    print(f"{name}, {found['points']:,} validation points\n")
    names = [key for key in found["table"][0] if key != "settings"]
    print(f"| settings | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}")
    for row in sorted(found["table"], key=lambda row: -row["mean"]):
        told = ", ".join(f"{key} {value}" for key, value in row["settings"].items())
        print(f"| {told} | {' | '.join(f'{row[key]:.2f}' for key in names)} |")


if __name__ == "__main__":
    main(sys.argv[1])
