"""longtail inside scikit-learn: what its users expect from a classifier."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import TOPICS, feature_corpus, topic_corpus

import longtail
from longtail import _native
from longtail.core.decision import CutOff, Decision
from longtail.core.errors import DataError, ParameterError, UnsupportedError
from longtail.core.model import Model
from longtail.core.ranking import Ranking

pytest.importorskip("sklearn")

from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils.estimator_checks import check_estimator

from longtail.sklearn import LongtailClassifier, scorer

CORPUS = topic_corpus()
TEXTS, Y = list(CORPUS.train.texts), CORPUS.train.Y
KEYS = list(CORPUS.labels.keys)
LISTS = [[KEYS[j] for j in Y[i].indices] for i in range(len(TEXTS))]
assert CORPUS.test is not None
NEW, NEW_Y = list(CORPUS.test.texts), CORPUS.test.Y

# what scikit-learn asks of all classifiers and this one does not do, because nothing as large as N×L is ever dense
SPARSE = "scores are sparse: the k best labels of a point, never a dense (N, L)"
NOT_FOR_US = {
    "check_classifiers_classes": SPARSE,
    "check_classifiers_train": SPARSE,
    "check_classifiers_multilabel_output_format_decision_function": SPARSE,
    "check_classifiers_multilabel_output_format_predict": "predict gives a CSR",
    "check_classifiers_multilabel_representation_invariance": "lists hold labels here, so lists of 0 and 1 are refused",
}


def test_the_checks_of_scikit_learn() -> None:
    results = check_estimator(
        LongtailClassifier(), expected_failed_checks=NOT_FOR_US, on_skip=None, on_fail=None, legacy=True
    )
    by_status: dict[str, set[str]] = {}
    for result in results:
        by_status.setdefault(result["status"], set()).add(result["check_name"])
    assert "failed" not in by_status, [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert by_status["xfail"] == set(NOT_FOR_US)
    assert len(by_status["passed"]) > 40


@pytest.mark.parametrize("form", [list, np.array, lambda t: np.array(t, object), longtail.Texts.of, iter])
def test_texts_and_an_indicator_matrix(form: Any) -> None:
    tagger = LongtailClassifier(k=2).fit(form(TEXTS), Y)
    found = tagger.predict(form(NEW))
    assert sp.issparse(found) and found.shape == NEW_Y.shape and found.dtype == np.int64
    assert set(found.data) == {1} and (np.diff(found.indptr) == 2).all()
    plain = longtail.fit(TEXTS, Y).predict(NEW, 2)  # the same default recipe
    assert (found != (plain.to_csr() > 0)).nnz == 0
    assert tagger.classes_.tolist() == list(range(6))
    assert tagger.score(NEW, NEW_Y) == longtail.evaluate(plain, NEW_Y).scores["P@1"] / 100 > 0.9
    assert not hasattr(tagger, "n_features_in_")


def test_label_lists() -> None:
    tagger = LongtailClassifier(k=1).fit(TEXTS, LISTS)
    assert tagger.classes_.tolist() == sorted(TOPICS)
    assert tagger.predict_labels(["boat wind harbour", "pawn knight"]) == [["sailing"], ["chess"]]
    found = tagger.predict(["boat wind harbour"])
    assert tagger.classes_[found.indices].tolist() == ["sailing"]
    assert tagger.score(NEW[:1], [["never seen"]]) == 0
    assert tagger.score(["boat wind harbour"], [["never seen", "sailing"]]) == 1
    numbers = LongtailClassifier(k=1).fit(TEXTS, [[10 * KEYS.index(key) for key in row] for row in LISTS])
    assert numbers.classes_.tolist() == [0, 10, 20, 30, 40]


def test_dense_and_soft_targets() -> None:
    soft = Y.copy()
    soft.data = np.where(np.arange(soft.nnz) % 2, 1.0, 0.5).astype(np.float32)
    sparse, dense = LongtailClassifier().fit(TEXTS, soft), LongtailClassifier().fit(TEXTS, soft.toarray())
    scores = sparse.decision_function(NEW)
    assert (scores != dense.decision_function(NEW)).nnz == 0
    assert (scores != LongtailClassifier().fit(TEXTS, Y).decision_function(NEW)).nnz
    assert 0 < sparse.score(TEXTS, soft) < 1


def test_one_class_for_each_point() -> None:
    topics = [row[0] for row in LISTS]
    tagger = LongtailClassifier().fit(TEXTS, topics)
    found = tagger.predict(["boat wind harbour", "pawn knight"])
    assert found.tolist() == ["sailing", "chess"]
    assert tagger.score(TEXTS, topics) == np.mean(tagger.predict(TEXTS) == topics)
    assert tagger.score(["boat wind", "boat wind"], ["sailing", "unheard of"]) == 0.5


def test_features_and_a_pipeline() -> None:
    corpus = feature_corpus()
    X = corpus.train.features
    sparse, dense = LongtailClassifier().fit(X, corpus.train.Y), LongtailClassifier().fit(X.toarray(), corpus.train.Y)
    assert sparse.n_features_in_ == X.shape[1]
    assert (sparse.predict(X) != dense.predict(X.toarray())).nnz == 0
    with pytest.raises(ValueError, match="features"):
        sparse.predict(X[:, :3])
    pipe = make_pipeline(TfidfVectorizer(sublinear_tf=True), LongtailClassifier(k=1)).fit(TEXTS, Y)
    assert pipe.score(NEW, NEW_Y) > 0.9
    assert f1_score(NEW_Y, pipe.predict(NEW), average="micro") > 0.5


def test_threshold_and_k() -> None:
    tagger = LongtailClassifier(k=6).fit(TEXTS, Y)
    scores = tagger.decision_function(NEW)
    assert (np.diff(scores.indptr) == 6).all()
    tagger.set_params(threshold=0.5)
    assert (tagger.predict(NEW) != (scores >= 0.5)).nnz == 0
    assert f1_score(NEW_Y, tagger.predict(NEW), average="micro") > 0.9
    with pytest.raises(ParameterError, match="k must be"):
        tagger.set_params(k=0).predict(NEW)


def test_the_models_own_cut_off_decides() -> None:
    tagger = LongtailClassifier().fit(TEXTS, Y)
    tagger.model_.decision = Decision(cut_off=CutOff("f1", 0.5, 6))
    everything = tagger.decision_function(NEW)
    assert (np.diff(everything.indptr) == 6).all()
    assert (tagger.predict(NEW) != (everything >= 0.5)).nnz == 0
    assert (tagger.set_params(threshold=0.1).predict(NEW) != (everything >= 0.1)).nnz == 0
    assert (np.diff(tagger.set_params(threshold=None, k=1).predict(NEW).indptr) == 1).all()
    assert pickle.loads(pickle.dumps(tagger)).model_.decision.cut_off.most == 6
    tagger.model_.decision = None
    assert (np.diff(tagger.set_params(k=None).decision_function(NEW).indptr) == 5).all()


def test_probabilities_only_where_there_are_any() -> None:
    tagger = LongtailClassifier("xr-linear").fit(TEXTS, Y)
    assert not hasattr(tagger, "predict_proba") and tagger.kind_ == "score"
    calibrated = LongtailClassifier("xr-linear", calibration="isotonic").fit(TEXTS, Y)
    assert calibrated.kind_ == "probability"
    assert (calibrated.predict_proba(NEW) != calibrated.decision_function(NEW)).nnz == 0
    assert (calibrated.predict_proba(NEW) != tagger.decision_function(NEW)).nnz
    assert calibrated.predict_proba(NEW).data.min() >= 0 and calibrated.predict_proba(NEW).data.max() <= 1


def test_parameters_of_the_recipe_are_parameters() -> None:
    tagger = LongtailClassifier("xr-linear", C=0.5, random_state=3)
    assert is_classifier(tagger)
    assert tagger.get_params() == {
        "recipe": "xr-linear", "k": None, "threshold": None, "label_texts": None, "random_state": 3, "n_jobs": None,
        "C": 0.5
    }  # fmt: skip
    copied = clone(tagger).set_params(C=2, leaf_size=50)
    assert copied.get_params()["C"] == 2 and tagger.get_params()["C"] == 0.5
    assert repr(copied) == "LongtailClassifier(C=2, leaf_size=50, random_state=3, recipe='xr-linear')"
    model = copied.fit(TEXTS, Y).model_
    assert (model.recipe.C, model.recipe.leaf_size, model.about["seed"]) == (2.0, 50, 3)
    with pytest.raises(ParameterError, match="no parameter 'leafsize'. Did you mean 'leaf_size'"):
        copied.set_params(leafsize=3)
    with pytest.raises(ParameterError, match="no parameter 'leafsize'. Did you mean 'leaf_size'"):
        LongtailClassifier("xr-linear", leafsize=3).fit(TEXTS, Y)
    with pytest.raises(ParameterError, match="has no parameter 'C'"):
        LongtailClassifier("xr-linear", C=1).set_params(recipe="popular")
    with pytest.raises(ParameterError, match='has no parameter .C.*recipe="xr-linear" in Python'):
        LongtailClassifier().set_params(C=1)
    with pytest.raises(ParameterError, match="Did you mean 'xr-linear'"):
        LongtailClassifier("xr_linear").fit(TEXTS, Y)


def test_no_recipe_has_a_parameter_of_the_wrappers_name() -> None:
    from longtail.core.recipe import recipes

    own = set(LongtailClassifier._get_param_names())
    assert not [name for name in recipes if own & set(recipes[name].names())]


def test_grid_search() -> None:
    search = GridSearchCV(
        LongtailClassifier("xr-linear", n_jobs=1), {"C": [1e-4, 1.0]}, cv=3, scoring=scorer("nDCG@3"), n_jobs=1
    )
    search.fit(TEXTS, Y)
    assert search.best_params_ == {"C": 1.0}
    assert search.best_estimator_.model_.recipe.C == 1.0
    recipes = GridSearchCV(LongtailClassifier(), [{"recipe": ["popular"]}, {"recipe": ["xr-linear"], "C": [1]}], cv=2)
    assert recipes.fit(TEXTS, Y).best_params_ == {"recipe": "xr-linear", "C": 1}
    lists = GridSearchCV(LongtailClassifier(), {"recipe": ["popular", "xr-linear"]}, cv=KFold(2))
    assert lists.fit(TEXTS, LISTS).best_params_ == {"recipe": "xr-linear"}
    piped = make_pipeline(TfidfVectorizer(), LongtailClassifier("xr-linear", k=2, threshold=0.5))
    deep = GridSearchCV(piped, {"longtailclassifier__C": [1e-4, 1.0]}, cv=2, scoring="f1_micro").fit(TEXTS, Y)
    assert deep.best_params_ == {"longtailclassifier__C": 1.0}
    indicators = MultiLabelBinarizer().fit_transform(LISTS)
    assert cross_val_score(LongtailClassifier(), TEXTS, indicators, cv=2).min() > 0.9


def test_scorers_know_the_metrics() -> None:
    tagger = LongtailClassifier().fit(TEXTS, LISTS)
    assert scorer("P@1")(tagger, NEW, NEW_lists()) == tagger.score(NEW, NEW_lists())
    assert scorer("R@3")(tagger, NEW, NEW_lists()) == tagger.report(NEW, NEW_lists()).scores["R@3"] / 100
    with pytest.raises(ParameterError, match="Did you mean 'nDCG@5'"):
        scorer("NDCG@5")(tagger, NEW, NEW_lists())
    with pytest.raises(ParameterError, match="must contain its k"):
        scorer("P")


def NEW_lists() -> list[list[str]]:  # noqa: N802
    return [[KEYS[j] for j in NEW_Y[i].indices] for i in range(len(NEW))]


@pytest.mark.parametrize("recipe", ["xr-linear", "neighbours", "popular"])
def test_a_fitted_classifier_can_be_pickled(recipe: str, tmp_path: Path) -> None:
    import joblib

    tagger = LongtailClassifier(recipe, k=3).fit(TEXTS, LISTS)
    tagger.model_.save(tmp_path / "model")
    mapped = copy.copy(tagger)
    mapped.model_ = longtail.load(tmp_path / "model")
    joblib.dump(tagger, tmp_path / "tagger.joblib")
    for again in (pickle.loads(pickle.dumps(tagger)), pickle.loads(pickle.dumps(mapped)), copy.deepcopy(tagger)):
        assert (again.decision_function(NEW) != tagger.decision_function(NEW)).nnz == 0
    again = joblib.load(tmp_path / "tagger.joblib")
    assert again.predict_labels(NEW) == tagger.predict_labels(NEW)
    assert again.model_.about == tagger.model_.about
    assert pickle.loads(pickle.dumps(LongtailClassifier(C=2))).get_params()["C"] == 2


def test_a_model_without_a_state_says_what_to_do() -> None:
    class Other(Model):
        accepts = "text"

        def rank(self, x: Any, k: int) -> Ranking:
            raise NotImplementedError

        def save(self, folder: Any, overwrite: bool = False, replaces: str | None = None) -> None: ...

    tagger = LongtailClassifier("popular").fit(TEXTS, Y)
    tagger.model_ = Other(tagger.model_.recipe, tagger.model_.labels)
    with pytest.raises(UnsupportedError, match=r"\.model_\.save"):
        pickle.dumps(tagger)


def test_threads_are_those_asked_for_and_then_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, seen = Model.predict, []

    def watched(self: Model, x: Any, k: int | None = None, **options: Any) -> Ranking:
        seen.append(_native.get_threads())
        return plain(self, x, k, **options)

    monkeypatch.setattr(Model, "predict", watched)
    _native.set_threads(2)
    scores = []
    for n_jobs, threads in ((1, 1), (3, 3), (-1, _native.available_threads()), (-10_000, 1)):
        seen.clear()
        scores.append(LongtailClassifier(n_jobs=n_jobs).fit(TEXTS, Y).decision_function(NEW))
        assert set(seen) == {threads}  # validation in training, then prediction
        assert _native.get_threads() == 2
        assert (scores[-1] != scores[0]).nnz == 0
    for bad in (0, 1.5, True, "two"):
        with pytest.raises(ParameterError, match="n_jobs must be"):
            LongtailClassifier(n_jobs=bad).fit(TEXTS, Y)  # type: ignore[arg-type]


def test_seeds() -> None:
    state = np.random.RandomState(4)
    first, second = (LongtailClassifier(random_state=state).fit(TEXTS, Y).model_.about["seed"] for _ in range(2))
    assert first != second
    assert LongtailClassifier(random_state=np.int64(9)).fit(TEXTS, Y).model_.about["seed"] == 9


@pytest.mark.parametrize(
    ("X", "y", "problem"),
    [
        (TEXTS, None, "requires y to be passed"),
        (TEXTS, "music", "got 'music'"),
        (TEXTS, 3, "got 3"),
        (TEXTS, [[0, 1], [1, 1]] * 120, "indicator matrix given as lists"),
        (TEXTS, Y[:10], "240 texts but labels for 10"),
        (TEXTS, np.full((240, 2), 2), "at most 1"),
        (TEXTS, sp.csr_matrix((240, 3)), "no text has a label, so there is nothing to learn"),
        (TEXTS, np.linspace(0, 1, 240), "Unknown label type"),
        ("one text", Y, "must be a list of strings"),
        (["a", None] * 120, Y, "item 1 is None"),
        ([], [], "there are no texts"),
        (np.full((240, 2), np.nan), Y, "NaN"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(X: Any, y: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        LongtailClassifier().fit(X, y)


def test_what_cannot_be_predicted_or_scored_is_refused() -> None:
    tagger = LongtailClassifier()
    for call in (tagger.predict, tagger.decision_function, tagger.predict_labels, lambda X: tagger.score(X, Y)):
        with pytest.raises(NotFittedError):
            call(TEXTS)
    tagger.fit(TEXTS, Y)
    with pytest.raises(ParameterError, match="trained on texts; got a feature matrix"):
        tagger.predict(np.ones((2, 3)))
    with pytest.raises(ParameterError, match="y has 2 columns; this model has 6 labels"):
        tagger.score(TEXTS, Y[:, :2])
    with pytest.raises((ParameterError, DataError)):
        tagger.score(TEXTS, Y[:3])
    with pytest.raises(UnsupportedError, match="sample_weight"):
        tagger.score(TEXTS, Y, sample_weight=np.ones(240))  # type: ignore[arg-type]
    assert tagger.predict([]).shape == (0, 6)


def test_without_scikit_learn_the_extra_is_named() -> None:
    script = "import sys; sys.modules['sklearn'] = None; import longtail.sklearn"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode and "pip install 'longtail[sklearn]'" in done.stderr


@pytest.mark.parametrize("form", ["lists", "matrix", "classes"])
def test_label_texts_make_labels_known_by_their_words(form: str) -> None:
    texts = [f"plain words number{i} {'sea' if i % 2 else 'land'}" for i in range(40)]
    names: list[Any] = (
        [i % 2 for i in range(40)] if form == "matrix" else ["ship" if i % 2 else "car" for i in range(40)]
    )
    y: Any = {
        "lists": [[name] for name in names],
        "matrix": sp.csr_matrix(np.eye(2, dtype=np.float32)[[i % 2 for i in range(40)]]),
        "classes": names,
    }[form]
    words = {names[0]: "zeppelin", names[1]: "submarine"}
    tagger = LongtailClassifier("xr-linear", k=1, label_texts=words, augment="self")
    found = clone(tagger).fit(texts, y)
    ask = ["submarine", "zeppelin"]
    given = found.predict(ask) if form == "classes" else [row[0] for row in found.predict_labels(ask)]
    assert list(given) == [names[1], names[0]]
    search = GridSearchCV(tagger, {"augment": ["self", "gandalf"]}, cv=KFold(2)).fit(texts, y)
    assert search.best_params_["augment"] in ("self", "gandalf")


def test_label_texts_of_labels_that_are_not_there() -> None:
    texts = [f"plain words number{i}" for i in range(20)]
    with pytest.raises(ParameterError, match="label_texts contains 7, which is not among the 2 columns of y"):
        LongtailClassifier(label_texts={7: "x"}).fit(texts, sp.csr_matrix(np.eye(2)[[i % 2 for i in range(20)]]))
    with pytest.raises(ParameterError, match="label_texts contains 'c', which is not among the classes of y"):
        LongtailClassifier(label_texts={"c": "x"}).fit(texts, ["a", "b"] * 10)
    tagger = LongtailClassifier(label_texts={"named": "some words"}, augment="self").fit(texts, [[3], [4]] * 10)
    assert list(tagger.classes_) == ["3", "4", "named"]
