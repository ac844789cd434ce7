"""Label graphs against their definitions, counted one by one."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import _native
from longtail.core.errors import DataError, ParameterError
from longtail.labels import kept
from longtail.labels.graph import cooccurrence, normalised, row_normalised, symmetric, walk
from longtail.labels.kept import kept_graph

THRESHOLDS = st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 0.9])
TOPS = st.one_of(st.none(), st.integers(1, 12))


@st.composite
def targets(draw: st.DrawFn) -> sp.csr_matrix:
    """Y of up to 40 points and 12 labels, with soft weights; some labels have no points, some points no labels."""
    N, L = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    there = rng.random((N, L)) < draw(st.sampled_from([0.05, 0.2, 0.6])) * rng.random(L) * 2
    there[rng.integers(N), rng.integers(L)] = True
    return sp.csr_matrix(np.where(there, rng.uniform(0.1, 1, (N, L)), 0).astype(np.float32))


def counts(Y: sp.csr_matrix) -> list[list[int]]:
    """G_ij, point by point."""
    L = Y.shape[1]
    G = [[0] * L for _ in range(L)]
    for row in Y.toarray() > 0:
        for i in np.flatnonzero(row):
            for j in np.flatnonzero(row):
                G[j][i] += 1
    return G


def strongest(row: dict[int, float], self: int, top: int | None) -> dict[int, float]:
    """The row's largest entries, the diagonal first whatever its size, ties by lower label."""
    order = sorted(row, key=lambda i: (i != self, -np.float32(row[i]), i))
    return {i: row[i] for i in order[:top]}


def check_form(G: sp.csr_matrix, L: int) -> None:
    assert isinstance(G, sp.csr_matrix) and G.shape == (L, L) and G.dtype == np.float32
    fresh = sp.csr_matrix((G.data, G.indices, G.indptr), shape=G.shape)
    assert fresh.has_canonical_format and (G.diagonal() > 0).all() and (G.data > 0).all()


def rows(G: sp.csr_matrix) -> list[dict[int, float]]:
    ends = zip(G.indptr[:-1], G.indptr[1:], strict=True)
    return [dict(zip(G.indices[a:b].tolist(), G.data[a:b].tolist(), strict=True)) for a, b in ends]


@settings(max_examples=150)
@given(targets(), THRESHOLDS, TOPS, st.sampled_from([0.0, 0.5, 3.0]))
def test_cooccurrence_is_equation_1_6(Y: sp.csr_matrix, threshold: float, top: int | None, shrink: float) -> None:
    G = cooccurrence(Y, threshold=threshold, top=top, shrink=shrink)
    check_form(G, Y.shape[1])
    shared = counts(Y)
    for j, row in enumerate(rows(G)):
        expected = {
            i: c / (shared[j][j] + shrink)
            for i, c in enumerate(shared[j])
            if i != j and c and c / (shared[j][j] + shrink) > threshold
        }
        expected = strongest(expected | {j: 1.0}, j, top)
        assert row == {i: float(np.float32(value)) for i, value in expected.items()}


@settings(max_examples=100)
@given(targets(), THRESHOLDS, TOPS)
def test_symmetric_is_the_mean_of_both_ways(Y: sp.csr_matrix, threshold: float, top: int | None) -> None:
    S = symmetric(Y, threshold=threshold, top=top)
    check_form(S, Y.shape[1])
    if top is None:
        assert (S != S.T).nnz == 0
    shared = counts(Y)
    for j, row in enumerate(rows(S)):
        both = {i: (c / shared[j][j] + c / shared[i][i]) / 2 for i, c in enumerate(shared[j]) if i != j and c}
        expected = strongest({i: v for i, v in both.items() if v > threshold} | {j: 1.0}, j, top)
        assert row == {i: float(np.float32(value)) for i, value in expected.items()}


def reachable(Y: sp.csr_matrix, start: int, head: int) -> set[int]:
    """Labels that a walk from `start` can visit."""
    there = Y.toarray() > 0
    there[:, there.sum(0) > head] = False
    seen, todo = set(), [start]
    while todo:
        found = set(np.flatnonzero(there[there[:, todo.pop()]].any(0)).tolist()) - seen
        seen |= found
        todo += found
    return seen


