"""Linear models over sparse and dense feature blocks: the same as one sparse matrix, trained, searched and saved."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import feature_corpus, topic_corpus
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import longtail
from longtail import _native
from longtail._native.linear import BeamSearch, Weights, pack_level
from longtail.core.errors import DataError, ParameterError, StoreError, UnsupportedError
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf
from longtail.labels.represent import pifa
from longtail.labels.tree import LabelTree
from longtail.linear.blocks import FeatureBlock, GivenBlock, TfidfBlock, kinds
from longtail.linear.features import Features
from longtail.linear.model import LinearModel
from longtail.linear.parameters import LinearParameters
from longtail.linear.solve import Groups, solve_level
from longtail.linear.train import Training, level_problem, train_ranker

FIXTURES = Path(__file__).parent / "fixtures"


class Letters(FeatureBlock):
    """A small dense encoder of texts: how often each letter occurs, times a number for each letter."""

    kind = "letters"
    dense = True

    def __init__(self, scale: np.ndarray):
        self.scale = scale

    @property
    def width(self) -> int:
        return len(self.scale)

    def encode(self, x: Any) -> np.ndarray:
        counts = np.array([[text.count(chr(97 + i)) for i in range(self.width)] for text in x], np.float32) * self.scale
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"scale": self.scale}, {}

    @classmethod
    def from_state(cls, arrays: Any, meta: dict[str, Any]) -> "Letters":
        return cls(arrays["scale"])


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds._places, "letters", f"{__name__}:Letters")


def blocks(texts: Texts) -> list[FeatureBlock]:
    return [Letters(np.linspace(1, 2, 26).astype(np.float32)), TfidfBlock(Tfidf.fit(texts)[0])]


def model_of(chosen: list[FeatureBlock], **changes: Any) -> LinearModel:
    """A model of the topics over some blocks, as a recipe of a later system would put it together."""
    corpus = topic_corpus()
    recipe: Any = longtail.recipe("xr-linear", leaf_size=2, branching=2, **{"prune": 0.001, **changes})
    features = Features.of([block.encode(corpus.train.x) for block in chosen])
    tree = LabelTree.balanced(
        pifa(TfidfBlock(Tfidf.fit(corpus.train.texts)[0]).encode(corpus.train.x), corpus.train.Y), 2, 2, 0
    )
    own = LinearParameters(**{n: getattr(recipe, n) for n in LinearParameters.names()})
    rankers = [train_ranker(Training(features, corpus.train.Y), tree, own, Run(seed=i), i) for i in range(recipe.trees)]
    return LinearModel(recipe, corpus.labels, chosen, rankers)


def random_search(seed: int, D: int, L: int) -> tuple[LabelTree, BeamSearch]:
    rng = np.random.default_rng(seed)
    tree = LabelTree.balanced(sp.csr_matrix((L, 3), dtype=np.float32), 2, 3, seed)
    levels = []
    for t, ends in enumerate(tree.levels):
        W = sp.random(D + 1, len(ends) - 1, 0.6, format="csc", dtype=np.float32, random_state=rng)
        W.data = W.data - np.float32(0.5)
        weights = Weights(W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data)
        levels.append(pack_level(tree.child_ptr(t), weights, D + 1, ("float32", "float16", "int8")[seed % 3]))
    return tree, BeamSearch(D, levels)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(0, 20), st.sampled_from([1, 3, 300]), st.integers(1, 10))
def test_a_dense_block_gives_the_bits_of_a_sparse_one(seed: int, e: int, N: int, beam: int) -> None:
    rng = np.random.default_rng(seed)
    D = 20
    rows = (rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)).astype(np.float32)
    _, search = random_search(seed, D, 23)
    asked: dict[str, Any] = {"bias": 1.0, "beam": beam, "k": 7, "post": "l3-hinge"}
    expected = search.search(sp.csr_matrix(rows), **asked)
    X, dense = sp.csr_matrix(rows[:, : D - e]), np.ascontiguousarray(rows[:, D - e :])
    for threads in (1, 3):
        _native.set_threads(threads)
        found = search.search(X, dense, **asked)
        assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])


def test_a_dense_block_of_a_wrong_shape_is_refused() -> None:
    _, search = random_search(0, 20, 23)
    asked: dict[str, Any] = {"bias": 1.0, "beam": 5, "k": 5, "post": "none"}
    for shape, told in (((2, 5), "rows"), ((3, 21), "columns")):
        with pytest.raises(ValueError, match=told):
            search.search(sp.csr_matrix((3, 15), dtype=np.float32), np.zeros(shape, np.float32), **asked)


FINGERPRINT = """
import hashlib, sys
sys.path.insert(0, {tests!r})
from test_feature_blocks import blocks, model_of
from corpora import topic_corpus
from longtail import _native
corpus = topic_corpus()
model = model_of(blocks(corpus.train.texts), negatives="tfn+man")
arrays, _ = model.state()
ranking = model.predict(corpus.test.x, 5)
digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays)) + ranking.scores.tobytes())
print(_native.simd_name(), digest.hexdigest())
"""


def test_portable_kernels_and_any_threads_give_the_same_bits_with_a_dense_block() -> None:
    script, digests = FINGERPRINT.format(tests=str(Path(__file__).parent)), set()
    for simd, threads in (("", "1"), ("", "3"), ("portable", "2")):
        environment = {**os.environ, "LONGTAIL_SIMD": simd, "LONGTAIL_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        name, digest = done.stdout.split()
        assert not simd or name == simd
        digests.add(digest)
    assert len(digests) == 1


@pytest.mark.parametrize("negatives", ["tfn", "tfn+man"])
def test_blocks_train_and_predict_as_one_sparse_matrix_would(negatives: str) -> None:
    corpus = topic_corpus()
    chosen = blocks(corpus.train.texts)
    exact = {"prune": 0.0, "weights": "float32", "eps": 1e-5, "negatives": negatives}
    model = model_of(chosen, **exact)
    sparse = [sp.csr_matrix(block.encode(corpus.train.x)) for block in (chosen[1], chosen[0])]  # sparse columns first
    settings = LinearParameters(**exact)  # type: ignore[arg-type]
    spelled_out = Training(Features.of(sparse), corpus.train.Y)
    ranker = train_ranker(spelled_out, model.rankers[0].tree, settings, Run())
    assert corpus.test is not None and model.accepts == "text" and model.width == 26 + chosen[1].width
    found = model.predict(corpus.test.x, 4)
    rows = Features.of([sp.csr_matrix(block.encode(corpus.test.x)) for block in (chosen[1], chosen[0])])
    indices, scores = ranker.search(rows, 4, 10, "l3-hinge")
    assert np.array_equal(found.indices[:, 0], indices[:, 0])
    assert np.allclose(found.scores, scores, atol=2e-3)


@pytest.mark.parametrize("trees", [1, 2])
def test_a_model_with_a_dense_block_reloads_the_same(tmp_path: Path, trees: int) -> None:
    corpus = topic_corpus()
    assert corpus.test is not None
    model = model_of(blocks(corpus.train.texts), trees=trees)
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    before, after = model.predict(corpus.test.x, 5), again.predict(corpus.test.x, 5)
    assert np.array_equal(before.indices, after.indices) and np.array_equal(before.scores, after.scores)
    truth = [set(row.indices.tolist()) for row in corpus.test.Y]
    assert np.mean([int(best) in true for best, true in zip(before.indices[:, 0], truth, strict=True)]) > 0.9


def test_a_block_of_an_unknown_kind_is_refused_when_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model_of(blocks(topic_corpus().train.texts)).save(tmp_path / "model")
    monkeypatch.delitem(kinds._places, "letters")
    with pytest.raises(StoreError, match="feature block of kind 'letters'.*train again"):
        longtail.load(tmp_path / "model")


def test_an_explanation_has_one_line_for_a_dense_block() -> None:
    model = model_of(blocks(topic_corpus().train.texts), post="none", weights="float32")
    text = "oven butter and a boat"
    ranking = model.predict([text], 3)
    why = model.explain(text, 3)
    name = "[letters: 26 dense features]"
    assert dict(why.terms)[name] == pytest.approx(1.0) and "butter" in dict(why.terms)
    for reason, score in zip(why.reasons, ranking.scores[0], strict=True):
        terms = {term.term: term for term in reason.own.terms}
        assert sum(term.term == name for term in reason.own.terms) == 1
        assert terms[name].contribution == pytest.approx(terms[name].value * terms[name].weight)
        total = reason.own.bias + sum(term.contribution for term in reason.own.terms)
        assert total == pytest.approx(reason.own.margin) == pytest.approx(float(score), abs=1e-5)
    assert any(abs(term.contribution) > 0.01 for r in why.reasons for term in r.own.terms if term.term == name)


def test_labels_are_edited_beside_a_dense_block() -> None:
    model = model_of(blocks(topic_corpus().train.texts))
    edited = model.edit_labels(model.labels.rename({"chess": "checkers"}).remove(["music"]))
    assert "music" not in edited.predict(["guitar chord melody"], 5).keys()[0]
    added = model.edit_labels(model.labels.add(["golf"], ["golf club green"]))
    assert added.predict(["golf club"], 1).keys() == [["golf"]]
    assert added.predict(["guitar chord melody"], 1).keys() == model.predict(["guitar chord melody"], 1).keys()
    wordless = model_of(blocks(topic_corpus().train.texts)[:1])
    with pytest.raises(UnsupportedError, match="no words, only letters.*train again"):
        wordless.edit_labels(model.labels.add(["golf"], ["golf club green"]))


def test_blocks_that_do_not_fit_are_refused() -> None:
    model = model_of(blocks(topic_corpus().train.texts))
    with pytest.raises(ParameterError, match="at least one feature block"):
        LinearModel(model.recipe, model.labels, [], model.rankers)
    with pytest.raises(ParameterError, match="must all read texts; got tfidf .text., features"):
        LinearModel(model.recipe, model.labels, [model.blocks[1], GivenBlock(26)], model.rankers)
    with pytest.raises(ValueError, match="do not fit the blocks"):
        LinearModel(model.recipe, model.labels, [GivenBlock(3)], model.rankers)
    with pytest.raises(DataError, match="same number of rows"):
        Features.of([np.zeros((3, 2), np.float32), np.zeros((4, 2), np.float32)])
    with pytest.raises(DataError, match="NaN"):
        Features.of([np.full((3, 2), np.nan, np.float32)])


def test_dense_blocks_are_not_copied() -> None:
    X, dense = sp.random(5, 7, 0.5, format="csr", dtype=np.float32), np.ones((5, 3), np.float32)
    features = Features.of([dense, X])
    assert features.dense is dense and np.shares_memory(features.sparse.data, X.data)
    assert (features.points, features.columns, features.dense_columns, features.width) == (5, 7, 3, 10)
    some = features.take(np.array([3, 1]))
    assert (
        np.array_equal(some.sparse.toarray(), X.toarray()[[3, 1]]) and some.dense is not None and len(some.dense) == 2
    )
    several = Features.of([X, dense, X, 2 * dense])
    assert several.columns == 14 and several.dense is not None
    assert np.array_equal(several.dense, np.hstack([dense, 2 * dense]))


@pytest.mark.parametrize("name", ["texts", "features"])
def test_models_saved_before_there_were_blocks_still_load(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(FIXTURES / "linear-models-1.zip") as archive:
        archive.extractall(tmp_path)
    expected = json.loads((tmp_path / "expected.json").read_text())[name]
    corpus = topic_corpus() if name == "texts" else feature_corpus()
    assert corpus.test is not None
    model = longtail.load(tmp_path / name)
    ranking = model.predict(corpus.test.x, 3)
    assert ranking.indices.tolist() == expected["indices"]
    assert np.allclose(ranking.scores, expected["scores"], atol=2e-6)
    if name == "texts":  # its file calls it `budget`
        assert model.recipe.weights_per_label == 6  # type: ignore[attr-defined]
    model.save(tmp_path / "again")
    assert np.array_equal(longtail.load(tmp_path / "again").predict(corpus.test.x, 3).scores, ranking.scores)


def level(seed: int, dense_only: bool) -> tuple[Features, sp.csr_matrix, sp.csr_matrix, Groups]:
    """Points, soft targets of 7 nodes under 3 parents, costs, and points for each parent, negatives among them."""
    rng = np.random.default_rng(seed)
    N, child_ptr = 50, np.array([0, 2, 3, 7])
    X = normalise_rows(sp.random(N, 8, 0.5, format="csr", dtype=np.float32, random_state=rng))
    E = rng.normal(size=(N, 5)).astype(np.float32)
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    features = Features.of([E] if dense_only else [X, E])
    Y = sp.csr_matrix((rng.random((N, 7)) < 0.3) * rng.choice([0.4, 1.0], size=(N, 7)).astype(np.float32))
    costs = Y.copy()
    costs.data = rng.choice([0.5, 1.0, 3.0], size=Y.nnz).astype(np.float32)
    groups = Groups.matched(sp.csr_matrix(rng.random((N, 3)) < 0.6), child_ptr)
    return features, Y.astype(np.float32), costs, groups


@pytest.mark.parametrize("dense_only", [False, True])
@pytest.mark.parametrize(
    "chosen", [{}, {"solver": "newton"}, {"loss": "logistic", "solver": "newton"}, {"C": 2.0, "C_negative": 0.5}]
)
def test_solve_level_finds_the_optimum(dense_only: bool, chosen: dict[str, Any]) -> None:
    features, Y, costs, groups = level(3, dense_only)
    exact = LinearParameters(eps=1e-5, prune=0.0, **chosen)
    weights = solve_level(features, Y, costs, groups, exact)
    D = features.width + 1
    W = sp.csc_matrix((weights.values, weights.features, weights.ptr), shape=(D, 7)).toarray().astype(float)
    assert features.dense is not None
    all_rows = np.hstack([features.sparse.toarray(), features.dense, np.ones((50, 1))]).astype(float)
    negative_cost = exact.C if exact.C_negative is None else exact.C_negative

    def loss(m: np.ndarray) -> np.ndarray:
        return np.logaddexp(0, -m) if exact.loss == "logistic" else np.maximum(0, 1 - m) ** 2

    for node in range(7):
        parent = int(np.searchsorted(groups.child_ptr, node, side="right")) - 1
        rows = groups.rows[groups.row_ptr[parent] : groups.row_ptr[parent + 1]]
        X, y, c = all_rows[rows], Y.toarray()[rows, node].astype(float), costs.toarray()[rows, node].astype(float)

        def objective(w: np.ndarray, X: Any = X, y: Any = y, c: Any = c) -> float:
            m = X @ w
            return float(0.5 * w @ w + (exact.C * c * y * loss(m) + negative_cost * (1 - y) * loss(-m)).sum())

        best = minimize(objective, np.zeros(D), method="L-BFGS-B", options={"maxiter": 2000}).fun
        assert objective(W[:, node]) == pytest.approx(best, rel=1e-3)


def test_solve_level_is_what_rankers_are_made_of() -> None:
    corpus = feature_corpus()
    data = Training(Features.of([normalise_rows(corpus.train.features)]), corpus.train.Y)
    tree = LabelTree.balanced(pifa(data.features.sparse, data.Y), 2, 2, 0)
    settings = LinearParameters(costs="counts", negatives="tfn+man", weights="float32", beam=1)
    ranker = train_ranker(data, tree, settings, Run(seed=5))
    problem = level_problem(data, tree, 0, settings)
    costs = tree.counts(data.Y, 0)
    costs.data /= np.repeat(np.maximum(np.asarray(costs.sum(1)).ravel(), 1), np.diff(costs.indptr))
    solved = solve_level(data.features, tree.targets(data.Y, 0), costs, None, settings, seed=5)
    assert len(problem.row_ptr) == 2
    packed = pack_level(tree.child_ptr(0), solved, data.features.width + 1)
    assert all(np.array_equal(one, other) for one, other in zip(packed, ranker.levels[0], strict=True))


def test_solve_level_leaves_ignored_pairs_out() -> None:
    features, Y, _, groups = level(4, False)
    exact = LinearParameters(eps=1e-5, prune=0.0)
    ignore = sp.csr_matrix(np.random.default_rng(0).random(Y.shape) < 0.2)
    left_out = Y.toarray() * ~ignore.toarray()
    with_ignored = solve_level(features, Y, None, groups, exact, ignore=ignore)
    as_negatives = solve_level(features, sp.csr_matrix(left_out), None, groups, exact)
    unlabelled = solve_level(features, sp.csr_matrix(left_out), None, groups, exact, ignore=ignore)
    assert all(np.allclose(a, b, atol=1e-3) for a, b in zip(with_ignored, unlabelled, strict=True))
    assert len(with_ignored.values) != len(as_negatives.values) or not np.allclose(
        with_ignored.values, as_negatives.values, atol=1e-2
    )


def test_solve_level_refuses_what_does_not_fit() -> None:
    features, Y, costs, groups = level(5, False)
    with pytest.raises(DataError, match="features of 50 points"):
        solve_level(features, Y[:40])
    with pytest.raises(DataError, match="same pairs"):
        solve_level(features, Y, costs.multiply(Y > 0.5).tocsr())
    with pytest.raises(DataError, match="one group per parent"):
        solve_level(features, Y[:, :5], None, groups)
    with pytest.raises(DataError, match="from 0 to 49"):
        solve_level(features, Y, None, groups._replace(rows=groups.rows + 1 + 49 * (groups.rows == 0)))
    with pytest.raises(ParameterError, match="solver=newton"):
        solve_level(features, Y, settings=LinearParameters(loss="logistic"))
