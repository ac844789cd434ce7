"""Features that are computed when they are asked for. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")


class OnDemand(dict[str, T]):
    """Features by name; `compute` makes a missing one when it is first read.

    For encoders with a network of its own for each level: a phase that trains one level pays for one network.
    """

    def __init__(self, compute: Callable[[str], T], known: Mapping[str, T]):
        super().__init__(known)
        self.compute = compute

    def __missing__(self, name: str) -> T:
        self[name] = found = self.compute(name)
        return found
