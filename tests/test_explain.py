"""Explanations add up: word by word to the margin, margin by margin to the score."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import TOPICS, feature_corpus, topic_corpus
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail
from longtail._native.linear import Weights, pack_level
from longtail.cli.main import main
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.explanation import Explanation, PathStep, Term, mean_step
from longtail.core.labels import Labels
from longtail.labels.tree import LabelTree
from longtail.linear.blocks import GivenBlock
from longtail.linear.explain import child_weights
from longtail.linear.model import LinearModel
from longtail.linear.ranker import Ranker
from longtail.recipes.xr_linear import XRLinear

SMALL = {"leaf_size": 2, "branching": 2}


def random_weights(rng: np.random.Generator, D: int, K: int) -> tuple[np.ndarray, Weights]:
    """Weights (D + 1, K) of K nodes, dense and in the solver's form."""
    W = (rng.normal(size=(D + 1, K)) * (rng.random((D + 1, K)) < 0.5)).astype(np.float32)
    columns = sp.csc_matrix(W)
    return W, Weights(columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data)


def random_model(seed: int, post: str, D: int = 9, L: int = 23) -> tuple[LinearModel, list[np.ndarray]]:
    """A model over features with random weights, and the weights of its levels, dense."""
    rng = np.random.default_rng(seed)
    tree = LabelTree.balanced(sp.csr_matrix((L, 3), dtype=np.float32), 2, 3, seed)
    tree = LabelTree(rng.permutation(L).astype(np.int32), tree.levels)
    dense, levels = [], []
    for t, ends in enumerate(tree.levels):
        W, weights = random_weights(rng, D, len(ends) - 1)
        dense.append(W.astype(float))
        levels.append(pack_level(tree.child_ptr(t), weights, D + 1))
    labels = Labels.of([f"label{i}" for i in range(L)])
    return LinearModel(XRLinear(beam=L, post=post), labels, [GivenBlock(D)], [Ranker(tree, levels, D)]), dense


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 12), st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_the_weights_of_a_child_are_those_that_were_packed(seed: int, D: int, families: list[int]) -> None:
    rng = np.random.default_rng(seed)
    child_ptr = np.append(0, np.cumsum(families)).astype(np.int64)
    W, weights = random_weights(rng, D, int(child_ptr[-1]))
    level = pack_level(child_ptr, weights, D + 1)
    among = np.flatnonzero(rng.random(D + 1) < 0.5).astype(np.int32)
    for parent, size in enumerate(families):
        for child in range(size):
            column = W[:, child_ptr[parent] + child]
            features, values = child_weights(level, parent, child)
            assert features.tolist() == np.flatnonzero(column).tolist()
            assert np.array_equal(values, column[features])
            some, their = child_weights(level, parent, child, among)
            assert some.tolist() == [f for f in features.tolist() if f in among]
            assert np.array_equal(their, column[some])


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from(["l3-hinge", "sigmoid", "none"]))
def test_contributions_are_the_margins_and_the_path_is_the_score(seed: int, post: str) -> None:
    model, dense = random_model(seed, post)
    rng = np.random.default_rng(seed + 1)
    x = (rng.normal(size=(1, 9)) * (rng.random((1, 9)) < 0.6)).astype(np.float32)
    unit = np.append(x[0] / max(float(np.linalg.norm(x)), 1e-30), 1.0)
    ranking = model.predict(x, 23)
    found = model.explain(sp.csr_matrix(x), k=23)
    assert [r.label for r in found.reasons] == ranking.keys()[0]
    assert np.allclose([r.score for r in found.reasons], ranking.scores[0], rtol=1e-4, atol=1e-6)
    for reason in found.reasons:
        label = int(reason.label[5:])
        (path,) = reason.paths
        for t, step in enumerate(path.steps):
            node = int(model.rankers[0].tree.nodes(t)[label])
            column = dense[t][:, node]
            assert step.margin == pytest.approx(float(unit @ column), abs=1e-5)
            assert step.margin == pytest.approx(step.bias + sum(term.contribution for term in step.terms), abs=1e-5)
            assert step.labels == np.diff(model.rankers[0].tree.levels[t])[node]
            for term in step.terms:
                feature = int(term.term.removeprefix("feature "))
                assert term.weight == pytest.approx(column[feature])
                assert term.contribution == pytest.approx(unit[feature] * column[feature], abs=1e-6)
            contributions = [term.contribution for term in step.terms]
            assert contributions == sorted(contributions, reverse=True)
            assert len(contributions) == np.count_nonzero(unit[:-1] * column[:-1])
        assert path.score == pytest.approx(reason.score, rel=1e-4, abs=1e-6)


