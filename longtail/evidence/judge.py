"""The rules by which a claim is decided. Numbers in, verdict out; nothing is read or run here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["reproduced", "contradicted", "not separable", "mixed", "reported", "not measured", "no corpus"]
JUDGED: tuple[Verdict, ...] = ("reproduced", "contradicted", "not separable")


@dataclass(frozen=True)
class Spread:
    """A metric of two arms, in percent: `difference` = first − second, and its 95 % interval where there is one."""

    metric: str
    first: float
    second: float
    difference: float
    low: float | None = None
    high: float | None = None

    @property
    def limits(self) -> tuple[float, float]:
        """The interval; a figure without one is all its own."""
        return (
            self.difference if self.low is None else self.low,
            self.difference if self.high is None else self.high,
        )


def ahead(rows: Sequence[Spread]) -> Verdict:
    """Reproduced: every interval above zero. Contradicted: one below it. Else not separable."""
    if all(row.limits[0] > 0 for row in rows):
        return "reproduced"
    return "contradicted" if any(row.limits[1] < 0 for row in rows) else "not separable"


def equal(rows: Sequence[Spread], margin: float) -> Verdict:
    """Reproduced: every interval within ±margin. Contradicted: one wholly outside. Else not separable."""
    if all(-margin <= row.limits[0] and row.limits[1] <= margin for row in rows):
        return "reproduced"
    outside = any(row.limits[0] > margin or row.limits[1] < -margin for row in rows)
    return "contradicted" if outside else "not separable"


def trend(rows: Sequence[Spread]) -> Verdict:
    """`difference` is last − first of the series. Reproduced: all rise. Contradicted: one falls."""
    if all(row.difference > 0 for row in rows):
        return "reproduced"
    return "contradicted" if any(row.difference < 0 for row in rows) else "not separable"


def tail(rows: Sequence[Spread]) -> Verdict:
    """`rows` are bins, head to tail. Reproduced: all rise, the last by the largest share of what it was.

    Contradicted: one falls, or another gains more of what it was than the last.
    """
    if any(row.difference < 0 for row in rows) or any(gain(row) > gain(rows[-1]) for row in rows):
        return "contradicted"
    return "reproduced" if all(row.difference > 0 for row in rows) else "not separable"


def gain(row: Spread) -> float:
    """The difference as a share of what was there; of nothing, all of it and more."""
    return row.difference / row.second if row.second else math.copysign(math.inf, row.difference)


def faster(ratio: float, p1: Spread, margin: float) -> Verdict:
    """`ratio` is the time of the first arm over that of the second; P@1 may not be lower by more than `margin`."""
    return "reproduced" if ratio < 1 and p1.difference >= -margin else "contradicted"


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a claim on one corpus from those of its parts: all must hold, as all metrics of a part must.

    What is only reported says nothing; what was not measured leaves the claim open, unless a part is contradicted.
    """
    found = [verdict for verdict in verdicts if verdict != "reported"]
    if not found:
        return "reported"
    for verdict in ("contradicted", "not measured", "not separable"):
        if verdict in found:
            return verdict
    return "reproduced"


def over_corpora(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a claim from those of all corpora it was decided on; mixed where they disagree."""
    found = set(verdicts)
    decided = found & {*JUDGED, "reported"}
    if not decided:
        return "no corpus" if found == {"no corpus"} else "not measured"
    return decided.pop() if len(decided) == 1 else "mixed"
