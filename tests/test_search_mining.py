"""Mined negatives against a full sort."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.core.errors import ParameterError
from longtail.core.progress import Progress
from longtail.search import mining
from longtail.search.index import SearchSettings
from longtail.search.mining import nearest_negatives


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 30), st.integers(1, 50), st.integers(0, 12), st.booleans(), st.integers(0, 9999))
def test_against_a_full_sort(N: int, L: int, count: int, ignoring: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, z = (rng.integers(-3, 4, (n, 6)).astype(np.float32) for n in (N, L))
    shares = rng.choice([0.05, 0.5, 0.95], 3)
    yes, neither, removed = rng.random((N, L)) < shares[0], rng.random((N, L)) < shares[1], rng.random(L) < shares[2]
    # soft targets, and a stored 0: the entry counts, not its value
    Y = sp.csr_matrix(yes.astype(np.float32))
    Y.data[:] = rng.choice([0, 0.2, 1], Y.nnz)
    ignore = sp.csr_matrix(neither) if ignoring else None
    found = nearest_negatives(x, z, count, Y, ignore, without=removed)
    products = x @ z.T
    products[yes | removed | (neither & ignoring)] = -np.inf
    for i in range(N):
        order = np.argsort(-products[i], kind="stable")
        want = [int(j) for j in order if products[i, j] > -np.inf][:count]
        assert found[i].tolist() == want + [-1] * (count - len(want))


def test_blocks_and_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "BLOCK", 7)
    monkeypatch.setattr("longtail.core.progress.PLAIN_EVERY", 0.0)
    rng = np.random.default_rng(0)
    x, z = (rng.normal(size=(n, 6)).astype(np.float32) for n in (30, 90))
    Y = sp.random(30, 90, 0.2, "csr", np.float32, rng=rng)
    out = io.StringIO()
    index = SearchSettings(storage="int8").build(z)
    found = nearest_negatives(x, index, 5, Y, progress=Progress(quiet=False, stream=out))
    products = np.where(Y.toarray() > 0, -np.inf, x @ z.T)
    assert np.array_equal(found, np.argsort(-products, axis=1)[:, :5])
    assert "mining negatives: 30/30 points" in out.getvalue()


def test_pairs_of_another_shape_are_refused() -> None:
    x, z = np.zeros((3, 2), np.float32), np.zeros((5, 2), np.float32)
    good, bad = sp.csr_matrix((3, 5), dtype=np.float32), sp.csr_matrix((3, 4), dtype=np.float32)
    with pytest.raises(ParameterError, match=r"positives must have the shape \(3, 5\)"):
        nearest_negatives(x, z, 1, bad)
    with pytest.raises(ParameterError, match="ignored pairs must have"):
        nearest_negatives(x, z, 1, good, bad)
