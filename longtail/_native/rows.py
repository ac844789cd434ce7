"""Kernels for training few rows of a large table: inner products, Adam steps, and candidate lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._native import _kernels

Floats = NDArray[np.float32]


def dots(x: Floats, table: Floats, rows: NDArray[np.integer[Any]]) -> Floats:
    """Return x[b] · table[rows[b, c]] as (B, C), for x (B, d), table (n, d) and rows (B, C); −1 gives 0.

    No array of size B·C·d is created.
    """
    arrays = (np.ascontiguousarray(x, np.float32), np.ascontiguousarray(table, np.float32))
    return _kernels.dots(*arrays, np.ascontiguousarray(rows, np.int64))


def adam_rows(
    weight: Floats,
    first: Floats,
    second: Floats,
    ids: NDArray[np.int64],
    grad: Floats,
    *,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    steps: int,
) -> None:
    """Do Adam's step `steps` in place for the rows `ids` (U,), all different, of a table (n, d) and its moments.

    `grad` is (U, d). The three tables must be contiguous float32: others are refused, not copied.
    """
    root = (1 - betas[1] ** steps) ** 0.5
    rate = lr / (1 - betas[0] ** steps)
    step = (1 - betas[0], betas[1], 1 - betas[1], root, eps, rate)
    _kernels.adam_rows(weight, first, second, ids, np.ascontiguousarray(grad, np.float32), *step)


def join_truth(
    ptr: NDArray[np.int64], labels: NDArray[np.int64], values: Floats, shortlist: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Floats, Floats, int]:
    """Join true labels and a shortlist (B, S): returns candidates (B, most + S), whether each counts, their targets.

    Row b has the true labels[ptr[b]:ptr[b + 1]], in ascending order; they come first, padded with −1. If a label of the
    shortlist is true, it counts only once, at its first place. The last value returned is how many shortlisted labels
    are true.
    """
    return _kernels.join_truth(ptr, labels, values, np.ascontiguousarray(shortlist, np.int64))
