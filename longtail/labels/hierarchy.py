"""Reads a label hierarchy of the user, to be used instead of clusters: a file that names the parent of each node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.labels.tree import LabelTree

LABEL = "\0"  # put before a key that JSON lines call a label, since a cluster may have the same name
FIX = 'a line is {"parent": …, "node": …}, {"parent": …, "label": …}, or child<TAB>parent'


def read_hierarchy(path: str | Path, labels: Labels) -> LabelTree:
    """The tree that a file describes; it must contain every label of `labels`.

    JSON lines of `{"parent": …, "node": …}` and `{"parent": …, "label": …}` (what `longtail tree --format jsonl`
    writes), or lines of `child<TAB>parent`. A name that is never a child is placed below the root. In the second form a
    label may have children; it is then placed beside them. Labels may be at different depths.
    """
    path = Path(path)
    return tree_of(_read(path), labels, path)


def tree_of(parents: dict[str, str], labels: Labels, where: Path | None = None) -> LabelTree:
    """The tree described by `parents`: the parent of each label (by its key, or LABEL + key) and of each inner node."""
    inner = set(parents.values())
    keys = [LABEL + key if LABEL + key in parents else key for key in labels.keys]
    missing = [key for key in keys if key not in parents and key not in inner]
    if missing:
        shown = ", ".join(map(repr, missing[:3])) + (", …" if len(missing) > 3 else "")
        raise DataError(
            f"the hierarchy does not hold {len(missing):,} of {len(keys):,} labels",
            where=where,
            found=shown,
            fix="name the parent of every label",
        )
    paths = [_path(key, parents, inner, where) for key in keys]
    depth = max(map(len, paths), default=0)
    numbers: dict[str | tuple[str, int], int] = {}
    nodes: list[NDArray[np.int64]] = []
    for t in range(depth):
        # a label that is higher up forms a cluster of its own on the lower levels
        names = [path[t] if t < len(path) else (key, t) for key, path in zip(keys, paths, strict=True)]
        nodes.append(np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64))
    return LabelTree.from_nodes(len(keys), nodes)


def _path(key: str, parents: dict[str, str], inner: set[str], where: Path | None) -> list[str]:
    """The inner nodes on the path from the root (not included) to a label; a label with children is one of them."""
    path, at = [key] if key in inner else [], key
    while at in parents:
        at = parents[at]
        path.append(at)
        if len(path) > len(parents) + 1:
            raise DataError(f"the hierarchy goes in a circle above {key.removeprefix(LABEL)!r}", where=where, found=at)
    root = path.pop() if path and path[-1] not in parents and path[-1] != key else None
    if root is not None and root != "root":  # a top node that the user named: it is placed below the root
        path.append(root)
    return path[::-1]


def _read(path: Path) -> dict[str, str]:
    parents: dict[str, str] = {}
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise DataError(f"the hierarchy cannot be read: {error.strerror}", where=path) from None
    except UnicodeDecodeError as error:
        raise DataError("the hierarchy is not UTF-8", where=path, found=f"byte {error.start}") from None
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        child, parent = _parse(line, path, number)
        if parents.setdefault(child, parent) != parent:
            found = f"{parents[child]!r} and {parent!r}"
            raise DataError(
                f"{child.removeprefix(LABEL)!r} has two parents",
                where=path,
                line=number,
                found=found,
                fix="a tree has one",
            )
    return parents


def _parse(line: str, path: Path, number: int) -> tuple[str, str]:
    if line.lstrip().startswith("{"):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise DataError(f"not valid JSON: {error}", where=path, line=number, found=line, fix=FIX) from None
        child = row.get("label", row.get("node"))
        if isinstance(child, str) and isinstance(row.get("parent"), str):
            return (LABEL if "label" in row else "") + child, row["parent"]
    else:
        child, tab, parent = line.partition("\t")
        if tab and child and parent:
            return child, parent
    raise DataError("the line does not name a child and its parent", where=path, line=number, found=line, fix=FIX)
