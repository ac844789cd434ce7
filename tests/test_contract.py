"""What every recipe must do. Registering a recipe adds it here; no recipe is named, except the baseline."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import TOPICS, UNSEEN, feature_corpus, topic_corpus
from encoders import tiny_encoder

import longtail
import longtail.metrics
import longtail.recipes
from longtail.core.errors import DataError, ParameterError, UnsupportedError
from longtail.core.model import Model
from longtail.core.recipe import recipes
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.metrics import evaluate

RECIPES = list(recipes)
FLOOR = "popular"  # learns nothing about texts, by design


PLAIN = {"reader": "words", "vectors": "learnt"}  # the small presets need an installed encoder
SHORT = {"dimension": 64, "min_steps": 60}  # of networks: enough to learn labels that have points
SHORTER = {**SHORT, "min_steps": 5}  # enough to see whether two trainings are the same
# for a very small transformer
TINY = {"length": 16, "batch": 32, "min_steps": 80, "lr": 2e-3, "table_lr": 0.05, "warmup": 5}


ATTENDED: dict[str, Any] = {"hidden": 32, "layers": "32", "resolutions": "3", "average": None, "lr": 0.01}
ATTENDED |= {"dropout": 0.2, "word_dropout": 0.5}


def network(name: str) -> bool:
    return "min_steps" in recipes[name].names()


def retrieves(name: str) -> bool:
    """Whether labels are found by their texts: then a text that is a label's own has the highest score there is."""
    return "backbone" in recipes[name].names()


def fine_tunes(name: str) -> bool:
    """Whether its encoder is always a transformer."""
    return network(name) and "dimension" not in recipes[name].names()


def attends(name: str) -> bool:
    """Whether its levels are networks of their own, trained one after the other."""
    return "resolutions" in recipes[name].names() and "hidden" in recipes[name].names()


