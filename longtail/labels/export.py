"""A label tree for other programs: nested JSON, a parent list, `label<TAB>path`, a Graphviz graph."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from longtail.labels.show import Node, TreeView


def nested(view: TreeView, node: Node, depth: int, follow: list[Node] | None = None) -> dict[str, Any]:
    """A node and everything below it as one JSON value, `depth` levels down; with `follow`, only along that path."""
    facts = view.facts(node)
    if depth and not view.is_label(node) and (follow is None or node in follow):
        facts["children"] = [nested(view, child, depth - 1, follow) for child in view.children(node)]
    return facts


def parent_list(view: TreeView, node: Node, depth: int) -> Iterator[bytes]:
    """A line of JSON for every node below: a cluster by name or a label by key, each with the name of its `parent`."""
    if depth:
        for child in view.children(node):
            yield orjson.dumps({"parent": node.name, **view.facts(child)}) + b"\n"
            yield from parent_list(view, child, depth - 1)


def label_paths(view: TreeView, node: Node, depth: int) -> Iterator[bytes]:
    """`label<TAB>path` for every label below: the path is the name of its cluster, at most `depth` levels down.

    Backslash, tab and line breaks in a key are written \\\\\\\\, \\\\t, \\\\n and \\\\r.
    """
    children = view.children(node)
    if depth and children and not view.is_label(children[0]):
        for child in children:
            yield from label_paths(view, child, depth - 1)
        return
    tail = b"\t" + node.name.encode() + b"\n"
    yield b"".join(escaped(view.labels.keys[int(i)]).encode() + tail for i in np.sort(view.members(node)))


def escaped(key: str) -> str:
    """The key with backslash, tab and line breaks escaped, so that it fits in one field of one line."""
    return key.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def graph(view: TreeView, start: Node, depth: int) -> Iterator[bytes]:
    """The nodes below `start` as a graph in the language of Graphviz, `depth` levels down."""

    def box(node: Node) -> str:
        if view.is_label(node):
            lines = [view.name_of(view.label_of(node))]
        else:
            members = view.members(node)
            named = ", ".join(view.name_of(int(i)) for i in members[: view.examples])
            lines = [f"{len(members):,} labels", ", ".join(view.words(node)), named]
        label = json.dumps("\n".join(line for line in lines if line), ensure_ascii=False)
        return f"  {json.dumps(node.name)} [label={label}];\n"

    def below(node: Node, levels: int) -> Iterator[str]:
        for child in view.children(node) if levels else []:
            yield box(child) + f"  {json.dumps(node.name)} -> {json.dumps(child.name)};\n"
            yield from below(child, levels - 1)

    yield b'digraph labels {\n  rankdir=LR; node [shape=box, fontname="sans-serif"];\n'
    yield box(start).encode()
    for line in below(start, depth):
        yield line.encode()
    yield b"}\n"
