"""Decisions of whole models: fitted later in Python, on disk, and on the command line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import feature_corpus, topic_corpus
from test_cli import error_of, out_of, write_part

import longtail
from longtail.cli.main import main
from longtail.core.errors import DataError, ParameterError, StoreError
from longtail.core.model import Model
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.split import folds
from longtail.decide.cutoff import Rule
from longtail.decide.fit import depth_for
from longtail.evidence.score import score
from longtail.metrics import ece, evaluate, micro

SETTINGS = {"weighting": "tfidf", "neighbours": 10, "power": 2.0, "label_weight": 0.0}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return topic_corpus(ignore=True)


@pytest.fixture(scope="module")
def plain(corpus: Corpus) -> Model:
    return longtail.recipe("neighbours", **SETTINGS).fit(corpus)


def dev_of(corpus: Corpus) -> Dataset:
    assert corpus.test is not None
    return corpus.test


def same(a: longtail.Ranking, b: longtail.Ranking) -> bool:
    return a.kind == b.kind and np.array_equal(a.indices, b.indices) and np.array_equal(a.scores, b.scores)


# --- in Python ------------------------------------------------------------------------------------------------------


def test_calibrate_after_the_fact(plain: Model, corpus: Corpus, tmp_path: Path) -> None:
    dev = dev_of(corpus)
    before = plain.predict(dev.x, 5)
    made = longtail.calibrate(plain, dev, cut_off="labels=1.5")
    assert plain.decision is None and "calibration" not in plain.about and same(plain.predict(dev.x, 5), before)
    assert made.predict(dev.x).kind == "probability" and made.about["calibration"]["points"] == 40
    assert (made.predict(dev.x).indices >= 0).sum() <= 1.5 * 40 + dev_of(corpus).ignore.nnz  # type: ignore[union-attr]
    made.save(tmp_path / "m")
    again = longtail.load(tmp_path / "m")
    assert same(again.predict(dev.x), made.predict(dev.x)) and again.about == made.about
    other = longtail.calibrate(made, dev, "platt")  # what was fitted before is forgotten
    assert other.decision is not None and other.decision.cut_off is None and "cut_off" not in other.about
    bare = longtail.calibrate(other, dev, "none")
    assert bare.decision is None and same(bare.predict(dev.x, 5), before) and bare.about == plain.about


def test_what_calibrate_refuses(plain: Model, corpus: Corpus, caplog: pytest.LogCaptureFixture) -> None:
    dev = dev_of(corpus)
    with pytest.raises(ParameterError, match="calibration must be one of 'none', 'isotonic', 'platt'; got 'isotone'"):
        longtail.calibrate(plain, dev, "isotone")
    with pytest.raises(ParameterError, match="cut_off must be none, f1"):
        longtail.calibrate(plain, dev, cut_off="best")
    with pytest.raises(ParameterError, match="must be a Dataset"):
        longtail.calibrate(plain, corpus)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"labels of shape \(40, 7\) do not fit a model with 6 labels"):
        longtail.calibrate(plain, replace(dev, Y=sp.csr_matrix((40, 7), dtype=np.float32), ignore=None))
    with pytest.raises(DataError, match="no points to fit"):
        longtail.calibrate(plain, dev.take(np.arange(0)))
    longtail.calibrate(plain, corpus.train)
    assert "the model was trained on this same data" in caplog.text
    longtail.calibrate(plain, dev)
    assert "only 40 points" in caplog.text


def test_one_point_is_enough_and_says_nothing_about_itself(plain: Model, corpus: Corpus) -> None:
    one = longtail.calibrate(plain, dev_of(corpus).take(np.arange(1)), cut_off="f1")
    assert one.about["calibration"]["after"] is None and one.about["cut_off"]["scores"] is None
    assert np.isfinite(one.predict(["boat"], 5, cut_off=False).scores).all()


def test_features_too() -> None:
    corpus = feature_corpus()
    model = longtail.recipe("xr-linear", calibration="isotonic", cut_off="precision=0.9").fit(corpus)
    assert corpus.test is not None
    decided = model.predict(corpus.test.x)
    assert decided.kind == "probability" and micro(decided, corpus.test.Y)["microP"] > 85


def test_margins_as_scores() -> None:
    """Scores far outside 0…1, such as raw margins, also become probabilities."""
    corpus = topic_corpus()
    model = longtail.recipe("xr-linear", post="none", calibration="platt").fit(corpus)
    assert corpus.test is not None
    raw, made = model.predict_scores(corpus.test.x, 5), model.predict(corpus.test.x, 5)
    assert raw.scores.min() < 0
    assert ((made.scores >= 0) & (made.scores <= 1)).all()
    assert ece(made, corpus.test.Y)["ECE@5"] < ece(raw, corpus.test.Y)["ECE@5"] + 5


def test_recipes_refuse_rules_that_are_none() -> None:
    for name in ("popular", "auto", "xr-linear"):
        with pytest.raises(ParameterError, match=f"recipe '{name}': cut_off must be none, f1.*got 'f2'"):
            longtail.recipe(name, cut_off="f2")
    with pytest.raises(ParameterError, match="calibration must be one of 'none', 'isotonic', 'platt'; got 'sigmoid'"):
        longtail.recipe("auto", calibration="sigmoid")


def test_auto_hands_its_settings_on(corpus: Corpus) -> None:
    model = longtail.recipe("auto", calibration="platt", cut_off="labels=1").fit(corpus)
    assert model.recipe.name == "xr-linear" and model.recipe.changed()["cut_off"] == "labels=1"
    assert model.decision is not None and model.decision.calibration is not None


def test_a_corpus_with_its_own_dev_part(corpus: Corpus) -> None:
    own = replace(corpus, dev=corpus.test, test=None)
    model = longtail.recipe("neighbours", **SETTINGS, calibration="isotonic").fit(own)
    after = longtail.calibrate(longtail.recipe("neighbours", **SETTINGS).fit(own), dev_of(corpus))
    assert same(model.predict(corpus.train.x), after.predict(corpus.train.x))
    assert model.about["calibration"] == after.about["calibration"]
    empty = replace(own, dev=dev_of(corpus).take(np.arange(0)))
    with pytest.raises(DataError, match="the dev part of the corpus is empty"):
        longtail.recipe("popular", cut_off="f1").fit(empty)


def test_how_deep_is_looked() -> None:
    Y = sp.csr_matrix(np.ones((3, 200), np.float32))
    few = sp.csr_matrix(np.eye(3, 200, dtype=np.float32))
    texts = longtail.Texts.of(["a", "b", "c"])
    assert depth_for(Dataset(texts, few), None) == 20
    assert depth_for(Dataset(texts, few), Rule("labels", 7.1)) == 29
    assert depth_for(Dataset(texts, few[:, :9]), Rule("labels", 7)) == 9
    assert depth_for(Dataset(texts, Y[:, :100]), Rule("f1")) == 100
    assert depth_for(Dataset(texts, sp.csr_matrix(np.hstack([Y.toarray()[:, :60], np.zeros((3, 140))]))), None) == 120


def test_folds_keep_what_belongs_together() -> None:
    texts = [f"text of letter {c}" for c in "abcdefgh" for _ in range(5)]
    data = Dataset(longtail.Texts.of(texts), sp.csr_matrix((40, 2), dtype=np.float32))
    found = folds(data, 0, 4)
    assert np.bincount(found).tolist() == [10] * 4  # two letters each
    assert all(len(set(found[i : i + 5].tolist())) == 1 for i in range(0, 40, 5))
    assert not np.array_equal(found, folds(data, 4, 4))
    groups = longtail.Texts.of([str(i % 3) for i in range(40)])
    assert [len(set(folds(replace(data, groups=groups), 0, 3)[g::3].tolist())) for g in range(3)] == [1, 1, 1]


# --- on disk --------------------------------------------------------------------------------------------------------


def edit(folder: Path, change: Any) -> None:
    manifest = json.loads((folder / "model.json").read_text())
    change(manifest)
    (folder / "model.json").write_text(json.dumps(manifest))


def test_models_without_a_decision_do_not_speak_of_it(plain: Model, tmp_path: Path) -> None:
    plain.save(tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "model.json").read_text())
    assert "decision" not in manifest and not [name for name in manifest["arrays"] if name.startswith("decision")]
    assert longtail.load(tmp_path / "m").decision is None


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["decision"].pop("cut_off"),
        lambda m: m.update(decision="isotonic"),
        lambda m: m["decision"]["calibration"].update(method="spline"),
        lambda m: m["decision"]["calibration"].update(ranks=[1, 2]),
        lambda m: m["decision"]["cut_off"].update(threshold=None),
        lambda m: m["arrays"].pop("decision.probabilities"),
    ],
)
def test_damaged_decisions_are_refused(plain: Model, corpus: Corpus, tmp_path: Path, change: Any) -> None:
    longtail.calibrate(plain, dev_of(corpus), cut_off="f1").save(tmp_path / "m")
    edit(tmp_path / "m", change)
    with pytest.raises(StoreError, match=str(tmp_path / "m")):
        longtail.load(tmp_path / "m")


def test_an_engine_may_not_take_the_place_of_the_decision(plain: Model, tmp_path: Path) -> None:
    model = longtail.calibrate(plain, dev_of(topic_corpus()), "none")
    model.state = lambda: ({"decision.scores": np.zeros(3)}, {})  # type: ignore[attr-defined]
    with pytest.raises(StoreError, match=r"'decision\.scores' of this model uses a name reserved for its decision"):
        model.save(tmp_path / "m")


# --- evaluation -----------------------------------------------------------------------------------------------------


def test_evaluation_is_not_touched_by_a_decision(plain: Model, corpus: Corpus) -> None:
    dev = dev_of(corpus)
    made = longtail.calibrate(plain, dev, cut_off="f1")
    a, b = score(plain, corpus), score(made, corpus)
    assert a.report().scores == b.report().scores
    assert a.calibration_scores() == {} and a.cut_scores() == {} and a.decided is None
    assert b.ranking.kind == "probability" and b.decided is not None and b.decided.kind == "probability"
    # by hand: the pairs that are ignored go first, then what is left is decided on
    assert dev.ignore is not None and made.decision is not None
    left = made.predict_scores(dev.x, 6).drop(dev.ignore)
    assert b.calibration_scores((1, 3)) == ece(made.decision.apply(left, cut_off=False), dev.truth(), (1, 3))
    cut = b.cut_scores()
    expected = micro(made.decision.apply(left), dev.truth())
    assert {name: cut[name] for name in expected} == expected
    assert cut["labelsPerText"] == (made.decision.apply(left).indices >= 0).sum() / 40


# --- on the command line --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus, folder = topic_corpus(), tmp_path_factory.mktemp("decide") / "topics"
    folder.mkdir()
    assert corpus.test is not None
    write_part(folder / "train.jsonl.gz", corpus.train, corpus.labels)
    write_part(folder / "test.jsonl.gz", corpus.test, corpus.labels)
    return folder


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "decided"
    arguments = ["train", data, "--calibration", "isotonic", "--cut-off", "f1", "--out", folder, "--quiet"]
    assert main([str(a) for a in arguments]) == 0
    return folder


def test_train_and_info_tell(data: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", "calibration=isotonic", "--set", "cut_off=labels=1.5"]
    out = out_of(capsys, "train", data, "--recipe", "xr-linear", *settings)
    assert "Calibration: isotonic, 120 points" in out and "before" in out and "ECE@5" in out
    assert "Cut-off for labels=1.5: probability of at least" in out
    out = out_of(capsys, "info", model)
    assert "calibration=isotonic, cut_off=f1" in out and "Calibration: isotonic" in out and "Cut-off for f1" in out
    about = json.loads(out_of(capsys, "info", model, "--json"))
    assert about["decision"]["cut_off"]["rule"] == "f1"


def test_predict_with_and_without_the_cut_off(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def labels(*options: object) -> list[dict[str, Any]]:
        return json.loads(out_of(capsys, "predict", model, "boat wind pawn knight tide castle", *options))["labels"]

    good = labels()
    assert {label["label"] for label in good} == {"sailing", "chess"}
    assert all(0 <= label["probability"] <= 1 and "score" not in label for label in good)
    assert labels("-k", 1) == good[:1]
    assert len(labels("--no-cut-off")) == 5 and labels("--no-cut-off")[:2] == good
    assert len(labels("--no-cut-off", "-k", 4)) == 4
    assert len(labels("--threshold", -1)) == 5  # all there are: another threshold, and no fixed number
    assert labels("--threshold", 1.1) == []
    assert "probability" in out_of(capsys, "predict", model, "boat", "--table")


def test_evaluate_tells_about_probabilities(model: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = json.loads(out_of(capsys, "evaluate", model, data, "--json", "--ks", "1,2"))
    assert {"P@2", "ECE@1", "ECE@2", "microP", "microR", "microF1", "labelsPerText"} <= set(scores)
    loaded, test = longtail.load(model), longtail.read(data).test
    assert test is not None
    assert scores["P@1"] == round(evaluate(loaded.predict_scores(test.x, 2), test.Y, ks=(1, 2))["P@1"], 4)
    assert scores["microF1"] == round(micro(loaded.predict(test.x), test.Y)["microF1"], 4)
    out = out_of(capsys, "evaluate", model, data, "--reliability")
    assert "ECE@k" in out and "Above the cut-off for f1" in out and "0.93–1.00" in out and "labels per text" in out
    rows = json.loads(out_of(capsys, "evaluate", model, data, "--reliability", "--json"))["reliability"]
    assert len(rows) == 15 and sum(row["count"] for row in rows) == 5 * 40


def test_reliability_of_mere_scores(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out_of(capsys, "train", data, "--recipe", "popular", "--out", tmp_path / "m", "--quiet")
    assert main(["evaluate", str(tmp_path / "m"), str(data), "--reliability"]) == 0
    captured = capsys.readouterr()
    assert "gives scores, not probabilities" in captured.err and "Reliability of the 5 best labels" in captured.out
    assert "ECE@k" not in captured.out


def test_bad_options(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cut_off must be none, f1" in error_of(capsys, 2, "train", data, "--cut-off", "f3")
    error = error_of(capsys, 2, "train", data, "--calibration", "platt", "--set", "calibration=isotonic")
    assert "contradict each other" in error
    (tmp_path / "one.jsonl").write_text('{"text": "boat", "labels": ["a"]}\n')
    assert "there is none" in error_of(capsys, 1, "train", tmp_path / "one.jsonl", "--calibration", "platt")
