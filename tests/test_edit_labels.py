"""Labels added, removed and renamed without retraining: nothing else changes, and new ones are found by their texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import GROUPS, NEW_KEYS, NEW_TEXTS, feature_corpus, group, grouped_corpus, spare, topic_corpus, word
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail
from longtail._native.linear import Weights, pack_level, unpack_level
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.evidence.score import score
from longtail.labels.tree import LabelTree
from longtail.linear.edit import grown, siblings
from longtail.linear.model import LinearModel
from longtail.linear.parameters import LinearParameters
from longtail.linear.ranker import Ranker

SMALL = {"leaf_size": 5, "branching": 2}
KINDS: dict[str, dict[str, Any]] = {
    "float32": {"weights": "float32", **SMALL},
    "float16": {"weights": "float16", **SMALL},
    "int8": {"weights": "int8", **SMALL},
    "ensemble": {"trees": 3, **SMALL},
    "deep": {"leaf_size": 2, "branching": 2},
    "sigmoid": {"post": "sigmoid", "loss": "logistic", "solver": "newton", **SMALL},
    "margins": {"post": "none", **SMALL},
    "few weights": {"weights_per_label": 6, **SMALL},
    "flat": {"recipe": "dismec"},
    "bonsai": {"recipe": "bonsai", "leaf_size": 5, "branching": 4},
}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return grouped_corpus()


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest, corpus: Corpus) -> LinearModel:
    given_settings = dict(KINDS[request.param])
    recipe = given_settings.pop("recipe", "xr-linear")
    return cast(LinearModel, longtail.recipe(recipe, **given_settings).fit(corpus))


@pytest.fixture(scope="module")
def edited(model: LinearModel) -> LinearModel:
    return model.edit_labels(model.labels.add(NEW_KEYS, NEW_TEXTS))


def same(a: longtail.Ranking, b: longtail.Ranking) -> bool:
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.scores, b.scores)


# -- adding


def test_a_new_label_is_found_by_its_own_text(model: LinearModel, edited: LinearModel) -> None:
    found = edited.predict(NEW_TEXTS, 1).indices[:, 0]
    assert np.array_equal(found, len(model.labels) + np.arange(GROUPS))


def test_indices_are_stable_and_the_old_model_stays(model: LinearModel, edited: LinearModel, corpus: Corpus) -> None:
    L = len(corpus.labels)
    assert len(model.labels) == L and all(len(ranker.tree) == L for ranker in model.rankers)
    assert list(edited.labels.keys) == [*corpus.labels.keys, *NEW_KEYS]
    assert np.array_equal(edited.labels.counts, np.append(corpus.labels.counts, np.zeros(GROUPS)))
    for before, after in zip(model.rankers, edited.rankers, strict=True):
        after.tree.check(L + GROUPS)
        assert np.array_equal(after.tree.order[after.tree.order < L], before.tree.order)
        for t in range(len(before.tree.levels) - 1):
            assert np.array_equal(after.tree.nodes(t)[:L], before.tree.nodes(t))


def test_all_scores_of_other_labels_keep_every_bit(model: LinearModel, edited: LinearModel, corpus: Corpus) -> None:
    L = len(corpus.labels)
    before = model.predict(corpus.train.x, L).to_csr()
    after = edited.predict(corpus.train.x, L + GROUPS).to_csr()[:, :L]
    assert before.nnz == after.nnz
    assert np.array_equal(before.toarray(), after.toarray())


def test_predictions_without_a_new_label_are_the_same(model: LinearModel, corpus: Corpus) -> None:
    other = model.edit_labels(model.labels.add(["unrelated"], ["nothing that is known"]))
    before, after = model.predict(corpus.train.x, 5), other.predict(corpus.train.x, 5)
    untouched = ~(after.indices == len(model.labels)).any(1)
    assert untouched.mean() > 0.5  # it shares a cluster of five with others
    assert np.array_equal(before.indices[untouched], after.indices[untouched])
    assert np.array_equal(before.scores[untouched], after.scores[untouched])


def test_it_reloads_the_same(edited: LinearModel, corpus: Corpus, tmp_path: Path) -> None:
    edited.save(tmp_path / "model")
    again = cast(LinearModel, longtail.load(tmp_path / "model"))
    assert same(again.predict(corpus.train.x, 5), edited.predict(corpus.train.x, 5))
    twice = again.edit_labels(again.labels.add(["more"], [f"{group(1)} {spare(20)}"]))  # from arrays that are mapped
    twice.save(tmp_path / "model", overwrite=True)
    assert longtail.load(tmp_path / "model").about["edited"] == {"added": GROUPS + 1, "removed": 0, "renamed": 0}
    assert same(again.predict(corpus.train.x, 5), edited.predict(corpus.train.x, 5))


def test_one_at_a_time_or_all_at_once_gives_the_same_places(model: LinearModel, edited: LinearModel) -> None:
    alone = model
    for key, text in zip(NEW_KEYS, NEW_TEXTS, strict=True):
        alone = alone.edit_labels(alone.labels.add([key], [text]))
    found = alone.predict(NEW_TEXTS, 3).indices
    assert (found == len(model.labels) + np.arange(GROUPS)[:, None]).any(1).all()
    assert [len(r.tree) for r in alone.rankers] == [len(r.tree) for r in edited.rankers]


def test_explanations_and_the_tree_know_new_labels(edited: LinearModel) -> None:
    reason = edited.explain(NEW_TEXTS[2], labels=[NEW_KEYS[2]]).reasons[0]
    assert reason.label == NEW_KEYS[2]
    assert reason.own.terms[0].contribution > 0


@pytest.fixture(scope="module")
def plain(corpus: Corpus) -> LinearModel:
    return cast(LinearModel, longtail.recipe("xr-linear", **SMALL).fit(corpus))


def test_a_text_without_known_words_gets_a_place_and_the_lowest_prior(
    plain: LinearModel, caplog: pytest.LogCaptureFixture
) -> None:
    silent = plain.edit_labels(plain.labels.add([f"s{i}" for i in range(7)], ["xyzzy", "", "?", *["qwfp"] * 4]))
    assert "7 new label(s)" in caplog.text and "'s0', 's1', 's2', 's3', 's4', …" in caplog.text
    L = len(plain.labels)
    everything = silent.predict([f"{group(1)} {word(5, 0)}", "no such words"], L + 7)
    assert all(set(range(L, L + 7)) <= set(row) for row in everything.indices.tolist())
    assert not (silent.predict([f"{group(1)} {word(5, 0)}"], 5).indices >= L).any()
    sizes = [np.diff(ranker.tree.levels[-2]) for ranker in (plain.rankers[0], silent.rankers[0])]
    assert sizes[1].max() <= sizes[0].max() + 1  # they are spread


def test_a_removed_label_does_not_speak_against_its_successor(plain: LinearModel) -> None:
    labels = plain.labels
    assert labels.texts is not None
    text = labels.texts[7]
    swapped = plain.edit_labels(labels.remove(["label7"]).add(["successor"], [text]))
    assert swapped.predict([text], 1).keys() == [["successor"]]
    kept = plain.edit_labels(labels.add(["twin"], [text]))
    assert set(kept.predict([text], 2).keys()[0]) == {"label7", "twin"}


def test_crowded_clusters_are_told(plain: LinearModel, caplog: pytest.LogCaptureFixture) -> None:
    many = plain.edit_labels(
        plain.labels.add([f"n{i}" for i in range(12)], [f"{group(3)} {spare(i)}" for i in range(12)])
    )
    assert "leaf_size is 5" in caplog.text and "train again" in caplog.text
    assert (many.predict([f"{group(3)} {spare(4)}"], 60).indices >= 0).sum() == len(many.labels)


def test_probabilities_and_cut_offs_stay(corpus: Corpus) -> None:
    sure = longtail.recipe("xr-linear", calibration="isotonic", cut_off="f1", **SMALL).fit(corpus)
    new = sure.edit_labels(sure.labels.add(["added"], [f"{group(2)} {spare(6)} {spare(7)}"]))
    assert new.decision is sure.decision and new.decision is not None
    assert new.predict([f"{group(2)} {word(10, 0)} {word(10, 1)}"]).kind == "probability"


def test_evaluate_after_adding_joins_by_key(plain: LinearModel, corpus: Corpus) -> None:
    new = plain.edit_labels(plain.labels.add(["x"], [f"{group(2)} {spare(6)}"]).rename({"label0": "zero"}))
    renamed = replace(corpus, labels=corpus.labels.rename({"label0": "zero"}))
    assert score(new, renamed).report()["P@1"] == pytest.approx(score(plain, corpus).report()["P@1"], abs=2)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_growing_a_tree_against_its_definition(data: st.DataObject) -> None:
    """New labels come at the end of their clusters; the entries of other labels do not change."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    L, M, width = int(rng.integers(2, 30)), int(rng.integers(1, 12)), 9
    nodes = np.sort(rng.integers(0, 4, L))
    tree = LabelTree.flat(L) if rng.random() < 0.2 else LabelTree.from_nodes(L, [nodes // 2, nodes])
    kind = data.draw(st.sampled_from(["float32", "float16", "int8"]))

    def random_rows(n: int) -> sp.csr_matrix:
        return sp.random(n, width + 1, 0.4, "csr", np.float32, rng, data_rvs=lambda k: rng.normal(size=k))

    by_node = random_rows(L)
    levels = []
    for t in range(len(tree.levels)):
        K = len(tree.levels[t]) - 1
        rows = by_node if t == len(tree.levels) - 1 else random_rows(K)
        weights = Weights(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float32))
        levels.append(pack_level(tree.child_ptr(t), weights, width + 1, kind))
    ranker = Ranker(tree, levels, width)
    count = 1 if len(tree.levels) == 1 else len(tree.levels[-2]) - 1
    clusters, new = rng.integers(0, count, M), random_rows(M)
    before = unpack_level(levels[-1])
    after = grown(ranker, before, clusters, new, LinearParameters(weights=kind))
    after.tree.check(L + M)
    if len(tree.levels) > 1:
        leaf = len(tree.levels) - 2
        assert np.array_equal(after.tree.nodes(leaf), np.append(tree.nodes(leaf), clusters))
        assert np.array_equal(after.tree.nodes(0)[:L], tree.nodes(0))
    got = unpack_level(after.levels[-1])
    for node, label in enumerate(after.tree.order.tolist()):
        own = slice(got.ptr[node], got.ptr[node + 1])
        if label < L:
            old = int(np.flatnonzero(tree.order == label)[0])
            was = slice(before.ptr[old], before.ptr[old + 1])
            assert np.array_equal(got.features[own], before.features[was])
            assert np.array_equal(got.values[own], before.values[was])  # every bit, int8 too
        else:
            row = new[label - L]
            assert np.array_equal(got.features[own], np.sort(row.indices))
            assert np.allclose(got.values[own], row.toarray()[0, got.features[own]], atol=0.05)


def test_siblings_of_a_huge_cluster_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longtail.linear.edit.SIBLINGS", 4)
    rows, groups = siblings(LabelTree.flat(10), np.array([0, 0]), None)
    assert rows.tolist() == [0, 2, 5, 7] * 2 and groups.tolist() == [0] * 4 + [1] * 4
    gone = np.arange(10) == 5
    assert siblings(LabelTree.flat(10), np.array([0]), gone)[0].tolist() == [0, 2, 7]


# -- removing and renaming


def test_removed_labels_are_never_suggested_and_come_back(model: LinearModel, corpus: Corpus) -> None:
    gone = [f"label{i}" for i in range(0, 38)]
    less = model.edit_labels(model.labels.remove(gone))
    ranking = less.predict(corpus.train.x, 5)
    assert {key for row in ranking.keys() for key in row} == {"label38", "label39"}
    assert (ranking.indices[:, :2] >= 0).all()  # all that are left are found, however few
    back = less.edit_labels(less.labels.restore(gone))
    assert back.labels.removed is None
    assert same(back.predict(corpus.train.x, 5), model.predict(corpus.train.x, 5))


def test_removing_moves_nothing_else(model: LinearModel, corpus: Corpus) -> None:
    less = model.edit_labels(model.labels.remove(["label3"]))
    before, after = model.predict(corpus.train.x, 5), less.predict(corpus.train.x, 5)
    untouched = ~(before.indices == 3).any(1)
    assert untouched.any() and not untouched.all()
    assert same(before[untouched], after[untouched])


def test_renaming_keeps_predictions(model: LinearModel, corpus: Corpus) -> None:
    other = model.edit_labels(model.labels.rename({"label3": "label4", "label4": "label3", "label5": "five"}))
    assert same(other.predict(corpus.train.x, 5), model.predict(corpus.train.x, 5))
    assert other.labels.index("five") == 5 and other.labels.index("label4") == 3
    assert other.about["edited"] == {"added": 0, "removed": 0, "renamed": 3}


# -- other recipes, and refusals


def test_neighbours_finds_new_labels_by_their_texts(corpus: Corpus, tmp_path: Path) -> None:
    for weighting in ("tfidf", "bm25"):
        own = {"neighbours": 10, "power": 2, "label_weight": 0.5, "weighting": weighting}
        near = longtail.recipe("neighbours", **own).fit(corpus)
        new = near.edit_labels(near.labels.add(NEW_KEYS, NEW_TEXTS))
        assert (new.predict(NEW_TEXTS, 1).indices[:, 0] == len(near.labels) + np.arange(GROUPS)).all()
        L = len(corpus.labels)
        before, after = near.predict(corpus.train.x[:50], L), new.predict(corpus.train.x[:50], L + GROUPS)
        for row in range(50):
            old = after.indices[row][(after.indices[row] < L) & (after.scores[row] > 1e-4)]
            assert np.array_equal(before.indices[row][: len(old)], old)
        new.save(tmp_path / weighting)
        assert same(longtail.load(tmp_path / weighting).predict(NEW_TEXTS, 5), new.predict(NEW_TEXTS, 5))
    deaf = longtail.recipe("neighbours", **{**own, "label_weight": 0.0}).fit(corpus)
    with pytest.raises(UnsupportedError, match="does not look at label texts"):
        deaf.edit_labels(deaf.labels.add(["x"], ["y"]))


def test_popular_puts_new_labels_last() -> None:
    floor = longtail.recipe("popular").fit(topic_corpus(label_text=False))
    new = floor.edit_labels(floor.labels.add(["x"]).remove(["music"]))
    keys = new.predict(["any"], 10).keys()[0]
    assert "music" not in keys and keys[-1] == "x"
    assert new.about["edited"] == {"added": 1, "removed": 1, "renamed": 0}


def test_what_cannot_take_new_labels_says_so() -> None:
    features = longtail.recipe("xr-linear").fit(feature_corpus())
    with pytest.raises(UnsupportedError, match="'xr-linear' model was trained on a feature matrix"):
        features.edit_labels(features.labels.add(["x"]))
    assert features.edit_labels(features.labels.remove(["music"])).labels.removed is not None
    silent = longtail.recipe("xr-linear").fit(topic_corpus(label_text=False))
    with pytest.raises(UnsupportedError, match="have no texts"):
        silent.edit_labels(silent.labels.add(["x"]))

    class Stubborn(type(features)):  # type: ignore[misc]
        edit_labels = Model.edit_labels

    stubborn = Stubborn(features.recipe, features.labels, features.blocks, features.rankers)
    with pytest.raises(UnsupportedError, match="'xr-linear' cannot change its labels; train it again. Recipes that"):
        stubborn.edit_labels(features.labels)


def test_what_is_no_edit_is_refused(plain: LinearModel) -> None:
    labels = plain.labels
    assert labels.texts is not None
    for bad, message in (
        (Labels.of(list(labels.keys)[:-1], list(labels.texts)[:-1]), "keeps every label"),
        (replace(labels, texts=None), "have texts"),
        (replace(labels, texts=Texts.of(["other", *list(labels.texts)[1:]])), "label 'label0' has a different text"),
        (labels.with_counts(labels.counts + 1, labels.points), "counts"),
        (labels.remove(list(labels.keys)), "all 40 labels would be removed"),
    ):
        with pytest.raises(ParameterError, match=message):
            plain.edit_labels(bad)
    with pytest.raises(ParameterError, match="'label1' already exists"):
        labels.add(["label1"], ["x"])
    with pytest.raises(ParameterError, match="'label1' was removed, but its key is still reserved; restore it"):
        labels.remove(["label1"]).add(["label1"], ["x"])
