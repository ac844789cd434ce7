"""JSON lines: `train.jsonl.gz`, `dev…`, `test…`, `labels.jsonl.gz`, filter pairs and `corpus.json`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from longtail.core.errors import UnsupportedError
from longtail.core.labels import Labels
from longtail.core.progress import Progress
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.writers.files import (
    all_ones,
    check_writable,
    group_field,
    label_rows,
    row_chunks,
    write_about,
    write_filter,
    write_lines,
)


def write_jsonl(corpus: Corpus, folder: Path, progress: Progress) -> None:
    """Write a corpus with texts; parts with a weight other than 1 get a field `weights`."""
    if not corpus.train.has_text:
        raise UnsupportedError(
            "JSON lines can only store texts, but the points of this corpus are rows of a feature matrix; "
            "write it in the repository's format (--to repository) or natively (--to native)"
        )
    check_writable(corpus, "JSON lines")
    group = group_field(corpus, ("text", "labels", "weights"))
    for part, data in corpus.parts():
        with progress.bar(f"writing {part}", len(data), "points") as bar:
            write_lines(folder / f"{part}.jsonl.gz", _points(data, group, bar))
        write_filter(folder / f"filter_labels_{part}.txt", data.ignore)
    write_lines(folder / "labels.jsonl.gz", _labels(corpus.labels))
    write_about(corpus, folder, group)


def _points(data: Dataset, group: str | None, bar: Any) -> Iterator[bytes]:
    soft = not all_ones(data)
    for first, last in row_chunks(data):
        columns, weights = label_rows(data, first, last)
        rows: dict[str, Any] = {"text": data.texts[first:last], "labels": columns}
        if soft:
            rows["weights"] = weights
        if group is not None and data.groups is not None:
            rows[group] = data.groups[first:last]
        yield json_lines(rows)
        bar.advance(last - first)


def _labels(labels: Labels) -> Iterator[bytes]:
    texts = {} if labels.texts is None else {"text": labels.texts}
    yield json_lines({"id": range(len(labels)), "key": labels.keys, **texts})


def json_lines(columns: dict[str, Any]) -> bytes:
    """Return columns of equal length as JSON lines, one object per row."""
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    return b"".join(orjson.dumps(dict(zip(names, row, strict=True))) + b"\n" for row in rows)
