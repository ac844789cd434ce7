"""Ensembles: members, what fuses them, saving, going on after a kill, explanations and edits."""

import importlib.util
import logging
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus, write_corpus
from training import SETTINGS

import longtail
import longtail.recipes
from longtail.cli.main import main
from longtail.core.errors import DataError, LongtailError, ParameterError, StoreError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.ensemble import checkpoint, course
from longtail.ensemble.candidates import Candidates
from longtail.ensemble.choose import FuseSettings, Sums, stack, weights_of
from longtail.ensemble.fuser import Sum
from longtail.ensemble.heard import Heard
from longtail.ensemble.join import join_models
from longtail.ensemble.model import EnsembleModel
from longtail.ensemble.trees import TreeSettings
from longtail.recipes.auto import why_not

# neighbours with nothing left to choose, and few trees: fast
QUICK: dict[str, Any] = {
    "neighbours.weighting": "tfidf",
    "neighbours.neighbours": 10,
    "neighbours.power": 2.0,
    "neighbours.label_weight": 0.2,
    "boost": 20,
}


def ensemble(**settings: Any) -> Any:
    return longtail.recipe("ensemble", **{**QUICK, **settings})


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return topic_corpus()


@pytest.fixture(scope="module")
def stacked(corpus: Corpus) -> EnsembleModel:
    model = ensemble(fuse="stack").fit(corpus, Run(seed=1))
    assert isinstance(model, EnsembleModel)
    return model


def same(a: longtail.Ranking, b: longtail.Ranking) -> bool:
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.scores, b.scores)


# --- members


