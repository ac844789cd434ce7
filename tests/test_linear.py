"""The linear engine against literal definitions: solver, tree, beam search."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import longtail
from longtail import _native
from longtail._native.linear import (
    BeamSearch,
    Problem,
    WeightKind,
    Weights,
    cluster_order,
    pack_level,
    solve_problem,
    unpack_level,
)
from longtail.core.errors import DataError
from longtail.core.run import Run
from longtail.data.sparse import normalise_rows
from longtail.labels.represent import pifa
from longtail.labels.tree import LabelTree, cuts, level_sizes, stretches
from longtail.linear.parameters import LinearParameters
from longtail.linear.train import Training, level_problem, train_ranker, with_matched

EXACT = {"bias": 1.0, "cost_positive": 1.0, "cost_negative": 1.0, "eps": 1e-4, "max_passes": 5000, "threshold": 0.0}


def random_problem(
    seed: int, N: int = 60, D: int = 12, K: int = 9, soft: bool = False
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix((rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.4)).astype(np.float32))
    dense = (X @ rng.normal(size=(D, K)) > 0.7).astype(np.float32)
    if soft:
        dense *= rng.choice([0.3, 0.8, 1.0], size=dense.shape)
    return X, sp.csr_matrix(dense.astype(np.float32))


def flat_problem(Y: sp.csr_matrix, ignore: sp.csr_matrix | None = None) -> Problem:
    N, K = Y.shape
    rows = np.arange(N, dtype=np.int32)
    return Problem(
        np.array([0, N]), rows, np.array([0, K]), Y.tocsc(), ignore=None if ignore is None else ignore.tocsc()
    )


def dense_weights(weights: Weights, D: int) -> np.ndarray:
    shape = (D + 1, len(weights.ptr) - 1)
    return sp.csc_matrix((weights.values, weights.features, weights.ptr), shape=shape).toarray().astype(float)


def objective(w: np.ndarray, X: sp.csr_matrix, y: np.ndarray, takes_part: np.ndarray) -> float:
    """½‖w‖² + Σ y·max(0, 1 − m)² + (1 − y)·max(0, 1 + m)², the bias a feature like the others."""
    margins = np.hstack([X.toarray(), np.ones((X.shape[0], 1))]) @ w
    losses = y * np.maximum(0, 1 - margins) ** 2 + (1 - y) * np.maximum(0, 1 + margins) ** 2
    return float(0.5 * w @ w + (losses * takes_part).sum())


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("K", [3, 9, 60])
def test_the_solver_finds_the_optimum(soft: bool, ignored: bool, K: int) -> None:
    X, Y = random_problem(K, K=K, soft=soft)
    ignore = sp.csr_matrix(np.random.default_rng(1).random(Y.shape) < 0.1) if ignored else None
    W = dense_weights(solve_problem(X, flat_problem(Y, ignore), weights_per_label=None, seed=0, **EXACT), X.shape[1])
    for label in range(0, K, 7):
        takes_part = np.ones(X.shape[0]) if ignore is None else ~ignore.toarray()[:, label]
        y = Y.toarray()[:, label].astype(float)
        best = minimize(objective, np.zeros(X.shape[1] + 1), (X, y, takes_part), method="L-BFGS-B").fun
        assert objective(W[:, label], X, y, takes_part) == pytest.approx(best, rel=1e-4)


def test_groups_see_only_their_rows() -> None:
    X, Y = random_problem(2, K=6)
    first, second = np.arange(0, 40, dtype=np.int32), np.arange(25, 60, dtype=np.int32)
    problem = Problem(np.array([0, 40, 75]), np.concatenate([first, second]), np.array([0, 3, 6]), Y.tocsc())
    both = dense_weights(solve_problem(X, problem, weights_per_label=None, seed=0, **EXACT), X.shape[1])
    for rows, labels in ((first, [0, 1, 2]), (second, [3, 4, 5])):
        alone = solve_problem(X[rows], flat_problem(Y[rows][:, labels]), weights_per_label=None, seed=0, **EXACT)
        assert np.allclose(both[:, labels], dense_weights(alone, X.shape[1]), atol=2e-3)


def test_a_dense_block_beside_the_sparse_one() -> None:
    X, Y = random_problem(3)
    all_sparse = sp.hstack([X[:, :6], X[:, 6:]]).tocsr()
    whole = solve_problem(all_sparse, flat_problem(Y), weights_per_label=None, seed=0, **EXACT)
    split = solve_problem(X[:, :6], flat_problem(Y), dense=X[:, 6:].toarray(), weights_per_label=None, seed=0, **EXACT)
    assert np.allclose(dense_weights(whole, 12), dense_weights(split, 12), atol=2e-3)


def test_pruning_by_threshold_and_by_budget() -> None:
    X, Y = random_problem(4)
    full = solve_problem(X, flat_problem(Y), weights_per_label=None, seed=0, **EXACT)
    pruned = solve_problem(X, flat_problem(Y), weights_per_label=None, seed=0, **{**EXACT, "threshold": 0.3})
    W = dense_weights(full, 12)
    assert np.array_equal(dense_weights(pruned, 12), np.where(np.abs(W) >= 0.3, W, 0))
    few = dense_weights(solve_problem(X, flat_problem(Y), weights_per_label=4, seed=0, **EXACT), 12)
    assert ((few != 0).sum(0) <= 4).all()
    for label in range(W.shape[1]):
        assert set(np.flatnonzero(few[:, label])) == set(np.argsort(-np.abs(W[:, label]))[:4])


FINGERPRINT = """
import hashlib, sys
sys.path.insert(0, {tests!r})
from corpora import topic_corpus
import longtail
from longtail import _native
model = longtail.recipe("xr-linear", leaf_size=2, branching=2).fit(topic_corpus())
arrays, _ = model.state()
ranking = model.predict(topic_corpus().test.x, 5)
digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays)) + ranking.scores.tobytes())
print(_native.simd_name(), digest.hexdigest())
"""


def test_avx2_and_portable_kernels_and_any_threads_give_the_same_bits() -> None:
    script = FINGERPRINT.format(tests=os.path.dirname(__file__))  # noqa: PTH120
    found = {}
    for simd, threads in (("", "1"), ("", "3"), ("portable", "2")):
        environment = {**os.environ, "LONGTAIL_SIMD": simd, "LONGTAIL_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        name, digest = done.stdout.split()
        found[simd, threads] = digest
        assert not simd or name == simd
    assert len(set(found.values())) == 1


def halves(L: int, depth: int) -> list[np.ndarray]:
    return cuts(L, [2**d for d in range(1, depth + 1)])


@settings(max_examples=50)
@given(st.integers(1, 70), st.integers(0, 4), st.integers(0, 1000))
def test_clusters_are_a_permutation(L: int, depth: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z = normalise_rows(sp.csr_matrix((rng.random((L, 8)) * (rng.random((L, 8)) < 0.3)).astype(np.float32)))
    order = cluster_order(Z, halves(L, depth), rounds=20, seed=seed)
    assert sorted(order.tolist()) == list(range(L))
    _native.set_threads(3)
    assert np.array_equal(order, cluster_order(Z, halves(L, depth), rounds=20, seed=seed))


def test_clusters_find_what_is_alike() -> None:
    rng = np.random.default_rng(0)
    topic = rng.permutation(np.repeat(np.arange(4), 16))
    Z = np.zeros((64, 40))
    for label, t in enumerate(topic):
        Z[label, rng.choice(np.arange(10 * t, 10 * t + 10), size=6, replace=False)] = 1
    order = cluster_order(normalise_rows(sp.csr_matrix(Z.astype(np.float32))), halves(64, 2), rounds=20, seed=0)
    assert all(len(set(topic[order[16 * c : 16 * c + 16]])) == 1 for c in range(4))


@given(st.integers(1, 200), st.sampled_from([2, 3, 4, 7, 16]), st.integers(2, 30), st.integers(0, 100))
def test_levels_of_a_tree_nest(L: int, branching: int, leaf_size: int, seed: int) -> None:
    Z = sp.csr_matrix((L, 3), dtype=np.float32)
    tree = LabelTree.balanced(Z, branching, leaf_size, seed)
    tree.check(L)
    for t, ends in enumerate(tree.levels):
        sizes = np.diff(ends)
        assert sizes.min() >= 1 and sizes.max() - sizes.min() <= 1
        children = np.diff(tree.child_ptr(t))
        assert children.sum() == len(sizes)
        if t < len(tree.levels) - 1:
            assert children.max() <= branching
            assert set(ends) <= set(tree.levels[t + 1])
    if len(tree.levels) > 1:
        assert np.diff(tree.levels[-2]).max() <= leaf_size


@given(st.integers(1, 300), st.integers(2, 20), st.integers(2, 30), st.one_of(st.none(), st.integers(1, 4)))
def test_cuts_make_the_clusters_of_every_level(L: int, branching: int, leaf_size: int, depth: int | None) -> None:
    sizes = level_sizes(L, branching, leaf_size, depth)
    assert sizes == sorted(sizes) and (depth is None or len(sizes) <= depth)
    assert not sizes or -(-L // sizes[-1]) <= leaf_size
    ends = {0, L}
    made = iter(cuts(L, sizes))
    for size in sizes:
        while not set(stretches(L, size).tolist()) <= ends:
            for first, middle, last in next(made).tolist():
                assert first <= middle <= last and {first, last} <= ends
                ends.add(middle)
    assert next(made, None) is None


def test_level_sizes() -> None:
    assert level_sizes(63_557, 16, 100, None) == [4, 64, 1024]  # PECOS: halving to 1,024 clusters, joined by 16
    assert level_sizes(63_557, 2, 100, None) == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert level_sizes(1000, 10, 10, None) == [10, 100]
    assert level_sizes(1000, 10, 10, 1) == [100]
    assert level_sizes(100, 16, 100, None) == []


def test_wide_trees_hold_every_label_once() -> None:
    rng = np.random.default_rng(0)
    topic = rng.permutation(np.repeat(np.arange(3), 30))
    Z = np.zeros((90, 40))
    for label, t in enumerate(topic[:80]):  # the last ten have no examples
        Z[label, rng.choice(np.arange(10 * t, 10 * t + 10), size=6, replace=False)] = 1
    rows = normalise_rows(sp.csr_matrix(Z.astype(np.float32)))
    tree = LabelTree.wide(rows, 6, 10, seed=1, depth=3)
    tree.check(90)
    nodes = tree.nodes(0)
    assert all(len(set(topic[:80][nodes[:80] == node])) <= 1 for node in set(nodes))
    assert np.bincount(nodes[80:]).max() <= 2  # dealt out, not piled up
    assert np.diff(tree.levels[-2]).max() <= 10
    for t in range(1, len(tree.levels)):
        assert set(tree.levels[t - 1]) <= set(tree.levels[t])
    again = LabelTree.wide(rows, 6, 10, seed=1, depth=3)
    assert np.array_equal(tree.order, again.order)


def test_counts_of_labels_below_a_node() -> None:
    tree = LabelTree(np.array([2, 0, 3, 1], np.int32), (np.array([0, 2, 4]), np.arange(5)))
    Y = sp.csr_matrix(np.array([[0.2, 0.5, 0.9, 0.0], [0, 0, 0, 0]], np.float32))
    assert tree.counts(Y, 0).toarray().tolist() == [[2, 1], [0, 0]]
    assert np.array_equal(tree.counts(Y, 0).indices, tree.targets(Y, 0).indices)


def test_coarse_targets_are_the_largest_below() -> None:
    tree = LabelTree(np.array([2, 0, 3, 1], np.int32), (np.array([0, 2, 4]), np.arange(5)))
    Y = sp.csr_matrix(np.array([[0.2, 0.0, 0.9, 0.0], [0.0, 1.0, 0.0, 0.4], [0, 0, 0, 0]], np.float32))
    assert np.allclose(tree.targets(Y, 0).toarray(), [[0.9, 0], [0, 1], [0, 0]])
    assert np.allclose(tree.targets(Y, 1).toarray(), [[0.9, 0.2, 0, 0], [0, 0, 0.4, 1], [0, 0, 0, 0]])


def test_a_tree_that_is_not_of_these_labels_is_refused() -> None:
    for order in ([0, 1], [0, 1, 1]):
        with pytest.raises(DataError, match="each label once"):
            LabelTree(np.array(order, np.int32), (np.arange(len(order) + 1),)).check(3)


def random_levels(
    seed: int, tree: LabelTree, D: int, kind: WeightKind = "float32"
) -> tuple[list[np.ndarray], BeamSearch]:
    rng = np.random.default_rng(seed)
    dense, levels = [], []
    for t, ends in enumerate(tree.levels):
        W = rng.normal(size=(D + 1, len(ends) - 1)) * (rng.random((D + 1, len(ends) - 1)) < 0.5)
        by_node = sp.csc_matrix(W.astype(np.float32))
        weights = Weights(by_node.indptr.astype(np.int64), by_node.indices.astype(np.int32), by_node.data)
        levels.append(pack_level(tree.child_ptr(t), weights, D + 1, kind))
        dense.append(dense_weights(unpack_level(levels[-1]), D))
        assert np.abs(dense[-1] - W).max() <= {"float32": 1e-6, "float16": 2e-3, "int8": np.abs(W).max() / 127}[kind]
    return dense, BeamSearch(D, levels)


@settings(max_examples=60)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["l3-hinge", "sigmoid", "none"]),
    st.integers(1, 40),
    st.sampled_from(["float32", "float16", "int8"]),
)
def test_a_full_beam_is_exhaustive_search(seed: int, post: str, k: int, kind: WeightKind) -> None:
    rng = np.random.default_rng(seed)
    D, L = 9, 23
    tree = LabelTree.balanced(sp.csr_matrix((L, 3), dtype=np.float32), 2, 3, seed)
    dense, search = random_levels(seed, tree, D, kind)
    X = sp.csr_matrix((rng.normal(size=(5, D)) * (rng.random((5, D)) < 0.6)).astype(np.float32))
    usable = rng.random(L) < 0.8
    found, scores = search.search(X, bias=1.0, beam=L, k=k, post=post, usable=usable)
    rows = np.hstack([X.toarray(), np.ones((5, 1))])
    expected = np.ones((5, 1))
    for t, W in enumerate(dense):
        margins = rows @ W
        parents = np.repeat(np.arange(len(tree.child_ptr(t)) - 1), np.diff(tree.child_ptr(t)))
        step = {"l3-hinge": lambda m: np.exp(-(np.maximum(0, 1 - m) ** 3)), "sigmoid": lambda m: 1 / (1 + np.exp(-m))}
        expected = margins if post == "none" else expected[:, parents] * step[post](margins)
    expected[:, ~usable] = -np.inf
    best = -np.sort(-expected, axis=1)[:, : min(k, int(usable.sum()))]
    assert np.allclose(scores[:, : best.shape[1]], best, rtol=1e-4, atol=1e-6)
    assert (found[:, best.shape[1] :] == -1).all()
    real = found[:, : best.shape[1]]
    assert np.allclose(np.take_along_axis(expected, real.astype(int), 1), best, rtol=1e-4, atol=1e-6)


def test_matcher_aware_rows_hold_the_teacher_forced_ones() -> None:
    corpus = topic_corpus()
    model = longtail.recipe("xr-linear", leaf_size=2, branching=2, negatives="tfn+man").fit(corpus)
    features, Y = model.features(corpus.train.x), corpus.train.Y  # type: ignore[attr-defined]
    tree = LabelTree.balanced(pifa(features.sparse, Y), 2, 2, 0)
    tfn, man = LinearParameters(negatives="tfn"), LinearParameters(negatives="tfn+man", beam=2)
    data = Training(features, Y)
    levels = train_ranker(data, tree, tfn, Run()).levels
    forced = level_problem(data, tree, 2, tfn)
    aware = with_matched(forced, data, levels[:2], man)
    assert len(aware.rows) > len(forced.rows)
    for g in range(len(forced.row_ptr) - 1):
        rows = [set(p.rows[p.row_ptr[g] : p.row_ptr[g + 1]]) for p in (forced, aware)]
        assert rows[0] <= rows[1]
        assert rows[0] == set(tree.targets(Y, 1).tocsc()[:, [g]].indices)


def test_a_tree_of_one_level_is_exact_one_vs_all() -> None:
    corpus = topic_corpus()
    assert corpus.test is not None
    model = longtail.recipe("xr-linear", prune=0.0, eps=1e-4, weights="float32", post="none").fit(
        corpus
    )  # six labels: all under the root
    X = model.features(corpus.train.x).sparse  # type: ignore[attr-defined]
    W = dense_weights(
        solve_problem(X, flat_problem(corpus.train.Y), weights_per_label=None, seed=0, **EXACT), X.shape[1]
    )
    tested = model.features(corpus.test.x).sparse.toarray()  # type: ignore[attr-defined]
    margins = np.hstack([tested, np.ones((40, 1))]) @ W
    assert np.array_equal(model.predict(corpus.test.x, 1).indices[:, 0], margins.argmax(1))


@pytest.mark.parametrize("k", [1, 10, 23])
def test_the_beam_widens_for_a_large_k(k: int) -> None:
    texts = [f"word{i} common" for i in range(23) for _ in range(3)]
    labels = [[f"label{i:02d}"] for i in range(23) for _ in range(3)]
    model = longtail.fit(texts, labels, "xr-linear", leaf_size=2, branching=2, beam=1)
    assert (model.predict(["word3 common"], k).indices >= 0).all()
