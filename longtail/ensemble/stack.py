"""Stacking: boosted trees over what all members say of a candidate, and over how frequent its label is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtail.core.labels import Labels
from longtail.core.ranking import Kind
from longtail.encoders.export import arrays_under
from longtail.ensemble.candidates import Candidates, Floats
from longtail.ensemble.fuser import Arrays, Fuser, Sum, comparable, normalised, weighted
from longtail.ensemble.trees import Trees

OF_MEMBER, SHARED = 6, 4  # features of each member, and features of all together
UNNAMED = -1.0  # the relative score of a label that a member does not name: below all that it names


@dataclass(frozen=True, eq=False)
class Stack(Fuser):
    """p(label is true) by boosted trees over `features`, divided by the label's propensity to the power of `tail`.

    `first` is the best weighted sum, which the trees look at too: what they learn is where it is wrong. With tail=0 the
    values are probabilities. With tail above 0 rare labels come earlier: the probability that a label is true and
    missing counts in part, and values are scores, no probabilities.
    """

    kind: ClassVar[str] = "stack"
    first: Sum
    trees: Trees
    tail: float = 0.0

    @property
    def gives(self) -> Kind:
        """Probabilities where no label comes earlier than its probability says."""
        return "probability" if self.tail == 0 else "score"

    def values(self, candidates: Candidates, labels: Labels) -> Floats:
        """p / propensity^tail."""
        return tempered(self.trees(features(candidates, labels, self.first)), candidates, labels, self.tail)

    def shares(self, candidates: Candidates, labels: Labels) -> Floats:
        """How much lower the margin would be if a member did not name the label; relative to all members."""
        whole = self.trees.margins(features(candidates, labels, self.first))
        alone = (features(candidates, labels, self.first, without=m) for m in range(candidates.members))
        parts = [whole - self.trees.margins(found) for found in alone]
        return normalised(np.maximum(np.stack(parts, axis=1), 0.0))

    def told(self) -> dict[str, Any]:
        """The number of trees, the power of the propensity, and the weights of the sum."""
        return {
            "by": "stack",
            "trees": len(self.trees.features),
            "tail": self.tail,
            "sum": self.first.told()["weights"],
        }

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """The trees and the sum."""
        sums, meta = self.first.state()
        arrays = {f"trees.{name}": array for name, array in self.trees.state().items()}
        return arrays | {f"sum.{name}": array for name, array in sums.items()}, {"tail": self.tail, "sum": meta}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], members: int) -> Stack:
        """The stack whose `state` is given."""
        first = Sum.from_state(arrays_under("sum", arrays), meta["sum"], members)
        return cls(first, Trees.from_state(arrays_under("trees", arrays), width(members)), float(meta["tail"]))


def width(members: int) -> int:
    """How many features M members give."""
    return OF_MEMBER * members + SHARED


def tempered(probabilities: Floats, candidates: Candidates, labels: Labels, tail: float) -> Floats:
    """p / propensity^tail for each pair (P,)."""
    return probabilities if tail == 0 else probabilities * labels.propensities[candidates.labels] ** -tail


def features(candidates: Candidates, labels: Labels, first: Sum, without: int | None = None) -> NDArray[np.float32]:
    """What the trees look at (P, 6·M + 4); the member `without` names no label.

    Of each member: its score; the score relative to the member's best and lowest for this point; divided by the best;
    its rank; its best score; how far the score is below the next better one. Of all: how many members name the label,
    the value of the weighted sum `first`, the label's place by it, and the label's training examples.
    """
    P, M = candidates.scores.shape
    named = candidates.named if without is None else candidates.named & (np.arange(M) != without)
    best, lowest = candidates.best, candidates.lowest
    scores = np.where(named, candidates.scores, 0.0)
    spread = np.where(best > lowest, best - lowest, 1.0)
    found = np.empty((P, width(M)), np.float32)
    own = found[:, : OF_MEMBER * M].reshape(P, M, OF_MEMBER)
    own[..., 0] = np.where(named, scores, lowest - spread)
    own[..., 1] = np.where(named, np.where(best > lowest, (scores - lowest) / spread, 1.0), UNNAMED)
    own[..., 2] = np.where(named & (best > 0), scores / np.where(best > 0, best, 1.0), UNNAMED)
    own[..., 3] = np.where(named, candidates.ranks, candidates.depth)
    own[..., 4] = best
    own[..., 5] = np.where(named, candidates.gaps, 0.0)
    total = weighted(np.where(named, comparable(candidates, first.by, first.maps), 0.0), first.weights)
    found[:, -4] = named.sum(1)
    found[:, -3] = total
    found[:, -2] = candidates.places(total)
    found[:, -1] = labels.counts[candidates.labels]
    return found
