"""Prints the README's table: recipes with default settings on a corpus, scored on test.

python bench/scores.py [CORPUS …]    # default: debian-related
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import longtail
from longtail.evidence.score import score

RECIPES = ("popular", "neighbours", "xr-linear", "parabel", "bonsai", "auto")  # dismec takes minutes
SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "C@5")


def main(names: list[str]) -> None:
    print(f"| corpus | recipe | {' | '.join(SHOWN)} | train s | texts/s |")
    print("| --- " * (len(SHOWN) + 4) + "|")
    for name in names or ["debian-related"]:
        corpus = longtail.read(name)
        for recipe in RECIPES:
            began = time.perf_counter()
            model = longtail.recipe(recipe).fit(corpus)
            trained = time.perf_counter() - began
            began = time.perf_counter()
            scored = score(model, corpus)
            rate = len(scored.data) / (time.perf_counter() - began)
            report = scored.report()
            scores = " | ".join(f"{report[metric]:.1f}" for metric in SHOWN)
            print(f"| {Path(name).name} | `{recipe}` | {scores} | {trained:.1f} | {rate:,.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
