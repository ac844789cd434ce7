"""A decision: how a model's scores become an answer. It has a map to probabilities, a cut-off, or both.

Any model may have one (`Model.decision`). `longtail/decide/` fits it, `core/how_many.py` says how it works with k.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.ranking import Ranking

Method: TypeAlias = Literal["none", "isotonic", "platt"]  # ways to turn scores into probabilities


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A piecewise linear map that never falls.

    It takes the values `probabilities` (m,) at `scores` (m,), which rise strictly; it is linear between two scores and
    constant outside them.
    """

    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    method: ClassVar[str] = "isotonic"

    def __post_init__(self) -> None:
        fits = self.scores.ndim == 1 and self.scores.shape == self.probabilities.shape and len(self.scores) > 0
        if not fits or not np.isfinite(self.scores).all() or (np.diff(self.scores) <= 0).any():
            raise DataError("an isotonic map needs strictly rising scores, and one probability for each")
        inside = (self.probabilities >= 0) & (self.probabilities <= 1)  # NaN is not
        if not inside.all() or (np.diff(self.probabilities) < 0).any():
            raise DataError("the probabilities of an isotonic map must be between 0 and 1, and must not fall")

    def __call__(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of each score."""
        return np.interp(scores, self.scores, self.probabilities)


@dataclass(frozen=True)
class Sigmoid:
    """Platt's map 1 / (1 + exp(a·score + b)), with a ≤ 0: a higher score never has a lower probability."""

    a: float
    b: float
    method: ClassVar[str] = "platt"

    def __post_init__(self) -> None:
        if not (np.isfinite([self.a, self.b]).all() and self.a <= 0):
            raise DataError("a calibration by Platt needs finite a and b, and a ≤ 0", found=(self.a, self.b))

    def __call__(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """The probability of each score."""
        # computed through the logarithm, which does not overflow for margins far from 0
        return np.exp(-np.logaddexp(0, self.a * np.asarray(scores, np.float64) + self.b))


@dataclass(frozen=True, eq=False)
class Calibration:
    """A map from score to probability for each group of ranks.

    `maps[i]` is for the ranks from `ranks[i]` to `ranks[i + 1]` − 1; the first rank is 1. The best label of a text is
    true more often than the fifth best with the same score. One map for all ranks would therefore be too low for the
    first rank and too high for the others.
    """

    ranks: tuple[int, ...]
    maps: tuple[Isotonic, ...] | tuple[Sigmoid, ...]

    def __post_init__(self) -> None:
        rising = self.ranks[:1] == (1,) and (np.diff(self.ranks) > 0).all()
        if not rising or len(self.ranks) != len(self.maps):
            raise DataError("a calibration needs one map for each group of ranks, starting at rank 1", found=self.ranks)

    @property
    def method(self) -> str:
        """The method of all maps: "isotonic" or "platt"."""
        return self.maps[0].method

    def __call__(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probabilities (N, k) of scores (N, k), best first. Values at pads have no meaning."""
        values = np.empty(scores.shape, np.float32)
        finite = np.where(np.isfinite(scores), scores, np.float32(0))
        ends = (*self.ranks[1:], scores.shape[1] + 1)
        for i, (first, end) in enumerate(zip(self.ranks, ends, strict=True)):
            if first <= scores.shape[1]:
                at = slice(first - 1, end - 1)
                values[:, at] = self.maps[i](finite[:, at])
        # maps of two groups may cross: no label may get more than the one before it
        return np.minimum.accumulate(values, axis=1) if values.size else values


@dataclass(frozen=True)
class CutOff:
    """Keep labels whose probability (without a calibration: whose score) is at least `threshold`.

    `rule` says how the threshold was chosen: "f1", "precision=0.8" or "labels=5". `most` is the largest number of
    labels that a text gets: the depth at which the threshold was chosen.
    """

    rule: str
    threshold: float
    most: int

    def __post_init__(self) -> None:
        if not np.isfinite(self.threshold) or self.most < 1:
            raise DataError("a cut-off needs a finite threshold, and must allow at least one label", found=asdict(self))


@dataclass(frozen=True, eq=False)
class Decision:
    """A `calibration`, a `cut_off`, or both. Neither of them changes the order of labels."""

    calibration: Calibration | None = None
    cut_off: CutOff | None = None

    def apply(self, ranking: Ranking, cut_off: bool = True) -> Ranking:
        """This decision applied to a ranking (N, k) with the scores of the engine; the result has the same shape.

        With a calibration, scores become probabilities. Labels below the cut-off become pads, unless `cut_off` is
        false. Labels with equal probabilities stay in the order of their scores.
        """
        kept = ranking.indices >= 0
        scores, kind = ranking.scores, ranking.kind
        if self.calibration is not None:
            scores, kind = self.calibration(scores), "probability"
        if cut_off and self.cut_off is not None:
            kept &= scores >= np.float32(self.cut_off.threshold)
            kept[:, self.cut_off.most :] = False
        indices = np.where(kept, ranking.indices, np.int32(-1))
        return replace(ranking, indices=indices, scores=np.where(kept, scores, np.float32(-np.inf)), kind=kind)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The arrays and JSON values from which `from_state` makes it again."""
        arrays, calibration = ({}, None) if self.calibration is None else _state_of(self.calibration)
        return arrays, {"calibration": calibration, "cut_off": None if self.cut_off is None else asdict(self.cut_off)}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> Decision:
        """The decision whose `state` is given."""
        calibration, cut = values["calibration"], values["cut_off"]
        return cls(
            None if calibration is None else _calibration_of(arrays, calibration),
            None if cut is None else CutOff(cut["rule"], cut["threshold"], cut["most"]),
        )


def _state_of(calibration: Calibration) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """For isotonic maps the scores and probabilities of all groups in one array each; for Platt a and b of each."""
    values: dict[str, Any] = {"method": calibration.method, "ranks": list(calibration.ranks)}
    stepped = [m for m in calibration.maps if isinstance(m, Isotonic)]
    if not stepped:
        return {}, values | {name: [getattr(m, name) for m in calibration.maps] for name in ("a", "b")}
    return {
        "scores": np.concatenate([m.scores for m in stepped]),
        "probabilities": np.concatenate([m.probabilities for m in stepped]),
        "offsets": np.cumsum([0, *(len(m.scores) for m in stepped)]),
    }, values


def _calibration_of(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> Calibration:
    """The calibration whose `_state_of` is given."""
    ranks = tuple(int(rank) for rank in values["ranks"])
    if values["method"] == Sigmoid.method:
        pairs = zip(values["a"], values["b"], strict=True)
        return Calibration(ranks, tuple(Sigmoid(float(a), float(b)) for a, b in pairs))
    if values["method"] != Isotonic.method:
        raise DataError("this version of longtail does not know its calibration method", found=values["method"])
    places = arrays["offsets"].tolist()
    knots = [slice(*ends) for ends in itertools.pairwise(places)]
    return Calibration(ranks, tuple(Isotonic(arrays["scores"][at], arrays["probabilities"][at]) for at in knots))
