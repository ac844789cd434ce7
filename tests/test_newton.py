"""Newton's method for the linear engine against scipy's optimum, literal gradients and dual coordinate descent."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from longtail import _native
from longtail._native.linear import Problem, Weights, sigmoid, solve_problem

EXACT = {"bias": 1.0, "cost_positive": 1.0, "cost_negative": 1.0, "eps": 1e-4, "max_passes": 1000, "threshold": 0.0}
LOSSES = ["squared-hinge", "logistic"]


def random_problem(
    seed: int, N: int = 60, D: int = 12, K: int = 9, soft: bool = False
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix((rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.4)).astype(np.float32))
    Y = (X @ rng.normal(size=(D, K)) > 0.7).astype(np.float32)
    if soft:
        Y *= rng.choice([0.3, 0.8, 1.0], size=Y.shape)
    return X, sp.csr_matrix(Y.astype(np.float32))


def flat_problem(Y: sp.csr_matrix, ignore: sp.csr_matrix | None = None, costs: np.ndarray | None = None) -> Problem:
    N, K = Y.shape
    pairs = None if ignore is None else ignore.tocsc()
    return Problem(np.array([0, N]), np.arange(N, dtype=np.int32), np.array([0, K]), Y.tocsc(), costs, pairs)


def solve(X: sp.csr_matrix, problem: Problem, loss: str, **changes: Any) -> np.ndarray:
    """Weights (D + 1, K); the dense block is part of D."""
    dense = changes.get("dense")
    settings = {**EXACT, "weights_per_label": None, "seed": 0, "solver": "newton", "loss": loss, **changes}
    return as_dense(solve_problem(X, problem, **settings), X.shape[1] + (0 if dense is None else dense.shape[1]))


def as_dense(weights: Weights, D: int) -> np.ndarray:
    shape = (D + 1, len(weights.ptr) - 1)
    return sp.csc_matrix((weights.values, weights.features, weights.ptr), shape=shape).toarray().astype(float)


def with_bias(X: sp.csr_matrix, bias: float = 1.0) -> np.ndarray:
    return np.hstack([X.toarray().astype(float), np.full((X.shape[0], 1), bias)])


def objective(
    w: np.ndarray, rows: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: str
) -> tuple[float, np.ndarray]:
    """½‖w‖² + Σ positive·ℓ(m) + negative·ℓ(−m), and its gradient."""
    m = rows @ w
    if loss == "logistic":
        value = positive * np.logaddexp(0, -m) + negative * np.logaddexp(0, m)
        slope = (positive + negative) / (1 + np.exp(-m)) - positive
    else:
        value = positive * np.maximum(0, 1 - m) ** 2 + negative * np.maximum(0, 1 + m) ** 2
        slope = 2 * negative * np.maximum(0, 1 + m) - 2 * positive * np.maximum(0, 1 - m)
    return float(0.5 * w @ w + value.sum()), w + rows.T @ slope


def best_weights(rows: np.ndarray, positive: np.ndarray, negative: np.ndarray, loss: str) -> np.ndarray:
    found = minimize(
        objective,
        np.zeros(rows.shape[1]),
        (rows, positive, negative, loss),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )
    return np.asarray(found.x)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("K", [3, 9, 60])
def test_the_optimum(loss: str, soft: bool, ignored: bool, K: int) -> None:
    X, Y = random_problem(K, K=K, soft=soft)
    ignore = sp.csr_matrix(np.random.default_rng(1).random(Y.shape) < 0.1) if ignored else None
    W = solve(X, flat_problem(Y, ignore), loss)
    for label in range(0, K, 7):
        takes_part = np.ones(X.shape[0]) if ignore is None else (~ignore.toarray()[:, label]).astype(float)
        y = Y.toarray()[:, label].astype(float)
        best = best_weights(with_bias(X), y * takes_part, (1 - y) * takes_part, loss)
        assert np.allclose(W[:, label], best, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_costs_and_the_value_of_the_bias(loss: str) -> None:
    X, Y = random_problem(7, soft=True)
    by_column = Y.tocsc()
    costs = np.random.default_rng(2).uniform(0.2, 3, by_column.nnz).astype(np.float32)
    W = solve(X, flat_problem(Y, costs=costs), loss, cost_positive=2.0, cost_negative=0.5, bias=0.7)
    of_pairs = sp.csc_matrix((costs, by_column.indices, by_column.indptr), shape=Y.shape).toarray()
    for label in range(9):
        y = Y.toarray()[:, label].astype(float)
        best = best_weights(with_bias(X, 0.7), 2.0 * of_pairs[:, label] * y, 0.5 * (1 - y), loss)
        assert np.allclose(W[:, label], best, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_without_a_bias(loss: str) -> None:
    X, Y = random_problem(8)
    W = solve(X, flat_problem(Y), loss, bias=0.0)
    y = Y.toarray()[:, 0].astype(float)
    assert np.allclose(W[:-1, 0], best_weights(X.toarray().astype(float), y, 1 - y, loss), atol=1e-3)
    assert not W[-1].any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [3, 60])
def test_a_dense_block_beside_the_sparse_one(loss: str, K: int) -> None:
    X, Y = random_problem(3, K=K)
    whole = solve(X, flat_problem(Y), loss)
    assert np.allclose(whole, solve(X[:, :6], flat_problem(Y), loss, dense=X[:, 6:].toarray()), atol=1e-3)
    assert np.allclose(whole, solve(X[:, :0], flat_problem(Y), loss, dense=X.toarray()), atol=1e-3)


def sparse_corpus(seed: int, N: int = 3000, D: int = 400, K: int = 70) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Unit rows of a few Zipf words and labels of a few rows, so that working sets are small parts of the whole."""
    rng = np.random.default_rng(seed)
    words = np.minimum(rng.zipf(1.3, size=(N, 8)) - 1, D - 1)
    X = sp.csr_matrix((rng.uniform(0.5, 1.5, N * 8), (np.repeat(np.arange(N), 8), words.ravel())), shape=(N, D))
    X = sp.diags(1 / np.sqrt(X.multiply(X).sum(1).A1)) @ X
    Y = np.zeros((N, K), np.float32)
    for label in range(K):
        Y[(words == label + 5).any(1) & (rng.random(N) < 0.6), label] = 1
    return X.tocsr().astype(np.float32), sp.csr_matrix(Y)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_over_all_rows_is_as_short_as_was_asked(loss: str) -> None:
    X, Y = sparse_corpus(0)
    rows, eps = with_bias(X), 0.01
    W = solve(X, flat_problem(Y), loss, eps=eps)
    for label in range(0, Y.shape[1], 3):
        y = Y[:, label].toarray().ravel().astype(float)
        at_zero = np.linalg.norm(objective(np.zeros(rows.shape[1]), rows, y, 1 - y, loss)[1])
        allowed = eps * max(1, min(y.sum(), (1 - y).sum())) / len(y) * at_zero
        assert np.linalg.norm(objective(W[:, label], rows, y, 1 - y, loss)[1]) <= 1.001 * allowed


