"""Exact search in dense vectors, against a full sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail._native import get_threads, set_threads
from longtail._native.dense import Barred, offer_block
from longtail.search.dense import nearest, unit


@given(st.integers(0, 10_000), st.integers(1, 400), st.data())
def test_the_largest_of_each_row(seed: int, N: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, N))
    cut = data.draw(st.integers(0, N))
    values = np.random.default_rng(seed).integers(-20, 20, (3, N)).astype(np.float32)  # so that some are equal
    places, found = np.full((3, k), -1, np.int32), np.full((3, k), -np.inf, np.float32)
    for first, last in ((0, cut), (cut, N)):
        offer_block(values[:, first:last].copy(), first, places, found, Barred(), N)
    assert places.shape == (3, k)
    assert all(len(set(row)) == k for row in places.tolist())
    assert np.array_equal(np.sort(np.take_along_axis(values, places, 1)), np.sort(values)[:, N - k :])
    assert np.array_equal(places, np.argsort(-values, axis=1, kind="stable")[:, :k])
    assert np.array_equal(found, np.take_along_axis(values, places, 1))


def test_threads_share_the_rows() -> None:
    rng, before = np.random.default_rng(0), get_threads()
    queries, base = (rng.normal(size=(n, 24)).astype(np.float32) for n in (7, 500))
    want = nearest(queries, base, 4)
    try:
        for threads in (1, 2, 9):
            set_threads(threads)
            assert all(np.array_equal(a, b) for a, b in zip(nearest(queries, base, 4), want, strict=True))
    finally:
        set_threads(before)


def test_a_row_does_not_find_itself() -> None:
    base = unit(np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32))
    places, products = nearest(base, base, 5, own=np.arange(300))
    alike = base @ base.T
    np.fill_diagonal(alike, -np.inf)
    assert np.allclose(np.sort(products), np.sort(alike)[:, -5:], atol=1e-6)
    assert np.allclose(np.take_along_axis(alike, places, 1), products, atol=1e-6)
    places, _ = nearest(base[:3], base[:3], 5, own=np.arange(3))
    assert [set(row) for row in places.tolist()] == [{1, 2}, {0, 2}, {0, 1}]  # all others, where there are too few
