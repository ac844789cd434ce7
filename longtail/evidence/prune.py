"""Dropping results that no longer count: their recipe or the evaluation has another version since.

A run is found again by its id, which contains both versions. A line whose id this version of the code would not give is
never read again; and no comparison or interval of such a run is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from longtail.core.errors import LongtailError
from longtail.core.recipe import recipes
from longtail.evidence.trials import System, Trial
from longtail.store.lines import rewrite_lines

log = logging.getLogger("longtail")


def prune(path: Path, dry_run: bool = False) -> int:
    """Drop the lines of a file of results that no longer count; the others stay byte for byte. Returns how many."""
    dropped = 0

    def kept(lines: list[bytes]) -> list[bytes]:
        nonlocal dropped
        gone = gone_runs(lines)
        stay = [line for line in lines if not drops(read(line), gone)]
        dropped = len(lines) - len(stay)
        return stay

    rewrite_lines(path, kept, dry_run)
    return dropped


def gone_runs(lines: list[bytes]) -> set[str]:
    """The ids of the runs that this version of the code would not give."""
    records = [read(line) for line in lines]
    return {record["id"] for record in records if record.get("kind") == "run" and not producible(record)}


def read(line: bytes) -> dict[str, Any]:
    """A line as a record; an incomplete one as an empty one."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}


def producible(record: dict[str, Any]) -> bool:
    """Whether the same settings, seed and corpus give this id now.

    A recipe that is not here may be one of another package, so its runs stay.
    """
    try:
        name, settings, seed, corpus = (record[key] for key in ("recipe", "settings", "seed", "corpus"))
        if name not in recipes:
            log.warning("runs of %r are kept: there is no such recipe here", name)
            return True
        return Trial.of(corpus["name"], corpus["digest"], System.of(name, settings), seed).id == record["id"]
    except KeyError:  # a line that this version cannot read
        return True
    except LongtailError:  # a setting, or a value of one, that no longer exists
        return False


def drops(record: dict[str, Any], gone: set[str]) -> bool:
    """Whether a line is dropped: a run that no longer counts, or what was computed from one."""
    kind = record.get("kind")
    found: dict[str, Callable[[], list[str]]] = {
        "run": lambda: [record["id"]],
        "comparison": lambda: [*record["a"]["runs"], *record["b"]["runs"]],
        "intervals": lambda: record["runs"],
    }
    try:
        return kind in found and not gone.isdisjoint(found[kind]())
    except (KeyError, TypeError):  # a line of another form stays
        return False