def test_dual_coordinate_descent_finds_the_same() -> None:
    X, Y = sparse_corpus(1, N=800, K=20)
    newton = solve(X, flat_problem(Y), "squared-hinge", eps=1e-5)
    dual = solve(X, flat_problem(Y), "squared-hinge", solver="dcd", eps=1e-5, max_passes=5000)
    assert np.abs(newton).max() > 0.5
    assert np.allclose(newton, dual, atol=1e-3)


def test_logistic_scores_are_probabilities() -> None:
    """With a free bias and weak weights, the mean predicted probability of a label is its frequency."""
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.normal(size=(4000, 5)).astype(np.float32))
    truth = 1 / (1 + np.exp(-(X @ rng.normal(size=(5, 4)) - 2)))
    Y = sp.csr_matrix((rng.random(truth.shape) < truth).astype(np.float32))
    predicted = sigmoid((with_bias(X) @ solve(X, flat_problem(Y), "logistic")).astype(np.float32))
    assert np.allclose(predicted.mean(0), Y.toarray().mean(0), atol=2e-3)
    assert np.abs(predicted - truth).mean() < 0.02


@pytest.mark.parametrize("loss", LOSSES)
def test_a_label_does_not_depend_on_its_neighbours(loss: str) -> None:
    X, Y = sparse_corpus(2, N=700)
    together = solve(X, flat_problem(Y), loss, eps=0.01)
    for labels in ([0], [41, 3], list(range(20, 50))):
        assert np.array_equal(solve(X, flat_problem(Y[:, labels]), loss, eps=0.01), together[:, labels])


