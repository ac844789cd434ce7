"""The repository's format: JSON if points are texts, sparse text if they are features."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.progress import Progress
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.parse.labelspace import numbered
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
from longtail.data.writers.jsonl import json_lines

CODES = {"train": "trn", "dev": "val", "test": "tst"}
NAMES = {"train": "train", "dev": "val", "test": "test"}


def write_repository(corpus: Corpus, folder: Path, progress: Progress) -> None:
    """Write texts to `trn.json.gz`, `val…`, `tst…`, each as a title; or features to `train.txt`, `val…`, `test…`.

    `lbl.json.gz` has the labels. If label weights differ from 1, features go to `trn_X_Xf.txt` and labels to
    `trn_X_Y.txt`, which has weights. Labels that have only numbers and no texts need no `lbl.json.gz`.
    """
    check_writable(corpus, "the repository's format")
    if corpus.train.has_text:
        group = group_field(corpus, ("uid", "title", "content", "target_ind", "target_rel"))
        for part, data in corpus.parts():
            with progress.bar(f"writing {part}", len(data), "points") as bar:
                write_lines(folder / f"{CODES[part]}.json.gz", _points(data, group, bar))
    else:
        group = None
        _write_features(corpus, folder, progress)
    for part, data in corpus.parts():
        write_filter(folder / f"filter_labels_{NAMES[part]}.txt", data.ignore)
    labels = corpus.labels
    if corpus.train.has_text or labels.has_text or labels.keys != numbered(len(labels)).keys:
        write_lines(folder / "lbl.json.gz", _labels(labels))
    write_about(corpus, folder, group)


def _points(data: Dataset, group: str | None, bar: Any) -> Iterator[bytes]:
    for first, last in row_chunks(data):
        columns, weights = label_rows(data, first, last)
        rows: dict[str, Any] = {
            "uid": map(str, range(first, last)),
            "title": data.texts[first:last],
            "content": [""] * (last - first),
            "target_ind": columns,
            "target_rel": weights,
        }
        if group is not None and data.groups is not None:
            rows[group] = data.groups[first:last]
        yield json_lines(rows)
        bar.advance(last - first)


def _labels(labels: Labels) -> Iterator[bytes]:
    texts = {} if labels.texts is None else {"title": labels.texts, "content": [""] * len(labels)}
    yield json_lines({"uid": labels.keys, **texts})


def _write_features(corpus: Corpus, folder: Path, progress: Progress) -> None:
    if corpus.train.groups is not None:
        problem = "the repository's sparse text cannot store group keys"
        raise DataError(problem, fix="write the corpus natively (--to native)")
    if len({data.features.shape[1] for _, data in corpus.parts()}) > 1:
        raise DataError("the parts have different numbers of features", fix="encode all parts in the same way")
    soft = not all(all_ones(data) for _, data in corpus.parts())
    for part, data in corpus.parts():
        if not np.isfinite(data.features.data).all():
            raise DataError(f"a feature in {part} is not finite", fix="correct the features")
        with progress.bar(f"writing {part}", len(data), "points") as bar:
            if soft:
                write_lines(folder / f"{CODES[part]}_X_Xf.txt", _sparse(data.features, None, bar))
                write_lines(folder / f"{CODES[part]}_X_Y.txt", _sparse(data.Y, None, bar))
            else:
                write_lines(folder / f"{NAMES[part]}.txt", _sparse(data.features, data.Y, bar))


def _sparse(matrix: sp.csr_matrix, labels: sp.csr_matrix | None, bar: Any) -> Iterator[bytes]:
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    N, D = matrix.shape
    yield (f"{N} {D}\n" if labels is None else f"{N} {D} {labels.shape[1]}\n").encode("ascii")
    for first in range(0, N, 65_536):
        last = min(first + 65_536, N)
        yield _native.sparse_lines(matrix, first, last, labels)
        bar.advance(last - first)
