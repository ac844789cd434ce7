"""A label tree for people: an outline of its nodes, each with words and labels that describe its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import ParameterError
from longtail.core.labels import Labels
from longtail.labels.paths import way_to
from longtail.labels.tree import LabelTree
from longtail.report.names import short_name

WordsOf = Callable[[int, int, int], list[str]]  # (level, node, count) → words that distinguish a node from its siblings
FEW_LINES = 80  # lines of an outline if the user set no limit


class Node(NamedTuple):
    """Node `number` of a level (the root has level −1). Its name lists child numbers from the root down: "2.0.13"."""

    level: int
    number: int
    name: str


ROOT = Node(-1, 0, "root")


class Line(NamedTuple):
    """A line of an outline: the drawn branches and a node; or, without a node, how many siblings are left out."""

    branches: str
    node: Node | None
    left_out: int = 0


class TreeView:
    """A tree with the names of its labels, and for each cluster its typical words and most frequent labels.

    Removed labels are left out. `words` finds the words of a node; None if the model has none.
    """

    def __init__(
        self, tree: LabelTree, labels: Labels, words: WordsOf | None = None, *, word_count: int = 5, examples: int = 4
    ):
        self.tree, self.labels, self._words = tree, labels, words
        self.word_count, self.examples = word_count, examples
        self.depth = len(tree.levels)
        self._child_ptr = [tree.child_ptr(t) for t in range(self.depth)]

    def is_label(self, node: Node) -> bool:
        """Whether a node is a label, not a cluster."""
        return node.level == self.depth - 1

    def label_of(self, node: Node) -> int:
        """The index of the label at a node of the last level."""
        return int(self.tree.order[node.number])

    def children(self, node: Node) -> list[Node]:
        """The children of a node, from left to right."""
        if self.is_label(node):
            return []
        first, last = self._child_ptr[node.level + 1][node.number : node.number + 2].tolist()
        stem = "" if node is ROOT else f"{node.name}."
        found = [Node(node.level + 1, i, f"{stem}{i - first}") for i in range(first, last)]
        gone = self.labels.removed
        if gone is None or not self.is_label(Node(node.level + 1, first, "")):
            return found
        return [child for child in found if not gone[self.label_of(child)]]

    def members(self, node: Node) -> NDArray[np.int32]:
        """The labels below a node, the most frequent first."""
        ends = np.array([0, len(self.tree)]) if node.level < 0 else self.tree.levels[node.level]
        below = np.sort(self.tree.order[ends[node.number] : ends[node.number + 1]])
        if self.labels.removed is not None:
            below = below[~self.labels.removed[below]]
        return below[np.argsort(-self.labels.counts[below], kind="stable")]

    def words(self, node: Node) -> list[str]:
        """The words that distinguish a node from its siblings; none for the root."""
        return [] if self._words is None or node.level < 0 else self._words(node.level, node.number, self.word_count)

    def find(self, name: str) -> Node:
        """The node with a name such as "2.0.13", or "root"."""
        node = ROOT
        for part in [] if name == ROOT.name else name.split("."):
            last = "" if node is ROOT else f"{node.name}."
            known = self.children(node)
            found = [child for child in known if child.name == f"{last}{part}"]
            if not found:
                raise ParameterError(
                    f"the tree has no node {name!r}: {node.name} has {len(known):,} children, numbered from 0"
                )
            node = found[0]
        return node

    def way(self, label: int) -> list[Node]:
        """The nodes from the root (included) down to a label."""
        nodes = [ROOT]
        for stop in way_to(self.tree, label):
            stem = "" if nodes[-1] is ROOT else f"{nodes[-1].name}."
            number = int(self._child_ptr[nodes[-1].level + 1][nodes[-1].number]) + stop.child
            nodes.append(Node(nodes[-1].level + 1, number, f"{stem}{stop.child}"))
        return nodes

    def name_of(self, label: int) -> str:
        """The name of a label in an outline: its key; if the key is only a number, its text."""
        return short_name(self.labels, label)

    def facts(self, node: Node) -> dict[str, Any]:
        """What is known about one node, as JSON values."""
        if self.is_label(node):
            label = self.label_of(node)
            text = {} if self.labels.texts is None else {"text": self.labels.texts[label]}
            return {"label": self.labels.keys[label], **text, "count": int(self.labels.counts[label])}
        members = self.members(node)
        examples = [self.labels.keys[int(i)] for i in members[: self.examples]]
        return {"node": node.name, "labels": len(members), "words": self.words(node), "examples": examples}

    def few_levels(self, start: Node, most_children: int) -> int:
        """How many levels an outline can show within about FEW_LINES lines; at least one."""
        layer, lines, depth = [start], 0, 0
        while layer and not self.is_label(layer[0]):
            layer = [child for node in layer for child in self.children(node)[:most_children]]
            lines += len(layer)
            if depth and lines > FEW_LINES:
                break
            depth += 1
        return depth


def outline(
    view: TreeView, start: Node, depth: int, most: int, follow: list[Node] | None = None, branches: str = ""
) -> Iterator[Line]:
    """The lines for the nodes below `start`, `depth` levels down, at most `most` children of each; labels by frequency.

    With `follow` only the nodes on that path are opened.
    """
    children = view.children(start)
    if children and view.is_label(children[0]):
        children.sort(key=lambda child: -view.labels.counts[view.label_of(child)])
    chosen = children[:most]
    if follow is not None and len(children) > most:  # a node on the path is never left out
        on_way = [child for child in children[most:] if child in follow]
        chosen = chosen[: most - len(on_way)] + on_way
    left_out = len(children) - len(chosen)
    for i, child in enumerate(chosen):
        last = i == len(chosen) - 1 and not left_out
        yield Line(branches + ("└─ " if last else "├─ "), child)
        if depth > 1 and (follow is None or child in follow):
            yield from outline(view, child, depth - 1, most, follow, branches + ("   " if last else "│  "))
    if left_out:
        yield Line(branches + "└─ ", None, left_out)


def pieces(view: TreeView, line: Line, follow: list[Node] | None = None) -> list[tuple[str, str]]:
    """A line of an outline as (text, kind) pieces; kinds: branch, node, way (a node on the path), label, size, …"""
    node = line.node
    if node is None:
        return [(line.branches, "branch"), (f"… {line.left_out:,} more", "size")]
    kind = "way" if follow is not None and node in follow else "label" if view.is_label(node) else "node"
    if view.is_label(node):
        count = f"  {view.labels.counts[view.label_of(node)]:,}×"
        arrow = "  ◀" if kind == "way" else ""
        return [(line.branches, "branch"), (view.name_of(view.label_of(node)), kind), (count, "size"), (arrow, "way")]
    members = view.members(node)
    named = ", ".join(view.name_of(int(i)) for i in members[: view.examples])
    words = f"  [{', '.join(view.words(node))}]" if view.words(node) else ""
    size = f"  {len(members):,} labels"
    return [
        (line.branches, "branch"),
        (node.name, kind),
        (size, "size"),
        (words, "words"),
        (f"  {named}", "names"),
    ]
