"""What turns a model's scores into an answer: a map to probabilities, a cut-off, or both. Any model may carry one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.ranking import Ranking


@dataclass(frozen=True, eq=False)
class Isotonic:
    """`probabilities` (m,) at the rising `scores` (m,), never falling; straight lines between, level outside."""

    scores: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    method: ClassVar[str] = "isotonic"

    def __post_init__(self) -> None:
        fits = self.scores.ndim == 1 and self.scores.shape == self.probabilities.shape and len(self.scores) > 0
        if not fits or not np.isfinite(self.scores).all() or (np.diff(self.scores) <= 0).any():
            raise DataError("an isotonic map needs rising scores, and a probability for each")
        inside = (self.probabilities >= 0) & (self.probabilities <= 1)  # NaN is not
        if not inside.all() or (np.diff(self.probabilities) < 0).any():
            raise DataError("the probabilities of an isotonic map must lie in 0…1 and never fall")

    def __call__(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """The probability of each score."""
        return np.interp(scores, self.scores, self.probabilities)


@dataclass(frozen=True)
class Sigmoid:
    """1 / (1 + exp(a·score + b)), Platt's form; a ≤ 0, so that a better score is never a lower probability."""

    a: float
    b: float
    method: ClassVar[str] = "platt"

    def __post_init__(self) -> None:
        if not (np.isfinite([self.a, self.b]).all() and self.a <= 0):
            raise DataError("the sigmoid of a calibration needs finite a and b, and a ≤ 0", found=(self.a, self.b))

    def __call__(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """The probability of each score."""
        # by way of the logarithm, which does not overflow however far a margin is from 0
        return np.exp(-np.logaddexp(0, self.a * np.asarray(scores, np.float64) + self.b))


@dataclass(frozen=True, eq=False)
class Calibration:
    """A map from score to probability for each group of ranks: `maps[i]` from rank `ranks[i]` (1, 2, …) on.

    The best label of a text is true more often than the fifth with the same score, so one map for all ranks would be
    too low for the first and too high for the others.
    """

    ranks: tuple[int, ...]
    maps: tuple[Isotonic, ...] | tuple[Sigmoid, ...]

    def __post_init__(self) -> None:
        rising = self.ranks[:1] == (1,) and (np.diff(self.ranks) > 0).all()
        if not rising or len(self.ranks) != len(self.maps):
            raise DataError("a calibration needs a map for each group of ranks, from rank 1 on", found=self.ranks)

    @property
    def method(self) -> str:
        """Isotonic or platt: the same for all groups."""
        return self.maps[0].method

    def __call__(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probabilities (N, k) of scores that are best first; what stands at pads has no meaning."""
        values = np.empty(scores.shape, np.float32)
        finite = np.where(np.isfinite(scores), scores, np.float32(0))
        ends = (*self.ranks[1:], scores.shape[1] + 1)
        for i, (first, end) in enumerate(zip(self.ranks, ends, strict=True)):
            if first <= scores.shape[1]:
                at = slice(first - 1, end - 1)
                values[:, at] = self.maps[i](finite[:, at])
        # a label is never likelier than the one before it: maps of two groups may cross
        return np.minimum.accumulate(values, axis=1) if values.size else values


@dataclass(frozen=True)
class CutOff:
    """Keep the labels with a probability, or without a calibration a score, of at least `threshold`.

    `most` is how many a text gets at most, the depth the threshold was chosen at, and `rule` what it was chosen for:
    "f1", "precision=0.8" or "labels=5".
    """

    rule: str
    threshold: float
    most: int

    def __post_init__(self) -> None:
        if not np.isfinite(self.threshold) or self.most < 1:
            raise DataError("a cut-off needs a finite threshold, and room for a label", found=asdict(self))


@dataclass(frozen=True, eq=False)
class Decision:
    """A `calibration`, a `cut_off`, or both. Neither changes the order of labels."""

    calibration: Calibration | None = None
    cut_off: CutOff | None = None

    def apply(self, ranking: Ranking, cut_off: bool = True) -> Ranking:
        """A ranking by the model's own scores, decided.

        Its scores become probabilities where there is a calibration; labels below the cut-off become pads unless
        `cut_off` is false. Labels of one probability stay in the order of their scores.
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
        """Arrays and JSON values that are all of it."""
        arrays, calibration = ({}, None) if self.calibration is None else _state_of(self.calibration)
        return arrays, {"calibration": calibration, "cut_off": None if self.cut_off is None else asdict(self.cut_off)}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> Decision:
        """From `state`."""
        calibration, cut = values["calibration"], values["cut_off"]
        return cls(
            None if calibration is None else _calibration_of(arrays, calibration),
            None if cut is None else CutOff(cut["rule"], cut["threshold"], cut["most"]),
        )


def _state_of(calibration: Calibration) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The knots of all groups one after the other, with where each begins; or a and b of each."""
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
    """From `_state_of`."""
    ranks = tuple(int(rank) for rank in values["ranks"])
    if values["method"] == Sigmoid.method:
        pairs = zip(values["a"], values["b"], strict=True)
        return Calibration(ranks, tuple(Sigmoid(float(a), float(b)) for a, b in pairs))
    if values["method"] != Isotonic.method:
        raise DataError("its calibration is of a kind that is not known here", found=values["method"])
    places = arrays["offsets"].tolist()
    knots = [slice(*ends) for ends in itertools.pairwise(places)]
    return Calibration(ranks, tuple(Isotonic(arrays["scores"][at], arrays["probabilities"][at]) for at in knots))