def steps(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What of these settings a network has."""
    return {key: value for key, value in given.items() if key in recipes[name].names()} if network(name) else {}


def small(name: str) -> dict[str, Any]:
    """Settings that make a recipe fast enough for very small corpora, if its defaults are not."""
    if "small" not in recipes[name].presets:
        return {}
    if fine_tunes(name):
        tiny: dict[str, Any] = {"encoder": tiny_encoder(), **TINY, "tapped": 3, "dropout": 0.0, "dropouts": "0:0:0"}
        return {"preset": "small", **steps(name, tiny)}
    own = {"batch": 64, "min_steps": 80, "warmup": 5} if retrieves(name) else {"batch": 128, "min_steps": 120}
    own |= ATTENDED if attends(name) else {}
    return {"preset": "small", **({**own, **PLAIN} if network(name) else {})}


def made(name: str, **settings: Any) -> Any:
    return longtail.recipe(name, **{**small(name), **steps(name, SHORT), **settings})


def briefly(name: str, **settings: Any) -> Any:
    return made(name, **{**steps(name, SHORTER), **settings})


def augmentable(name: str) -> bool:
    """Whether a recipe has a use for more training points; one that has not must say so, by name."""
    try:
        made(name, augment="self")
    except UnsupportedError as error:
        assert name in str(error) and "augment=self" in str(error)
        return False
    return True


@pytest.fixture(scope="module", params=RECIPES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return topic_corpus()


@pytest.fixture(scope="module")
def model(name: str, corpus: Corpus) -> Model:
    return made(name).fit(corpus, Run(seed=1))


def same(a: longtail.Ranking, b: longtail.Ranking) -> bool:
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.scores, b.scores)


def test_it_says_what_it_is(name: str) -> None:
    recipe = recipes[name]
    assert recipe.name == name
    assert recipe.title
    assert recipe.__doc__


def test_it_learns(name: str, model: Model, corpus: Corpus) -> None:
    assert corpus.test is not None
    report = evaluate(model.predict(corpus.test.x, 5), corpus.test.Y)
    floor = evaluate(longtail.recipe(FLOOR).fit(corpus).predict(corpus.test.x, 5), corpus.test.Y)
    assert report["P@1"] >= floor["P@1"]
    if name != FLOOR:
        assert report["P@1"] >= 90


def test_a_ranking_is_well_formed(model: Model, corpus: Corpus) -> None:
    ranking = model.predict(corpus.train.x, 4)
    assert ranking.indices.dtype == np.int32
    assert ranking.scores.dtype == np.float32
    assert ranking.indices.shape == ranking.scores.shape == (len(corpus.train), 4)
    assert ((ranking.indices >= 0) & (ranking.indices < len(corpus.labels))).all()
    assert (np.diff(ranking.scores, axis=1) <= 0).all()
    assert np.isfinite(ranking.scores).all()
    assert all(len(set(row)) == len(row) for row in ranking.indices.tolist())
    assert ranking.kind in ("score", "probability")
    assert ranking.labels is model.labels


@pytest.mark.parametrize("k", [1, 3, 6, 100])
def test_it_respects_k(model: Model, corpus: Corpus, k: int) -> None:
    ranking = model.predict(["boat wind harbour"], k)
    assert ranking.indices.shape == (1, min(k, len(corpus.labels)))
    widest = model.predict(["boat wind harbour"], 100)
    assert np.array_equal(widest.indices[:, : ranking.k], ranking.indices)


def test_one_point_at_a_time_or_all_at_once(model: Model, corpus: Corpus) -> None:
    texts = list(corpus.train.texts[:20])
    together = model.predict(texts, 3)
    alone = [model.predict([text], 3) for text in texts]
    assert np.array_equal(together.indices, np.concatenate([r.indices for r in alone]))
    assert np.allclose(together.scores, np.concatenate([r.scores for r in alone]), rtol=1e-5)


def test_it_reloads_to_identical_predictions(model: Model, corpus: Corpus, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.recipe == model.recipe
    assert again.about == model.about
    assert again.labels.digest() == model.labels.digest()
    assert np.array_equal(again.labels.counts, corpus.labels.counts)
    assert same(again.predict(corpus.train.x, 5), model.predict(corpus.train.x, 5))
    again.save(tmp_path / "model", overwrite=True)  # over itself, mapped from the very files
    assert same(longtail.load(tmp_path / "model").predict(corpus.train.x, 5), model.predict(corpus.train.x, 5))


def test_same_seed_same_model(name: str, model: Model, corpus: Corpus) -> None:
    again = made(name).fit(corpus, Run(seed=1))
    assert same(again.predict(corpus.train.x, 5), model.predict(corpus.train.x, 5))


def test_ignored_pairs_are_no_positives(name: str) -> None:
    """What is learnt does not depend on whether Y contains an ignored pair."""
    with_pairs = topic_corpus(ignore=True)
    train = with_pairs.train
    assert train.ignore is not None
    assert train.ignore.nnz > 0
    without_pairs = replace(with_pairs, train=replace(train, Y=train.truth()))
    assert without_pairs.train.Y.nnz < train.Y.nnz
    a = briefly(name).fit(with_pairs).predict(train.x, 5)
    b = briefly(name).fit(without_pairs).predict(train.x, 5)
    assert same(a, b)


def test_ignored_pairs_are_no_negatives(name: str) -> None:
    """A text that is a label's own text (item to item) must not count against that label if the pair is ignored."""
    corpus = topic_corpus(points=200)
    texts = corpus.labels.texts
    assert texts is not None
    L = len(corpus.labels)
    true = sp.csr_matrix((L, L), dtype=np.float32)
    if retrieves(name):  # losses over a pool have nothing to say of a point without any true label
        true = sp.csr_matrix(np.roll(np.identity(L, np.float32), 1, axis=1))
    own = longtail.Dataset(texts, true, sp.identity(L, dtype=bool, format="csr"))
    labels = replace(corpus.labels, points=0)
    items = longtail.Corpus("items", corpus.train + own, labels)
    against = longtail.Corpus("items", corpus.train + replace(own, ignore=None), labels)
    rank, by_classifiers = {}, {}
    if retrieves(name):
        if not recipes[name].classifies:  # type: ignore[attr-defined]
            a, b = (briefly(name).fit(data).predict(corpus.train.x, L) for data in (items, against))
            assert not same(a, b)  # what is learnt of a label from other texts than its own
            return
        by_classifiers = {"share": 1.0}
    for case, data in (("ignored", items), ("negative", against)):
        scores = made(name, **by_classifiers).fit(data).predict(texts, L).to_csr().toarray()
        # Astec's scores are relative to the best of a row: there a label stands against its row
        rank[case] = np.diag(scores).sum() - (scores.mean() if name == "astec" else 0)
    assert rank["ignored"] > rank["negative"]


def test_a_text_without_known_words(model: Model) -> None:
    ranking = model.predict(["xyzzy qwfp", "", "?!", "\x00"], 3)
    assert (ranking.indices >= 0).all()
    assert np.isfinite(ranking.scores).all()
    assert (ranking.indices == ranking.indices[0]).all()  # the ranking of the biases, for all of them


def test_any_unicode(model: Model) -> None:
    texts = ["日本語のテキスト", "नमस्ते", "👩‍👩‍👧‍👦 boat", "a\u2028b\x85c", "\ud800 wind", "é" * 10_000]
    assert len(model.predict(texts, 2)) == len(texts)


def test_labels_without_examples(name: str, model: Model, corpus: Corpus) -> None:
    """A label without examples is never the first for a text of another topic; its own text finds it, if that is known.

    The first of 6 labels is looked at: a ranking of all 6 holds the label whatever was learnt. For networks the second
    half is in `test_label_texts_make_a_label_known_that_has_no_example`, which trains them with label texts.
    """
    assert [UNSEEN] not in model.predict(corpus.train.x, 1).keys()
    if name == FLOOR:  # knows frequencies only
        assert model.predict(["telescope planet comet"], 6).keys()[0][-1] == UNSEEN
    elif not network(name):
        taught = made(name, augment="self").fit(corpus) if augmentable(name) else model
        assert taught.predict(["telescope planet comet", "comet"], 1).keys() == [[UNSEEN]] * 2
        assert [UNSEEN] not in taught.predict(corpus.train.x, 1).keys()


def test_removed_labels_are_never_suggested(model: Model) -> None:
    gone = next(iter(TOPICS))
    model_labels = model.labels
    try:
        model.labels = model_labels.remove([gone])
        ranking = model.predict(["recipe oven butter flour", "nothing known here"], 6)
        assert all(gone not in row for row in ranking.keys())
    finally:
        model.labels = model_labels


def test_labels_are_edited_or_refused_by_name(name: str, model: Model, corpus: Corpus) -> None:
    labels = model.labels
    gone, other = list(TOPICS)[:2]
    try:
        edited = model.edit_labels(labels.remove([gone]).rename({other: "renamed"}))
    except UnsupportedError as error:
        assert model.recipe.name in str(error)
        return
    assert model.labels is labels
    before = model.predict(corpus.train.x, 4).keys()  # of 6 labels
    expected = [[{other: "renamed"}.get(key, key) for key in row if key != gone][:3] for row in before]
    assert any(gone in row for row in before) and any("renamed" in row for row in expected)
    assert edited.predict(corpus.train.x, 3).keys() == expected
    assert all(gone not in row for row in edited.predict(corpus.train.x, 6).keys())
    back = edited.edit_labels(edited.labels.restore([gone]).rename({"renamed": other}))
    assert same(back.predict(corpus.train.x, 5), model.predict(corpus.train.x, 5))
    new = model.edit_labels(labels.add(["poetry"], ["sonnet verse harbour"]))
    found = new.predict(["sonnet verse harbour"], 7).keys()[0]
    if name == FLOOR:
        assert found.index("poetry") == 6  # the last of 7 labels
    else:  # the first; where a transformer that began at random numbers chooses clusters, another may come before it
        assert found.index("poetry") <= int(fine_tunes(name))
    others = sum("poetry" in row for row in new.predict(corpus.train.x, 1).keys())
    # one word of it is in some texts; what is found by its text alone may be found there too
    assert others <= (0.2 * len(corpus.train.x) if retrieves(name) else 0)


def test_bad_input_is_refused(model: Model) -> None:
    with pytest.raises(ParameterError, match="list of texts"):
        model.predict("one text")
    with pytest.raises(ParameterError, match="item 1"):
        model.predict(["fine", None])
    for k in (0, -1, 2.5, True):
        with pytest.raises(ParameterError, match="k must be"):
            model.predict(["fine"], k)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="feature matrix"):
        model.predict(sp.csr_matrix((1, 3), dtype=np.float32))
    assert len(model.predict([], 3)) == 0


