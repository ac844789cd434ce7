"""One training, and the runs that share it, in a process of its own.

`process.py` starts it as `python -m longtail.evidence.child`. The job comes as one line of JSON on standard input; the
outcome goes to the file that the job names. Standard input stays open. When it ends, the parent process is gone, and
this process ends too.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from longtail._native import set_threads
from longtail.core.errors import DataError, LongtailError
from longtail.core.model import Model
from longtail.core.recipe import Recipe, recipe
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.read import read
from longtail.evidence.machine import peak_bytes
from longtail.evidence.predictions import keep_predictions
from longtail.evidence.score import ScoredModel, part_of, score
from longtail.evidence.serving import served
from longtail.metrics import Report

DECIMALS = 4  # of a figure in percent: 12,000 test points move P@5 by 0.0017 at the least


def main() -> None:
    """Do the job and write down its outcome; an error is an outcome too."""
    job = orjson.loads(sys.stdin.buffer.readline())
    threading.Thread(target=end_with_parent, daemon=True).start()
    importlib.import_module("longtail.recipes")
    try:
        outcome = measure(job)
    except LongtailError as error:
        outcome = {"status": "failed", "error": str(error)}
    except MemoryError as error:
        outcome = {"status": "failed", "error": f"out of memory: {error or 'the data does not fit'}"}
    except Exception as error:
        traceback.print_exc()
        outcome = {"status": "failed", "error": f"a bug: {type(error).__name__}: {error}"}
    Path(job["out"]).write_bytes(orjson.dumps(outcome | peak_of_process()))


def end_with_parent() -> None:
    """Wait until standard input ends, then end this process."""
    while os.read(0, 1):
        pass
    os._exit(1)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Read, train once, then predict and score for each of the runs; returns the figures for their lines."""
    set_threads(job["threads"])
    if job["folder"] is not None and job["folder"] not in sys.path:  # of a recipe that another package offers
        sys.path.append(job["folder"])
    began = time.perf_counter()
    corpus = read(job["place"], **job["options"])
    if corpus.digest != job["digest"]:
        raise DataError(
            "the corpus has changed since the bench started", where=corpus.name, fix="start the bench again"
        )
    was_read = time.perf_counter()
    run, made = Run(seed=job["seed"], threads=job["threads"]), recipe(job["recipe"], **job["settings"])
    if job["checkpoints"] is not None and "resume" in made.supports:
        run = replace(run, folder=Path(job["checkpoints"]), resume=True)
    model = made.fit(replace(corpus, test=None), run)
    trained = time.perf_counter() + model.about.get("seconds_before", 0.0)  # of processes that were interrupted
    seconds = {"read": round(was_read - began, 3), "train": round(trained - was_read, 3)}
    told = [measured(model, corpus, run, job, seconds) for run in job["runs"]]
    peak = peak_of_process()  # before models are saved and loaded again
    _, test = part_of(corpus, "test")
    return {
        "status": "done",
        "runs": [
            own | peak | served(model.with_settings(**run["settings"]), test)
            for own, run in zip(told, job["runs"], strict=True)
        ],
    }


def peak_of_process() -> dict[str, float]:
    """The peak memory so far in MB; empty if the system does not tell."""
    peak = peak_bytes()
    return {} if peak is None else {"peak_mb": round(peak / 1e6, 1)}


def measured(
    model: Model, corpus: Corpus, run: dict[str, Any], job: dict[str, Any], seconds: dict[str, float]
) -> dict[str, Any]:
    """The figures of one run: the trained model with the settings that this run has after training."""
    began = time.perf_counter()
    model = model.with_settings(**run["settings"])
    scored = score(model, corpus, "test")
    predicted = time.perf_counter() - began
    keep_predictions(run["id"], scored)
    return {
        "seconds": seconds | {"predict": round(predicted, 3)},
        **figures(scored.report()),
        **shortlisted(model, scored),
        **curve(model.about),
        **chosen(model, recipe(job["recipe"], **job["settings"] | run["settings"])),
    }


def figures(report: Report) -> dict[str, Any]:
    """The metrics and the bins of label frequency, from head to tail."""
    bins = [asdict(row) for row in report.by_frequency]
    return {
        "scores": rounded(report.scores),
        "by_frequency": {"k": report.k, "bins": [rounded(row) for row in bins]},
        "points": report.points,
        "labels": report.labels,
    }


def shortlisted(model: Model, scored: ScoredModel) -> dict[str, Any]:
    """For models that score a shortlist of labels: the share of true labels on it, in percent.

    Also over labels with training examples alone, which a system can learn to put there; and of systems with more than
    two levels on each level below the first.
    """
    recall = getattr(model, "shortlist_recall", None)
    if recall is None:
        return {}
    found = {name: round(100 * share, DECIMALS) for name, share in recall(scored.data).items()}
    told: dict[str, Any] = {"shortlist_recall": found["all"], "shortlist_recall_seen": found["seen"]}
    by_level = [round(100 * share, DECIMALS) for share in model.recall_by_level(scored.data)]  # type: ignore[attr-defined]
    return told | ({"shortlist_recall_levels": by_level} if len(by_level) > 1 else {})


def curve(about: Mapping[str, Any]) -> dict[str, Any]:
    """The scores on the validation part after each epoch, for a network trained with `curve` or `patience`.

    Of several networks, the curve of the first.
    """
    rows = [row for row in about.get("training", []) if "validation" in row and row.get("network", 1) == 1]
    told = [{"phase": row["phase"], "epoch": row["epoch"], "step": row["step"]} for row in rows]
    if not rows:
        return {}
    return {"curve": [own | rounded(row["validation"]) for own, row in zip(told, rows, strict=True)]}


def rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with fractions rounded to DECIMALS."""
    return {name: round(value, DECIMALS) if isinstance(value, float) else value for name, value in values.items()}


def chosen(model: Model, asked: Recipe) -> dict[str, Any]:
    """The recipe and settings that a recipe such as `auto` has chosen; empty if they are the requested ones."""
    made = model.recipe
    if (made.name, made.changed()) == (asked.name, asked.changed()):
        return {}
    return {"chosen": {"recipe": made.name, "settings": made.changed()}}


if __name__ == "__main__":
    logging.getLogger("longtail").setLevel(logging.WARNING)
    main()
