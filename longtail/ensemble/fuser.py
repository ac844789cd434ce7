"""What makes one value of the scores of several members: the interface, and the weighted sums."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from longtail.core.decision import Isotonic
from longtail.core.errors import StoreError
from longtail.core.labels import Labels
from longtail.core.ranking import Kind
from longtail.core.registry import Registry
from longtail.ensemble.candidates import Candidates, Floats

Arrays = dict[str, NDArray[Any]]
By = Literal["score", "rank"]
TIES = 1e-3  # share of the relative score in a probability


class Fuser(ABC):
    """Gives each candidate pair a value; a higher one is better."""

    kind: ClassVar[str]

    @property
    def gives(self) -> Kind:
        """Whether the values are probabilities."""
        return "score"

    @abstractmethod
    def values(self, candidates: Candidates, labels: Labels) -> Floats:
        """The value of each pair (P,)."""

    @abstractmethod
    def shares(self, candidates: Candidates, labels: Labels) -> Floats:
        """How much of each pair's value comes from each member (P, M): at least 0, rows of sum 1, or 0 where none."""

    @abstractmethod
    def told(self) -> dict[str, Any]:
        """What it is, as JSON values for `about`."""

    @abstractmethod
    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """The arrays and JSON values from which `from_state` makes it again."""

    @classmethod
    @abstractmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], members: int) -> Fuser:
        """The fuser whose `state` is given, of an ensemble of this many members."""


fusers: Registry[type[Fuser]] = Registry("way to fuse")
fusers.add("sum", "longtail.ensemble.fuser:Sum")
fusers.add("stack", "longtail.ensemble.stack:Stack")


@dataclass(frozen=True, eq=False)
class Sum(Fuser):
    """Σ_m w_m · v_m, where v_m makes the scores of members comparable; a label that a member does not name counts 0.

    `by` rank: v is 1 at the first rank and falls to 0 at `depth`. `by` score: v is the probability that `maps[m]` gives
    the score; without maps, scores relative to the best (1) and the lowest (0) that the member names for the point.
    """

    kind: ClassVar[str] = "sum"
    weights: tuple[float, ...]
    by: By = "score"
    maps: tuple[Isotonic, ...] | None = None

    def values(self, candidates: Candidates, labels: Labels) -> Floats:
        """The weighted sum of comparable scores."""
        return weighted(comparable(candidates, self.by, self.maps), self.weights)

    def shares(self, candidates: Candidates, labels: Labels) -> Floats:
        """Each member's part of the sum."""
        return normalised(comparable(candidates, self.by, self.maps) * np.asarray(self.weights))

    def told(self) -> dict[str, Any]:
        """How scores are compared, and the weights."""
        scale = "rank" if self.by == "rank" else "probability" if self.maps is not None else "relative score"
        return {"by": "sum", "of": scale, "weights": [round(weight, 4) for weight in self.weights]}

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Weights and maps."""
        arrays: Arrays = {"weights": np.array(self.weights, np.float64)}
        if self.maps is not None:
            arrays["scores"] = np.concatenate([own.scores for own in self.maps])
            arrays["probabilities"] = np.concatenate([own.probabilities for own in self.maps])
            arrays["offsets"] = np.cumsum([0, *(len(own.scores) for own in self.maps)])
        return arrays, {"by": self.by}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], members: int) -> Sum:
        """The sum whose `state` is given."""
        weights, maps = tuple(arrays["weights"].tolist()), None
        if "offsets" in arrays:
            knots = [slice(*ends) for ends in itertools.pairwise(arrays["offsets"].tolist())]
            maps = tuple(Isotonic(arrays["scores"][at], arrays["probabilities"][at]) for at in knots)
        if (
            len(weights) != members
            or (maps is not None and len(maps) != members)
            or meta["by"] not in ("score", "rank")
        ):
            raise StoreError(f"the weights do not fit {members} members; the ensemble is damaged: train it again")
        return cls(weights, meta["by"], maps)


def comparable(candidates: Candidates, by: By, maps: Sequence[Isotonic] | None) -> Floats:
    """The members' scores made comparable (P, M), from 0 to 1; 0 where a member does not name the label."""
    if by == "rank":
        return 1 - candidates.ranks / max(candidates.depth, 1)
    named, spread = candidates.named, candidates.best - candidates.lowest
    scores = np.where(named, candidates.scores, 0)
    # one label alone, or several of one score: as good as the best
    relative = np.where(spread > 0, (scores - candidates.lowest) / np.where(spread > 0, spread, 1), 1.0)
    if maps is None:
        return np.where(named, relative, 0.0)
    found = np.stack([own(column) for own, column in zip(maps, scores.T, strict=True)], axis=1)
    # of scores that have one probability, the higher comes first
    return np.where(named, (found + TIES * relative) / (1 + TIES), 0.0)


def weighted(values: Floats, weights: Sequence[float]) -> Floats:
    """Σ_m w_m v_m (P,), added in the order of members, so that it does not depend on how many pairs there are."""
    total = np.zeros(len(values))
    for column, weight in zip(values.T, weights, strict=True):
        total += weight * column
    return total


def normalised(parts: Floats) -> Floats:
    """Parts (P, M) of at least 0, divided by their sum."""
    total = parts.sum(1, keepdims=True)
    return np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
