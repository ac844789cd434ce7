"""The label lists of the repository: `lbl.json`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts, TextsBuilder
from longtail.data.options import ReadOptions
from longtail.data.parse.json_points import joined, parse_object
from longtail.data.parse.lines import LineBlock, blocks, split_lines


def read_json_labels(path: Path, options: ReadOptions, fields: tuple[str, ...]) -> Labels:
    """Read a list of JSON objects: `uid` is the key; the text is the text fields joined by a blank."""
    keys, texts = TextsBuilder(), TextsBuilder()
    any_text = False
    for block in blocks(path, options.progress):
        found = _columns(block, fields) or _line_by_line(block, path, fields, options, len(keys))
        some_keys, some_texts = found
        keys.extend_utf8(some_keys.data, some_keys.byte_lengths)
        any_text |= some_texts is not None
        some_texts = some_texts or Texts.of([""] * len(some_keys))
        texts.extend_utf8(some_texts.data, some_texts.byte_lengths)
    if not len(keys):
        raise DataError("the label list is empty", where=path)
    labels = Labels(keys.finish(), texts.finish() if any_text else None)
    labels.check_unique(path)
    return labels


def _columns(block: LineBlock, fields: tuple[str, ...]) -> tuple[Texts, Texts | None] | None:
    """Return keys and texts (None if no label has one) of a block; None if the full parser is needed."""
    found = _native.json_columns(block.data, strings=["uid", *fields])
    if found is None or not len(found.lines):
        return None
    (data, lengths), *columns = found.strings
    if lengths.min() < 0:
        return None
    keys = Texts.from_utf8(data, lengths)
    if max(int(sizes.max()) for _, sizes in columns) < 0:
        return keys, None
    return keys, joined([Texts.from_utf8(some, np.maximum(sizes, 0)) for some, sizes in columns])


def _line_by_line(
    block: LineBlock, path: Path, fields: tuple[str, ...], options: ReadOptions, before: int
) -> tuple[Texts, Texts | None]:
    keys: list[str] = []
    texts: list[str | None] = []
    for number, line in enumerate(split_lines(block.data), block.first):
        if not line.strip():
            continue
        label = parse_object(line, path, number)
        key = label.get("uid")
        parts = [label[name] for name in fields if label.get(name) is not None]
        if not isinstance(key, str | int | None) or not all(isinstance(part, str) for part in parts):
            problem = f"a label must have a uid, and text in {' and '.join(fields)}"
            raise DataError(problem, where=path, line=number, found=label)
        if key is None:
            options.checks.mend("a label without uid uses its row in the list as key", path, number)
            key = before + len(keys)
        keys.append(str(key))
        texts.append(" ".join(filter(None, parts)) if parts else None)
    if all(text is None for text in texts):
        return Texts.of(keys), None
    return Texts.of(keys), Texts.of([text or "" for text in texts])
