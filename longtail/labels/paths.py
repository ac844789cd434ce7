"""The way from the root of a label tree to a label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.labels.tree import LabelTree


class Stop(NamedTuple):
    """A node on the way to a label: number `child` of the children of node `parent` of the level above."""

    parent: int
    child: int
    labels: int


def way_to(tree: LabelTree, label: int) -> list[Stop]:
    """The nodes from below the root down to a label."""
    place = int(np.flatnonzero(tree.order == label)[0])
    way, parent, start = [], 0, 0
    for ends in tree.levels:
        node = int(np.searchsorted(ends, place, side="right")) - 1
        first = int(np.searchsorted(ends, start))  # the first child of the parent begins where the parent does
        way.append(Stop(parent, node - first, int(ends[node + 1] - ends[node])))
        parent, start = node, int(ends[node])
    return way
