"""Which points form the batches of an epoch. A plan is a function of (seed, phase, epoch), so a resumed run needs no
replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.int64]


class Plan(Protocol):
    """The order in which an epoch goes through the N training points; a step takes the next `batch` of them."""

    def order(self, learner: Any, key: tuple[int, int, int]) -> Points:
        """All points (N,), each once, for the epoch with this key (seed, phase, epoch)."""
        ...


@dataclass(frozen=True)
class Shuffled:
    """Points in random order."""

    def order(self, learner: Any, key: tuple[int, int, int]) -> Points:
        """A permutation of all points."""
        return np.random.default_rng(key).permutation(learner.points)


@dataclass(frozen=True)
class Clustered:
    """Similar points next to each other, so that they share batches (NGAME, UniDEC).

    `clusters(learner)` is the cluster of each point (N,), as the phase's `prepare` or `refresh` has computed it.
    Clusters come in random order, and so do the points of each.
    """

    clusters: Callable[[Any], NDArray[np.integer[Any]]]

    def order(self, learner: Any, key: tuple[int, int, int]) -> Points:
        """A permutation that goes through one cluster after the other."""
        rng = np.random.default_rng(key)
        of_point = np.asarray(self.clusters(learner))
        rank = rng.permutation(int(of_point.max(initial=-1)) + 1)  # of each cluster
        shuffled = rng.permutation(len(of_point))
        return shuffled[np.argsort(rank[of_point[shuffled]], kind="stable")]
