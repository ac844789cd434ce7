"""Presets: groups of settings, applied before the user's own settings."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from corpora import topic_corpus, write_corpus

import longtail
import longtail.recipes
from longtail.cli.main import main
from longtail.core.errors import ParameterError
from longtail.core.recipe import recipes
from longtail.evidence.trials import grid

HAVE = [name for name in recipes if recipes[name].presets]


def test_the_systems_with_networks_have_a_small_one() -> None:
    deep = {"astec", "decaf", "eclare", "inceptionxml", "inceptionxml-lf"}
    assert {name for name in recipes if "small" in recipes[name].presets} >= deep


@pytest.mark.parametrize("name", HAVE)
def test_presets_are_settings(name: str) -> None:
    for preset, settings in recipes[name].presets.items():
        made = longtail.recipe(name, preset=preset)
        assert made == longtail.recipe(name, **settings)
        assert all(getattr(made, key) == value for key, value in settings.items())
        assert longtail.recipe(name, **made.changed()) == made  # what a saved model remembers


def test_what_is_set_comes_after() -> None:
    made: Any = longtail.recipe("decaf", preset="small", epochs=3)
    assert made.epochs == 3 and made.dimension == recipes["decaf"].presets["small"]["dimension"]
    assert longtail.recipe("decaf", preset=None) == longtail.recipe("decaf")
    recipes["decaf"].preset("small")["epochs"] = -1  # a copy
    assert longtail.recipe("decaf", preset="small").epochs > 0  # type: ignore[attr-defined]


def test_one_that_is_not_there_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"recipe 'decaf' has no preset 'smal'; it has small"):
        longtail.recipe("decaf", preset="smal")
    with pytest.raises(ParameterError, match=r"recipe 'parabel' has no preset 'small'; it has none at all"):
        longtail.recipe("parabel", preset="small")
    with pytest.raises(ParameterError, match="has none at all"):
        longtail.fit(["a text"], [["a"]], "popular", preset="small")


def test_the_bench_has_them() -> None:
    systems = grid(["decaf", "eclare"], {"epochs": "2"}, {"batch": ["64", "128"]}, "small")
    assert [(s.recipe, dict(s.settings)["batch"]) for s in systems] == [
        (name, batch) for name in ("decaf", "eclare") for batch in ("64", "128")
    ]
    made: Any = systems[-1].made()
    assert (made.epochs, made.batch, made.beam) == (2, 128, recipes["eclare"].presets["small"]["beam"])


def test_the_commands(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("torch")
    data, model = write_corpus(topic_corpus(60), tmp_path / "data"), str(tmp_path / "model")
    small = ["train", str(data), "--recipe", "decaf", "--preset", "small"]
    small += ["--set", "reader=words", "--set", "vectors=learnt", "--set", "dimension=64"]  # no encoder is needed
    assert main([*small, "--set", "min_steps=2", "--set", "epochs=2", "--out", model, "--quiet"]) == 0
    expected = recipes["decaf"].presets["small"] | {"min_steps": 2, "epochs": 2, "dimension": 64}
    expected = {key: value for key, value in expected.items() if key not in ("reader", "vectors")}  # the defaults
    assert longtail.load(model).recipe.changed() == expected
    assert main(["train", str(data), "--recipe", "parabel", "--preset", "small"]) == 2
    assert "has no preset 'small'" in capsys.readouterr().err
    assert main(["recipes", "decaf"]) == 0
    assert "--preset small: reader=subwords" in capsys.readouterr().out
    assert main(["recipes", "--json"]) == 0
    listed = {row["name"]: row for row in orjson.loads(capsys.readouterr().out)}
    assert listed["decaf"]["presets"] == recipes["decaf"].presets and listed["parabel"]["presets"] == {}
