"""What members say of points whose labels are known: the ground on which fusers are fitted and compared."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.data.dataset import Dataset
from longtail.data.split import folds
from longtail.ensemble.candidates import Candidates, Floats, top
from longtail.metrics import Report, depth, evaluate
from longtail.train.validation import chosen_by

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Heard:
    """The candidates of the points of `data` over `labels`; `fold` (N,) keeps points of one group together.

    `seen` are the same labels with the counts of the points that the members were trained on. Fusers look at these:
    the counts of `labels` may include the points of `data`, and would tell which labels are true of any of them.
    """

    candidates: Candidates
    data: Dataset
    labels: Labels
    seen: Labels
    fold: NDArray[np.int64]

    @classmethod
    def of(
        cls, candidates: Candidates, data: Dataset, labels: Labels, seed: int, trained_on: Dataset | None = None
    ) -> Heard:
        """With the points divided for cross-fitting; members were trained on `trained_on`, if it is given."""
        seen = labels
        if trained_on is not None:
            seen = labels.with_counts(trained_on.label_counts(), len(trained_on))
        return cls(candidates, data, labels, seen, folds(data, seed, FOLDS))

    @functools.cached_property
    def truth(self) -> NDArray[np.float32]:
        """y of each pair (P,)."""
        return self.candidates.at(self.data.truth())

    @functools.cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Whether a pair counts (P,): ignored ones are neither true nor false. Members name them all the same."""
        if self.data.ignore is None:
            return np.ones(len(self.candidates), bool)
        return self.candidates.at(self.data.ignore.astype(np.float32)) == 0

    def take(self, points: NDArray[np.bool_]) -> Heard:
        """What is said of some points (N,)."""
        data, kept = self.data.take(np.flatnonzero(points)), self.candidates.take(points)
        return replace(self, candidates=kept, data=data, fold=self.fold[points])

    def of_members(self, members: Sequence[int]) -> Heard:
        """What some of the members say."""
        return replace(self, candidates=self.candidates.of_members(members))

    def parts(self) -> list[NDArray[np.bool_]]:
        """The points of each fold (N,)."""
        return [self.fold == number for number in np.unique(self.fold)]

    def pairs_of(self, points: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The pairs (P,) of some points (N,)."""
        return points[self.candidates.rows]

    def ranking(self, values: Floats, k: int | None = None) -> Ranking:
        """The labels of largest value for each point."""
        wanted = min(depth(ignore=self.data.ignore) if k is None else k, len(self.labels))
        return Ranking(*top(self.candidates, values, wanted), self.labels)

    def report(self, values: Floats) -> Report:
        """All metrics of the ranking by these values (P,)."""
        return evaluate(self.ranking(values), self.data.Y, self.labels, ignore=self.data.ignore)

    def scores(self, values: Floats) -> dict[str, float]:
        """The four scores that choices are made by, and their mean."""
        return chosen_by(self.report(values))

    def mean(self, values: Floats) -> float:
        """The mean of the four scores."""
        return self.scores(values)["mean"]

    def alone(self, member: int) -> Floats:
        """The values (P,) by which one member alone would rank: what it does not name comes last."""
        named = self.candidates.named[:, member]
        lowest = float(np.min(self.candidates.scores[named, member], initial=0.0))
        return np.where(named, self.candidates.scores[:, member], lowest - 1 - self.candidates.ranks.min(1))