def test_unknown_parameters_are_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(ParameterError, match="has no parameter"):
        made(name, no_such_parameter=1)
    known = recipes[name].names()
    if known:
        with pytest.raises(ParameterError, match=f"Did you mean '{known[0]}'"):
            made(name, **{known[0] + "x": 1})


def test_features_are_taken_or_refused_by_name(name: str) -> None:
    corpus = feature_corpus()
    assert corpus.test is not None
    try:
        model = made(name).fit(corpus)
    except UnsupportedError as error:
        assert name in str(error)
        assert "text" in str(error)
        return
    report = evaluate(model.predict(corpus.test.x, 5), corpus.test.Y)
    assert report["P@1"] > (90 if name != FLOOR else 10)
    with pytest.raises(ParameterError, match="features"):
        model.predict(sp.csr_matrix((1, 3), dtype=np.float32))
    with pytest.raises(ParameterError, match="not on texts"):
        model.predict(["a text"])
    bad = sp.csr_matrix(np.full((1, corpus.train.features.shape[1]), np.nan, np.float32))
    with pytest.raises(DataError, match="NaN"):
        model.predict(bad)


def test_it_remembers_where_it_comes_from(model: Model, corpus: Corpus) -> None:
    assert model.about["corpus"]["digest"] == corpus.digest
    assert model.about["seed"] == 1
    assert model.about["validation"]["points"] == 120  # 10 % would be 24; at least 200, at most half
    assert 0 <= model.about["validation"]["scores"]["P@1"] <= 100


