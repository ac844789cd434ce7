"""A corpus from Python objects: texts and their labels."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.core.errors import DataError, ParameterError, shorten
from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.parse.labelspace import InferredLabels, numbered
from longtail.data.sparse import csr, targets

log = logging.getLogger("longtail")


def corpus_from_lists(
    texts: Iterable[str] | sp.csr_matrix,
    labels: Any,
    *,
    label_texts: Mapping[str, str] | None = None,
    groups: Iterable[Any] | None = None,
    name: str = "data",
) -> Corpus:
    """Return a corpus whose training part is `texts`, or the rows of a sparse feature matrix, with `labels`.

    `labels`: for each text a list of keys (strings, or whole numbers of at least 0); or an N×L scipy sparse matrix
    with weights in (0, 1], whose column numbers become the keys. `label_texts`: the texts of labels by key; a key
    that no text uses becomes a label too. `groups`: a key for each text; texts of one group stay on one side of
    a split, and a text with None is in no group.
    """
    points = _features(texts) if sp.issparse(texts) else _strings(texts, "texts")
    count = len(points) if isinstance(points, Texts) else points.shape[0]
    if not count:
        raise ParameterError("there are no texts: cannot train on an empty list")
    if sp.issparse(labels):
        Y, space = _from_matrix(labels)
    else:
        Y, space = _from_rows(labels, () if label_texts is None else label_texts)
    if Y.shape[0] != count:
        raise ParameterError(f"{count:,} texts but labels for {Y.shape[0]:,}; both must have the same length")
    keys = None if groups is None else _strings(groups, "groups", keys=True)
    if keys is not None and len(keys) != count:
        raise ParameterError(f"{count:,} texts but {len(keys):,} groups; both must have the same length")
    if label_texts is not None:
        space = Labels(space.keys, _label_texts(space, label_texts))
    return Corpus(name, Dataset(points, Y, groups=keys), space)


def _features(matrix: Any) -> sp.csr_matrix:
    """Return a feature matrix after checking it."""
    X = sp.csr_matrix(matrix, dtype=np.float32)
    if not np.isfinite(X.data).all():
        raise DataError("the feature matrix contains NaN or infinite values")
    return X


def _strings(items: Iterable[Any], what: str, keys: bool = False) -> Texts:
    """Return a checked list of strings; with `keys`, whole numbers become strings and None an empty string."""
    if isinstance(items, Texts):
        return items
    if isinstance(items, str) or not isinstance(items, Iterable) or sp.issparse(items):
        raise ParameterError(f"{what} must be a list of strings; got {shorten(items)}")
    found = list(items)
    if keys:
        found = ["" if item is None else str(item) if _is_whole(item) else item for item in found]
    for i, item in enumerate(found):
        if not isinstance(item, str):
            raise ParameterError(f"{what} must be a list of strings; item {i} is {shorten(item)}")
    return Texts.of(found)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _from_rows(labels: Any, more: Iterable[Any]) -> tuple[sp.csr_matrix, Labels]:
    """Return Y and the sorted labels from lists of keys; `more` are keys that no list has to contain."""
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.dtype.kind in "biuf":
        raise ParameterError(
            "labels is a dense matrix, which could be indicators or keys; "
            "wrap indicators in scipy.sparse.csr_matrix, or give a list of keys for each text"
        )
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ParameterError(f"labels must be a list with a list of labels for each text; got {shorten(labels)}")
    rows = [_row(row, i) for i, row in enumerate(labels)]
    flat = [label for row in rows for label in row]
    space = InferredLabels()
    values = [*flat, *(int(key) if _is_whole(key) else key for key in more)]
    codes = space.look(values)
    if (codes < 0).any():
        at = int(np.argmax(codes < 0))
        where = "label_texts" if at >= len(flat) else f"the labels of text {_row_of(rows, at)}"
        found = [*flat, *more][at]
        raise ParameterError(f"a label must be a string or a whole number of at least 0; {where}: {shorten(found)}")
    if not values:
        raise ParameterError("no text has a label, so there is nothing to learn")
    columns = space.columns(values)[: len(flat)]
    found_labels, final = space.finish()
    indptr = np.append(0, np.cumsum([len(row) for row in rows], dtype=np.int64))
    final_columns = columns if final is None else final[columns]
    Y = csr(indptr, final_columns.astype(np.int32), np.ones(len(flat), np.float32), (len(rows), len(found_labels)))
    each_once = targets(Y)
    if each_once.nnz < Y.nnz:
        twice = f"{Y.nnz - each_once.nnz:,}"
        log.warning("a label was given twice for one text and is counted once: %s time(s)", twice)
    return each_once, found_labels


def _row(row: Any, i: int) -> list[Any]:
    """Return the labels of one text as plain strings and integers."""
    if isinstance(row, str) or _is_whole(row):
        raise ParameterError(
            f"labels must hold a list of labels for each text; item {i} is {shorten(row)}: "
            "if each text has one label, wrap it in a list: [label]"
        )
    if not isinstance(row, Iterable) or isinstance(row, Mapping):
        raise ParameterError(f"labels must hold a list of labels for each text; item {i} is {shorten(row)}")
    return [str(label) if isinstance(label, str) else int(label) if _is_whole(label) else label for label in row]


def _row_of(rows: list[list[Any]], at: int) -> int:
    """Return the row that contains value number `at`."""
    return int(np.searchsorted(np.cumsum([len(row) for row in rows]), at, side="right"))


def _from_matrix(matrix: Any) -> tuple[sp.csr_matrix, Labels]:
    """Return Y and labels from an indicator matrix: the key of a label is its column number."""
    try:
        Y = targets(matrix)
    except DataError as error:
        raise ParameterError(f"the label matrix: {error.problem}; found {error.found!r}") from None
    if not Y.nnz:
        raise ParameterError("no text has a label, so there is nothing to learn")
    return Y, numbered(Y.shape[1])


def _label_texts(labels: Labels, given: Mapping[Any, Any]) -> Texts:
    """Return the text of each label, empty if none is given."""
    by_key = {str(key): text for key, text in given.items()}
    for key, text in by_key.items():
        if not isinstance(text, str):
            raise ParameterError(f"label_texts must map keys to strings; {key!r} has {shorten(text)}")
    foreign = labels.indices(by_key) < 0
    if foreign.any():
        key = list(by_key)[int(np.argmax(foreign))]
        raise ParameterError(f"label_texts names {shorten(key)}, but the label matrix has {len(labels):,} columns")
    lacking = len(labels) - len(by_key)
    if lacking:
        log.warning("label_texts has no text for %s of %s labels", f"{lacking:,}", f"{len(labels):,}")
    return Texts.of([by_key.get(key, "") for key in labels.keys])
