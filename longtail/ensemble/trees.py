"""Gradient-boosted trees that give probabilities, kept as three arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._native.boost import grow_trees, sum_trees
from longtail.core.errors import StoreError
from longtail.core.parameters import Parameters, param

Floats = NDArray[np.float32]
SAMPLE = 100_000  # rows, evenly taken, that bins are found with


@dataclass(frozen=True)
class TreeSettings(Parameters):
    """How boosted trees are grown."""

    kind = "trees"
    trees: int = param(100, "boosting rounds", at_least=0)
    depth: int = param(5, "levels of a tree", at_least=1, at_most=12)
    rate: float = param(0.07, "what each leaf's value is multiplied by", above=0.0)
    ridge: float = param(1.0, "added to the curvature of a leaf", at_least=0.0)
    least: float = param(2.0, "curvature that each side of a split needs", at_least=0.0)
    bins: int = param(64, "bins of a feature", at_least=2, at_most=256)


@dataclass(frozen=True, eq=False)
class Trees:
    """T complete trees of one depth, in the order of heaps: `features`, `cuts` (T, 2^depth − 1), `values` (T, 2^depth).

    A row goes left where its feature is at most the cut, and where the feature is −1. The margin of p(y = 1) is
    `start` plus the sum of the values.
    """

    features: NDArray[np.int32]
    cuts: Floats
    values: Floats
    start: float

    @classmethod
    def fit(cls, X: Floats, y: NDArray[Any], settings: TreeSettings, weights: NDArray[Any] | None = None) -> Trees:
        """Boost on the rows of X (N, D) with targets y (N,) in [0, 1]; the result does not depend on threads."""
        edges = [edges_of(column, settings.bins) for column in X.T]
        bins = np.stack([np.searchsorted(own, column, "left") for own, column in zip(edges, X.T, strict=True)])
        weights = np.ones(len(y)) if weights is None else weights
        share = float(np.clip(np.average(y, weights=weights), 1e-6, 1 - 1e-6))
        start = float(np.log(share / (1 - share)))
        grown = grow_trees(
            bins.astype(np.uint8),
            np.asarray(y, np.float32),
            np.asarray(weights, np.float32),
            start=start,
            trees=settings.trees,
            depth=settings.depth,
            rate=settings.rate,
            ridge=settings.ridge,
            least_curvature=settings.least,
        )
        table = np.zeros((len(edges), settings.bins), np.float32)  # a split never lies after the last edge
        for row, own in zip(table, edges, strict=True):
            row[: len(own)] = own
        cuts = np.where(grown.features < 0, np.float32(0), table[np.maximum(grown.features, 0), grown.bins])
        return cls(grown.features, cuts, grown.values, start)

    def __call__(self, X: Floats) -> NDArray[np.float64]:
        """p(y = 1) of each row (N,)."""
        return 1 / (1 + np.exp(-self.margins(X)))

    def margins(self, X: Floats) -> NDArray[np.float64]:
        """log p / (1 − p) of each row (N,)."""
        return self.start + sum_trees(X, self.features, self.cuts, self.values)

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays from which `from_state` makes it again."""
        start = np.array([self.start])
        return {"features": self.features, "cuts": self.cuts, "values": self.values, "start": start}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], width: int) -> Trees:
        """The trees whose `state` is given, over `width` features."""
        features, cuts, values = (arrays[name] for name in ("features", "cuts", "values"))
        inner = features.shape[1] if features.ndim == 2 else 0
        fits = features.ndim == 2 and cuts.shape == features.shape and values.shape == (len(features), inner + 1)
        kinds = features.dtype == np.int32 and cuts.dtype == values.dtype == np.float32
        if not fits or not kinds or inner & (inner + 1) or (features >= width).any() or (features < -1).any():
            raise StoreError("the trees of the ensemble do not fit together; it is damaged: train it again")
        return cls(np.ascontiguousarray(features), cuts, values, float(arrays["start"][0]))


def edges_of(values: Floats, bins: int) -> Floats:
    """At most bins − 1 rising values that divide a feature into bins of about equally many rows."""
    sample = values[:: max(1, len(values) // SAMPLE)]
    found = np.unique(np.quantile(sample, np.arange(1, bins) / bins, method="lower"))
    return found[found < values.max()].astype(np.float32)
