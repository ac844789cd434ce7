"""The kernels of dense tables against their formulas written out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longtail import _native
from longtail._native.rows import adam_rows, dots, join_truth

SHAPES = st.tuples(st.integers(0, 5), st.integers(0, 40), st.integers(1, 9), st.integers(1, 75))  # B, C, n, d


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = _native.get_threads()
    _native.set_threads(request.param)
    yield
    _native.set_threads(before)


@settings(max_examples=100, deadline=None)
@given(SHAPES, st.integers(0, 99), st.sampled_from([np.int32, np.int64]))
def test_dots(shape: tuple[int, int, int, int], seed: int, kind: type) -> None:
    (B, C, n, d), rng = shape, np.random.default_rng(seed)
    x, table = rng.normal(size=(B, d)).astype(np.float32), rng.normal(size=(n, d)).astype(np.float32)
    rows = rng.integers(-1, n, (B, C)).astype(kind)
    found = dots(x, table, rows)
    assert found.shape == (B, C)
    for b in range(B):
        for c in range(C):
            want = 0.0 if rows[b, c] < 0 else float(x[b].astype(np.float64) @ table[rows[b, c]])
            assert found[b, c] == pytest.approx(want, abs=1e-4)


@pytest.mark.parametrize("bad", [-2, 7])
def test_dots_refuses_rows_that_are_not_there(bad: int, threads: None) -> None:
    with pytest.raises(ValueError, match="no such row"):
        dots(np.zeros((2, 3), np.float32), np.zeros((7, 3), np.float32), np.array([[0], [bad]]))


def test_dots_refuses_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="width"):
        dots(np.zeros((1, 3), np.float32), np.zeros((7, 4), np.float32), np.zeros((1, 1), np.int64))
    with pytest.raises(ValueError, match="number"):
        dots(np.zeros((2, 4), np.float32), np.zeros((7, 4), np.float32), np.zeros((1, 1), np.int64))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 60), st.integers(1, 50), st.integers(0, 99))
def test_adam(threads: None, n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(n, d)).astype(np.float32)
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    w, m, v = (array.astype(np.float64) for array in (weight, first, second))
    for step in range(1, 4):
        ids = np.flatnonzero(rng.random(n) < 0.6)
        grad = rng.normal(size=(len(ids), d)).astype(np.float32)
        adam_rows(weight, first, second, ids, grad, lr=0.01, betas=(0.9, 0.999), eps=1e-8, steps=step)
        for i, g in zip(ids, grad.astype(np.float64), strict=True):
            m[i], v[i] = 0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g * g
            w[i] -= 0.01 * (m[i] / (1 - 0.9**step)) / (np.sqrt(v[i] / (1 - 0.999**step)) + 1e-8)
    for found, want in ((weight, w), (first, m), (second, v)):
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-6)


def test_adam_refuses_what_it_could_not_write_to() -> None:
    good, ids = np.zeros((4, 3), np.float32), np.array([1])
    told = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "steps": 1}
    with pytest.raises(TypeError):
        adam_rows(good.astype(np.float64), good.copy(), good.copy(), ids, good[:1], **told)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        adam_rows(np.zeros((3, 4), np.float32).T, good.copy(), good.copy(), ids, good[:1], **told)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no such row"):
        adam_rows(good, good.copy(), good.copy(), np.array([4]), good[:1], **told)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a gradient for each row"):
        adam_rows(good, good.copy(), good.copy(), ids, good[:2], **told)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="differ in shape"):
        adam_rows(good, good[:2].copy(), good.copy(), ids, good[:1], **told)  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 9), st.integers(0, 30), st.integers(1, 150), st.integers(0, 999))
def test_truth_beside_a_shortlist(threads: None, B: int, S: int, L: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = [
        {int(label): float(rng.random()) for label in rng.choice(L, rng.integers(0, min(L, 9) + 1))} for _ in range(B)
    ]
    rows = [sorted(row) for row in truth]
    shortlist = rng.integers(-1, L, (B, S))
    ptr = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    labels = np.array([label for row in rows for label in row], np.int64)
    values = np.array([truth[b][label] for b, row in enumerate(rows) for label in row], np.float32)
    candidates, counted, targets, hits = join_truth(ptr, labels, values, shortlist)
    most = max(map(len, rows), default=0)
    assert candidates.shape == counted.shape == targets.shape == (B, most + S)
    assert hits == sum(int(label) in truth[b] for b in range(B) for label in shortlist[b])
    for b in range(B):
        assert candidates[b].tolist() == rows[b] + [-1] * (most - len(rows[b])) + shortlist[b].tolist()
        wanted = [True] * len(rows[b]) + [False] * (most - len(rows[b]))
        wanted += [label >= 0 and int(label) not in truth[b] for label in shortlist[b]]
        assert counted[b].tolist() == wanted
        np.testing.assert_allclose(targets[b], [truth[b].get(int(label), 0.0) for label in candidates[b]], rtol=1e-6)


def test_truth_must_have_a_row_for_each_shortlist() -> None:
    none, shortlist = (np.empty(0, np.int64), np.empty(0, np.float32)), np.zeros((2, 1), np.int64)
    with pytest.raises(ValueError, match="differ in rows"):
        join_truth(np.zeros(2, np.int64), *none, shortlist)
    for ptr in ([0, 0, 1], [1, 0, 0]):
        with pytest.raises(ValueError, match="end where"):
            join_truth(np.array(ptr), *none, shortlist)


SCRIPT = """
import hashlib, sys
import numpy as np
from longtail import _native
from longtail._native.rows import adam_rows, dots
_native.set_threads(int(sys.argv[1]))
rng = np.random.default_rng(0)
x, table = (rng.normal(size=(n, 77)).astype(np.float32) for n in (40, 900))
made = [dots(x, table, rng.integers(-1, 900, (40, 1100)))]
moments = [np.zeros_like(table), np.zeros_like(table)]
for step in (1, 2):
    grad = rng.normal(size=table.shape).astype(np.float32)
    adam_rows(table, *moments, np.arange(900), grad, lr=0.1, betas=(0.9, 0.999), eps=1e-8, steps=step)
print(hashlib.sha256(b"".join(array.tobytes() for array in [*made, table, *moments])).hexdigest())
"""


def test_the_same_bits_for_any_threads_and_both_forms() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, threads],
            env=os.environ | {"LONGTAIL_SIMD": form},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads, form in (("1", ""), ("5", ""), ("2", "portable"))
    }
    assert len(found) == 1
