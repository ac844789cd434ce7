"""Points for a model's memory, from JSON lines: texts, keys of labels, and perhaps a key of their own."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data.parse.json_points import parse_object
from longtail.data.parse.label_edits import full_lines


class MemoryPoints(NamedTuple):
    """n texts, their targets (n, L), and their keys: the text itself where no key was given."""

    texts: Texts
    Y: sp.csr_matrix
    keys: list[str]


def read_memory_points(path: Path, labels: Labels) -> MemoryPoints:
    """Read points, one JSON object per line: {"text": …, "labels": [keys], "key": optional}.

    A label that the model does not have is refused with its line, and so is one that was removed. A point without
    labels is allowed: remembered with a key, it takes the place of an earlier point.
    """
    texts: list[str] = []
    keys: list[str] = []
    columns: list[int] = []
    ends = [0]
    for number, line in full_lines(path):
        point = parse_object(line, path, number)
        text, own, key = point.get("text"), point.get("labels"), point.get("key")
        if not isinstance(text, str) or not isinstance(own, list) or not all(isinstance(each, str) for each in own):
            problem = 'a point must have "text", a string, and "labels", a list of keys'
            raise DataError(problem, where=path, line=number, found=point)
        if key is not None and (not isinstance(key, str) or not key):
            raise DataError("the key of a point must be a string that is not empty", where=path, line=number, found=key)
        found = labels.indices(own)
        for label, index in zip(own, found.tolist(), strict=True):
            check_label(label, index, labels, path, number)
        texts.append(text)
        keys.append(text if key is None else key)
        columns += sorted(set(found.tolist()))
        ends.append(len(columns))
    if not texts:
        raise DataError("the file lists no points", where=path)
    Y = sp.csr_matrix((np.ones(len(columns), np.float32), columns, ends), shape=(len(texts), len(labels)))
    return MemoryPoints(Texts.of(texts), Y, keys)


def check_label(key: str, index: int, labels: Labels, path: Path, line: int) -> None:
    """Refuse a label that the model does not have, or no longer has."""
    if index < 0:
        fix = "correct the key (longtail labels list shows all), or add the label first (longtail labels add)"
        raise DataError("the model has no label with this key", where=path, line=line, found=key, fix=fix)
    if labels.removed is not None and labels.removed[index]:
        fix = "restore it first (longtail labels restore)"
        raise DataError("this label was removed from the model", where=path, line=line, found=key, fix=fix)