@pytest.mark.parametrize("loss", LOSSES)
def test_groups_see_only_their_rows(loss: str) -> None:
    X, Y = random_problem(2, K=6)
    first, second = np.arange(0, 40, dtype=np.int32), np.arange(25, 60, dtype=np.int32)
    problem = Problem(np.array([0, 40, 75]), np.concatenate([first, second]), np.array([0, 3, 6]), Y.tocsc())
    both = solve(X, problem, loss)
    for rows, labels in ((first, [0, 1, 2]), (second, [3, 4, 5])):
        assert np.array_equal(both[:, labels], solve(X[rows], flat_problem(Y[rows][:, labels]), loss))


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_with_the_same_pairs_are_solved_once_and_others_are_not_mixed_up(loss: str) -> None:
    X, Y = random_problem(5, K=4)
    same_rows = Y[:, [0, 1, 0, 0]].toarray()
    same_rows[:, 3] *= 0.5  # the same rows, but softer
    ignore = np.zeros((60, 5), bool)
    ignore[:20, 4] = True
    Y = sp.csr_matrix(np.hstack([same_rows, Y[:, [0]].toarray()]))  # and one with ignored pairs
    W = solve(X, flat_problem(Y, sp.csr_matrix(ignore)), loss)
    assert np.array_equal(W[:, 0], W[:, 2])
    assert len({W[:, label].tobytes() for label in range(5)}) == 4


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_without_positives_and_with_nothing_else(loss: str) -> None:
    X, _ = random_problem(6)
    Y = np.zeros((60, 3), np.float32)
    Y[:, 1] = 1
    W = solve(X, flat_problem(sp.csr_matrix(Y)), loss)
    nothing = best_weights(with_bias(X), np.zeros(60), np.ones(60), loss)
    assert np.allclose(W[:, 0], nothing, atol=1e-3)
    assert np.allclose(W[:, 1], -nothing, atol=1e-3)
    assert np.array_equal(W[:, 0], W[:, 2])


@pytest.mark.parametrize("loss", LOSSES)
def test_all_pairs_ignored_leave_no_weights(loss: str) -> None:
    X, Y = random_problem(6, K=2)
    everything = sp.csr_matrix(np.ones((60, 2), bool))
    assert not solve(X, flat_problem(Y, everything), loss).any()


