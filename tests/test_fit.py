"""The course of a training: split, choose, train, decide, refit; and what networks take over into the refit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from corpora import topic_corpus

import longtail
import longtail.recipes
from longtail.augment import Augmentation
from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.recipes.popular import PopularModel, accepts_of, label_shares
from longtail.train.recipe import TrainedRecipe


@dataclass(frozen=True)
class Noted(TrainedRecipe):
    """Counts labels, and notes each call of a hook with the number of points it was given."""

    name = "noted"
    title = "for tests"
    calls: ClassVar[list[tuple[str, int, int]]] = []
    size: int | None = param(None, "left open until `choose` fixes it")

    def choose(self, data: Dataset, labels: Labels, validation: Dataset, run: Run) -> Any:
        self.calls.append(("choose", len(data), len(validation)))
        return replace(self, size=7), [{"size": 7, "mean": 1.0}]

    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> Model:
        self.calls.append((f"train {self.size}", len(data), 0 if validation is None else len(validation)))
        return PopularModel(self, labels, label_shares(data), accepts_of(data))


class Slow(Noted):
    """Trained again only where more than 60 % were held out."""

    refit_above = 0.6


class Tried(Noted):
    """Another size is enough to compare augmentations."""

    def on_trial(self) -> TrainedRecipe:
        return replace(self, size=1)

    def choose(self, data: Dataset, labels: Labels, validation: Dataset, run: Run) -> Any:
        return self, []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    Noted.calls.clear()


def with_dev(corpus: Corpus) -> Corpus:
    return replace(corpus, dev=corpus.train.take(np.arange(10)), train=corpus.train.take(np.arange(10, 60)))


@pytest.mark.parametrize(
    ("kind", "change", "run", "calls"),
    [
        (Noted, None, Run(), [("choose", 30, 30), ("train 7", 30, 30), ("train 7", 60, 0)]),
        (Slow, None, Run(), [("choose", 30, 30), ("train 7", 30, 30)]),
        (Noted, with_dev, Run(), [("choose", 50, 10), ("train 7", 50, 10)]),
        (Noted, with_dev, Run(train_on_dev=True), [("choose", 50, 10), ("train 7", 50, 10), ("train 7", 60, 0)]),
    ],
)
def test_which_points_each_step_is_given(
    kind: type[Noted], change: Callable[[Corpus], Corpus] | None, run: Run, calls: list[tuple[str, int, int]]
) -> None:
    corpus = replace(topic_corpus(60), test=None)  # nothing asks for it
    model = kind().fit(corpus if change is None else change(corpus), run)
    assert Noted.calls == calls
    assert model.recipe == kind(size=7) and model.about["chosen_from"] == [{"size": 7, "mean": 1.0}]
    assert model.about["validation"]["points"] == calls[0][2]


def test_trials_are_cheaper_and_the_best_is_trained_in_full() -> None:
    model = Tried(size=5, augment=Augmentation("auto")).fit(topic_corpus(60))
    trained = [name for name, *_ in Noted.calls]
    assert trained == ["train 1"] * 4 + ["train 5"] * 2  # the four that auto tries; the best, and on all of train
    table = model.about["chosen_from"]
    best = max(table, key=lambda row: row["mean"])
    assert len(table) == 4 and model.recipe == Tried(size=5, augment=Augmentation(best["augment"]))


def test_without_a_validation_part(caplog: Any) -> None:
    corpus = topic_corpus(60)
    one = replace(corpus, train=corpus.train.take(np.arange(1)))
    model = Noted().fit(one)
    assert Noted.calls == [("train None", 1, 0)] and "validation" not in model.about
    assert "trained without a validation part" in caplog.text
    with pytest.raises(DataError, match="calibration and cut_off are fitted on a validation part, and there is none"):
        Noted(calibration="platt").fit(one)
    empty = replace(corpus, dev=corpus.train.take(np.arange(0)))
    with pytest.raises(DataError, match="the dev part of the corpus is empty"):
        Noted(cut_off="f1").fit(empty)


# --- networks

SCORES = [10.0, 30.0, 20.0, 99.0]  # with patience=1 the second epoch of the last phase is kept


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every network gets these scores while it is trained."""
    pytest.importorskip("torch")
    from longtail.train import network
    from longtail.train.loop import Loop

    plain, scores = Loop.train, iter(SCORES)

    def train(self: Loop) -> Any:
        nonlocal scores
        scores = iter(SCORES)
        return plain(self)

    monkeypatch.setattr(Loop, "train", train)
    monkeypatch.setattr(network, "chosen_by", lambda report: {"mean": next(scores)})


