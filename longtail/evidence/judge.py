"""The rules that decide a claim: numbers in, verdict out. Nothing is read or run here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["reproduced", "contradicted", "not separable", "mixed", "reported", "not measured", "no corpus"]
JUDGED: tuple[Verdict, ...] = ("reproduced", "contradicted", "not separable")


@dataclass(frozen=True)
class ArmDifference:
    """A metric of two arms, in percent: `difference` = first − second, and its 95 % interval if there is one."""

    metric: str
    first: float
    second: float
    difference: float
    low: float | None = None
    high: float | None = None

    @property
    def limits(self) -> tuple[float, float]:
        """The interval; without one, the difference itself at both ends."""
        return (
            self.difference if self.low is None else self.low,
            self.difference if self.high is None else self.high,
        )


def ahead(rows: Sequence[ArmDifference]) -> Verdict:
    """Reproduced: every interval is above zero. Contradicted: one is below it. Otherwise not separable."""
    if all(row.limits[0] > 0 for row in rows):
        return "reproduced"
    return "contradicted" if any(row.limits[1] < 0 for row in rows) else "not separable"


def equal(rows: Sequence[ArmDifference], margin: float) -> Verdict:
    """Reproduced: every interval is within ±margin. Contradicted: one is fully outside. Otherwise not separable."""
    if all(-margin <= row.limits[0] and row.limits[1] <= margin for row in rows):
        return "reproduced"
    outside = any(row.limits[0] > margin or row.limits[1] < -margin for row in rows)
    return "contradicted" if outside else "not separable"


def trend(rows: Sequence[ArmDifference]) -> Verdict:
    """`difference` is the last − the first of the series. Reproduced: all are above 0. Contradicted: one is below 0."""
    if all(row.difference > 0 for row in rows):
        return "reproduced"
    return "contradicted" if any(row.difference < 0 for row in rows) else "not separable"


def tail(rows: Sequence[ArmDifference]) -> Verdict:
    """`rows` are bins, head to tail. Reproduced: all gain, and the last has the largest relative gain.

    Contradicted: one bin loses, or another one has a larger relative gain than the last.
    """
    if any(row.difference < 0 for row in rows) or any(gain(row) > gain(rows[-1]) for row in rows):
        return "contradicted"
    return "reproduced" if all(row.difference > 0 for row in rows) else "not separable"


def gain(row: ArmDifference) -> float:
    """The relative gain: the difference divided by the second arm; infinite if the second arm has 0."""
    return row.difference / row.second if row.second else math.copysign(math.inf, row.difference)


def faster(ratio: float, p1: ArmDifference, margin: float) -> Verdict:
    """`ratio` is the first arm's time divided by the second's; P@1 may be lower by at most `margin`."""
    return "reproduced" if ratio < 1 and p1.difference >= -margin else "contradicted"


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a claim on one corpus from the verdicts of its parts: all parts must be reproduced.

    Parts that are only reported do not count. A part that was not measured leaves the claim open, unless another part
    is contradicted.
    """
    found = [verdict for verdict in verdicts if verdict != "reported"]
    if not found:
        return "reported"
    for verdict in ("contradicted", "not measured", "not separable"):
        if verdict in found:
            return verdict
    return "reproduced"


def over_corpora(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a claim from its verdicts on all corpora where it was decided; mixed if they disagree."""
    found = set(verdicts)
    decided = found & {*JUDGED, "reported"}
    if not decided:
        return "no corpus" if found == {"no corpus"} else "not measured"
    return decided.pop() if len(decided) == 1 else "mixed"