@pytest.fixture(scope="module")
def model() -> LinearModel:
    found = longtail.recipe("xr-linear", **SMALL).fit(topic_corpus())
    assert isinstance(found, LinearModel)
    return found


def test_the_words_of_a_topic_carry_its_label(model: LinearModel) -> None:
    text = "the boat and the anchor in the harbour"
    found = model.explain(text, k=2)
    assert found.reasons[0].label == "sailing"
    best = [term for term in found.reasons[0].own.terms if term.contribution > 0]
    assert {"boat", "anchor", "harbour"} <= {term.term for term in best}
    assert dict(found.terms).keys() == {"the", "boat", "and", "anchor", "harbour"}
    assert found.text == text and found.recipe == "xr-linear" and found.kind == "score"
    in_label = {term.term for term in found.reasons[0].own.terms if term.in_label}
    assert in_label == {"boat", "anchor", "harbour"}  # "sailing: boat wind harbour …" is its text
    assert not any(term.in_label for term in found.reasons[1].own.terms if term.term in TOPICS["sailing"])


def test_key_words_are_marked_where_labels_have_no_text() -> None:
    texts = ["red apple", "green pear"] * 30
    labels = [["apple"], ["pear"]] * 30
    found = longtail.fit(texts, labels, "xr-linear").explain("red apple", k=1)
    assert {term.term: term.in_label for term in found.reasons[0].own.terms} == {"red": False, "apple": True}


def test_ngrams_are_terms() -> None:
    texts = ["text editor", "editor of text", "video editor"] * 30
    found = longtail.fit(texts, [["a"], ["b"], ["c"]] * 30, "xr-linear", ngrams=2).explain("a text editor", k=1)
    assert found.reasons[0].label == "a"
    assert found.reasons[0].own.terms[0].term == "text editor"


def test_a_text_without_known_words_has_only_biases(model: LinearModel) -> None:
    for text in ("", "xyzzy plugh"):
        found = model.explain(text, k=3)
        assert not found.terms
        assert [r.label for r in found.reasons] == model.predict([text], 3).keys()[0]
        assert all(step.terms == () and step.margin == step.bias for r in found.reasons for step in r.paths[0].steps)


def test_a_label_that_was_not_suggested_can_be_asked_for(model: LinearModel) -> None:
    text = "boat wind harbour"
    (chess,) = model.explain(text, k=1, labels=["chess"]).reasons
    ranking = model.predict([text], 6)
    at = ranking.keys()[0].index("chess")
    assert chess.score == pytest.approx(float(ranking.scores[0, at]), rel=1e-4)
    assert [r.label for r in model.explain(text, labels=["music", "chess", "music"]).reasons] == ["music", "chess"]
    with pytest.raises(ParameterError, match="Did you mean 'chess'"):
        model.explain(text, labels=["ches"])


def test_features_are_named_by_their_number() -> None:
    corpus = feature_corpus()
    model = longtail.recipe("xr-linear", **SMALL).fit(corpus)
    row = corpus.train.features[0]
    found = model.explain(row, k=1)
    assert found.text is None
    assert {name for name, _ in found.terms} == {f"feature {i}" for i in row.indices}
    same = model.explain(row.toarray()[0], k=1)
    assert same.reasons == found.reasons
    back = sp.csr_matrix((row.data[::-1].copy(), row.indices[::-1].copy(), row.indptr), shape=row.shape)
    assert model.explain(back, k=1).reasons == found.reasons


