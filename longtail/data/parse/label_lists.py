"""Label lists that are not those of JSON lines: `lbl.json`, texts one a line, or only a number of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts, TextsBuilder
from longtail.data.options import ReadOptions
from longtail.data.parse.json_points import joined, parse_object
from longtail.data.parse.labelspace import WRONG_TYPE, ListedLabels, Values
from longtail.data.parse.lines import Block, blocks, split_lines

MOST = np.iinfo(np.int32).max - 1  # columns are kept as int32


def numbered(L: int, texts: Texts | None = None) -> Labels:
    """L labels whose keys are their numbers, from 0."""
    return Labels(Texts.of(map(str, range(L))), texts)


class NumberedLabels(ListedLabels):
    """Labels that only have numbers, of which nobody says how many there are: up to the largest seen."""

    def __init__(self) -> None:
        super().__init__(numbered(0))
        self._count = 0

    def columns(self, values: Values) -> NDArray[np.int64]:
        """The numbers themselves; WRONG_TYPE for what is no number from 0 up."""
        if not isinstance(values, np.ndarray):
            values = np.array([v if type(v) is int and abs(v) < MOST else WRONG_TYPE for v in values], np.int64)
        values = np.where((values >= 0) & (values < MOST), values, WRONG_TYPE)
        self._count = max(self._count, int(values.max(initial=-1)) + 1)
        return values

    def finish(self) -> tuple[Labels, None]:
        """The labels; columns are final as they are."""
        if not self._count:
            raise DataError("no point has a label", fix="check which field holds the labels")
        self.labels = numbered(self._count)
        return self.labels, None


def read_json_labels(path: Path, options: ReadOptions, fields: tuple[str, ...]) -> Labels:
    """A list of JSON objects: `uid` is the key, the text fields, joined by a blank, the text."""
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
    try:
        labels.check_unique()
    except DataError as error:
        raise DataError(error.problem, where=path, found=error.found, fix=error.fix) from None
    return labels


def _columns(block: Block, fields: tuple[str, ...]) -> tuple[Texts, Texts | None] | None:
    """Keys and texts (None where no label has one) of a block; None where the full parser has to look."""
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
    block: Block, path: Path, fields: tuple[str, ...], options: ReadOptions, before: int
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
            options.checks.mend("a label without uid has its row in the list as key", path, number)
            key = before + len(keys)
        keys.append(str(key))
        texts.append(" ".join(filter(None, parts)) if parts else None)
    if all(text is None for text in texts):
        return Texts.of(keys), None
    return Texts.of(keys), Texts.of([text or "" for text in texts])