@settings(max_examples=100)
@given(
    targets(), st.integers(1, 12), st.sampled_from([0, 2, 5, 500]), st.sampled_from([0.0, 0.8]), st.integers(0, 2**70)
)
def test_walks_keep_to_their_rules(Y: sp.csr_matrix, top: int, head: int, restart: float, seed: int) -> None:
    given: dict[str, Any] = {"hops": 60, "restart": restart, "head": head, "seed": seed}
    W = walk(Y, top=top, **given)
    check_form(W, Y.shape[1])
    frequency = np.asarray((Y > 0).sum(0)).ravel()
    whole = rows(walk(Y, top=Y.shape[1], **given))
    for j, row in enumerate(rows(W)):
        assert row == strongest(whole[j], j, top)
        if frequency[j] > head or not frequency[j]:
            assert row == {j: 1.0}
            continue
        assert set(whole[j]) <= reachable(Y, j, head) | {j}
        home = 0 if sum(whole[j].values()) > 60 else whole[j][j]  # never met: the edge of 1 is no visit
        assert sum(v for i, v in whole[j].items() if i != j) + home == 60


def visits(Y: sp.csr_matrix, hops: int, restart: float, head: int) -> np.ndarray:
    """The expected visits of each walk: Σ_h of where hop h ends; a hop restarts at home with probability `restart`."""
    there = (Y.toarray() > 0).astype(float)
    frequency = there.sum(0)
    there[:, frequency > head] = 0
    to_point = there.T / np.maximum(there.sum(0), 1)[:, None]  # label → point
    to_label = there / np.maximum(there.sum(1), 1)[:, None]  # point → label
    T, home = to_point @ to_label, np.eye(len(frequency))
    at, total = home, np.zeros_like(T)
    for _ in range(hops):
        ended = at @ T
        total += ended
        at = restart * home + (1 - restart) * ended
    return total


@pytest.mark.parametrize("restart", [0.0, 0.3, 0.8])
def test_walks_meet_labels_as_often_as_expected(restart: float) -> None:
    rng = np.random.default_rng(3)
    Y = sp.csr_matrix((rng.random((14, 6)) < [0.9, 0.4, 0.3, 0.3, 0.2, 0.2]).astype(np.float32))
    head = int((Y > 0).sum(0).max()) - 1  # the first label is head
    hops = 40_000
    W = walk(Y, hops=hops, restart=restart, top=6, head=head).toarray()
    expected = visits(Y, hops, restart, head)
    stays = np.flatnonzero(expected.sum(1) > 0)
    assert len(stays) == 5 and (expected[stays][:, stays] > 100).sum() > 15
    assert np.abs(W[stays] - expected[stays]).max() < 6 * np.sqrt(hops)
    other = walk(Y, hops=hops, restart=restart, top=6, head=head, seed=1).toarray()
    assert (W[stays] != other[stays]).any() and np.abs(other[stays] - expected[stays]).max() < 6 * np.sqrt(hops)


def test_short_walks_are_those_of_the_definition() -> None:
    """One hop from a label of two points with one other label each: three ends, at ½, ¼ and ¼; in 4,000 copies."""
    Y = sp.block_diag([np.array([[1, 1, 0], [1, 0, 1]], np.float32)] * 4000, format="csr")
    found = rows(walk(Y, hops=1, labels=range(0, 12_000, 3), top=3))
    ends = Counter(next((i % 3 for i in row if i % 3), 0) for row in found)
    assert abs(ends[0] - 2000) < 160 and abs(ends[1] - 1000) < 140 and abs(ends[2] - 1000) < 140


@pytest.mark.parametrize("make", [cooccurrence, symmetric, walk])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_threads_do_not_matter(make: Any, count: int) -> None:
    Y = random_targets(400, 300)
    _native.set_threads(1)
    one = make(Y, top=9)
    _native.set_threads(count)
    many = make(Y, top=9)
    assert all(np.array_equal(getattr(one, a), getattr(many, a)) for a in ("indptr", "indices", "data"))


def random_targets(N: int, L: int, each: float = 8) -> sp.csr_matrix:
    chances = 1 / np.arange(1, L + 1)
    there = np.random.default_rng(0).random((N, L)) < chances * each / chances.sum()
    return sp.csr_matrix(there.astype(np.float32))


