"""Where to stop suggesting: the threshold that is best for F1, that keeps a precision, or that gives so many labels."""

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
    """What a cut-off is chosen for: "f1"; "precision" of at least `value`; `value` "labels" for a text on average."""

    goal: Literal["f1", "precision", "labels"]
    value: float = 0.0

    def __str__(self) -> str:
        return self.goal if self.goal == "f1" else f"{self.goal}={self.value:.12g}"

    @classmethod
    def parse(cls, text: str, what: str = "cut_off") -> Rule | None:
        """From "f1", "precision=0.8" or "labels=5"; None from "none". `what` is named where it is none of these."""
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


class Curve(NamedTuple):
    """What each threshold gives, from the highest down: `hits` (Σ of y) among `decisions` labels that are kept."""

    thresholds: NDArray[np.float32]
    hits: NDArray[np.float64]
    decisions: NDArray[np.int64]
    positives: int
    points: int


def curve_of(pairs: Pairs) -> Curve:
    """Every score that occurs as a threshold; labels of one score are all kept, or none of them."""
    scores, hits = pairs.scores[pairs.real], pairs.hits[pairs.real]
    if not len(scores):
        raise DataError("there is no cut-off to choose: no label was suggested for any point")
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], np.cumsum(hits[order])
    last = np.append(scores[1:] != scores[:-1], True)
    return Curve(scores[last], hits[last], np.flatnonzero(last) + 1, int(pairs.positives.sum()), len(pairs))


def choose(rule: Rule, curve: Curve, say: bool = True) -> float:
    """The threshold a rule asks for; where it cannot be had, the nearest to it, with a warning if `say`."""
    at = {"f1": best_f1, "precision": lowest_precise, "labels": most_labels}[rule.goal](rule, curve, say)
    return float(curve.thresholds[at])


def best_f1(rule: Rule, curve: Curve, say: bool) -> int:
    """Micro F1, 2 · hits / (decisions + positives): labels that are true and not suggested count against it."""
    if say and not curve.hits[-1]:
        log.warning("no suggested label is true: any cut-off has an F1 of 0, and the highest is kept")
    return int(np.argmax(2 * curve.hits / (curve.decisions + curve.positives)))


def lowest_precise(rule: Rule, curve: Curve, say: bool) -> int:
    """The lowest threshold above which so much is true, pooled over all points."""
    precision = curve.hits / curve.decisions
    reached = np.flatnonzero(precision >= rule.value)
    if len(reached):
        return int(reached[-1])
    at = int(np.flatnonzero(precision == precision.max())[-1])
    if say:
        message = "no threshold has a precision of %g: the best there is, %.3f with %.2f labels a text, is kept"
        log.warning(message, rule.value, precision[at], curve.decisions[at] / curve.points)
    return at


def most_labels(rule: Rule, curve: Curve, say: bool) -> int:
    """The lowest threshold that keeps no more labels than that for a point on average."""
    within = int(np.count_nonzero(curve.decisions <= rule.value * curve.points))
    if within:
        return within - 1
    if say:
        fewest = curve.decisions[0] / curve.points
        message = "no threshold keeps %g labels a text or fewer: so many have the best score; kept are %.2f"
        log.warning(message, rule.value, fewest)
    return 0
