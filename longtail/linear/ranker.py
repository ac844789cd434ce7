"""A label tree with the weights of its levels: ranks labels for points."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail._native.linear import BeamSearch, PackedLevel
from longtail.labels.tree import LabelTree
from longtail.linear.features import Features

BIAS = 1.0  # the value of the feature that every point has


class Ranker:
    """One tree, and for each of its levels the weights of all nodes; `width` features besides the bias."""

    def __init__(self, tree: LabelTree, levels: list[PackedLevel], width: int):
        self.tree, self.levels, self.width = tree, levels, width
        self._search = BeamSearch(width, levels)
        self._last_usable: tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None] = None, None
        self._smallest_cluster = 1 if len(levels) == 1 else int(np.diff(tree.levels[-2]).min())

    def search(
        self, features: Features, k: int, beam: int, post: str, gone: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best labels (N, k) and their scores; pads −1, −inf. Labels that are `gone` (L,) are left out.

        The beam is widened where it could not reach k labels: for all points where clusters are small, and after that
        for the points that met too many labels that are gone.
        """
        usable, left = self._usable(gone)
        beam = min(max(beam, -(-k // self._smallest_cluster)), len(self.tree))
        found, scores = self._best(features, k, beam, post, usable)
        least = min(k, left)
        while usable is not None and least and beam < len(self.tree) and (found[:, least - 1] < 0).any():
            beam = min(4 * beam, len(self.tree))
            short = np.flatnonzero(found[:, least - 1] < 0)
            found[short], scores[short] = self._best(features.take(short), k, beam, post, usable)
        return found, scores

    def _best(
        self, features: Features, k: int, beam: int, post: str, usable: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self._search.search(
            features.arrays, features.dense, bias=BIAS, beam=beam, k=k, post=post, names=self.tree.order, usable=usable
        )

    def _usable(self, gone: NDArray[np.bool_] | None) -> tuple[NDArray[np.bool_] | None, int]:
        """Which nodes of the last level may be found (None: all) and how many; remembered for the next query."""
        if gone is None:
            return None, len(self.tree)
        known, usable = self._last_usable
        if gone is not known:
            usable = None if not gone.any() else ~gone[self.tree.order]
            self._last_usable = gone, usable
        return usable, len(self.tree) if usable is None else int(np.count_nonzero(usable))

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Arrays from which `from_state` builds this ranker again."""
        arrays: dict[str, NDArray[Any]] = {f"{prefix}.order": self.tree.order}
        for t, level in enumerate(self.levels):
            if t < len(self.levels) - 1:  # on the last every label is a node
                arrays[f"{prefix}.ends{t}"] = self.tree.levels[t]
            arrays |= {f"{prefix}.level{t}.{name}": array for name, array in level._asdict().items()}
        return arrays

    @classmethod
    def from_state(cls, arrays: Any, prefix: str, levels: int, width: int) -> Ranker:
        """The ranker that `state` described."""
        order, ends = arrays[f"{prefix}.order"], (arrays[f"{prefix}.ends{t}"] for t in range(levels - 1))
        tree = LabelTree(order, (*ends, np.arange(len(order) + 1)))
        fields = PackedLevel._fields
        packed = [PackedLevel(*(arrays[f"{prefix}.level{t}.{name}"] for name in fields)) for t in range(levels)]
        for t, level in enumerate(packed):
            if not np.array_equal(level.child_ptr, tree.child_ptr(t)):
                raise ValueError(f"the weights of level {t} do not belong to its tree.")
        ranker = cls(tree, packed, width)
        for level in packed:
            level.check_records(width + 1)
        return ranker