def test_test_is_never_read(name: str, corpus: Corpus, model: Model) -> None:
    assert corpus.test is not None
    nothing, other_texts = sp.csr_matrix(corpus.test.Y.shape, dtype=np.float32), Texts.of(["xyzzy"] * len(corpus.test))
    blank = replace(corpus.test, x=other_texts, Y=nothing)
    other = made(name).fit(replace(corpus, test=blank), Run(seed=1))
    assert same(other.predict(corpus.train.x, 5), model.predict(corpus.train.x, 5))


@pytest.mark.parametrize("points", [1, 2, 3])
def test_very_small_corpora(name: str, points: int) -> None:
    texts, labels = ["boat wind", "pawn knight", "boat tide"][:points], [["a"], ["c"], ["a"]][:points]
    described = {"a": "boat", "c": "pawn"} if "label text" in recipes[name].needs else None
    model = longtail.fit(texts, labels, name, label_texts=described, **small(name))
    assert model.predict(["boat"], 1).keys() == [["a"]]


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_calibration_gives_probabilities_in_the_same_order(
    name: str, model: Model, corpus: Corpus, method: str, tmp_path: Path
) -> None:
    calibrated = made(name, calibration=method).fit(corpus, Run(seed=1))
    scores, probabilities = model.predict(corpus.train.x, 5), calibrated.predict(corpus.train.x, 5)
    assert probabilities.kind == "probability"
    assert np.array_equal(scores.indices, probabilities.indices)
    assert same(scores, calibrated.predict_scores(corpus.train.x, 5))
    assert ((probabilities.scores >= 0) & (probabilities.scores <= 1)).all()
    assert (np.diff(probabilities.scores, axis=1) <= 0).all()
    assert np.array_equal(calibrated.predict(corpus.train.x, 2).scores, probabilities.scores[:, :2])
    assert calibrated.predict([], 3).kind == "probability"
    told = calibrated.about["calibration"]
    assert told["method"] == method and set(told["before"]) == set(told["after"]) == {"ECE@1", "ECE@3", "ECE@5"}
    assert corpus.test is not None
    assert longtail.metrics.ece(calibrated.predict(corpus.test.x, 5), corpus.test.Y)["ECE@5"] < 15
    calibrated.save(tmp_path / "model")
    assert same(longtail.load(tmp_path / "model").predict(corpus.train.x, 5), probabilities)


