"""JSON lines: a folder of `train.jsonl[.gz]`, `dev…` (or `valid…`), `test…`, `labels…`, or one file.

A line is an object with `text` and `labels` (integers are rows of the label list, strings are keys). Optional fields
are `weights`, one for each label, and a group. Without a label list, labels are inferred. The list has a `key` and
optionally a `text` for each label. Filter pairs are in `filter_labels_train.txt[.gz]` and so on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts, TextsBuilder
from longtail.data.corpus import Corpus
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.json_points import Fields, JsonPoints, parse_object
from longtail.data.parse.labelspace import InferredLabels, LabelSpace, ListedLabels
from longtail.data.parse.lines import LineBlock, blocks, peek, split_lines
from longtail.data.parse.parts import about_of, find_file, find_parts, read_parts

ENDINGS = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")


def matches(path: Path) -> bool:
    """A folder with a train file, or a file with such a name, or one that starts with a JSON object."""
    if path.is_dir():
        return find_file(path, ["train"], ENDINGS) is not None
    start = peek(path).lstrip()
    # a field "target_ind" means a file of the repository, unless its name says otherwise
    return path.name.endswith(ENDINGS) or (start.startswith(b"{") and b'"target_ind"' not in start)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read a folder, or one file as the training part."""
    about = about_of(path)
    listed = find_file(path, ["labels"], ENDINGS) if path.is_dir() else None
    space: LabelSpace = InferredLabels() if listed is None else ListedLabels(read_labels(listed, options))
    text = tuple((options.text or "text").split(","))
    fields = Fields(text, options.labels or "labels", group=options.group_by or about.get("group"))
    points = JsonPoints(options, fields).points
    return read_parts(path, find_parts(path, ENDINGS), points, space, options, about, note_bare=False)


def read_labels(path: Path, options: ReadOptions) -> Labels:
    """Read a label list: `key` (else the row number), optional `text`; `id`, if given, must be the row number."""
    keys, texts = TextsBuilder(), TextsBuilder()
    any_text = False
    for block in blocks(path, options.progress):
        rows, some_key, some_text, ids = _label_columns(block, path, len(keys))
        wrong = np.flatnonzero((ids != np.iinfo(np.int64).min) & (ids != np.arange(len(ids)) + len(keys)))
        if len(wrong):
            at = int(wrong[0])
            problem = f"the label with id {ids[at]} is on row {len(keys) + at} of the list"
            raise DataError(problem, where=path, line=int(rows[at]), fix="ids must count the rows from 0")
        keys.extend_utf8(some_key.data, some_key.byte_lengths)
        any_text |= some_text is not None
        texts.extend([""] * len(rows)) if some_text is None else texts.extend_utf8(
            some_text.data, some_text.byte_lengths
        )
    if not len(keys):
        raise DataError("the label list is empty", where=path)
    labels = Labels(keys.finish(), texts.finish() if any_text else None)
    labels.check_unique(path)
    return labels


def _label_columns(block: LineBlock, path: Path, before: int) -> tuple[np.ndarray, Texts, Texts | None, np.ndarray]:
    """Return lines, keys, texts (None if no label has one) and ids (the lowest int64 if missing) of a block."""
    found = _native.json_columns(block.data, strings=["key", "text"], integers=["id"])
    if found is not None and len(found.lines):
        (key_data, key_sizes), (text_data, text_sizes) = found.strings
        if key_sizes.min() >= 0:
            texts = None if text_sizes.max() < 0 else Texts.from_utf8(text_data, np.maximum(text_sizes, 0))
            return found.lines + block.first, Texts.from_utf8(key_data, key_sizes), texts, found.integers[0]
    rows: list[int] = []
    keys: list[str] = []
    names: list[str | None] = []
    ids: list[int] = []
    for number, line in enumerate(split_lines(block.data), block.first):
        if line.strip():
            label = parse_object(line, path, number)
            key, text, place = label.get("key", str(before + len(keys))), label.get("text"), label.get("id")
            if not isinstance(key, str) or not isinstance(text, str | None) or not isinstance(place, int | None):
                problem = "a label must have a key and a text that are strings, and an id that is a whole number"
                raise DataError(problem, where=path, line=number, found=label)
            rows.append(number)
            keys.append(key)
            names.append(text)
            ids.append(np.iinfo(np.int64).min if place is None else place)
    texts = None if all(name is None for name in names) else Texts.of([name or "" for name in names])
    return np.array(rows, np.int64), Texts.of(keys), texts, np.array(ids, np.int64)


FORMAT = Format("jsonl", "JSON lines: train.jsonl[.gz], test…, dev…, labels…; or one file", matches, read)
