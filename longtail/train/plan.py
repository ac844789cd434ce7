"""Which points form the batches of an epoch. A plan is a function of (seed, phase, epoch), so a resumed run needs no
replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Order = NDArray[np.int64]


class Plan(Protocol):
    """The order in which an epoch goes through the N training points; a step takes the next `batch` of them."""

    def order(self, learner: Any, key: tuple[int, int, int]) -> Order:
        """All points (N,), each once, for the epoch with this key (seed, phase, epoch)."""
        ...


@dataclass(frozen=True)
class Shuffled:
    """Points in random order."""

    def order(self, learner: Any, key: tuple[int, int, int]) -> Order:
        """A permutation of all points."""
        return np.random.default_rng(key).permutation(learner.points)


@dataclass(frozen=True)
class Clustered:
    """Similar points next to each other, so that they share batches (NGAME, UniDEC).

    `clusters(learner)` is the cluster of each point (N,), as the phase's `prepare` or `refresh` has computed it.
    Clusters come in random order, and so do the points of each.
    """

    clusters: Callable[[Any], NDArray[np.integer[Any]]]

    def order(self, learner: Any, key: tuple[int, int, int]) -> Order:
        """A permutation that goes through one cluster after the other."""
        rng = np.random.default_rng(key)
        of_point = np.asarray(self.clusters(learner))
        rank = rng.permutation(int(of_point.max(initial=-1)) + 1)  # of each cluster
        shuffled = rng.permutation(len(of_point))
        return shuffled[np.argsort(rank[of_point[shuffled]], kind="stable")]


@dataclass(frozen=True)
class Sized:
    """Batches of texts that have about the same length, so that a transformer spends little time on pads.

    `lengths(learner)` is the length of each point's text (N,), `batch` the points of a step. Points are shuffled; then
    those of every `window` batches are sorted by length, cut into batches, and all full batches are shuffled. A wide
    window leaves fewer pads, a narrow one more chance. The last batch, if it is not full, has points of any length.
    """

    lengths: Callable[[Any], NDArray[np.integer[Any]]]
    batch: int
    window: int = 16

    def order(self, learner: Any, key: tuple[int, int, int]) -> Order:
        """A permutation whose batches have similar lengths each."""
        rng = np.random.default_rng(key)
        lengths = np.asarray(self.lengths(learner))
        shuffled = rng.permutation(len(lengths))
        full = len(shuffled) // self.batch * self.batch
        width = self.batch * self.window
        windows = [shuffled[start : min(start + width, full)] for start in range(0, full, width)]
        sorted_ = [window[np.argsort(lengths[window], kind="stable")] for window in windows]
        batches = np.concatenate([*sorted_, shuffled[:0]]).reshape(-1, self.batch)
        return np.concatenate([rng.permutation(batches).ravel(), shuffled[full:]])