@pytest.mark.parametrize("calibration", ["none", "isotonic"])
def test_a_cut_off_keeps_the_first_labels_of_each_row(
    name: str, model: Model, corpus: Corpus, calibration: str, tmp_path: Path
) -> None:
    cut = made(name, cut_off="f1", calibration=calibration).fit(corpus, Run(seed=1))
    assert corpus.test is not None and cut.decision is not None and cut.decision.cut_off is not None
    whole, decided = cut.predict(corpus.test.x, 6, cut_off=False), cut.predict(corpus.test.x)
    assert np.array_equal(whole.indices, model.predict(corpus.test.x, 6).indices)
    assert np.array_equal(decided.indices, np.where(whole.scores >= cut.decision.cut_off.threshold, whole.indices, -1))
    assert np.array_equal(cut.predict(corpus.test.x, 1).indices, decided.indices[:, :1])
    if name != FLOOR:  # one or two labels are true
        assert longtail.metrics.micro_f1(decided, corpus.test.Y) > 90
        assert cut.about["cut_off"]["scores"]["microF1"] > 80
    cut.save(tmp_path / "model")
    assert same(longtail.load(tmp_path / "model").predict(corpus.test.x), decided)


def test_probabilities_need_a_validation_part(name: str) -> None:
    with pytest.raises(DataError, match="fitted on a validation part, and there is none"):
        longtail.fit(["boat wind"], [["a"]], name, label_texts={"a": "boat"}, calibration="isotonic", **small(name))


@pytest.fixture(scope="module")
def augments(name: str) -> None:
    """Skip recipes that cannot use more training points."""
    if not augmentable(name):
        pytest.skip(f"{name} cannot be trained on label texts")


@pytest.mark.parametrize("method", ["self", "gandalf", "gandalf-shrunk", "glas", "walk", "labels-only", "auto"])
@pytest.mark.usefixtures("augments")
def test_label_texts_make_a_label_known_that_has_no_example(
    name: str, corpus: Corpus, method: str, tmp_path: Path
) -> None:
    # networks take their time: what they learn is asked for of the two methods most used, the others are gone through;
    # of a transformer that begins at random numbers none, because it learns little from one text
    learnt = not network(name) or (method in ("self", "gandalf") and not fine_tunes(name))
    made_of = longtail.recipe(name, **small(name), augment=method) if learnt else briefly(name, augment=method)
    model = made_of.fit(corpus, Run(seed=1))
    if learnt and method != "auto":  # which may find that nothing is best
        assert model.predict(["telescope planet comet"], 1).keys() == [[UNSEEN]]
    assert corpus.test is not None
    report = evaluate(model.predict(corpus.test.x, 5), corpus.test.Y)
    assert not learnt or report["P@1"] >= (60 if method == "labels-only" else 90)
    assert np.array_equal(model.labels.counts, corpus.labels.counts) and model.labels.points == corpus.labels.points
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert again.recipe == model.recipe and same(again.predict(corpus.test.x, 5), model.predict(corpus.test.x, 5))


@pytest.mark.usefixtures("augments")
def test_the_same_seed_augments_alike(name: str, corpus: Corpus) -> None:
    recipe = briefly(name, augment="budgeted", **{"augment.share": 0.5})
    a, b, c = (recipe.fit(corpus, Run(seed=seed)).predict(corpus.train.x, 5) for seed in (1, 1, 2))
    assert same(a, b)
    assert not same(a, c)