def test_members_are_spelled_with_presets_names_and_settings_of_their_own() -> None:
    recipe = longtail.recipe(
        "ensemble",
        members="xr-linear, b=neighbours,unidec:small",
        **{"b.power": "4", "xr-linear.augment.delta": 0.2, "xr-linear.augment": "gandalf", "unidec.steps": 5},
    )
    linear, b, dual = recipe.members.each  # type: ignore[attr-defined]
    assert (linear.name, b.name, dual.name) == ("xr-linear", "b", "unidec")
    assert b.recipe.name == "neighbours" and b.recipe.power == 4.0
    assert linear.recipe.augment.delta == 0.2 and dual.recipe.steps == 5 and dual.recipe.backbone == "static"
    assert longtail.recipe("ensemble", **recipe.changed()) == recipe
    short = recipe.spelled_settings()  # type: ignore[attr-defined]
    assert short["members"] == "xr-linear,b=neighbours,unidec:small" and "unidec.backbone" not in short
    assert longtail.recipe("ensemble", **short) == recipe
    assert recipe.supports >= {"budget", "device", "resume"} and ensemble().supports == {"resume"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"members": "xr-linear,neighbors"}, "Did you mean 'neighbours'"),
        ({"members": ""}, "needs a member"),
        ({"members": "neighbours,neighbours"}, "stands there twice"),
        ({"members": "auto,neighbours"}, "'auto' cannot be a member"),
        ({"members": "unidec:tiny"}, "no preset 'tiny'"),
        ({"neighbours.powr": 2}, "Did you mean 'power'"),
        ({"unidec.epochs": 2}, "no setting of a member; members are xr-linear, neighbours"),
        ({"neighbours.calibration": "platt"}, "for the ensemble as a whole"),
        ({"weights": "1,2,3"}, "2 members need 2 weights; got 3"),
        ({"weights": "1,-2"}, "at least 0"),
        ({"fuse": "stak"}, "fuse must be one of"),
    ],
)
def test_what_is_wrong_about_members_is_said(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        longtail.recipe("ensemble", **settings)


# --- candidates and sums


def ranking_of(rows: list[dict[int, float]], labels: Labels, k: int) -> longtail.Ranking:
    dense = np.full((len(rows), len(labels)), -np.inf, np.float32)
    for i, row in enumerate(rows):
        for label, score in row.items():
            dense[i, label] = score
    order = np.argsort(-dense, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(dense, order, 1)
    return longtail.Ranking(np.where(np.isfinite(scores), order, -1).astype(np.int32), scores, labels)


def test_candidates_are_what_any_member_names() -> None:
    labels, other = Labels.of(list("abcd")), Labels.of(list("dxa"))
    first = ranking_of([{0: 0.9, 2: 0.3}, {}, {1: 2.0, 3: 1.0}], labels, 2)
    second = ranking_of([{0: 0.5, 1: 0.4}, {2: 0.7}, {0: 1.0}], other, 2)
    found = Candidates.of([first, second], [None, np.array([3, -1, 0], np.int32)], 4, 2)
    assert found.rows.tolist() == [0, 0, 0, 1, 2, 2]
    assert found.labels.tolist() == [0, 2, 3, 0, 1, 3]
    none = -np.inf
    wanted = [[0.9, none], [0.3, none], [none, 0.5], [none, 0.7], [2.0, none], [1.0, 1.0]]
    assert np.allclose(found.scores, wanted)
    assert found.ranks.tolist() == [[0, 2], [1, 2], [2, 0], [2, 0], [0, 2], [1, 0]]
    assert np.allclose(found.best[:, 0], [0.9, 0.9, 0.9, 0, 2, 2])
    assert np.allclose(found.gaps, [[0, 0], [0.6, 0], [0, 0], [0, 0], [0, 0], [1, 0]])
    assert found.places(np.array([1.0, 3, 2, 1, 5, 5])).tolist() == [2, 0, 1, 0, 0, 1]
    assert found.at(sp.csr_matrix(([7.0], ([0], [3])), shape=(3, 4))).tolist() == [0, 0, 7, 0, 0, 0]
    assert found.take(np.array([True, False, True])).rows.tolist() == [0, 0, 0, 1, 1]
    assert found.of_members([0]).labels.tolist() == [0, 2, 1, 3]


def test_sums_of_relative_scores_and_of_ranks() -> None:
    labels = Labels.of(list("abc"))
    first = ranking_of([{0: -1.0, 1: -3.0, 2: -2.0}], labels, 3)
    second = ranking_of([{2: 0.2}], labels, 3)
    found = Candidates.of([first, second], [None, None], 3, 3)
    assert np.allclose(Sum((3.0, 1.0)).values(found, labels), [3.0, 0.0, 1.5 + 1.0])
    assert np.allclose(Sum((1.0, 1.0), "rank").values(found, labels), [1, 1 / 3, 2 / 3 + 1])
    assert np.allclose(Sum((3.0, 1.0)).shares(found, labels), [[1, 0], [0, 0], [0.6, 0.4]])


def heard(good: float, N: int = 400, L: int = 30, seed: int = 0) -> Heard:
    """Two members that name 5 labels; the second names the truth first for the share `good` of rare labels only."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, L, N)
    rare = truth >= L // 2
    labels = Labels.of([f"l{i}" for i in range(L)]).with_counts(np.where(np.arange(L) < L // 2, 50, 1), 1000)
    right = np.stack([~rare, rare & (rng.random(N) < good)], 1)  # the first member knows frequent labels
    rankings = []
    for m in range(2):
        others = np.stack([rng.permutation(L)[:5] for _ in range(N)])
        others = np.where(others == truth[:, None], (others + 1) % L, others)
        others[right[:, m], 0] = truth[right[:, m]]
        rankings.append(
            ranking_of([dict(zip(row, (1.0, 0.8, 0.6, 0.4, 0.2), strict=True)) for row in others.tolist()], labels, 5)
        )
    Y = sp.csr_matrix((np.ones(N, np.float32), (np.arange(N), truth)), shape=(N, L))
    data = Dataset(Texts.of([f"point {chr(97 + i % 26)}{chr(97 + i // 26 % 26)}" for i in range(N)]), Y)
    return Heard.of(Candidates.of(rankings, [None, None], L, 5), data, labels, 0)


SETTINGS_OF_FUSE = FuseSettings("auto", None, None, TreeSettings(trees=15, rate=0.2))


def test_a_member_that_is_never_right_has_no_weight() -> None:
    said = heard(0.0)
    sums = Sums.of(said, SETTINGS_OF_FUSE)
    assert sums.whole.weights == (1.0, 0.0)


def test_a_stack_learns_whom_to_trust_for_what() -> None:
    said = heard(1.0)
    sums = Sums.of(said, SETTINGS_OF_FUSE)
    summed, stacked = weights_of(said, sums), stack(said, SETTINGS_OF_FUSE, sums)
    assert stacked.scores["P@1"] > summed.scores["P@1"] + 10
    assert stacked.scores["P@1"] > 75  # a frequent label that the first names in error cannot be told from a true one
    again = stack(said, SETTINGS_OF_FUSE, sums)
    assert np.array_equal(again.values, stacked.values)


def test_scores_of_a_stack_come_from_points_that_it_has_not_seen() -> None:
    """With random truth nothing can be learnt; a stack scored on what it was fitted to would look good."""
    said = heard(1.0)
    rng = np.random.default_rng(1)
    Y = sp.csr_matrix((np.ones(400, np.float32), (np.arange(400), rng.integers(0, 30, 400))), shape=(400, 30))
    chance = replace(said, data=replace(said.data, Y=Y))
    sums = Sums.of(chance, SETTINGS_OF_FUSE)
    fitted = stack(chance, SETTINGS_OF_FUSE, sums)
    on_itself = chance.mean(fitted.fuser.values(chance.candidates, chance.labels))
    assert fitted.scores["mean"] < on_itself - 2


# --- trained ensembles


def test_members_see_the_same_split_and_quick_ones_all_of_train_in_the_end(
    stacked: EnsembleModel, corpus: Corpus
) -> None:
    assert [part.name for part in stacked.parts] == ["xr-linear", "neighbours"]
    assert stacked.parts[1].model.Y.shape[0] == len(corpus.train)  # type: ignore[attr-defined]
    kept = ensemble(fuse="weights", refit="none").fit(corpus, Run(seed=1))
    assert kept.parts[1].model.Y.shape[0] == len(corpus.train) - 120
    told = {row["what"] for row in stacked.about["chosen_from"]}
    assert told == {"xr-linear", "neighbours", "fused: stack"}
    assert stacked.recipe.changed()["fuse"] == "stack" and stacked.recipe.tail is not None  # type: ignore[attr-defined]
    again = longtail.recipe("ensemble", **stacked.recipe.changed()).fit(corpus, Run(seed=1))
    assert same(again.predict(corpus.train.x, 5), stacked.predict(corpus.train.x, 5))


def test_a_stack_is_saved_without_pickle_and_opened_in_one_call(
    stacked: EnsembleModel, corpus: Corpus, tmp_path: Path
) -> None:
    stacked.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert isinstance(again, EnsembleModel)
    assert same(again.predict(corpus.train.x, 6), stacked.predict(corpus.train.x, 6))
    assert all(part.model.labels is again.labels for part in again.parts)  # stored once
    assert [part.model.recipe for part in again.parts] == [part.model.recipe for part in stacked.parts]
    assert not again.parts[1].model.shares.flags.writeable  # type: ignore[attr-defined]  # mapped, not read
    code = "import sys, longtail; longtail.load(sys.argv[1]).predict(['boat']); print('torch' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "False"


def test_a_damaged_member_is_refused_with_its_own_checks(stacked: EnsembleModel, tmp_path: Path) -> None:
    stacked.save(tmp_path / "model")
    (file,) = (tmp_path / "model").glob("data-*/member0.tree0.order.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(StoreError):
        longtail.load(tmp_path / "model")
    with pytest.raises(StoreError):  # the tree's own check, without checksums
        longtail.load(tmp_path / "model", verify=False)


def test_a_killed_training_goes_on_with_the_members_that_are_left(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint, "WORTH_KEEPING", 0.0)
    plain, trained = course.choose, []

    def choose(recipe: Any, *args: Any) -> Any:
        trained.append(recipe.name)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return plain(recipe, *args)

    monkeypatch.setattr(course, "choose", choose)
    recipe, folder = ensemble(fuse="weights"), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        recipe.fit(corpus, Run(folder=folder, seed=1))
    with caplog.at_level(logging.INFO, "longtail"):
        model = recipe.fit(corpus, Run(folder=folder, seed=1, resume=True))
    assert trained == ["xr-linear", "neighbours", "neighbours"]
    assert "member xr-linear was trained before" in caplog.text
    whole = ensemble(fuse="weights").fit(corpus, Run(seed=1))
    assert same(model.predict(corpus.train.x, 5), whole.predict(corpus.train.x, 5))


def test_a_member_that_fails_is_named_and_the_rest_go_on_only_when_asked_to(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = course.choose

    def choose(recipe: Any, *args: Any) -> Any:
        if recipe.name == "neighbours":
            raise RuntimeError("no more room")
        return plain(recipe, *args)

    monkeypatch.setattr(course, "choose", choose)
    with pytest.raises(LongtailError, match="member neighbours failed: RuntimeError: no more room.*continue"):
        ensemble().fit(corpus)
    model = ensemble(on_failure="continue").fit(corpus)
    assert "member neighbours failed and is left out" in caplog.text
    assert [part.name for part in model.parts] == ["xr-linear"]
    alone = longtail.recipe("xr-linear").fit(corpus)
    assert np.array_equal(model.predict(corpus.train.x, 3).indices, alone.predict(corpus.train.x, 3).indices)


def test_networks_share_what_quick_members_leave_of_a_budget(corpus: Corpus, tmp_path: Path) -> None:
    own = {f"unidec.{key}": value for key, value in SETTINGS["unidec"].items() if key != "epochs"}
    recipe = longtail.recipe("ensemble", members="xr-linear,unidec", fuse="mean", **own)
    model: Any = recipe.fit(topic_corpus(60), Run(budget=2.0, folder=tmp_path / "run"))
    steps = model.recipe.changed()["unidec.steps"]
    assert steps == model.parts[1].model.recipe.steps > 0
    again: Any = recipe.fit(topic_corpus(60), Run(budget=2.0, folder=tmp_path / "run", resume=True))
    assert again.recipe.changed()["unidec.steps"] == steps  # the clock is not asked again
    with pytest.raises(UnsupportedError, match="no use for budget"):
        ensemble().fit(corpus, Run(budget=2.0))


def test_what_a_member_lacks_is_refused_before_training() -> None:
    with pytest.raises(UnsupportedError, match="recipe 'unidec' needs labels with texts"):
        longtail.recipe("ensemble", members="neighbours,unidec").fit(topic_corpus(40, label_text=False))


def test_probabilities_of_an_untempered_stack(corpus: Corpus) -> None:
    model = ensemble(fuse="stack", tail=0).fit(corpus, Run(seed=1))
    found = model.predict(corpus.train.x, 5)
    assert found.kind == "probability" and (found.scores >= 0).all() and (found.scores <= 1).all()
    tempered = ensemble(fuse="stack", tail=0.5).fit(corpus, Run(seed=1))
    assert tempered.predict(corpus.train.x, 5).kind == "score"


def test_means_need_no_validation_part() -> None:
    model = longtail.fit(["boat wind"], [["a"]], "ensemble", label_texts={"a": "boat"}, weights="0.9,0.1")
    assert model.predict(["boat"], 1).keys() == [["a"]] and model.about["fused"]["weights"] == [0.9, 0.1]


# --- explanations and edits


def test_explanations_name_the_member_that_spoke(stacked: EnsembleModel) -> None:
    told = stacked.explain("boat wind harbour", 2)
    (first, _) = told.reasons
    assert first.label == "sailing" and [voice.member for voice in first.voices] == ["xr-linear", "neighbours"]
    assert sum(voice.share for voice in first.voices) == pytest.approx(1.0)
    assert [voice.rank for voice in first.voices] == [1, 1]
    assert [voice.explains for voice in first.voices] == [True, False]  # neighbours have no reasons of their own
    assert {"boat", "wind"} <= {term.term for term in first.own.terms}
    json = told.to_json()["labels"][0]
    assert json["members"][0]["member"] == "xr-linear" and json["terms"]
    assert stacked.explain("boat wind", labels=["astronomy"]).reasons[0].label == "astronomy"


def test_most_labels_removed(stacked: EnsembleModel, corpus: Corpus) -> None:
    """Members are told, so that they name labels that are left."""
    left = ["cooking", "music"]
    gone = [key for key in corpus.labels.keys if key not in left]
    edited = stacked.edit_labels(stacked.labels.remove(gone))
    assert all(set(row) == set(left) for row in edited.predict(corpus.train.x, 4).keys())
    back = edited.edit_labels(edited.labels.restore(gone))
    assert same(back.predict(corpus.train.x, 5), stacked.predict(corpus.train.x, 5))


def test_a_member_that_cannot_add_labels_leaves_it_to_the_others(
    corpus: Corpus, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    model = ensemble(**{"neighbours.label_weight": 0.0}, fuse="mean", weights="1,0").fit(corpus, Run(seed=1))
    new = model.edit_labels(model.labels.add(["poetry"], ["sonnet verse harbour"]))
    assert new.parts[0].model.predict(["sonnet verse harbour"], 1).keys() == [["poetry"]]
    assert "not known to neighbours" in caplog.text
    assert new.predict(["sonnet verse harbour"], 1).keys() == [["poetry"]]
    new.save(tmp_path / "model")
    assert same(longtail.load(tmp_path / "model").predict(corpus.train.x, 5), new.predict(corpus.train.x, 5))


def test_points_are_remembered_by_the_members_that_can(corpus: Corpus, tmp_path: Path) -> None:
    own = {f"unidec.{key}": value for key, value in SETTINGS["unidec"].items()}
    model: Any = longtail.recipe("ensemble", members="xr-linear,unidec", fuse="mean", **own).fit(corpus)
    Y = sp.csr_matrix(([1.0], ([0], [5])), shape=(1, 6), dtype=np.float32)
    taught = model.remember(Texts.of(["guitar chord melody"]), Y)
    assert len(taught.memory) == 1 and taught.parts[0].model is model.parts[0].model
    left, count = taught.forget(["guitar chord melody"])
    assert count == 1 and len(left.memory) == 0
    with pytest.raises(UnsupportedError, match="no member of this ensemble has a memory"):
        _ = longtail.recipe("ensemble", **QUICK, fuse="mean").fit(topic_corpus(40)).memory  # type: ignore[attr-defined]


# --- models put together, and the default recipe


def test_models_with_other_labels_are_joined_by_key(corpus: Corpus, tmp_path: Path) -> None:
    linear = longtail.recipe("xr-linear", calibration="platt").fit(corpus)
    fewer = [key for key in corpus.labels.keys if key not in ("cooking", "astronomy")]
    columns = np.full(len(corpus.labels), -1)
    columns[corpus.labels.indices(fewer)] = np.arange(len(fewer))
    texts = corpus.labels.texts
    assert texts is not None
    kept = Labels.of(fewer, [texts[corpus.labels.index(key)] for key in fewer])
    other = longtail.fit(
        list(corpus.train.texts),
        [[fewer[columns[j]] for j in row.indices if columns[j] >= 0] or ["chess"] for row in corpus.train.Y],
        "neighbours",
        label_texts=dict(zip(kept.keys, kept.texts or (), strict=True)),
    )
    joined = join_models([other, linear], longtail.recipe("ensemble"), "0.3,0.7")  # type: ignore[arg-type]
    assert set(joined.labels.keys) == set(corpus.labels.keys) and len(joined.labels) == 6
    assert joined.labels.counts[joined.labels.index("cooking")] == corpus.labels.counts[corpus.labels.index("cooking")]
    texts_asked = ["boat wind harbour", "recipe oven butter"]
    assert joined.predict(texts_asked, 1).keys() == [["sailing"], ["cooking"]]
    joined.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert same(again.predict(texts_asked, 6), joined.predict(texts_asked, 6))
    assert joined.explain("recipe oven butter", 1).reasons[0].voices[0].rank is None
    edited = joined.edit_labels(joined.labels.remove(["sailing"]).rename({"chess": "game"}))
    assert edited.predict(["boat wind", "pawn knight"], 1).keys()[1] == ["game"]
    assert "sailing" not in edited.predict(["boat wind harbour"], 6).keys()[0]


def test_weights_are_fitted_on_points_that_no_model_has_seen(corpus: Corpus) -> None:
    models = [longtail.recipe(name).fit(corpus) for name in ("xr-linear", "popular")]
    assert corpus.test is not None
    blank: Any = longtail.recipe("ensemble", fuse="weights")
    with pytest.raises(ParameterError, match="give a corpus"):
        join_models(models, blank)
    with pytest.raises(DataError, match="'xr-linear' was trained on these points"):
        join_models(models, blank, data=corpus.train, keys=corpus.labels)
    joined = join_models(models, blank, data=corpus.test, keys=corpus.labels)
    assert joined.about["fused"]["weights"][0] > 0.5 and joined.about["validation"]["points"] == 40
    with pytest.raises(UnsupportedError, match="cannot be a member; give its members"):
        join_models([joined, models[0]], blank)
    with pytest.raises(ParameterError, match="at least two models"):
        join_models(models[:1], blank)


def test_the_command_puts_models_together(corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("xr-linear", "popular"):
        longtail.recipe(name).fit(corpus).save(tmp_path / name)
    data = write_corpus(corpus, tmp_path / "data")
    models = [str(tmp_path / "xr-linear"), str(tmp_path / "popular")]
    out = str(tmp_path / "both")
    assert main(["ensemble", *models, "--out", out, "--on", str(data), "--fuse", "weights"]) == 0
    assert "fused: weights" in capsys.readouterr().out
    assert main(["info", out]) == 0 and "xr-linear, popular" in capsys.readouterr().out
    assert main(["explain", out, "boat wind harbour", "-k", "1"]) == 0
    shown = capsys.readouterr().out
    assert "words below" in shown and "harbour" in shown and "popular" in shown
    assert main(["ensemble", *models, "--out", models[0], "--overwrite"]) == 2
    assert main(["ensemble", *models, "--out", out, "--overwrite", "--weights", "1,0", "--quiet"]) == 0
    assert longtail.load(out).predict(["boat wind"], 1).keys() == [["sailing"]]
    assert main(["memory", "add", out, "--text", "boat", "--label", "music"]) == 1
    assert "no member of this ensemble has a memory" in capsys.readouterr().err


def test_the_default_fuses_what_is_best_and_says_how_to_repeat_it(tmp_path: Path, capsys: Any) -> None:
    corpus = topic_corpus(450)
    data = write_corpus(corpus, tmp_path / "data")
    out = str(tmp_path / "model")
    assert main(["train", str(data), "--out", out]) == 0
    shown = capsys.readouterr()
    assert "no dual encoder, because 250 points are too few for it" in shown.err
    table = longtail.load(out).about["chosen_from"]
    assert {row["what"] for row in table} == {"xr-linear", "neighbours", "fused: weights", "fused: stack"}
    (line,) = (line for line in shown.out.splitlines() if line.startswith("The same again: longtail "))
    words = shlex.split(line.removeprefix("The same again: longtail "))
    assert main([*words, "--out", str(tmp_path / "again"), "--quiet"]) == 0
    texts = list(corpus.train.texts)
    first, second = (longtail.load(tmp_path / folder).predict(texts, 5) for folder in ("model", "again"))
    assert np.array_equal(first.indices, second.indices)


@pytest.mark.parametrize("aim", ["speed", "size"])
def test_one_model_for_speed_and_size(aim: str, tmp_path: Path) -> None:
    corpus = topic_corpus(450)
    data = write_corpus(corpus, tmp_path / "data")
    assert main(["train", str(data), "--for", aim, "--out", str(tmp_path / "model"), "--quiet"]) == 0
    model = longtail.load(tmp_path / "model")
    assert model.recipe.name in ("xr-linear", "neighbours")
    rows = {row["what"]: row for row in model.about["chosen_from"]}
    own = rows[model.recipe.name]
    if aim == "speed":
        assert own["ms"] <= 1.3 * rows["xr-linear"]["ms"]
    else:
        assert own["mean"] >= 0.9 * max(row["mean"] for row in rows.values())


def test_why_there_is_no_dual_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = Labels.of(["a", "b"], ["boat", "pawn"])
    Y = sp.csr_matrix(np.tile(np.identity(2, np.float32), (1500, 1)))

    def reason(texts: list[str], labels: Labels = labels, **run: Any) -> str | None:
        return why_not(Corpus("c", Dataset(Texts.of(texts), Y[: len(texts)]), labels), Run(**run))

    assert reason(["boat"] * 50) == "50 points are too few for it"
    assert "label texts" in str(reason(["boat"] * 3000, Labels.of(["a", "b"])))
    assert "Latin" in str(reason(["лодка и ветер"] * 3000))
    assert "200 words" in str(reason(["boat " * 200] * 3000))
    assert "200 words" not in str(reason(["boat " * 200] * 3000, budget=600.0))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "not installed: torch, transformers" in str(reason(["boat"] * 3000))


def test_fusers_do_not_see_how_often_labels_are_true_of_the_points_they_are_fitted_on(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts of the corpus include its validation part: a label that is only there would be known to be true."""
    plain, seen = course.fuse, []

    def fuse(said: Heard, *args: Any) -> Any:
        seen.append(said)
        return plain(said, *args)

    monkeypatch.setattr(course, "fuse", fuse)
    model = ensemble(fuse="weights").fit(corpus, Run(seed=1))
    split = corpus.with_validation(1)
    assert np.array_equal(seen[0].seen.counts, split.train.label_counts())
    assert (seen[0].seen.counts[:5] < corpus.labels.counts[:5]).all()
    assert np.array_equal(model.labels.counts, corpus.labels.counts)  # members have seen all in the end


def test_a_member_that_does_as_well_alone_is_the_model_of_the_default(tmp_path: Path) -> None:
    corpus = topic_corpus(600, label_text=False)
    model = longtail.recipe("auto", calibration="platt").fit(corpus, Run(seed=0))
    rows = {row["what"]: row["mean"] for row in model.about["chosen_from"]}
    assert model.recipe.name in ("xr-linear", "neighbours")
    assert rows[model.recipe.name] >= max(rows.values()) - 0.1
    assert model.predict(["boat"], 1).kind == "probability"
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert again.recipe == model.recipe and same(again.predict(["boat wind"], 3), model.predict(["boat wind"], 3))
