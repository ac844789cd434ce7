"""The path from the root of a label tree to a label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.labels.tree import LabelTree


class Stop(NamedTuple):
    """A node on the path to a label: child number `child` of node `parent` one level up; `labels` counts its labels."""

    parent: int
    child: int
    labels: int


def way_to(tree: LabelTree, label: int) -> list[Stop]:
    """The nodes on the path from the root (not included) to a label."""
    place = int(np.flatnonzero(tree.order == label)[0])
    way, parent, start = [], 0, 0
    for ends in tree.levels:
        node = int(np.searchsorted(ends, place, side="right")) - 1
        first = int(np.searchsorted(ends, start))  # the first child starts at the same label as its parent
        way.append(Stop(parent, node - first, int(ends[node + 1] - ends[node])))
        parent, start = node, int(ends[node])
    return way
