"""Filter pairs: lines of "row label" that become `Dataset.ignore`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.data.checks import Checks
from longtail.data.dataset import Dataset
from longtail.data.parse.lines import line_chunks

_WHOLE = re.compile(rb"-?\d{1,18}")  # numbers that fit in an int64


def find_filter(folder: Path, part: str) -> Path | None:
    """Return the file of filter pairs of a part, if there is one."""
    return next((p for end in ("", ".gz") if (p := folder / f"filter_labels_{part}.txt{end}").is_file()), None)


def with_filter_pairs(
    data: Dataset, path: Path | None, checks: Checks, rows: NDArray[np.int64] | None = None, points: int | None = None
) -> Dataset:
    """Return `data` with the pairs of a filter file as `ignore`.

    Pairs use row numbers of the file that the points came from. `rows` gives this number for each point if lines were
    skipped; `points` is the number of rows in the file.
    """
    if path is None:
        return data
    N, L = data.Y.shape
    points = N if points is None else points
    row, label = _read_pairs(path, checks, points, L)
    if rows is not None:
        place = np.full(points, -1, np.int64)
        place[rows] = np.arange(N)
        row = place[row]
        row, label = row[row >= 0], label[row >= 0]
    ignore = sp.csr_matrix((np.ones(len(row), bool), (row, label)), shape=(N, L))
    ignore.sum_duplicates()
    return replace(data, ignore=ignore)


def _read_pairs(path: Path, checks: Checks, points: int, L: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    found: list[NDArray[np.int64]] = [np.empty((0, 2), np.int64)]
    for first, lines in line_chunks(path):
        pairs, numbers = _parse(lines, first, path, checks)
        outside = (pairs[:, 0] < 0) | (pairs[:, 0] >= points) | (pairs[:, 1] < 0) | (pairs[:, 1] >= L)
        for at in np.flatnonzero(outside):
            problem = f"a filter pair is outside {points:,} points and {L:,} labels"
            checks.bad(DataError(problem, where=path, line=int(numbers[at]), found=tuple(pairs[at].tolist())))
        found.append(pairs[~outside])
    pairs = np.concatenate(found)
    return pairs[:, 0], pairs[:, 1]


def _parse(lines: list[bytes], first: int, path: Path, checks: Checks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs (n, 2) of some lines, and the line number of each."""
    full = [(number, line) for number, line in enumerate(lines, first) if line.strip()]
    joined = b" ".join(line for _, line in full)
    words = joined.split()
    if len(words) == 2 * len(full) and b"_" not in joined:  # int() would accept 1_000
        try:
            return np.array(words, np.int64).reshape(-1, 2), np.array([number for number, _ in full], np.int64)
        except (ValueError, OverflowError):
            pass
    pairs, numbers = [], []
    for number, line in full:
        parts = line.split()
        if len(parts) == 2 and all(_WHOLE.fullmatch(part) for part in parts):
            pairs.append((int(parts[0]), int(parts[1])))
            numbers.append(number)
        else:
            problem = "a filter line must contain two whole numbers, row and label"
            checks.bad(DataError(problem, where=path, line=number, found=line))
    return np.array(pairs, np.int64).reshape(-1, 2), np.array(numbers, np.int64)
