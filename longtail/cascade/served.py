"""Prediction without torch: a trained cascade as arrays.

Whatever label weights were made of in training, in the end they are one vector for each label. So all systems are
served alike, and those with a bag encoder need NumPy alone. Encoder, levels and join are found by their registered
kinds, never by recipe.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.rows import dots
from longtail.cascade.joins import Join, joins
from longtail.core.registry import Registry
from longtail.encoders.export import Arrays, Exported, arrays_under, served
from longtail.encoders.served import Floats, ServedEncoder, served_encoders

BLOCK = 256  # texts whose candidates' weights are held at a time; fewer if the encoder's features are large
R = TypeVar("R")


class ServedLevel(Protocol):
    """One level of a trained cascade."""

    K: int  # nodes
    beam: int  # nodes of the level above whose children are candidates here
    children: NDArray[np.int32]  # (K of the level above, W), padded by −1

    def logits(self, features: dict[str, Floats], nodes: NDArray[np.integer[Any]] | None = None) -> Floats:
        """The logits of candidates (B, C), or of all nodes (B, K)."""
        ...


served_levels: Registry[type[ServedLevel]] = Registry("level")
served_levels.add("dot", "longtail.cascade.served:ServedDot")
served_levels.add("attended", "longtail.cascade.attended_served:ServedAttended")


class ServedDot:
    """`scoring.level.Dot`: weights · feature + bias."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.weights, self.bias, self.feature = arrays["weights"], arrays["bias"], meta["feature"]
        self.K, self.beam = len(self.weights), int(meta.get("beam", 0))
        self.children = arrays.get("children", np.zeros((0, 0), np.int32))

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> ServedDot:
        """From what `Dot.export` gave."""
        return cls(arrays, meta)

    def logits(self, features: dict[str, Floats], nodes: NDArray[np.integer[Any]] | None = None) -> Floats:
        x = features[self.feature]  # (B, d)
        if nodes is not None:
            return dots(x, self.weights, nodes) + self.bias[nodes]
        if len(x) == 1:  # BLAS would start its threads for one text, which takes longer than the product
            return dots(x, self.weights, np.arange(self.K)[None, :]) + self.bias
        return np.asarray(x @ self.weights.T, np.float32) + self.bias


class Network:
    """One trained network: encoder, levels and join, made from what `Cascade.export` gave."""

    def __init__(self, arrays: Arrays, meta: dict[str, Any]):
        self.arrays, self.meta = arrays, meta
        self.encoder: ServedEncoder = served(served_encoders, arrays_under("encoder", arrays), meta["encoder"])
        self.levels: list[ServedLevel] = [
            served(served_levels, arrays_under(f"level{t}", arrays), own) for t, own in enumerate(meta["levels"])
        ]
        self.join: Join = served(joins, arrays_under("join", arrays), meta["join"])

    def scores(self, rows: Any) -> sp.csr_matrix:
        """The scores of each text's candidate labels (N, L)."""
        return sp.vstack(list(self.each(rows, self.join.scores)), "csr")

    def each(self, rows: Any, work: Callable[[list[ServedLevel], dict[str, Floats]], R]) -> Iterator[R]:
        """What `work` makes of the levels and the features of N texts, block by block."""
        block = min(BLOCK, getattr(self.encoder, "block", BLOCK))
        for first in range(0, rows.shape[0], block):
            yield work(self.levels, self.encoder.features(rows[first : first + block]))

    def widened(self, breadth: float) -> Network:
        """A copy whose search keeps `breadth` times as many nodes of each level as training did; arrays are shared."""
        network = copy.copy(self)
        network.levels = [copy.copy(level) for level in self.levels]
        for above, level, own in zip(self.levels, network.levels[1:], self.meta["levels"][1:], strict=False):
            level.beam = min(math.ceil(own.get("beam", 0) * breadth), above.K)
        return network

    def export(self) -> Exported:
        """The arrays and settings as they are to be saved: those of the join may have changed since training."""
        return Exported(dict(self.arrays), self.meta | {"join": self.join.export().meta})