@pytest.mark.usefixtures("augments")
def test_an_augmented_training_ignores_what_is_ignored(name: str) -> None:
    """Points made from label texts ignore ignored pairs too: such a pair in Y makes no difference to them."""
    corpus = topic_corpus(ignore=True)
    blank = replace(corpus, train=replace(corpus.train, Y=corpus.train.truth()))
    a, b = (briefly(name, augment="gandalf").fit(data).predict(corpus.train.x, 5) for data in (corpus, blank))
    assert same(a, b)


@pytest.mark.usefixtures("augments")
def test_texts_that_are_needed_for_more_points_are_asked_for(name: str) -> None:
    cases = (
        (topic_corpus(label_text=False), "label text", "label texts", "needs labels with texts"),
        (feature_corpus(), "text", "needs texts", "needs texts"),
    )
    for corpus, need, missing, always in cases:
        needed = need in recipes[name].needs  # then it is asked for whatever `augment` is
        for method in ("self", "gandalf"):
            message = always if needed else f"augment={method}.*{missing}"
            with pytest.raises(UnsupportedError, match=f"recipe '{name}'.*{message}"):
                made(name, augment=method).fit(corpus)
        if not needed:
            briefly(name, augment="auto").fit(corpus)
    for delta in (1, -0.1, 2):
        with pytest.raises(ParameterError, match="delta must be"):
            made(name, augment="gandalf", **{"augment.delta": delta})


@pytest.mark.usefixtures("augments")
def test_labels_that_never_stand_together(name: str) -> None:
    """The label graph is empty: every label text then has only its own label."""
    texts = {"a": "boat wind", "b": "pawn knight", "c": "telescope comet"}
    words = [["boat", "wind"], ["pawn", "knight"]]
    points = [f"{w[i % 2]} {w[(i + 1) % 2]} word{i}" for i in range(20) for w in words]
    model = longtail.fit(points, [["a"], ["b"]] * 20, name, label_texts=texts, augment="gandalf", **small(name))
    # what an LSTM has seen once, with another word beside it, it does not know by itself
    third = "telescope comet" if attends(name) else "comet"
    assert model.predict(["wind boat", "knight", third], 1).keys() == [["a"], ["b"], ["c"]]


def test_what_it_cannot_do_it_refuses_by_name(model: Model) -> None:
    if type(model).explain is Model.explain:
        with pytest.raises(UnsupportedError, match=model.recipe.name):
            model.explain("boat")
    else:
        (reason,) = model.explain("boat wind", 1).reasons
        assert reason.label == "sailing" and {"boat", "wind"} <= {term.term for term in reason.own.terms}
    if type(model).edit_labels is Model.edit_labels:
        with pytest.raises(UnsupportedError, match=model.recipe.name):
            model.edit_labels(model.labels)


def test_a_budget_is_kept_or_refused_by_name(name: str) -> None:
    recipe = briefly(name)
    try:
        model = recipe.fit(topic_corpus(40), Run(budget=1.0))
    except UnsupportedError as error:
        assert "budget" in str(error) and "budget" not in recipe.supports
    else:  # the number of steps of a network is fixed before the training, and stored
        assert "budget" in recipe.supports and len(model.predict(["boat"], 1)) == 1
        if network(name):
            assert model.recipe.steps > 0 and model.about["training"]  # type: ignore[attr-defined]


def test_resuming_is_possible_or_refused_by_name(name: str, tmp_path: Path) -> None:
    corpus, recipe = topic_corpus(40), briefly(name, **({"steps": 3} if network(name) else {}))
    try:
        model = recipe.fit(corpus, Run(folder=tmp_path / "run", resume=True))
    except UnsupportedError as error:
        assert "resume" in str(error) and "resume" not in recipe.supports
    else:  # there is no checkpoint: training starts from scratch
        assert same(model.predict(corpus.train.x, 5), recipe.fit(corpus).predict(corpus.train.x, 5))
        with pytest.raises(ParameterError, match="resume"):
            recipe.fit(corpus, Run(resume=True))


def test_a_device_that_is_not_there_is_refused_by_name(name: str, corpus: Corpus) -> None:
    with pytest.raises((UnsupportedError, ParameterError), match="device"):
        briefly(name).fit(corpus, Run(device="no-such-device"))
