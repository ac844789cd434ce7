"""Datasets: Y and ignore always end up in one form; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.core.errors import DataError
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset, without
from longtail.data.sparse import csr, is_canonical

N, L = 3, 4


def matrix(entries: list[tuple[int, int, Any]], dtype: Any = np.float32) -> sp.csr_matrix:
    """A CSR matrix that stores the entries as given: in any order, with duplicates or zeros."""
    entries = sorted(entries, key=lambda entry: entry[0])
    indptr = np.searchsorted([row for row, _, _ in entries], np.arange(N + 1)).astype(np.int32)
    columns = np.array([column for _, column, _ in entries], np.int32)
    return sp.csr_matrix((np.array([value for _, _, value in entries], dtype), columns, indptr), shape=(N, L))


def dataset(Y: Any, ignore: Any = None) -> Dataset:
    return Dataset(Texts.of(["a", "b", "c"]), Y, ignore)


PLACES = st.tuples(st.integers(0, N - 1), st.integers(0, L - 1))
WEIGHTS = st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0])
ENTRIES = st.lists(st.builds(lambda place, weight: (*place, weight), PLACES, WEIGHTS), max_size=12)


@given(ENTRIES, ENTRIES, st.sampled_from([np.float32, np.float64]), st.sampled_from([bool, np.float32, np.int8]))
def test_one_form_whatever_was_given(targets: Any, pairs: Any, kind: Any, other: Any) -> None:
    Y, ignore = matrix(targets, kind), matrix([(i, j, w > 0) for i, j, w in pairs], other)
    before = [a.copy() for m in (Y, ignore) for a in (m.data, m.indices, m.indptr)]
    data = dataset(Y, ignore)
    after = [a for m in (Y, ignore) for a in (m.data, m.indices, m.indptr)]
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(before, after, strict=True))
    # the largest of duplicates, no zeros, sorted
    largest: dict[tuple[int, int], float] = {}
    for i, j, weight in targets:
        largest[i, j] = max(largest.get((i, j), 0), weight)
    expected = sorted((i, j, weight) for (i, j), weight in largest.items() if weight > 0)
    rows = np.repeat(np.arange(N), np.diff(data.Y.indptr))
    assert list(zip(rows.tolist(), data.Y.indices.tolist(), data.Y.data.tolist(), strict=True)) == expected
    assert data.Y.dtype == np.float32 and data.ignore is not None and data.ignore.dtype == bool
    rows = np.repeat(np.arange(N), np.diff(data.ignore.indptr))
    stored = sorted({(i, j) for i, j, weight in pairs if weight > 0})
    assert list(zip(rows.tolist(), data.ignore.indices.tolist(), strict=True)) == stored
    assert data.ignore.data.all() and is_canonical(data.Y) and is_canonical(data.ignore)
    # what is left over
    truth = data.truth()
    left = [(i, j, weight) for i, j, weight in expected if (i, j) not in stored]
    rows = np.repeat(np.arange(N), np.diff(truth.indptr))
    assert list(zip(rows.tolist(), truth.indices.tolist(), truth.data.tolist(), strict=True)) == left


def test_what_is_in_that_form_is_not_copied() -> None:
    Y, ignore = matrix([(0, 1, 1), (0, 3, 0.5), (2, 0, 1)]), matrix([(1, 1, True), (1, 2, True)], bool)
    data = dataset(Y, ignore)
    assert data.Y is Y and data.ignore is ignore
    for array in (Y.data, Y.indices, ignore.data, ignore.indices):
        array.flags.writeable = False
    assert dataset(Y, ignore).Y is Y  # mapped from a file, say


def test_a_pair_that_is_ignored_twice_leaves_nothing() -> None:
    Y, twice = matrix([(0, 1, 1), (0, 2, 1)]), matrix([(0, 1, True), (0, 1, True)], bool)
    assert dataset(Y, twice).truth().toarray()[0].tolist() == [0, 0, 1, 0]
    assert without(Y, twice).toarray()[0].tolist() == [0, 0, 1, 0]


def test_flags_of_a_matrix_are_not_believed() -> None:
    Y = matrix([(0, 3, 1), (0, 1, 0.5), (0, 1, 1)])
    Y.has_canonical_format = True
    assert dataset(Y).Y.indices.tolist() == [1, 3]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.5, 1.0001, 2.0])
def test_values_outside_the_unit_interval_are_refused(value: float) -> None:
    with pytest.raises(DataError, match=r"above 0 and at most 1 \(row 2, column 3\)") as caught:
        dataset(matrix([(0, 1, 1), (1, 2, 0), (2, 3, value)]))
    assert np.isnan(caught.value.found) if np.isnan(value) else caught.value.found == np.float32(value)


def broken(part: str, at: int, value: int) -> sp.csr_matrix:
    made = matrix([(0, 1, 1), (1, 2, 1), (2, 3, 1)])
    getattr(made, part)[at] = value
    return made


@pytest.mark.parametrize(
    ("part", "at", "value"),
    [("indices", 1, 4), ("indices", 1, -1), ("indptr", 1, 3), ("indptr", 0, 1), ("indptr", 3, 9)],
)
def test_arrays_that_lead_outside_are_refused(part: str, at: int, value: int) -> None:
    good = matrix([(0, 1, 1)])
    for made in (
        lambda: dataset(broken(part, at, value)),
        lambda: dataset(good, broken(part, at, value)),
        lambda: Dataset(broken(part, at, value), good),
    ):
        with pytest.raises(DataError, match=part):
            made()


def test_what_is_no_sparse_matrix_is_refused_and_other_layouts_are_not() -> None:
    with pytest.raises(DataError, match="Y: must be a scipy sparse matrix of numbers; found 'ndarray"):
        dataset(np.ones((N, L)))
    with pytest.raises(DataError, match="features: must be a scipy sparse matrix"):
        Dataset(["a", "b", "c"], matrix([]))  # type: ignore[arg-type]
    for layout in ("csc_matrix", "coo_matrix", "csr_array", "lil_matrix"):
        assert dataset(getattr(sp, layout)(matrix([(0, 1, 0.5)]))).Y.toarray()[0].tolist() == [0, 0.5, 0, 0]


def test_room_behind_the_entries_is_left_behind() -> None:
    Y = matrix([(0, 1, 1), (1, 2, 1), (2, 3, 1)])
    Y.indptr[-1] = 2  # as after an in-place change
    data = dataset(Y)
    assert data.label_counts().tolist() == [0, 1, 1, 0]


def test_csr_keeps_indices_in_32_bits() -> None:
    indices, data = np.array([2, 0], np.int32), np.ones(2, np.float32)
    made = csr(np.array([0, 1, 2], np.int64), indices, data, (2, 3))
    assert made.indptr.dtype == made.indices.dtype == np.int32
    assert np.shares_memory(made.indices, indices) and np.shares_memory(made.data, data)
