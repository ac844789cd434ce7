"""Joins parts of a corpus that are in two files, points and labels, row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import DataError, ParameterError
from longtail.core.texts import Texts
from longtail.data.checks import Checks
from longtail.data.dataset import Dataset
from longtail.data.options import ReadOptions
from longtail.data.parse.filters import with_filter_pairs

Rows = NDArray[np.bool_]


def check_lengths(x: Path, points: int, y: Path, rows: int) -> None:
    """Refuse two files of different lengths."""
    if points != rows:
        problem = f"{x.name} has {points:,} points, but {y.name} has {rows:,} rows of labels"
        raise DataError(problem, where=x.parent, fix="line i of one belongs to line i of the other: get both again")


def check_widths(counts: list[tuple[Path, int]], what: str) -> None:
    """Refuse files with different numbers of labels or features."""
    for file, count in counts[1:]:
        if count != counts[0][1]:
            problem = f"{counts[0][0].name} counts {counts[0][1]:,} {what}, but {file.name} counts {count:,}"
            raise DataError(problem, where=file.parent, fix="they must belong to the same data set: get both again")


def join(
    x: Texts | sp.csr_matrix, Y: sp.csr_matrix, good: Rows, where: Path, pairs: Path | None, checks: Checks
) -> Dataset:
    """Return the points whose row is `good` in every file they come from; `pairs` is a file of filter pairs."""
    rows = np.flatnonzero(good)
    if not len(rows):
        first = "" if checks.first_skipped is None else f"; the first: {checks.first_skipped}"
        raise DataError(f"all {len(good):,} points were skipped{first}", where=where)
    if len(rows) < len(good):
        x, Y = x.take(rows) if isinstance(x, Texts) else x[rows], Y[rows]
    return with_filter_pairs(Dataset(x, Y), pairs, checks, rows, len(good))


def refuse_fields(options: ReadOptions, format: str) -> None:
    """Refuse options that name fields, for a format without named fields."""
    for option in ("text", "labels", "label_sep", "group_by"):
        value = getattr(options, option)
        if value is not None:
            name = option.replace("_", "-")
            raise ParameterError(f"{format} has no named fields: leave --{name} {value!r} out")
