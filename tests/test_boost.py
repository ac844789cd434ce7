"""Boosted trees against a literal reference, and their arrays."""

import numpy as np
import pytest
from numpy.typing import NDArray

from longtail._native import get_threads, set_threads
from longtail._native.boost import grow_trees, sum_trees
from longtail.core.errors import StoreError
from longtail.ensemble.trees import Trees, TreeSettings


def literal(
    bins: NDArray[np.uint8], y: NDArray[np.float64], w: NDArray[np.float64], start: float, trees: int, rate: float
) -> NDArray[np.float64]:
    """Margins of each row after boosting with trees of two levels, ridge 1 and least curvature 0.5."""
    margins = np.full(len(y), start)

    def value(rows: NDArray[np.bool_], g: NDArray[np.float64], h: NDArray[np.float64]) -> float:
        return float(g[rows].sum() ** 2 / (h[rows].sum() + 1))

    for _ in range(trees):
        p = 1 / (1 + np.exp(-margins))
        g, h = w * (p - y), w * p * (1 - p)
        nodes = [np.ones(len(y), bool)]
        for _ in range(2):
            grown = []
            for rows in nodes:
                best, cut = 0.0, None
                for f in range(len(bins)):
                    for b in range(int(bins.max())):
                        left, right = rows & (bins[f] <= b), rows & (bins[f] > b)
                        if min(h[left].sum(), h[right].sum()) < 0.5:
                            continue
                        gain = value(left, g, h) + value(right, g, h) - value(rows, g, h)
                        if gain > best + 1e-12:
                            best, cut = gain, (f, b)
                right = rows & (bins[cut[0]] > cut[1]) if cut is not None else np.zeros(len(y), bool)
                grown += [rows & ~right, right]
            nodes = grown
        for rows in nodes:
            margins[rows] += rate * -g[rows].sum() / (h[rows].sum() + 1)
    return margins


def rows(N: int = 300, D: int = 3) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 8, (D, N)).astype(np.uint8)
    y = ((bins[0] > 3) ^ (bins[1] > 5)).astype(float)
    return bins, np.where(rng.random(N) < 0.1, 1 - y, y), rng.integers(1, 4, N).astype(float)


def test_boosting_is_what_it_says() -> None:
    bins, y, w = rows()
    grown = grow_trees(
        bins,
        y.astype(np.float32),
        w.astype(np.float32),
        start=-0.3,
        trees=4,
        depth=2,
        rate=0.3,
        ridge=1.0,
        least_curvature=0.5,
    )
    found = -0.3 + sum_trees(bins.T.astype(np.float32), grown.features, grown.bins.astype(np.float32), grown.values)
    assert np.allclose(found, literal(bins, y, w, -0.3, 4, 0.3), atol=1e-5)


def test_threads_make_no_difference() -> None:
    before, found = get_threads(), []
    X = np.random.default_rng(1).random((20_000, 4)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0.3).astype(float)
    try:
        for threads in (1, 3):
            set_threads(threads)
            trees = Trees.fit(X, y, TreeSettings(trees=5, depth=4))
            found.append([trees.features, trees.cuts, trees.values, trees(X[:100])])
    finally:
        set_threads(before)
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_trees_learn_what_no_sum_of_features_is() -> None:
    rng = np.random.default_rng(2)
    X = rng.random((2000, 3)).astype(np.float32)
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(float)
    trees = Trees.fit(X, y, TreeSettings(trees=30, depth=3, rate=0.3))
    p = trees(X)
    assert ((p > 0.5) == (y > 0)).mean() > 0.98
    assert p.mean() == pytest.approx(y.mean(), abs=0.02)
    doubled = Trees.fit(np.concatenate([X, X]), np.concatenate([y, y]), TreeSettings(trees=5, ridge=2.0, least=4.0))
    weighted = Trees.fit(X, y, TreeSettings(trees=5, ridge=2.0, least=4.0), np.full(2000, 2.0))
    assert np.allclose(doubled(X), weighted(X), atol=1e-6)


def test_features_of_one_value_and_no_true_row() -> None:
    trees = Trees.fit(np.zeros((50, 2), np.float32), np.zeros(50), TreeSettings(trees=3))
    assert np.isfinite(trees(np.ones((2, 2), np.float32))).all() and (trees.features == -1).all()


def test_damaged_trees_are_refused() -> None:
    X = np.random.default_rng(3).random((200, 2)).astype(np.float32)
    trees = Trees.fit(X, (X[:, 0] > 0.5).astype(float), TreeSettings(trees=3, depth=2))
    state = trees.state()
    assert np.array_equal(Trees.from_state(state, 2)(X), trees(X))
    for name, array in (
        ("features", state["features"] + 5),
        ("cuts", state["cuts"][:, 1:]),
        ("values", state["values"][1:]),
    ):
        with pytest.raises(StoreError, match="do not fit together"):
            Trees.from_state({**state, name: array}, 2)
    with pytest.raises(ValueError, match="no such feature"):
        sum_trees(X, state["features"] + 5, state["cuts"], state["values"])
