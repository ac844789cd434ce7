"""Evaluates all predictions with one evaluator, and compares figures with the targets."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import longtail
from linear.prepare import KS
from linear.systems import SYSTEMS
from longtail.data.dataset import Dataset
from longtail.evidence.predictions import in_order
from longtail.metrics import compare, evaluate

SCORES = tuple(f"{name}@{k}" for name in ("P", "PSP") for k in KS)
SINGLE = ("pecos tfn", "pecos tfn+man", "omikuji parabel", "omikuji bonsai", "napkinxc plt")
Figures = dict[str, float]


class Bar(NamedTuple):
    """One of our figures compared with a peer's, or with the best of several peers.

    `kind`: "faster" is theirs / ours of a time, "more" ours / theirs, "share" ours / theirs where less is better,
    "points" ours − theirs. `limits` by corpus; "" for any other.
    """

    what: str
    ours: str
    theirs: tuple[str, ...]
    key: str
    kind: str
    limits: dict[str, float]


def pairs(what: str, key: str, kind: str, limits: dict[str, float]) -> list[Bar]:
    """The same target for both kinds of negatives."""
    return [Bar(f"{what}, {n}", f"longtail {n}", (f"pecos {n}",), key, kind, limits) for n in ("tfn", "tfn+man")]


BARS = [
    *pairs("training", "train s", "faster", {"debian-related": 5, "": 4}),
    *(bar for k in KS for bar in pairs(f"P@{k}", f"P@{k}", "points", {"": -0.2})),
    *pairs("batch prediction", "docs/s", "more", {"": 3}),
    Bar("single document p50, documented call", "longtail tfn", SINGLE, "p50 µs", "share", {"": 1 / 3}),
    Bar("single document p50, compiled call", "longtail tfn", SINGLE, "core p50 µs", "share", {"": 1 / 3}),
    *pairs("model on disk", "model MB", "share", {"": 0.5}),
    *pairs("peak memory while training", "peak MB", "share", {"": 1}),
    Bar("TF-IDF, fit and transform", "longtail tfidf", ("sklearn tfidf",), "train s", "faster", {"": 8}),
]
CHOSEN = ("longtail chosen", "longtail chosen words")  # the second has other features: not part of the targets
ENSEMBLE = "omikuji parabel"  # the best linear peer
QUERIES = {"": "", "core_": "core ", "text_": "text "}
TITLES = {  # what is measured, as the table calls it
    "trained_mb": "peak MB",
    "loaded_mb": "loaded MB",
    "model_mb": "model MB",
    **{f"{key}p{n}_us": f"{title}p{n} µs" for key, title in QUERIES.items() for n in (50, 99)},
}


def measured(outcome: dict[str, Any]) -> Figures:
    """Return what a process measured, in the order and with the titles of the table."""
    figures = {"train s": outcome["seconds"]["train"]}
    if "points" in outcome:
        figures["docs/s"] = outcome["points"] / outcome["seconds"]["predict"]
    return figures | {title: outcome[key] for key, title in TITLES.items() if key in outcome}


def judged(corpus: longtail.Corpus, system: str, found: np.ndarray, folder: Path) -> Figures:
    """Return P@k and PSP@k of saved predictions, filter pairs removed, with the propensities of the corpus."""
    data, labels = corpus.test, corpus.labels
    if SYSTEMS[system].space == "slice":
        data, labels = sliced(data, labels, np.load(folder / "slice.npy"))
    scores = evaluate(in_order(found, labels), data.Y, labels, ks=KS, ignore=data.ignore).scores
    return {name: scores[name] for name in SCORES}


def sliced(data: Dataset, labels: longtail.Labels, some: np.ndarray) -> tuple[Dataset, longtail.Labels]:
    """Return some labels only, in their order."""
    columns = np.full(len(labels), -1)
    columns[some] = np.arange(len(some))
    texts = None if labels.texts is None else labels.texts.take(some)
    few = replace(labels, keys=labels.keys.take(some), texts=texts, counts=labels.counts[some], removed=None)
    return data.with_labels(columns, len(some)), few


def paired(corpus: longtail.Corpus, ensemble: list[np.ndarray], chosen: list[np.ndarray]) -> dict[str, Any]:
    """Paired bootstrap of P@k, ours − theirs, over the test points; runs of a system are averaged point by point."""
    a, b = ([in_order(found, corpus.labels) for found in runs] for runs in (ensemble, chosen))
    names = [f"P@{k}" for k in KS]
    found = compare(a, b, corpus.test.Y, corpus.labels, ks=KS, ignore=corpus.test.ignore, metrics=names)
    return found.to_json()


def middle(runs: list[Figures]) -> Figures:
    """Return the median of each figure."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def figures_table(title: str, figures: dict[str, Figures]) -> str:
    """Return a table with one line for each system."""
    columns = list(dict.fromkeys(key for row in figures.values() for key in row))
    lines = [f"| {title} | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    for system, row in figures.items():
        lines.append(f"| {system} | {' | '.join(number(row.get(key)) for key in columns)} |")
    return "\n".join(lines)


def bars_table(corpus: str, figures: dict[str, Figures]) -> str:
    """Return a table of all targets with the results."""
    lines = ["| figure | longtail | peer | | ratio | bar | met |", "| --- |" + " --- |" * 6]
    missing = []
    for bar in BARS:
        rivals = {name: figures[name][bar.key] for name in bar.theirs if bar.key in figures.get(name, {})}
        if bar.key not in figures.get(bar.ours, {}) or not rivals:
            missing.append(bar.what)
            continue
        least = bar.kind in ("faster", "share")  # for times and sizes, the smallest is the best
        best = (min if least else max)(rivals, key=lambda name: rivals[name])
        ours, theirs = figures[bar.ours][bar.key], rivals[best]
        limit = bar.limits.get(corpus, bar.limits[""])
        reached, wanted, met = hold(bar.kind, ours, theirs, limit)
        if bar.key == "model MB" and met and not equal_scores(figures[bar.ours], figures[best]):
            wanted, met = f"{wanted} at equal P@k", False
        cells = (bar.what, number(ours), number(theirs), best, reached, wanted, "yes" if met else "no")
        lines.append(f"| {' | '.join(cells)} |")
    if missing:
        lines += ["", f"not run: {'; '.join(missing)}"]
    return "\n".join(lines)


def hold(kind: str, ours: float, theirs: float, limit: float) -> tuple[str, str, bool]:
    """Return the result, the target, and whether it is met."""
    if kind == "points":
        return f"{ours - theirs:+.2f}", f"≥ {limit:+.1f}", ours - theirs >= limit
    if kind == "share":
        return f"{ours / theirs:.2f}", f"≤ {limit:.2f}", ours / theirs <= limit
    ratio = theirs / ours if kind == "faster" else ours / theirs
    return f"{ratio:.1f}×", f"≥ {limit:g}×", ratio >= limit


def equal_scores(ours: Figures, theirs: Figures) -> bool:
    """Whether no P@k is lower by more than 0.2."""
    return all(ours[f"P@{k}"] >= theirs[f"P@{k}"] - 0.2 for k in KS)


def ratios_table(figures: dict[str, Figures]) -> str:
    """Return how many times as much each peer takes (for speed: as little) as longtail tfn, +man, or the flat slice."""
    keys = ("train s", "docs/s", "p50 µs", "p99 µs", "peak MB", "model MB", *SCORES)
    lines = [f"| against longtail | {' | '.join(keys)} |", "| --- |" + " --- |" * len(keys)]
    for system, row in figures.items():
        kind = "flat slice" if SYSTEMS[system].space == "slice" else "tfn+man" if system.endswith("man") else "tfn"
        ours = figures.get(f"longtail {kind}")
        if system.startswith("longtail") or ours is None or "P@1" not in row:
            continue
        cells = []
        for key in keys:
            if key in SCORES:
                cells.append(f"{row[key] - ours[key]:+.2f}")
            else:
                cells.append(f"{ours[key] / row[key] if key == 'docs/s' else row[key] / ours[key]:.1f}×")
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def paired_table(system: str, rows: list[dict[str, Any]]) -> str:
    """Return the differences with their intervals; the target is met unless the whole interval is below zero."""
    lines = [f"| {system} − {ENSEMBLE} | theirs | ours | difference | 95 % | bar | met |", "| --- |" + " --- |" * 6]
    for row in rows:
        met = "no" if row["high"] < 0 else "yes, ahead" if row["low"] > 0 else "yes, not separable"
        values = f"{row['a']:.2f} | {row['b']:.2f} | {row['difference']:+.2f} | {row['low']:+.2f} … {row['high']:+.2f}"
        lines.append(f"| {row['metric']} | {values} | not below 0 | {met} |")
    return "\n".join(lines)


def number(value: Any) -> str:
    """Return a number with about three digits; empty for a missing figure."""
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
