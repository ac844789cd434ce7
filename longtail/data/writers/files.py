"""Shared parts of the writers of text formats: checks, and how lines, pairs and `corpus.json` are written."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import scipy.sparse as sp

from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Propensity
from longtail.data.about import FILE
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.store import disk

ROWS = 4096  # points converted to text at a time
LEVEL = 6  # gzip level: takes half the time of 9, files are a few per cent larger


def check_writable(corpus: Corpus, format: str) -> None:
    """Refuse a corpus that a format with only points and label lists could not restore."""
    labels, counts = corpus.labels, corpus.train.label_counts()
    native = "write it natively (--to native)"
    if labels.removed is not None:
        raise DataError(f"{format} cannot store removed labels", found=int(labels.removed.sum()), fix=native)
    if labels.points != len(corpus.train) or not np.array_equal(labels.counts, counts):
        problem = f"the label counts come from {labels.points:,} points, but train has {len(corpus.train):,}"
        raise DataError(problem, fix=f"{format} would lose them: write the corpus as it was read, or {native}")
    if not len(labels):
        raise DataError("a corpus without labels cannot be written", fix=native)
    labels.check_unique()
    for part, data in corpus.parts():
        if not len(data):
            raise DataError(f"the {part} part has no points", fix="leave it out")
    if len({data.has_text for _, data in corpus.parts()}) > 1:
        raise DataError("some parts have texts, others features", fix=native)
    if len({data.groups is None for _, data in corpus.parts()}) > 1:
        raise DataError("some parts have group keys, others none", fix=native)


def group_field(corpus: Corpus, taken: Iterable[str]) -> str | None:
    """Return a name for the group field that no other field has; None if there are no groups."""
    if corpus.train.groups is None:
        return None
    name = corpus.about.get("group", "group")
    while name in taken:
        name = f"{name}_group"
    return str(name)


def write_about(corpus: Corpus, folder: Path, group: str | None) -> None:
    """Write `corpus.json`: the description of the data, with name, propensity constants and group field."""
    about: dict[str, Any] = corpus.about | {"name": corpus.name}
    constants = corpus.labels.propensity
    if constants != Propensity() or "propensity" in about:
        about["propensity"] = {"A": constants.A, "B": constants.B}
    about.pop("group", None)
    if group is not None:
        about["group"] = group
    try:
        text = orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except TypeError as error:
        raise ParameterError(f"`about` may only contain JSON values ({error})") from None
    disk.write_file(folder / FILE, [text])


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write chunks of lines, compressed if the name ends in `.gz`."""
    disk.write_file(path, packed(lines) if path.suffix == ".gz" else lines)


def packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks as gzip, without a time stamp, so that equal content gives equal files."""
    packer = zlib.compressobj(LEVEL, wbits=31)
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()


def write_filter(path: Path, ignore: sp.csr_matrix | None) -> None:
    """Write ignored pairs as lines "row label"; an empty file if there are none, no file for None."""
    if ignore is None:
        return
    rows = np.repeat(np.arange(ignore.shape[0]), np.diff(ignore.indptr)).tolist()
    pairs = zip(rows, ignore.indices.tolist(), strict=True)
    disk.write_file(path, ["".join(f"{row} {label}\n" for row, label in pairs).encode("ascii")])


def row_chunks(data: Dataset) -> Iterator[tuple[int, int]]:
    """Yield first and last row (excluded) of each chunk of points."""
    for first in range(0, len(data), ROWS):
        yield first, min(first + ROWS, len(data))


def label_rows(data: Dataset, first: int, last: int) -> tuple[list[list[int]], list[list[float]]]:
    """Return label columns and weights of some rows, as lists.

    Weights are float32: written with few digits if those read back as the same value, else as exact doubles.
    """
    cuts = (data.Y.indptr[first : last + 1] - data.Y.indptr[first]).tolist()
    inside = slice(int(data.Y.indptr[first]), int(data.Y.indptr[last]))
    exact = data.Y.data[inside].astype(np.float64)
    short = np.round(exact, 7)
    weights = np.where(short.astype(np.float32) == data.Y.data[inside], short, exact).tolist()
    columns = data.Y.indices[inside].tolist()
    spans = list(itertools.pairwise(cuts))
    return [columns[a:b] for a, b in spans], [weights[a:b] for a, b in spans]


def all_ones(data: Dataset) -> bool:
    """Whether all labels have weight 1."""
    return bool((data.Y.data == 1).all())
