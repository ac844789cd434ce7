"""Soft targets, as label texts have them, in the linear engine: targets and costs are different things."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from longtail._native.linear import Problem, solve_problem
from longtail.core.run import Run
from longtail.labels.represent import pifa
from longtail.labels.tree import LabelTree
from longtail.linear.explain import child_weights
from longtail.linear.features import Features
from longtail.linear.parameters import LinearParameters
from longtail.linear.train import Training, level_problem, train_ranker

SOLVERS = [("dcd", "squared-hinge"), ("newton", "squared-hinge"), ("newton", "logistic")]


def soft_problem(seed: int, N: int = 40, D: int = 8, L: int = 6) -> Training:
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix((rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.5)).astype(np.float32))
    Y = (X @ rng.normal(size=(D, L)) > 0.5) * rng.choice([0.1, 0.4, 0.9, 1.0], size=(N, L))
    ignore = sp.csr_matrix(rng.random((N, L)) < 0.1)
    truth = np.where(ignore.toarray(), 0, Y).astype(np.float32)
    return Training(Features.of([X]), sp.csr_matrix(truth), ignore)


def loss(margin: np.ndarray, kind: str) -> np.ndarray:
    return np.maximum(0, 1 - margin) ** 2 if kind == "squared-hinge" else np.logaddexp(0, -margin)


def objective(
    w: np.ndarray, X: np.ndarray, y: np.ndarray, positive: np.ndarray, negative: float, part: np.ndarray, kind: str
) -> float:
    """½‖w‖² + Σ y·c⁺·ℓ(m) + (1 − y)·c⁻·ℓ(−m) over the points of the problem."""
    m = X @ w
    each = y * positive * loss(m, kind) + (1 - y) * negative * loss(-m, kind)
    return float(0.5 * w @ w + (each * part).sum())


@pytest.mark.parametrize(("solver", "kind"), SOLVERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_targets_and_costs_are_two_inputs(solver: str, kind: str, seed: int) -> None:
    data = soft_problem(seed)
    N, D, L = data.features.sparse.shape[0], data.features.sparse.shape[1], data.Y.shape[1]
    targets, rng = data.Y.tocsc(), np.random.default_rng(seed)
    costs = rng.uniform(0.2, 2, targets.nnz).astype(np.float32)
    assert data.ignore is not None
    ignore = sp.csc_matrix(data.ignore, dtype=np.float32)
    problem = Problem(np.array([0, N]), np.arange(N, dtype=np.int32), np.array([0, L]), targets, costs, ignore)
    options = {"bias": 1.0, "cost_positive": 1.5, "cost_negative": 0.7, "eps": 1e-5, "max_passes": 20000}
    options |= {"threshold": 0.0, "weights_per_label": None, "seed": 0}
    solved = solve_problem(data.features.sparse, problem, **options, loss=kind, solver=solver)  # type: ignore[arg-type]
    W = sp.csc_matrix((solved.values, solved.features, solved.ptr), shape=(D + 1, L)).toarray().astype(float)
    X = np.hstack([data.features.sparse.toarray(), np.ones((N, 1))])
    dense_costs = sp.csc_matrix((costs, targets.indices, targets.indptr), targets.shape).toarray()
    for label in range(L):
        y, part = targets.toarray()[:, label].astype(float), ~ignore.toarray().astype(bool)[:, label]
        arguments = (X, y, 1.5 * dense_costs[:, label], 0.7, part, kind)
        best = minimize(objective, np.zeros(D + 1), arguments, method="L-BFGS-B").fun
        assert objective(W[:, label], *arguments) == pytest.approx(best, rel=1e-4)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_label_vectors_are_weighted_by_the_targets(seed: int) -> None:
    data = soft_problem(seed)
    expected = np.zeros((data.Y.shape[1], data.features.sparse.shape[1]))
    for i, label in zip(*data.Y.nonzero(), strict=True):
        expected[label] += data.Y[i, label] * data.features.sparse[i].toarray().ravel()
    length = np.linalg.norm(expected, axis=1, keepdims=True)
    expected /= np.where(length > 0, length, 1)
    assert pifa(data.features.sparse, data.Y).toarray() == pytest.approx(expected, abs=1e-5)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_clusters_of_soft_labels(seed: int, by_counts: bool) -> None:
    """Eq. 5 to 9: the target of a node is the largest below it; points with any target take part; costs are counts."""
    data = soft_problem(seed)
    Y = data.Y.toarray()
    tree = LabelTree.from_nodes(6, [np.array([0, 1, 0, 1, 2, 2]), np.array([0, 1, 3, 1, 2, 4])])
    for t in range(3):
        problem = level_problem(data, tree, t, LinearParameters(costs="counts" if by_counts else "equal"))
        nodes = tree.nodes(t)
        K = nodes.max() + 1
        largest, counts = np.zeros((len(Y), K)), np.zeros((len(Y), K))
        for label, node in enumerate(nodes):
            largest[:, node] = np.maximum(largest[:, node], Y[:, label])
            counts[:, node] += Y[:, label] > 0
        assert np.array_equal(problem.targets.toarray(), largest.astype(np.float32))
        if by_counts:
            assert problem.costs is not None
            costs = sp.csc_matrix((problem.costs, problem.targets.indices, problem.targets.indptr), largest.shape)
            assert costs.toarray() == pytest.approx(counts / np.maximum(counts.sum(1, keepdims=True), 1), abs=1e-6)
        else:
            assert problem.costs is None
        for parent in range(len(problem.row_ptr) - 1):
            rows = set(problem.rows[problem.row_ptr[parent] : problem.row_ptr[parent + 1]].tolist())
            below = np.ones(6, bool) if t == 0 else tree.nodes(t - 1) == parent
            assert rows == set(range(len(Y)) if t == 0 else np.flatnonzero((Y[:, below] > 0).any(1)).tolist())
        assert (problem.ignore is None) == (t < 2)


def test_a_whole_training_on_soft_targets() -> None:
    """Each label of a trained tree is at the optimum of its own problem: its parent's points except ignored ones."""
    data = soft_problem(5)
    tree = LabelTree.from_nodes(6, [np.array([0, 1, 0, 1, 2, 2])])
    exact = LinearParameters(eps=1e-5, prune=0.0, weights="float32", C=0.8)
    ranker = train_ranker(data, tree, exact, Run())
    X, Y = np.hstack([data.features.sparse.toarray(), np.ones((40, 1))]), data.Y.toarray().astype(float)
    assert data.ignore is not None
    ends = tree.levels[0]
    for place, label in enumerate(tree.order.tolist()):
        parent = int(tree.nodes(0)[label])
        features, values = child_weights(ranker.levels[1], parent, place - int(ends[parent]))
        w = np.zeros(9)
        w[features] = values
        takes_part = (Y[:, tree.nodes(0) == parent] > 0).any(1) & ~data.ignore.toarray()[:, label]
        arguments = (X, Y[:, label], np.full(40, 0.8), 0.8, takes_part, "squared-hinge")
        best = minimize(objective, np.zeros(9), arguments, method="L-BFGS-B").fun
        assert objective(w, *arguments) == pytest.approx(best, rel=1e-3)
