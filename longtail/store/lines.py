"""Append-only files of JSON lines: after a crash, each line is either complete or ignored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from longtail.store import disk
from longtail.store.lock import locked

log = logging.getLogger("longtail")


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append one record and sync it. Several processes may do so at once; the folder's lock makes them take turns."""
    disk.make_folders(path.parent)
    line = orjson.dumps(record, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    with locked(path.parent):
        known = path.exists()
        if known and not _ends_well(path):  # a half-written line must not swallow this one
            line = b"\n" + line
        disk.append(path, line)
        if not known:
            disk.sync_folder(path.parent)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return all records, in order; empty if there is no file. Broken lines are skipped, with a warning."""
    if not path.exists():
        return []
    with disk.explained("read this file", path):
        lines = path.read_bytes().split(b"\n")
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = None
        if isinstance(record, dict):
            records.append(record)
        else:
            log.warning("%s, line %d: skipped, because it is incomplete (a write was interrupted)", path, number)
    return records


def _ends_well(path: Path) -> bool:
    """Whether a file is empty or ends with a newline."""
    with disk.explained("read this file", path), path.open("rb") as file:
        size = file.seek(0, 2)
        if not size:
            return True
        file.seek(size - 1)
        return file.read(1) == b"\n"


def rewrite_lines(path: Path, kept: Callable[[list[bytes]], list[bytes]], dry_run: bool = False) -> None:
    """Keep only those lines of a file that `kept` returns; each stays byte for byte. Nobody appends meanwhile."""
    with locked(path.parent):
        with disk.explained("read this file", path):
            lines = path.read_bytes().splitlines(keepends=True)
        stay = kept(lines)
        if len(stay) < len(lines) and not dry_run:
            disk.write_atomically(path, stay)
