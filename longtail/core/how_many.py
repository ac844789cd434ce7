"""How many labels a point gets: the rules for k, cut-offs and thresholds.

- k is a whole number of at least 1. A k above the number of labels L is allowed: rankings then have L columns.
- Without a cut-off, a point gets its k best labels; k is 5 by default (`defaults.K`).
- A model may have a cut-off (the recipe parameter `cut_off`: f1, precision=P or labels=N). Labels below its threshold
  are left out, and k is the largest number of labels that a point may get. Without k, this number is the `most` of the
  cut-off: the depth at which its threshold was chosen.
- `predict(threshold=…)` replaces the threshold of the cut-off. Everything else stays as above.
- `predict(cut_off=False)` ignores the cut-off: a point gets its k best labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from longtail.core.defaults import K
from longtail.core.errors import ParameterError, shorten


def check_k(k: int) -> None:
    """Refuse a k that is not a whole number of at least 1."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ParameterError(f"k must be a whole number of at least 1; got {shorten(k)}")


def check_ks(ks: Iterable[int] | int) -> tuple[int, ...]:
    """Several k in ascending order, each once; refuses an empty list and what `check_k` refuses."""
    found = [ks] if isinstance(ks, (int, np.integer)) else list(ks)
    for k in found:
        check_k(k)
    if not found:
        raise ParameterError("ks must contain at least one k; got none")
    return tuple(sorted({int(k) for k in found}))


def check_threshold(threshold: float) -> None:
    """Refuse a threshold that is not a number; infinite ones are allowed (all labels pass, or none)."""
    number = isinstance(threshold, (int, float, np.number)) and not isinstance(threshold, bool)
    if not number or math.isnan(threshold):
        raise ParameterError(f"threshold must be a number; got {shorten(threshold)}")


def labels_to_rank(k: int | None, most: int | None) -> int:
    """How many labels of each point to rank: k, else the `most` of a cut-off that is in use, else 5."""
    if k is None:
        return K if most is None else most
    check_k(k)
    return int(k)
