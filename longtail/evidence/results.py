"""The results: an append-only file of JSON lines for each corpus, small enough to live in a repository.

A line is one of four kinds: "run" (a training and its figures, or how it failed), "comparison" (the differences
between two systems with their paired intervals), "intervals" (the figures of one system with theirs) and "premise"
(which share of the co-labels that Gandalf gives label texts is true, see `augment.premise`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longtail.store.lines import append_line, read_lines

FOLDER = Path("bench") / "results"
HAVE: dict[str, dict[str, type]] = {  # the kinds, and what a line of each has at least
    "run": {"id": str, "corpus": dict, "recipe": str, "settings": dict, "seed": int, "status": str},
    "comparison": {"id": str, "rows": dict},
    "intervals": {"id": str, "rows": dict},
    "premise": {"id": str, "corpus": dict, "texts": int, "given": int, "true": int, "known": int},
}


@dataclass
class Recorded:
    """What is known of one corpus, by kind and id; where an id stands twice, the later line counts."""

    run: dict[str, dict[str, Any]] = field(default_factory=dict)
    comparison: dict[str, dict[str, Any]] = field(default_factory=dict)
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    premise: dict[str, dict[str, Any]] = field(default_factory=dict)  # the id is the digest of the corpus
    digest: str | None = None  # of the corpus, by the last run

    def add(self, record: Mapping[str, Any]) -> None:
        """Take up one line; what is of no kind we know, or lacks what its kind has, is somebody else's."""
        kind = record.get("kind")
        if not isinstance(kind, str) or kind not in HAVE:
            return
        if any(not isinstance(record.get(key), type_) for key, type_ in HAVE[kind].items()):
            return
        getattr(self, kind)[record["id"]] = dict(record)
        if kind == "run":
            self.digest = record["corpus"].get("digest", self.digest)

    def done(self, id: str) -> bool:
        """Whether a run was made and went well."""
        return self.run.get(id, {}).get("status") == "done"


class Results:
    """The files in a folder. What others add while we run is seen at the next look."""

    def __init__(self, folder: str | Path = FOLDER):
        self.folder = Path(folder)
        self._seen: dict[Path, tuple[tuple[int, int], Recorded]] = {}

    def path(self, corpus: str) -> Path:
        """The file of a corpus."""
        return self.folder / (re.sub(r"[^\w.+-]+", "-", corpus).strip(".-") + ".jsonl")

    def of(self, corpus: str) -> Recorded:
        """Everything recorded of a corpus."""
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
