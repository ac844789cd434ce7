"""The search kernels against brute force, and the `neighbours` recipe against its formula."""

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus
from hypothesis import given
from hypothesis import strategies as st

import longtail
from longtail import _native
from longtail.core.run import Run
from longtail.recipes.neighbours import Neighbours
from longtail.search.sparse import SparseIndex


def random_matrix(rng: np.random.Generator, rows: int, columns: int, density: float = 0.3) -> sp.csr_matrix:
    dense = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < density)
    return sp.csr_matrix(dense.astype(np.float32))


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 12), st.sampled_from([0.02, 0.3, 0.9]))
def test_nearest_against_brute_force(seed: int, documents: int, k: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    X, Q = random_matrix(rng, documents, 15, density), random_matrix(rng, 7, 15, density)
    found, scores = SparseIndex.of(X).nearest(Q, k)
    products = (Q @ X.T).toarray()
    for row in range(7):
        expected = sorted((j for j in range(documents) if products[row, j] > 0), key=lambda j: (-products[row, j], j))
        expected = expected[:k]
        assert np.allclose(scores[row, : len(expected)], products[row, expected], atol=1e-5)
        got = found[row][found[row] >= 0]
        assert len(got) == len(expected)
        assert np.allclose(products[row, got], products[row, expected], atol=1e-5)
        assert (scores[row, len(expected) :] == -np.inf).all()


@given(st.integers(0, 10_000), st.booleans(), st.floats(0, 1))
def test_vote_against_its_formula(seed: int, abstentions: bool, share: float) -> None:
    rng = np.random.default_rng(seed)
    N, L, m = 12, 9, 4
    Y = sp.csr_matrix((rng.random((N, L)) < 0.3).astype(np.float32))
    abstain = sp.csr_matrix(rng.random((N, L)) < 0.1) if abstentions else None
    voters = np.stack([rng.permutation(N)[:m] for _ in range(5)]).astype(np.int32)
    voters[0, 2:] = -1
    weights = rng.random((5, m)).astype(np.float32) * (voters >= 0)
    weights /= weights.sum(1, keepdims=True)
    matched = np.stack([rng.permutation(L)[:2] for _ in range(5)]).astype(np.int32)
    worth = rng.random((5, 2)).astype(np.float32)
    removed = rng.random(L) < 0.2
    found, scores = _native.vote((voters, weights), Y, abstain, share, (matched, worth), removed, L)
    for q in range(5):
        expected = {}
        for label in range(L):
            real = [j for j in range(m) if voters[q, j] >= 0]
            votes = sum(weights[q, j] * Y[voters[q, j], label] for j in real)
            silent = 0.0 if abstain is None else sum(weights[q, j] * abstain[voters[q, j], label] for j in real)
            score = share * votes / max(1 - silent, 1e-3)
            score += sum(worth[q, j] for j in range(2) if matched[q, j] == label)
            if score > 1e-7 and not removed[label]:
                expected[label] = score
        kept = {int(i): float(s) for i, s in zip(found[q], scores[q], strict=True) if i >= 0 and s > 1e-7}
        assert kept.keys() == expected.keys()
        assert all(abs(kept[i] - expected[i]) < 1e-4 * max(1, expected[i]) for i in kept)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    corpus = topic_corpus()
    rankings = [Neighbours().fit(corpus, Run(threads=n)).predict(corpus.train.x, 5) for n in (1, 2, 5)]
    for other in rankings[1:]:
        assert np.array_equal(rankings[0].indices, other.indices)
        assert np.array_equal(rankings[0].scores, other.scores)


def test_label_texts_reach_labels_without_examples() -> None:
    model = longtail.recipe("neighbours", label_weight=0.5).fit(topic_corpus())
    assert model.predict(["telescope comet"], 1).keys() == [["astronomy"]]


def test_open_parameters_are_chosen_and_fixed_ones_kept() -> None:
    model = longtail.recipe("neighbours", weighting="bm25", neighbours=7).fit(topic_corpus())
    assert isinstance(model.recipe, Neighbours)
    assert model.recipe.weighting == "bm25"
    assert model.recipe.neighbours == 7
    assert model.recipe.power is not None
    table = model.about["chosen_from"]
    best = max(table, key=lambda row: row["mean"])
    assert best["power"] == model.recipe.power
    assert best["label_weight"] == model.recipe.label_weight


@pytest.mark.parametrize("weighting", ["tfidf", "bm25"])
def test_the_nearest_text_decides(weighting: str) -> None:
    settings = {"weighting": weighting, "neighbours": 1, "power": 1.0, "label_weight": 0.0}
    corpus = topic_corpus(label_text=False)
    model = longtail.recipe("neighbours", **settings).fit(corpus)
    ranking = model.predict(corpus.train.x, 2)
    truth = corpus.train.Y
    first = np.asarray(truth[np.arange(len(corpus.train)), ranking.indices[:, 0]]).ravel()
    assert first.mean() > 0.99  # a training text is its own nearest neighbour, but for ties