@pytest.mark.parametrize("L", [600, 2100])
def test_long_rows_and_blocks(L: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows long enough to be sorted by digits, and a graph of more than one block."""
    Y = random_targets(900, L, each=40)
    G = (Y.T @ Y).toarray().astype(np.float64)
    frequency = G.diagonal()
    monkeypatch.setattr("longtail.labels.graph.BLOCK", 250)
    found = cooccurrence(Y)
    expected = np.divide(G, frequency[:, None], out=np.zeros_like(G), where=frequency[:, None] > 0)
    np.fill_diagonal(expected, 1)
    assert np.array_equal(found.toarray(), expected.astype(np.float32))
    assert np.diff(found.indptr).max() > 512
    thick = cooccurrence(Y, threshold=0.1)
    assert np.array_equal(thick.toarray(), np.where(expected > 0.1, expected, 0).astype(np.float32))
    some = [L - 1, 3, 3, 0]
    assert (cooccurrence(Y, labels=some) != found[some]).nnz == 0
    assert (walk(Y, labels=some) != walk(Y)[some]).nnz == 0


@settings(max_examples=60)
@given(targets(), st.integers(0, 100), st.booleans())
def test_texts_that_point_away_are_pruned(Y: sp.csr_matrix, seed: int, sparse: bool) -> None:
    L = Y.shape[1]
    vectors = np.random.default_rng(seed).integers(-2, 3, (L, 3)).astype(np.float32)
    products = vectors @ vectors.T  # whole numbers: exact
    W = walk(Y, top=4, hops=50, vectors=sp.csr_matrix(vectors) if sparse else vectors)
    check_form(W, L)
    for j, row in enumerate(rows(walk(Y, top=L, hops=50))):
        near = {i: v for i, v in row.items() if i == j or products[j, i] >= 0}
        assert rows(W)[j] == strongest(near, j, 4)


def test_vectors_are_left_as_they_are() -> None:
    Y = random_targets(50, 4)
    twice = sp.csr_matrix((np.array([-1.0, 2, 1, 1, 1], np.float32), [1, 0, 0, 0, 0], [0, 3, 4, 5, 5]), shape=(4, 2))
    before = twice.copy()
    walk(Y, vectors=twice)
    assert np.array_equal(twice.data, before.data) and np.array_equal(twice.indices, before.indices)


@settings(max_examples=60)
@given(targets())
def test_normalised_forms(Y: sp.csr_matrix) -> None:
    for G in (cooccurrence(Y), walk(Y, hops=30)):
        dense = G.toarray().astype(np.float64)
        assert np.allclose(row_normalised(G).toarray(), dense / dense.sum(1, keepdims=True), atol=1e-6)
        assert np.allclose(row_normalised(G).sum(1), 1, atol=1e-6)
        both = dense / np.sqrt(dense.sum(1))[:, None] / np.sqrt(dense.sum(0))[None, :]
        assert np.allclose(normalised(G).toarray(), both, atol=1e-6)
        check_form(normalised(G), Y.shape[1])


def test_rows_without_entries_stay_empty() -> None:
    G = sp.csr_matrix(np.array([[0, 0], [0, 2]], np.float32))
    assert row_normalised(G).toarray().tolist() == normalised(G).toarray().tolist() == [[0, 0], [0, 1]]
    assert G.data.tolist() == [2]
    with pytest.raises(DataError, match=r"at least 0; found -1\.0"):
        row_normalised(-G / 2)


def test_entries_that_stand_twice_or_hold_nothing_count_once_or_not() -> None:
    Y = sp.csr_matrix((np.array([1, 0.5, 1, 0], np.float32), [1, 1, 0, 2], [0, 4]), shape=(1, 3))
    assert cooccurrence(Y).toarray().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


BAD: list[tuple[Any, dict[str, Any], str]] = [
    (cooccurrence, {"threshold": 1.0}, r"threshold must be a number of at least 0 and below 1; got 1\.0"),
    (cooccurrence, {"threshold": -0.1}, "threshold"),
    (cooccurrence, {"threshold": float("nan")}, "threshold .* got nan"),
    (cooccurrence, {"threshold": "0.1"}, "threshold"),
    (cooccurrence, {"threshold": None}, "threshold"),
    (cooccurrence, {"top": 0}, "top must be a whole number of at least 1; got 0"),
    (cooccurrence, {"top": 2.5}, "top"),
    (cooccurrence, {"top": True}, "top"),
    (cooccurrence, {"shrink": -1}, "shrink must be a number of at least 0; got -1"),
    (cooccurrence, {"shrink": float("nan")}, "shrink"),
    (cooccurrence, {"shrink": float("inf")}, "shrink"),
    (cooccurrence, {"labels": [4]}, "labels must be numbers from 0 to 3"),
    (cooccurrence, {"labels": [-1]}, "labels"),
    (cooccurrence, {"labels": ["a"]}, "labels must be a list of label numbers"),
    (symmetric, {"threshold": 1}, "threshold"),
    (symmetric, {"top": -1}, "top"),
    (walk, {"hops": 0}, "hops must be a whole number of at least 1"),
    (walk, {"hops": 2**24 + 1}, "hops .* at most 16,777,216"),
    (walk, {"restart": 1.0}, "restart must be a number of at least 0 and below 1"),
    (walk, {"restart": float("nan")}, "restart"),
    (walk, {"top": None}, "top"),
    (walk, {"head": -1}, "head must be a whole number of at least 0; got -1"),
    (walk, {"seed": -1}, "seed"),
]


@pytest.mark.parametrize(("make", "given", "message"), BAD)
def test_bad_settings(make: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make(random_targets(20, 4), **given)


@pytest.mark.parametrize("make", [cooccurrence, symmetric, walk])
@pytest.mark.parametrize("shape", [(0, 0), (5, 0), (0, 5), (5, 5)])
def test_nothing_to_count(make: Any, shape: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=r"Y: a label graph needs points with labels; found .*labels"):
        make(sp.csr_matrix(shape, dtype=np.float32))


@pytest.mark.parametrize("shrink", [1e30, 1e300])
@pytest.mark.parametrize("threshold", [0.0, 1e-20, 0.1])
def test_shrinking_beyond_all_measure(shrink: float, threshold: float) -> None:
    G = cooccurrence(random_targets(60, 5), shrink=shrink, threshold=threshold)
    assert G.diagonal().tolist() == [1] * 5 and (G.data > 0).all()
    assert G.nnz == 5 or (shrink == 1e30 and threshold == 0)


def test_targets_that_are_none() -> None:
    for Y in (np.ones((2, 2)), sp.csr_matrix(np.array([[np.nan]])), sp.csr_matrix(np.array([[2.0]]))):
        with pytest.raises(DataError, match="Y"):
            cooccurrence(Y)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros((3, 2)), r"vectors: must be numbers of the shape \(4, d\)"),
        (np.zeros(4), "vectors"),
        (np.array([["a"]] * 4), "vectors"),
        (np.full((4, 2), np.nan), "finite"),
        (sp.csr_matrix(np.full((4, 1), np.inf)), "finite"),
        (sp.csr_matrix((5, 1)), "shape"),
    ],
)
def test_vectors_that_do_not_fit(vectors: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        walk(random_targets(20, 4), vectors=vectors)


def test_vectors_without_negative_numbers_prune_nothing() -> None:
    Y = random_targets(50, 6)
    assert (walk(Y, vectors=sp.csr_matrix(np.eye(6))) != walk(Y)).nnz == 0
    assert (walk(Y, vectors=np.eye(6)) != walk(Y)).nnz == 0


def test_large_graphs_are_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path))
    made = []

    def counted(Y: Any, **given: Any) -> sp.csr_matrix:
        made.append(given)
        return cooccurrence(Y, **given)

    monkeypatch.setitem(kept.GRAPHS, "counts", counted)
    Y = random_targets(60, 9)
    kept_graph("counts", Y, top=3), kept_graph("counts", Y, top=3)
    assert len(made) == 2 and not list(tmp_path.iterdir())  # not worth a file
    monkeypatch.setattr(kept, "WORTH", 1)
    first, again = kept_graph("counts", Y, top=3), kept_graph("counts", Y * 0.5, top=3)  # weights do not count
    assert len(made) == 3 and (first != again).nnz == 0 and (first != cooccurrence(Y, top=3)).nnz == 0
    assert again.dtype == np.float32 and again.has_canonical_format
    assert np.allclose(row_normalised(again).sum(1), 1)
    kept_graph("counts", Y, top=4), kept_graph("counts", Y[:-1], top=3), kept_graph("counts", Y, top=3, keep=False)
    assert len(made) == 6
    walked = [kept_graph("walk", Y, vectors=v) for v in (None, np.eye(9), -np.ones((9, 1)))]
    assert (walked[0] != walk(Y)).nnz == 0 and len(list(tmp_path.iterdir())) == 3 + 3
    with pytest.raises(ParameterError, match="no label graph 'count'. Did you mean 'counts'"):
        kept_graph("count", Y)  # type: ignore[arg-type]
