"""`longtail train --augment`, from the command line to the saved model and its scores."""

import json
from pathlib import Path
from typing import Any

import pytest
from corpora import UNSEEN, topic_corpus

import longtail
from longtail.cli.main import main
from longtail.data.write import write


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "topics"
    write(topic_corpus(), folder, to="jsonl")
    return folder


def out_of(capsys: Any, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return str(capsys.readouterr().out)


def error_of(capsys: Any, code: int, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == code
    return str(capsys.readouterr().err)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def test_from_train_to_info(data: Path, tmp_path: Path, capsys: Any) -> None:
    model = tmp_path / "model"
    options = ("--recipe", "xr-linear", "--augment", "gandalf-shrunk", "--set", "augment.shrink=3")
    out = out_of(capsys, "train", data, *options, "--out", model)
    assert "augment=gandalf-shrunk, augment.shrink=3.0" in out
    assert "augment=gandalf-shrunk, augment.shrink=3.0" in out_of(capsys, "info", model)
    settings = json.loads((model / "model.json").read_text())["settings"]
    assert settings == {"augment": "gandalf-shrunk", "augment.shrink": 3.0}
    recipe: Any = longtail.load(model).recipe
    assert recipe.augment == longtail.Augmentation("gandalf-shrunk", shrink=3.0)
    found = json.loads(out_of(capsys, "predict", model, "telescope and comet", "-k", 1))
    assert found["labels"][0]["label"] == UNSEEN


def test_gandalf_is_short(data: Path, tmp_path: Path, capsys: Any) -> None:
    short, long = tmp_path / "short", tmp_path / "long"
    out_of(capsys, "train", data, "--recipe", "parabel", "--gandalf", "--out", short)
    out_of(
        capsys, "train", data, "--recipe", "parabel", "--set", "augment=gandalf", "--augment", "gandalf", "--out", long
    )
    one, other = longtail.load(short), longtail.load(long)
    assert one.recipe == other.recipe and one.recipe.changed() == {"augment": "gandalf"}
    out_of(capsys, "train", data, "--gandalf", "--out", tmp_path / "auto")  # the default recipe takes it too
    assert longtail.load(tmp_path / "auto").recipe.changed()["augment"] == "gandalf"


def test_contradictions_and_bad_values(data: Path, tmp_path: Path, capsys: Any) -> None:
    def error(code: int, *options: str) -> str:
        return error_of(capsys, code, "train", data, *options)

    assert "--gandalf and --augment self contradict each other" in error(2, "--gandalf", "--augment", "self")
    assert "--set augment=self contradict each other" in error(2, "--gandalf", "--set", "augment=self")
    assert "--set augment=self contradict each other" in error(2, "--augment", "glas", "--set", "augment=self")
    assert "delta must be below 1" in error(2, "--gandalf", "--set", "augment.delta=1")
    assert "Did you mean 'augment.delta'" in error(2, "--gandalf", "--set", "augment.dleta=0.3")
    assert "method must be one of 'none', 'gandalf'" in error(2, "--augment", "gandolf")
    assert "mixes no embeddings" in error(1, "--augment", "mixup")
    assert "'popular' looks at no text" in error(1, "--recipe", "popular", "--gandalf")
    write(topic_corpus(label_text=False), tmp_path / "bare", to="jsonl")
    bare = error_of(capsys, 1, "train", tmp_path / "bare", "--recipe", "bonsai", "--gandalf")
    assert "recipe 'bonsai': augment=gandalf makes training points from label texts" in bare


def test_auto_shows_its_table(data: Path, capsys: Any) -> None:
    out = out_of(capsys, "train", data)
    assert "Tried on the validation part\n" in out
    for method in ("none", "self", "gandalf", "gandalf-shrunk delta=0.3"):
        assert f" {method} " in out
    assert "Recipe xr-linear" in out


def test_recipes_list_the_options(capsys: Any) -> None:
    out = out_of(capsys, "recipes", "xr-linear")
    assert "augment.delta" in out and "augment.restart" in out
    listed = {row["name"]: row for row in json.loads(out_of(capsys, "recipes", "auto", "--json"))}
    assert listed["augment"]["default"] == "auto" and "'gandalf-shrunk'" in listed["augment"]["type"]
    assert listed["augment.delta"]["default"] == 0.1


def test_recall_of_labels_without_examples(data: Path, tmp_path: Path, capsys: Any) -> None:
    model = tmp_path / "model"
    out_of(capsys, "train", data, "--augment", "self", "--out", model)
    out = out_of(capsys, "evaluate", model, data, "--by-frequency")
    assert "in top 5" in out and "no training examples" in out
    rows = json.loads(out_of(capsys, "evaluate", model, data, "--by-frequency", "--json"))["by_frequency"]
    assert sum(row["pairs"] for row in rows[:5]) == topic_corpus().test.Y.nnz  # type: ignore[union-attr]
    assert rows[0]["recall"] > 90 and rows[-1] | {"recall": None, "pairs": 0} == rows[-1]