def fit(corpus: Corpus, run: Run, **settings: Any) -> Any:
    from training import SETTINGS

    return longtail.recipe("decaf", **{**SETTINGS["decaf"], "epochs": 4, **settings}).fit(corpus, run)


def steps(model: Any, refit: bool, network: int = 1) -> list[int]:
    rows = model.about["training"]
    return [row["step"] for row in rows if row.get("refit", False) == refit and row["network"] == network]


@pytest.mark.usefixtures("scored")
@pytest.mark.parametrize("trees", [1, 2])
def test_patience_and_refit_train_on_everything_for_the_steps_that_were_best(trees: int) -> None:
    """30 of 60 points, 8 in a step, are 4 steps; 1 + 4 + 4 epochs."""
    corpus = topic_corpus(60)
    kept = fit(corpus, Run(device="cpu"), patience=1, trees=trees)
    assert kept.about["steps"] == {"planned": [4, 16, 16], "kept": [28] * trees}
    assert steps(kept, False)[-3:] == [24, 28, 32] and steps(kept, True) == []
    model = fit(corpus, Run(device="cpu"), patience=1, refit=True, trees=trees)
    assert model.about["steps"] == kept.about["steps"]
    for network in range(1, trees + 1):
        assert steps(model, False, network) == steps(kept, False, network)
        assert steps(model, True, network) == [4, 12, 20, 28]  # 8 steps of 60 points; ends where it was best


def test_refit_without_patience_takes_as_many_steps() -> None:
    pytest.importorskip("torch")
    model = fit(topic_corpus(60), Run(device="cpu"), refit=True)
    assert steps(model, False)[-1] == steps(model, True)[-1] == 36
    assert model.about["steps"] == {"planned": [4, 16, 16], "kept": [36]}
    assert not any("validation" in row for row in model.about["training"])


@pytest.mark.usefixtures("scored")
def test_a_refit_that_was_broken_off_resumes(tmp_path: Path) -> None:
    from training import StoppedError

    from longtail.train.loop import Loop

    corpus, settings = topic_corpus(60), {"patience": 1, "refit": True}
    whole = fit(corpus, Run(device="cpu"), **settings)
    with pytest.MonkeyPatch.context() as patch:
        plain = Loop._save

        def stops(self: Loop, number: int, step: int, partial: Any) -> None:
            plain(self, number, step, partial)
            if self.learner.points == 60 and number == 2:  # after the second phase of the refit
                raise StoppedError

        patch.setattr(Loop, "_save", stops)
        with pytest.raises(StoppedError):
            fit(corpus, Run(tmp_path / "run", device="cpu"), **settings)
    resumed = fit(corpus, Run(tmp_path / "run", device="cpu", resume=True), **settings)
    assert resumed.about["training"] == whole.about["training"]
    mine, theirs = resumed.state()[0], whole.state()[0]
    assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)


def test_a_curve_is_the_scores_of_every_epoch_and_changes_nothing() -> None:
    pytest.importorskip("torch")
    corpus = topic_corpus(60).with_validation(0)
    plain, model = (fit(corpus, Run(device="cpu"), curve=curve) for curve in (False, True))
    rows = [row for row in model.about["training"] if "validation" in row]
    assert [(row["phase"], row["step"]) for row in rows] == [("labels", 20 + 4 * epoch) for epoch in range(1, 5)]
    for row in rows:
        scores = row["validation"]
        assert list(scores) == ["P@1", "P@5", "PSP@1", "PSP@5", "mean"]
        assert scores["mean"] == pytest.approx(np.mean([scores[name] for name in list(scores)[:4]]), abs=1e-3)
    assert rows[-1]["validation"]["P@1"] == model.about["validation"]["scores"]["P@1"]
    mine, theirs = model.state()[0], plain.state()[0]
    assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)
