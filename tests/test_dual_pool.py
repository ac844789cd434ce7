"""The pool of a step against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from longtail.dual.pool import draw_pool, draw_pools, sampled_pairs  # noqa: E402
from longtail.scoring.targets import Truth  # noqa: E402


def pairs_of(matrix):
    matrix = torch.as_tensor(matrix, dtype=torch.float32)
    rows, labels = matrix.nonzero(as_tuple=True)
    return Truth(rows, labels, matrix[rows, labels], tuple(matrix.shape))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(0, 4), st.booleans())
def test_pool_is_the_union_and_every_positive_in_it_counts(seed, positives, negatives, mine):
    rng = np.random.default_rng(seed)
    B, L, R = 6, 15, 5
    Y, ignored = (rng.random((B, L)) < 0.25).astype(float), (rng.random((B, L)) < 0.1).astype(float)
    mined = torch.tensor(rng.integers(-1, L, (B, R)), dtype=torch.int32) if mine else None
    torch.manual_seed(seed)
    pool = draw_pool(pairs_of(Y), pairs_of(ignored), mined, positives, negatives)
    labels = pool.labels.tolist()
    assert labels == sorted(set(labels))
    assert np.array_equal(pool.truth.dense().numpy(), Y[:, labels])
    assert np.array_equal(pool.ignored.dense().numpy(), ignored[:, labels])
    sampled = pool.sampled.dense().numpy()
    assert (sampled <= Y[:, labels]).all()
    assert np.array_equal(sampled.sum(1), np.minimum(Y.sum(1), positives))
    allowed = set(np.flatnonzero(Y.any(0)))
    if mine:
        allowed |= set(mined.flatten().tolist()) - {-1}
        most = np.minimum(Y.sum(1), positives).sum() + B * negatives
        assert len(labels) <= most
    assert set(labels) <= allowed


def test_negatives_come_from_the_own_reservoir_and_true_ones_in_it_count_as_true():
    """A label mined for one query that is true of another one is a positive of that other query."""
    Y = np.zeros((2, 6))
    Y[0, 0] = Y[1, 1] = Y[1, 5] = 1
    mined = torch.tensor([[5, -1], [3, -1]], dtype=torch.int32)
    pool = draw_pool(pairs_of(Y), None, mined, 1, 2)
    assert {0, 5, 3} <= set(pool.labels.tolist()) and 2 not in pool.labels.tolist() and 4 not in pool.labels.tolist()
    assert pool.truth.dense()[1, pool.labels.tolist().index(5)] == 1


def test_without_mined_negatives_their_places_go_to_positives():
    Y = np.ones((1, 8))
    pool = draw_pool(pairs_of(Y), None, None, 2, 3)
    assert len(pool.labels) == 5 and len(pool.sampled.rows) == 2


def test_classifiers_may_have_more_positives():
    rng = np.random.default_rng(0)
    Y = (rng.random((5, 20)) < 0.4).astype(float)
    texts, classifiers = draw_pools(pairs_of(Y), None, None, 1, 0, extra=3)
    assert set(texts.labels.tolist()) < set(classifiers.labels.tolist())
    assert np.array_equal(classifiers.truth.dense().numpy(), Y[:, classifiers.labels.tolist()])
    assert len(classifiers.sampled.rows) == len(texts.sampled.rows) == (Y.sum(1) > 0).sum()


def test_sampling_is_uniform():
    torch.manual_seed(0)
    truth = pairs_of(np.ones((1, 4)))
    counts = sum(sampled_pairs(truth, 1).dense() for _ in range(2000))[0]
    assert (counts > 420).all() and (counts < 580).all()
