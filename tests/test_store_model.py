"""Saved models: recipe, settings, labels and arrays are restored; what cannot be restored is refused by name."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from longtail.core.errors import StoreError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.parameters import param
from longtail.core.ranking import Ranking
from longtail.core.recipe import Recipe, recipes
from longtail.store import StoredModel, describe, load


@dataclass(frozen=True)
class TinyRecipe(Recipe):
    """Scores labels by the length of the text."""

    name = "tiny"
    title = "a model for the tests of the store"
    rounds: int = param(3, "nothing")
    rate: float = param(0.5, "nothing")
    mode: str = param("slow", "nothing")

    @classmethod
    def model_class(cls):
        return TinyModel


class TinyModel(StoredModel):
    def __init__(self, recipe, labels, weights, bias, about=None):
        super().__init__(recipe, labels, about)
        self.weights, self.bias = weights, bias

    accepts = "text"

    def rank(self, x, k):
        scores = np.outer(x.byte_lengths, self.weights).astype(np.float32) + np.float32(self.bias)
        order = np.argsort(-scores, 1, kind="stable")[:, :k].astype(np.int32)
        return Ranking(order, np.take_along_axis(scores, order, 1), self.labels)

    def state(self):
        return {"weights": self.weights}, {"bias": self.bias}

    @classmethod
    def from_state(cls, saved):
        return cls(saved.recipe, saved.labels, saved.arrays["weights"], saved.meta["bias"], saved.about)


def make(seed, L=6, **settings):
    weights = np.random.default_rng(seed).normal(size=L).astype(np.float32)
    keys = [f"label {seed} {i}" for i in range(L)]
    labels = Labels.of(keys, [f"text of {key}" for key in keys]).with_counts(np.arange(L), 10)
    return TinyModel(TinyRecipe(**settings), labels, weights, 0.25 * seed, {"scores": {"P@1": 31.5}, "seed": seed})


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(recipes._places, "tiny", f"{__name__}:TinyRecipe")


def edit(folder, change):
    path = folder / "model.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_reloads_to_the_same_model(tmp_path):
    model = make(1, rounds=7, mode="fast")
    model.save(tmp_path / "m")
    for verify in (True, False):
        found = load(tmp_path / "m", verify)
        assert type(found) is TinyModel and found.recipe == model.recipe and found.about == model.about
        assert found.labels.keys == model.labels.keys and found.labels.texts == model.labels.texts
        before, after = model.predict(["a", "bcd"], k=4), found.predict(["a", "bcd"], k=4)
        assert np.array_equal(before.indices, after.indices) and np.array_equal(before.scores, after.scores)


def test_the_manifest_holds_what_differs_from_the_defaults(tmp_path):
    model = make(1, rounds=7)
    model.save(str(tmp_path / "m"))
    manifest = json.loads((tmp_path / "m" / "model.json").read_text())
    assert manifest["recipe"] == "tiny" and manifest["settings"] == {"rounds": 7} and manifest["meta"] == {"bias": 0.25}
    assert manifest["labels"] == {
        "count": 6,
        "digest": model.labels.digest(),
        "points": 10,
        "propensity": {"A": 0.55, "B": 1.5},
    }


def test_describe_opens_no_array(tmp_path):
    make(1).save(tmp_path / "m")
    size = sum(p.stat().st_size for p in (tmp_path / "m").rglob("*") if p.suffix in (".npy", ".json"))
    (generation,) = (tmp_path / "m").glob("data-*")
    (generation / "weights.npy").write_bytes(b"\0" * (generation / "weights.npy").stat().st_size)
    found = describe(tmp_path / "m")
    assert found["recipe"] == "tiny" and found["about"]["scores"] == {"P@1": 31.5} and found["bytes"] == size


def test_a_loaded_model_saves_over_itself_and_elsewhere(tmp_path):
    model = make(1)
    model.save(tmp_path / "m")
    found = load(tmp_path / "m")
    found.about["note"] = "checked"
    with pytest.raises(StoreError, match=r"m: already contains a model; use overwrite=True \(--overwrite\)"):
        found.save(tmp_path / "m")
    found.save(tmp_path / "m", overwrite=True)
    found.weights = found.weights * 2
    with pytest.raises(StoreError, match="another process"):
        found.save(tmp_path / "m", replaces="data-0123456789abcdef")
    found.save(tmp_path / "m", replaces=describe(tmp_path / "m")["generation"])
    found.save(tmp_path / "copy")
    for folder in ("m", "copy"):
        again = load(tmp_path / folder)
        assert np.array_equal(again.weights, model.weights * 2) and again.about["note"] == "checked"


def test_refuses_an_unknown_recipe(tmp_path):
    make(1).save(tmp_path / "m")
    edit(tmp_path / "m", lambda m: m.update(recipe="no-such", longtail="0.7.0"))
    with pytest.raises(
        StoreError, match=r"recipe 'no-such' of longtail 0\.7\.0, which this longtail does not know .known: .*tiny"
    ):
        load(tmp_path / "m")
    assert describe(tmp_path / "m")["recipe"] == "no-such"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: m["settings"].update(epochs=3),
            "are not valid in this version: recipe 'tiny' has no parameter 'epochs'",
        ),
        (lambda m: m.update(settings={"rounds": "x"}), "rounds must be a whole number"),
        (lambda m: m.pop("about"), "'about' is missing; it is damaged"),
        (lambda m: m["labels"].update(digest="0" * 64), "differ from the manifest"),
        (lambda m: m["labels"].update(count=7), "it says 7 with"),
        (lambda m: m["meta"].clear(), "'bias' is missing; the model is damaged"),
        (lambda m: m["arrays"].pop("weights"), "'weights' is missing; the model is damaged"),
        (lambda m: m["arrays"].pop("labels.keys.data"), "'labels.keys.data' is missing; the folder is damaged"),
    ],
)
def test_refuses_manifests_that_are_not_whole(tmp_path, change, message):
    make(1).save(tmp_path / "m")
    edit(tmp_path / "m", change)
    with pytest.raises(StoreError, match=message) as caught:
        load(tmp_path / "m")
    assert str(tmp_path / "m") in str(caught.value)


def test_refuses_settings_that_json_cannot_hold(tmp_path):
    with pytest.raises(StoreError, match=r"'tiny': these settings cannot be saved to a file: .*inf"):
        model = make(1)
        object.__setattr__(model.recipe, "rate", float("inf"))  # the recipe itself would refuse it
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_refuses_arrays_in_the_place_of_labels(tmp_path):
    model = make(1)
    model.state = lambda: ({"labels.counts": np.zeros(3)}, {})
    with pytest.raises(StoreError, match=r"'labels\.counts' of this model uses a name reserved for its labels"):
        model.save(tmp_path / "m")


def test_a_recipe_that_names_no_model_class_is_refused(tmp_path, monkeypatch):
    make(1).save(tmp_path / "m")
    monkeypatch.setattr(TinyRecipe, "model_class", Recipe.model_class)
    with pytest.raises(UnsupportedError, match="does not name the class of its models"):
        load(tmp_path / "m")


def test_the_documented_way_to_read_a_model_without_longtail(tmp_path, monkeypatch):
    model = make(1)
    model.save(tmp_path / "MODEL")
    text = (Path(__file__).parent.parent / "docs" / "format.md").read_text("utf-8")
    names = {}
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], names)
    assert names["keys"] == list(model.labels.keys) and np.array_equal(names["arrays"]["weights"], model.weights)
