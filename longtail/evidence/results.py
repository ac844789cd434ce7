"""The results: an append-only file of JSON lines for each corpus, small enough for a repository.

A line is one of five kinds: "run" (a training and its figures, or how it failed), "peer" (the same of another project,
see `peers`), "comparison" (the differences between two systems with their paired intervals), "intervals" (the figures
of one system with theirs) and "premise" (which share of the co-labels that Gandalf gives label texts is true, see
`augment.premise`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longtail.store.lines import append_line, read_lines

FOLDER = Path("bench") / "results"
HAVE: dict[str, dict[str, type]] = {  # the kinds, and the fields that a line of each must have
    "run": {"id": str, "corpus": dict, "recipe": str, "settings": dict, "seed": int, "status": str},
    "peer": {"id": str, "corpus": dict, "peer": str, "system": str, "settings": dict, "status": str},
    "comparison": {"id": str, "rows": dict},
    "intervals": {"id": str, "rows": dict},
    "premise": {"id": str, "corpus": dict, "texts": int, "given": int, "true": int, "known": int},
}


@dataclass
class Recorded:
    """Everything recorded for one corpus, by kind and id; if an id occurs twice, the later line counts."""

    run: dict[str, dict[str, Any]] = field(default_factory=dict)
    peer: dict[str, dict[str, Any]] = field(default_factory=dict)
    comparison: dict[str, dict[str, Any]] = field(default_factory=dict)
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    premise: dict[str, dict[str, Any]] = field(default_factory=dict)  # the id is the digest of the corpus
    digest: str | None = None  # of the corpus, from the last run

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one line; lines of an unknown kind, or without the required fields, are ignored."""
        kind = record.get("kind")
        if not isinstance(kind, str) or kind not in HAVE:
            return
        if any(not isinstance(record.get(key), type_) for key, type_ in HAVE[kind].items()):
            return
        getattr(self, kind)[record["id"]] = dict(record)
        if kind == "run":
            self.digest = record["corpus"].get("digest", self.digest)

    def done(self, id: str) -> bool:
        """Whether a run was made and succeeded."""
        return self.run.get(id, {}).get("status") == "done"


class Results:
    """The files in a folder. Lines that other processes add are seen at the next call."""

    def __init__(self, folder: str | Path = FOLDER):
        self.folder = Path(folder)
        self._seen: dict[Path, tuple[tuple[int, int], Recorded]] = {}

    def path(self, corpus: str) -> Path:
        """The file of a corpus."""
        return self.folder / (re.sub(r"[^\w.+-]+", "-", corpus).strip(".-") + ".jsonl")

    def of(self, corpus: str) -> Recorded:
        """Everything recorded for a corpus."""
        path = self.path(corpus)
        if not path.exists():
            return Recorded()
        stat = path.stat()
        mark = (stat.st_mtime_ns, stat.st_size)
        if path not in self._seen or self._seen[path][0] != mark:
            recorded = Recorded()
            for record in read_lines(path):
                recorded.add(record)
            self._seen[path] = mark, recorded
        return self._seen[path][1]

    def add(self, corpus: str, record: Mapping[str, Any]) -> None:
        """Append one line."""
        append_line(self.path(corpus), record)
