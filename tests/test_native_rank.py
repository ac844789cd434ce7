"""The ranking kernels against brute force."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from longtail import _native

# few values, so that ties are frequent; −inf stands for "no score" in the dense form
SCORES = st.sampled_from([-np.inf, -2.0, -0.0, 0.0, 0.5, 1.0, 3.0, np.inf])


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = _native.get_threads()
    _native.set_threads(request.param)
    yield
    _native.set_threads(before)


def brute(rows: list[list[tuple[int, float]]], k: int) -> tuple[list[list[int]], list[list[float]]]:
    """The k best (label, score) pairs of each row: higher score first, ties by lower label, then pads."""
    labels, scores = [], []
    for row in rows:
        best = sorted(row, key=lambda entry: (-entry[1], entry[0]))[:k]
        labels.append([label for label, _ in best] + [-1] * (k - len(best)))
        scores.append([score for _, score in best] + [-np.inf] * (k - len(best)))
    return labels, scores


@settings(max_examples=200, deadline=None)
@given(hnp.arrays(np.float32, st.tuples(st.integers(0, 6), st.integers(0, 40)), elements=SCORES), st.integers(0, 45))
def test_top_k_dense(scores: np.ndarray, k: int) -> None:
    rows = [[(j, s) for j, s in enumerate(row) if s > -np.inf] for row in scores.tolist()]
    labels, best = _native.top_k(scores, k)
    expected = brute(rows, k)
    assert labels.dtype == np.int32 and best.dtype == np.float32 and labels.shape == (len(scores), k)
    assert (labels.tolist(), best.tolist()) == expected


@pytest.mark.parametrize("k", [1, 7, 100])
def test_top_k_of_long_dense_rows(k: int, threads: None) -> None:
    """Longer than the kernel's blocks of 1,024, with many ties, in any memory layout."""
    scores = np.random.default_rng(k).integers(0, 300, (70, 5003)).astype(np.float32)
    scores[0] = np.arange(5003)  # every block is better than the last
    scores[1] = scores[0][::-1]
    scores[2] = 1
    labels, best = _native.top_k(scores, k)
    order = np.argsort(-scores, 1, kind="stable")[:, :k]
    assert np.array_equal(labels, order)
    assert np.array_equal(best, np.take_along_axis(scores, order, 1))
    again, _ = _native.top_k(np.asfortranarray(scores.astype(np.float64)), k)
    assert np.array_equal(again, labels)


@st.composite
def sparse(draw: st.DrawFn, values: st.SearchStrategy[float]) -> tuple[list[dict[int, float]], sp.csr_matrix]:
    """Rows as dicts, and the same as CSR with entries in the order of the dict: columns need not be sorted."""
    L = draw(st.integers(1, 30))
    rows = draw(st.lists(st.dictionaries(st.integers(0, L - 1), values, max_size=12), min_size=1, max_size=6))
    indptr = np.cumsum([0, *map(len, rows)])
    columns = np.array([x for row in rows for x in row], np.int32)
    data = np.array([row[x] for row in rows for x in row], np.float32)
    return rows, sp.csr_matrix((data, columns, indptr), shape=(len(rows), L))


@settings(max_examples=200, deadline=None)
@given(sparse(SCORES), st.integers(0, 15))
def test_top_k_sparse(case: tuple[list[dict[int, float]], sp.csr_matrix], k: int) -> None:
    rows, matrix = case
    labels, best = _native.top_k(matrix, k)
    assert (labels.tolist(), best.tolist()) == brute([list(row.items()) for row in rows], k)


def test_top_k_of_many_sparse_rows(threads: None) -> None:
    rng = np.random.default_rng(2)
    matrix = sp.random(3000, 500, 0.02, format="csr", rng=rng, dtype=np.float32)
    matrix.data = np.ceil(matrix.data * 4)
    labels, best = _native.top_k(matrix, 5)
    dense = np.where(matrix.toarray() == 0, -np.inf, matrix.toarray()).astype(np.float32)
    expected = _native.top_k(dense, 5)
    assert np.array_equal(labels, expected[0]) and np.array_equal(best, expected[1])


@settings(max_examples=200, deadline=None)
@given(sparse(st.sampled_from([0.0, 0.25, 1.0, -3.0])), st.data())
def test_pick_and_contains(case: tuple[list[dict[int, float]], sp.csr_matrix], data: st.DataObject) -> None:
    rows, matrix = case
    before = matrix.indices.copy()
    shape = (len(rows), data.draw(st.integers(0, 6)))
    columns = data.draw(hnp.arrays(np.int32, shape, elements=st.integers(-1, matrix.shape[1])))
    values, there = _native.pick(matrix, columns), _native.contains(matrix, columns)
    assert values.dtype == np.float32 and there.dtype == bool
    wanted = list(zip(rows, columns.tolist(), strict=True))
    assert values.tolist() == [[row.get(x, 0.0) for x in want] for row, want in wanted]
    assert there.tolist() == [[x in row for x in want] for row, want in wanted]
    assert np.array_equal(matrix.indices, before)


def test_pick_of_many_rows(threads: None) -> None:
    rng = np.random.default_rng(4)
    matrix = sp.random(20_000, 90, 0.1, format="csr", rng=rng, dtype=np.float32)
    columns = rng.integers(0, 90, (20_000, 4)).astype(np.int32)
    assert np.array_equal(_native.pick(matrix, columns), np.take_along_axis(matrix.toarray(), columns, 1))


def test_pick_takes_other_index_and_value_types() -> None:
    matrix = sp.csr_array(np.array([[0, 2, 0], [3, 0, 4]], np.int64))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    columns = np.array([[1, 0], [2, 0]])
    assert _native.pick(matrix, columns).tolist() == [[2, 0], [4, 3]]
    assert _native.contains(matrix.astype(bool), columns).tolist() == [[True, False], [True, True]]


def test_pick_refuses_a_different_number_of_rows() -> None:
    with pytest.raises(ValueError, match="differ in rows"):
        _native.pick(sp.csr_matrix((3, 4), dtype=np.float32), np.zeros((2, 1), np.int32))
