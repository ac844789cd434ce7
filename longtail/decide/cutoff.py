"""Choosing a threshold: the best one for F1, one that reaches a precision, or one for a number of labels per text."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError, ParameterError, shorten
from longtail.metrics.pairs import Pairs

log = logging.getLogger("longtail")


@dataclass(frozen=True)
class Rule:
    """The goal of a cut-off: "f1"; "precision" of at least `value`; or on average `value` "labels" per text."""

    goal: Literal["f1", "precision", "labels"]
    value: float = 0.0

    def __str__(self) -> str:
        return self.goal if self.goal == "f1" else f"{self.goal}={self.value:.12g}"

    @classmethod
    def parse(cls, text: str, what: str = "cut_off") -> Rule | None:
        """Parse "f1", "precision=0.8", "labels=5" or "none" (gives None); `what` is the parameter's name in errors."""
        goal, equals, given = str(text).strip().partition("=")
        if not equals and goal == "none":
            return None
        if not equals and goal == "f1":
            return cls("f1")
        try:
            value = float(given)
        except ValueError:
            value = -1.0
        if goal == "precision" and 0 < value <= 1:
            return cls("precision", value)
        if goal == "labels" and 0 < value < float("inf"):
            return cls("labels", value)
        forms = "none, f1, precision=P with P above 0 and at most 1, or labels=N with N above 0"
        raise ParameterError(f"{what} must be {forms}; got {shorten(text)}")


class ThresholdCurve(NamedTuple):
    """The result of each threshold, from the highest down: `hits` (Σ y) among the `decisions` labels it keeps."""

    thresholds: NDArray[np.float32]
    hits: NDArray[np.float64]
    decisions: NDArray[np.int64]
    positives: int
    points: int


def curve_of(pairs: Pairs) -> ThresholdCurve:
    """Return the curve with every score that occurs as a threshold; labels of equal score stay or go together."""
    scores, hits = pairs.scores[pairs.real], pairs.hits[pairs.real]
    if not len(scores):
        raise DataError("cannot choose a cut-off: no label was suggested for any point")
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(hits[order])
    last = np.append(scores[1:] != scores[:-1], True)
    return ThresholdCurve(scores[last], hits[last], np.flatnonzero(last) + 1, int(pairs.positives.sum()), len(pairs))


def choose(rule: Rule, curve: ThresholdCurve, say: bool = True) -> float:
    """Return the threshold for a rule; if the goal cannot be reached, the closest one, with a warning if `say`."""
    at = {"f1": best_f1, "precision": lowest_precise, "labels": most_labels}[rule.goal](rule, curve, say)
    return float(curve.thresholds[at])


def best_f1(rule: Rule, curve: ThresholdCurve, say: bool) -> int:
    """Index of the best micro F1, 2 · hits / (decisions + positives); true labels that were not suggested lower it."""
    if say and not curve.hits[-1]:
        log.warning("no suggested label is true: every cut-off has an F1 of 0; using the highest one")
    return int(np.argmax(2 * curve.hits / (curve.decisions + curve.positives)))


def lowest_precise(rule: Rule, curve: ThresholdCurve, say: bool) -> int:
    """Index of the lowest threshold whose labels reach the precision, pooled over all points."""
    precision = curve.hits / curve.decisions
    reached = np.flatnonzero(precision >= rule.value)
    if len(reached):
        return int(reached[-1])
    at = int(np.flatnonzero(precision == precision.max())[-1])
    if say:
        message = "no threshold has a precision of %g: using the best one, %.3f with %.2f labels per text"
        log.warning(message, rule.value, precision[at], curve.decisions[at] / curve.points)
    return at


def most_labels(rule: Rule, curve: ThresholdCurve, say: bool) -> int:
    """Index of the lowest threshold that keeps on average at most `value` labels per point."""
    within = int(np.count_nonzero(curve.decisions <= rule.value * curve.points))
    if within:
        return within - 1
    if say:
        fewest = curve.decisions[0] / curve.points
        message = "no threshold keeps %g labels per text or fewer, because too many share the best score; using %.2f"
        log.warning(message, rule.value, fewest)
    return 0