@pytest.mark.parametrize("loss", LOSSES)
def test_empty_rows_and_no_rows(loss: str) -> None:
    X = sp.csr_matrix((5, 4), dtype=np.float32)
    Y = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 0], [0, 0], [0, 1]], np.float32))
    W = solve(X, flat_problem(Y), loss)
    y = Y.toarray()[:, 0].astype(float)
    assert np.allclose(W[:, 0], best_weights(with_bias(X), y, 1 - y, loss), atol=1e-4)
    none = solve(X[:0], flat_problem(Y[:0]), loss)
    assert none.shape == (5, 2) and not none.any()
    no_labels = solve(X, flat_problem(Y[:, :0]), loss)
    assert no_labels.shape == (5, 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_pruning_by_threshold_and_by_budget(loss: str) -> None:
    X, Y = random_problem(4)
    W = solve(X, flat_problem(Y), loss)
    assert np.array_equal(solve(X, flat_problem(Y), loss, threshold=0.3), np.where(np.abs(W) >= 0.3, W, 0))
    few = solve(X, flat_problem(Y), loss, weights_per_label=4)
    for label in range(W.shape[1]):
        assert set(np.flatnonzero(few[:, label])) == set(np.argsort(-np.abs(W[:, label]))[:4])


def test_a_bound_on_the_steps_is_kept() -> None:
    X, Y = sparse_corpus(3, N=500, K=9)
    for loss in LOSSES:
        rough = solve(X, flat_problem(Y), loss, max_passes=1, eps=1e-5)
        exact = solve(X, flat_problem(Y), loss, eps=1e-5)
        assert np.isfinite(rough).all() and not np.allclose(rough, exact, atol=1e-3)


def test_a_solver_that_does_not_know_the_loss_is_refused() -> None:
    X, Y = random_problem(0)
    with pytest.raises(ValueError, match="'dcd' for loss 'logistic'.*newton with logistic"):
        solve(X, flat_problem(Y), "logistic", solver="dcd")
    with pytest.raises(ValueError, match="'simplex'"):
        solve(X, flat_problem(Y), "logistic", solver="simplex")


@settings(max_examples=200)
@given(arrays(np.float32, st.integers(0, 40), elements=st.floats(-80, 80, width=32)))
def test_the_sigmoid_is_right_to_six_digits(values: np.ndarray) -> None:
    exact = 1 / (1 + np.exp(-values.astype(float)))
    assert np.allclose(sigmoid(values), exact, rtol=1e-6, atol=0)


def test_the_sigmoid_far_out() -> None:
    found = sigmoid(np.array([[-np.inf, -1e30], [1e30, np.inf]], np.float32))
    assert ((found[0] >= 0) & (found[0] < 1e-37)).all() and (found[1] == 1).all()


FINGERPRINT = """
import hashlib, sys
sys.path.insert(0, {tests!r})
import numpy as np
from longtail import _native
from test_newton import LOSSES, flat_problem, random_problem, sigmoid, solve, sparse_corpus
X, Y = sparse_corpus(4, N=900)
found = [solve(X, flat_problem(Y), loss, eps=0.01) for loss in LOSSES]
X, Y = random_problem(4, K=13, soft=True)
found += [solve(X[:, :7], flat_problem(Y), loss, dense=X[:, 7:].toarray()) for loss in LOSSES]
found += [sigmoid(np.linspace(-90, 90, 10_001, dtype=np.float32))]
print(_native.simd_name(), hashlib.sha256(b"".join(part.tobytes() for part in found)).hexdigest())
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


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(LOSSES),
    st.integers(1, 80),
    st.integers(1, 70),
    st.integers(1, 6),
    st.sampled_from([0.01, 1.0, 50.0]),
)
def test_any_small_problem(seed: int, loss: str, N: int, K: int, threads: int, cost: float) -> None:
    """The gradient at the solution, for any shape: groups smaller than a vector, costs far from 1."""
    X, Y = random_problem(seed, N=N, K=K, soft=seed % 2 == 0)
    before = _native.get_threads()
    _native.set_threads(threads)
    try:
        W = solve(X, flat_problem(Y), loss, eps=1e-3, cost_positive=cost, cost_negative=cost)
    finally:
        _native.set_threads(before)
    rows = with_bias(X)
    for label in range(0, K, 9):
        y = Y.toarray()[:, label].astype(float)
        at_zero = np.linalg.norm(objective(np.zeros(13), rows, cost * y, cost * (1 - y), loss)[1])
        length = np.linalg.norm(objective(W[:, label], rows, cost * y, cost * (1 - y), loss)[1])
        assert length <= 1e-3 * at_zero + 1e-4
