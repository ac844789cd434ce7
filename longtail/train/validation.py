"""How good a model is on the validation part: the scores that every choice is based on."""

from __future__ import annotations

import numpy as np

from longtail.core.model import Model
from longtail.data.dataset import Dataset
from longtail.metrics import Report, depth, evaluate

CHOSEN_BY = ("P@1", "P@5", "PSP@1", "PSP@5")  # choices go by their mean, so that head and tail labels both count


def validate(model: Model, data: Dataset) -> Report:
    """All metrics of a model on points over its own labels."""
    ranking = model.predict(data.x, depth(ignore=data.ignore))
    return evaluate(ranking, data.Y, model.labels, ignore=data.ignore)


def chosen_by(report: Report) -> dict[str, float]:
    """The four scores that choices are made by, and their mean as "mean", in percent."""
    row = {name: round(report.scores[name], 3) for name in CHOSEN_BY}
    return row | {"mean": round(float(np.mean(list(row.values()))), 3)}