@pytest.mark.parametrize("x", [["a text"], ["a", "list"], None, 7, {"text": "x"}])
def test_one_point_at_a_time(model: LinearModel, x: object) -> None:
    with pytest.raises(ParameterError):
        model.explain(x)


def test_many_rows_are_refused() -> None:
    model, _ = random_model(0, "none")
    with pytest.raises(ParameterError, match="one point at a time; got a matrix of 3 rows"):
        model.explain(np.ones((3, 9)))
    with pytest.raises(ParameterError, match="k must be"):
        model.explain(np.ones((1, 9)), k=0)


@pytest.mark.parametrize("name", ["popular", "neighbours"])
def test_recipes_that_cannot_explain_name_those_that_can(name: str) -> None:
    model = longtail.recipe(name).fit(topic_corpus())
    with pytest.raises(
        UnsupportedError, match=f"{name}' cannot explain its suggestions; recipes that can: .*xr-linear"
    ):
        model.explain("boat")


def test_several_trees_are_averaged() -> None:
    first = PathStep("0.1", 1, 1.0, 0.5, 0.25, (Term("boat", 0.5, 1.5, 0.75),))
    second = PathStep("2", 1, -0.25, 0.25, -0.5, (Term("mast", 0.5, 1.5, 0.75, True), Term("boat", 0.5, -1.0, -0.5)))
    both = mean_step([first, second])
    assert both.margin == 0.375 == both.bias + sum(term.contribution for term in both.terms)
    assert both.terms == (Term("mast", 0.5, 0.75, 0.375, True), Term("boat", 0.5, 0.25, 0.125))
    assert (both.node, both.score) == ("0.1 2", 0.375)


@pytest.fixture(scope="module")
def folder(model: LinearModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explained") / "model"
    model.save(path)
    return path


def out_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def test_json_lines_hold_everything(model: LinearModel, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["boat wind harbour", "pawn and knight"]
    out = out_of(capsys, "explain", folder, "-k", 3, "--json", *texts)
    lines = [json.loads(line) for line in out.splitlines()]
    for text, line in zip(texts, lines, strict=True):
        assert line == json.loads(json.dumps(model.explain(text, 3).to_json()))
        assert set(line) == {"recipe", "text", "terms", "labels"}
        for label in line["labels"]:
            assert set(label) == {"label", "text", "score", "margin", "bias", "terms", "paths"}
            assert label["margin"] == pytest.approx(label["bias"] + sum(t["contribution"] for t in label["terms"]))
            assert label["paths"][0]["steps"][-1]["terms"] == label["terms"]


def test_the_table_shows_words_bias_and_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = out_of(capsys, "explain", folder, "boat wind harbour and the chord", "-k", 2)
    assert "1. sailing" in out and "2. " in out
    assert "boat *" in out and "the *" not in out
    assert "(bias)" in out and "(margin)" in out and "main words" in out
    assert "* also occurs in the text of the label" in out
    short = out_of(capsys, "explain", folder, "boat wind harbour and the chord", "-k", 1, "--terms", 2)
    rows = short.partition("word")[2].partition("(bias)")[0]
    assert sum(word in rows for word in ("boat", "wind", "harbour", "chord")) == 2
    assert " more)" in rows


def test_the_table_says_when_no_word_is_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "The model knows none of these words" in out_of(capsys, "explain", folder, "xyzzy", "-k", 1)


def test_wrong_use(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(folder), "boat", "--terms", "0"]) == 2
    assert "--terms must be a whole number of at least 1" in capsys.readouterr().err
    assert main(["explain", str(folder), "boat", "--label", "sailin"]) == 2
    assert "Did you mean 'sailing'?" in capsys.readouterr().err
    longtail.recipe("popular").fit(topic_corpus()).save(tmp_path / "popular")
    assert main(["explain", str(tmp_path / "popular"), "boat"]) == 1
    assert "recipe 'popular' cannot explain" in capsys.readouterr().err


def test_an_explanation_is_a_plain_value(model: LinearModel) -> None:
    found = model.explain("boat", 1)
    assert isinstance(found, Explanation)
    assert found == model.explain("boat", 1)
