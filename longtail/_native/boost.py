"""Kernels for gradient-boosted trees over binned features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._native import _kernels

Floats = NDArray[np.float32]


class Grown(NamedTuple):
    """T complete trees of one depth in the order of heaps: a row goes left where its bin is at most `bins`.

    `features`, `bins` (T, 2^depth − 1) int32, −1 for a node that sends every row left; `values` (T, 2^depth).
    """

    features: NDArray[np.int32]
    bins: NDArray[np.int32]
    values: Floats


def grow_trees(
    bins: NDArray[np.uint8],
    targets: Floats,
    weights: Floats,
    *,
    start: float,
    trees: int,
    depth: int,
    rate: float,
    ridge: float,
    least_curvature: float,
    least_gain: float = 0.0,
) -> Grown:
    """Trees whose sum, added to `start`, is the margin of p(y = 1), by boosting on the weighted logistic loss.

    `bins` (D, N): of each feature the bin of each row; `targets` (N,) in [0, 1]; `weights` (N,) multiply the loss.
    `rate` multiplies the value of each leaf, `ridge` is added to its curvature; a side of a split needs
    `least_curvature`, a split a gain above `least_gain`.
    """
    bins, targets, weights = np.ascontiguousarray(bins), targets.astype(np.float32), weights.astype(np.float32)
    more = trees, depth, rate, ridge, least_curvature, least_gain
    return Grown(*_kernels.boost(bins, targets, weights, start, *more))


def sum_trees(X: Floats, features: NDArray[np.int32], cuts: Floats, values: Floats) -> NDArray[np.float64]:
    """The sum of the trees' values (N,) for the rows of X (N, D); a row goes left where X[feature] ≤ cut."""
    return _kernels.boosted(np.ascontiguousarray(X, np.float32), features, cuts, values)
