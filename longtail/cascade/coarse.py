"""Networks that are trained on clusters of labels, from coarse to fine, and never see more of the labels than these."""

from __future__ import annotations

from dataclasses import replace

from longtail.labels.tree import LabelTree
from longtail.scoring.points import Points


def coarse_points(points: Points, tree: LabelTree, t: int) -> Points:
    """The points with the nodes of level t as their labels (eq. 5); a node all of whose labels are ignored is ignored.

    There are no label texts then.
    """
    if t == len(tree.levels) - 1:
        return points
    ignore = None if points.ignore is None else tree.all_of(points.ignore, t)
    return replace(points, Y=tree.targets(points.Y, t), ignore=ignore, label_tokens=None, label_rows=None)
