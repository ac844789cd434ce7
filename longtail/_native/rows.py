"""The kernels of dense tables of which few rows are asked for at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._native import _kernels

Floats = NDArray[np.float32]


def dots(x: Floats, table: Floats, rows: NDArray[np.integer[Any]]) -> Floats:
    """x[b] · table[rows[b, c]] as (B, C), for x (B, d), table (n, d) and rows (B, C); −1 gives 0.

    Nothing of the size B·C·d is made.
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
    """Adam's step number `steps` for the rows `ids` (U,), each there once, of a table (n, d) and its moments, in place.

    `grad` is (U, d). The three tables must be contiguous float32: others are refused, not copied.
    """
    root = (1 - betas[1] ** steps) ** 0.5
    rate = lr / (1 - betas[0] ** steps)
    step = (1 - betas[0], betas[1], 1 - betas[1], root, eps, rate)
    _kernels.adam_rows(weight, first, second, ids, np.ascontiguousarray(grad, np.float32), *step)
