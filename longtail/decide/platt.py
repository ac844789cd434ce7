"""Platt scaling: a sigmoid of the score (Platt, 1999; solved as in Lin, Lin and Weng, 2007)."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from longtail.core.decision import Sigmoid

log = logging.getLogger("longtail")
ROUNDS, GRADIENT, RIDGE, LEAST_STEP = 100, 1e-9, 1e-12, 1e-10


def fit_platt(scores: NDArray[np.float64], truth: NDArray[np.float64], say: bool = True) -> Sigmoid:
    """Fit a and b of 1 / (1 + exp(a·score + b)), maximising the likelihood of Platt's smoothed targets.

    A true label counts as (n₊ + 1) / (n₊ + 2), a false one as 1 / (n₋ + 2), so that no probability is 0 or 1, and a and
    b are finite. If higher scores mean fewer true labels, a is set to 0: all labels get the same probability, with a
    warning if `say`.
    """
    targets = smoothed(truth)
    middle, scale = float(scores.mean()), float(scores.std())
    if scale > 0:
        a, b = newton((scores - middle) / scale, targets)
        if a <= 0:
            return Sigmoid(a / scale, b - a * middle / scale)
    if say:
        log.warning("higher scores do not mean more true labels: Platt scaling gives every label the same probability")
    mean = float(targets.mean())
    return Sigmoid(0.0, float(np.log((1 - mean) / mean)))


def smoothed(truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Platt's smoothed targets; soft targets lie between the two values."""
    true = float(truth.sum())
    high, low = (true + 1) / (true + 2), 1 / (len(truth) - true + 2)
    return truth * high + (1 - truth) * low


def newton(z: NDArray[np.float64], targets: NDArray[np.float64]) -> tuple[float, float]:
    """Newton's method with step halving; `z` has mean 0 and deviation 1. The problem is convex: one solution."""
    mean = float(targets.mean())
    w = np.array([0.0, np.log((1 - mean) / mean)])
    Z = np.stack([z, np.ones_like(z)], 1)  # (n, 2)
    loss, p = loss_of(Z @ w, targets)
    for _ in range(ROUNDS):
        gradient = Z.T @ (targets - p) / len(z)
        if np.abs(gradient).max() < GRADIENT:
            break
        curvature = (Z * (p * (1 - p))[:, None]).T @ Z / len(z) + RIDGE * np.eye(2)
        direction = -np.linalg.solve(curvature, gradient)
        step = 1.0
        while step > LEAST_STEP:
            tried, p_tried = loss_of(Z @ (w + step * direction), targets)
            if tried <= loss + 1e-4 * step * float(gradient @ direction):
                break
            step /= 2
        else:
            break  # no step lowers the loss further: this is the limit of floating point
        w, loss, p = w + step * direction, tried, p_tried
    return float(w[0]), float(w[1])


def loss_of(exponent: NDArray[np.float64], targets: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return the mean negative log likelihood, and the probabilities 1 / (1 + exp(exponent)), without overflow."""
    log1p = np.logaddexp(0, exponent)
    return float((log1p - (1 - targets) * exponent).mean()), np.exp(-log1p)
