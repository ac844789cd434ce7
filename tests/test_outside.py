"""Recipes of other packages: found when they are named, saved and loaded with their package, refused clearly."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from corpora import topic_corpus, write_corpus
from packages import HEAD, forget, install

import longtail
import longtail.recipes
from longtail.cli.main import main
from longtail.core.errors import PackageError, ParameterError, StoreError
from longtail.core.recipe import recipes
from longtail.evidence.trials import System, Trial
from longtail.store.lines import read_lines

CORPUS = topic_corpus(60)
MINE = """
@dataclass(frozen=True)
class Mine(Popular):
    name = "mine"
    title = "a baseline of my own"
    weight: float = param(1.0, "changes nothing")
"""
Install = Callable[..., Path]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package for the test: `site(package, version, offers, module=source)`."""
    folder, loaded = tmp_path / "site", set(sys.modules)
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def installed(package: str, version: str, offers: dict[str, str], **modules: str) -> Path:
        install(folder, package, version, offers, **modules)
        recipes.offers(again=True)
        return folder

    yield installed
    monkeypatch.undo()
    forget(folder, loaded)


@pytest.fixture
def mine(site: Install) -> Path:
    return site("my-package", "1.2", {"mine": "my_module:Mine"}, my_module=MINE)


def error_of(capsys: pytest.CaptureFixture[str], code: int, *words: object) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == code
    return capsys.readouterr().err


def saved(folder: Path) -> Path:
    longtail.recipe("mine").fit(CORPUS).save(folder)
    return folder


# --- finding them ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("mine")
def test_a_recipe_of_another_package_is_one_like_ours(tmp_path: Path) -> None:
    assert "mine" in recipes and "mine" in list(recipes) and "mine" not in recipes.own
    model = longtail.load(saved(tmp_path / "m"))
    assert model.recipe == longtail.recipe("mine", weight=1.0) and model.recipe.title == "a baseline of my own"
    assert longtail.fit(["boat", "pawn", "boat"], [["a"], ["b"], ["a"]], "mine").predict(["x"], 1).keys() == [["a"]]
    with pytest.raises(ParameterError, match="has no parameter 'weigth'. Did you mean 'weight'"):
        longtail.recipe("mine", weigth=2)
    with pytest.raises(ParameterError, match="unknown recipe 'mime'. Did you mean 'mine'"):
        longtail.recipe("mime")


@pytest.mark.usefixtures("mine")
def test_scikit_learn_knows_it() -> None:
    sklearn = pytest.importorskip("longtail.sklearn")
    tagger = sklearn.LongtailClassifier("mine", weight=2).fit(["boat", "pawn", "boat"], [["a"], ["b"], ["a"]])
    assert tagger.model_.recipe.name == "mine" and tagger.model_.recipe.weight == 2
    with pytest.raises(ParameterError, match="has no parameter 'weigth'"):
        tagger.set_params(weigth=1)


def test_nothing_is_imported_before_it_is_named(mine: Path, tmp_path: Path) -> None:
    script = """
        import sys, longtail
        from longtail.cli.main import main
        longtail.fit(["boat", "pawn"], [["a"], ["b"]], "popular").save("m")
        longtail.load("m")
        try:
            main(["--help"])
        except SystemExit:
            pass
        assert main(["recipes", "popular"]) == 0
        assert "my_module" not in sys.modules
        longtail.recipe("mine")
        assert "my_module" in sys.modules
    """
    command = [sys.executable, "-c", f"import sys; sys.path.append({str(mine)!r})\n{dedent(script)}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr


def test_looking_at_saved_models_of_ours_looks_for_no_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longtail.recipe("popular").fit(CORPUS).save(tmp_path / "m")
    monkeypatch.setattr(recipes, "_offers", None)
    longtail.load(tmp_path / "m").predict(["boat"])
    assert recipes._offers is None


def test_the_list_shows_packages_and_what_is_wrong_with_them(
    site: Install, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["recipes"]) == 0
    assert "longtail  " not in capsys.readouterr().out  # no column of packages where there are only ours
    site("my-package", "1.2", {"mine": "my_module:Mine"}, my_module=MINE)
    site("bad-package", "0.3", {"bad": "no_such_module:Bad"})
    assert main(["recipes"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "a baseline of my own" in lines["mine"] and "my-package 1.2" in lines["mine"]
    assert "No module named 'no_such_module'" in lines["bad"] and "bad-package 0.3" in lines["bad"]
    assert main(["recipes", "--json"]) == 0
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert listed["mine"]["package"] == "my-package 1.2" and listed["mine"]["error"] is None
    assert listed["bad"]["title"] is None and "no_such_module" in listed["bad"]["error"]
    assert listed["popular"]["package"] is None
    assert main(["recipes", "mine"]) == 0
    assert "From the package my-package 1.2." in capsys.readouterr().out
    assert "bad-package 0.3 (no_such_module:Bad) cannot be imported" in error_of(capsys, 1, "recipes", "bad")


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_name_of_ours_stays_ours_and_both_are_named(site: Install, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="longtail"):
        site("my-package", "1.2", {"popular": "my_module:Mine"}, my_module=MINE)
        assert longtail.recipe("popular").title != "a baseline of my own"
    assert "my-package 1.2 offers a recipe 'popular' (my_module:Mine), but longtail has one" in caplog.text
    assert "my_module" not in sys.modules


@pytest.mark.usefixtures("mine")
def test_a_name_of_two_packages_is_refused_and_both_are_named(
    site: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    site("your-package", "3", {"mine": "your_module:Mine"}, your_module=MINE)
    both = r"my-package 1.2 \(my_module:Mine\) and your-package 3 \(your_module:Mine\)"
    with pytest.raises(PackageError, match=both):
        longtail.recipe("mine")
    assert main(["recipes", "--json"]) == 0  # the others are listed
    row = next(row for row in json.loads(capsys.readouterr().out) if row["name"] == "mine")
    assert row["package"] == "my-package 1.2 and your-package 3" and "Uninstall all but one" in row["error"]


@pytest.mark.parametrize(
    ("place", "source", "problem"),
    [
        ("gone:Mine", "", "cannot be imported: ModuleNotFoundError: No module named 'gone'"),
        ("broken:Other", "", "cannot be imported: AttributeError.*Other"),
        ("broken:Mine", "import sys; sys.exit(3)", "cannot be imported: SystemExit: 3"),
        ("broken:Mine", "raise ValueError('no licence')", "cannot be imported: ValueError: no licence"),
        ("broken:Mine", "Mine = 3", "is no class derived from longtail.core.recipe.Recipe, but 3"),
        ("broken", "", "is no class derived from longtail.core.recipe.Recipe"),
        ("broken:Mine", "class Mine(Recipe):\n    pass", 'has no name: write name = "mine"'),
        ("broken:Mine", 'class Mine(Popular):\n    name = "yours"', "is called 'yours' in its class"),
        ("broken:Mine", 'class Mine(Recipe):\n    name = "mine"', "has no title"),
        (
            "broken:Mine",
            'class Mine(Popular):\n    name = "mine"\n    a: int = param(1, "")',
            "has the parameter a, but is no dataclass",
        ),
        (
            "broken:Mine",
            "from longtail.train.recipe import TrainedRecipe\n"
            'class Mine(TrainedRecipe):\n    name = "mine"\n    title = "t"',
            "does not implement train",
        ),
    ],
)
def test_what_is_no_recipe_is_refused_by_package(site: Install, place: str, source: str, problem: str) -> None:
    site("bad-package", "0.3", {"mine": place}, broken=source)
    with pytest.raises(PackageError, match=rf"(?s)^recipe 'mine' of the package bad-package 0.3 \({place}\) {problem}"):
        longtail.recipe("mine")
    assert longtail.recipe("popular").fit(CORPUS).predict(["boat"])  # the others are not affected
    assert System.of("mine").lacks == "mine"


@pytest.mark.usefixtures("mine")
def test_entry_points_that_cannot_be_read_harm_only_their_package(
    site: Install, caplog: pytest.LogCaptureFixture
) -> None:
    folder = site("bad-package", "0.3", {})
    (folder / "bad_package-0.3.dist-info" / "entry_points.txt").write_text("[longtail.recipes]\nno equals sign\n")
    with caplog.at_level(logging.WARNING, logger="longtail"):
        recipes.offers(again=True)
    assert longtail.recipe("mine").title == "a baseline of my own"
    assert "the entry points of the package bad-package 0.3 cannot be read" in caplog.text


# --- saved models ---------------------------------------------------------------------------------------------------


def test_a_saved_model_names_its_package(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((saved(tmp_path / "m") / "model.json").read_text())
    assert manifest["package"] == {"name": "my-package", "version": "1.2"}
    assert main(["info", str(tmp_path / "m")]) == 0
    assert "my-package 1.2" in capsys.readouterr().out
    (mine / "my_package-1.2.dist-info" / "entry_points.txt").unlink()
    recipes.offers(again=True)
    for words in (["predict", tmp_path / "m", "boat"], ["evaluate", tmp_path / "m", "debian-related"]):
        message = error_of(capsys, 1, *words)
        assert "the recipe 'mine' of the package 'my-package 1.2', which is not installed here" in message
        assert "pip install 'my-package==1.2'" in message
    assert main(["info", str(tmp_path / "m")]) == 0


def test_another_owner_of_the_name_does_not_open_the_model(site: Install, mine: Path, tmp_path: Path) -> None:
    folder = saved(tmp_path / "m")
    (mine / "my_package-1.2.dist-info" / "entry_points.txt").unlink()
    site("your-package", "3", {"mine": "your_module:Mine"}, your_module=MINE)
    with pytest.raises(StoreError, match="but here 'mine' is a recipe of the package your-package 3"):
        longtail.load(folder)
    changed = json.loads((folder / "model.json").read_text()) | {"recipe": "popular"}
    (folder / "model.json").write_text(json.dumps(changed))
    with pytest.raises(StoreError, match="but here 'popular' is a recipe of longtail itself"):
        longtail.load(folder)
    for bad in ("text", {}, {"name": "my-package", "version": 3}):
        (folder / "model.json").write_text(json.dumps(changed | {"package": bad}))
        with pytest.raises(StoreError, match="'package' is .*damaged"):
            longtail.load(folder)


def test_a_package_that_no_longer_works_is_named_when_its_model_is_loaded(mine: Path, tmp_path: Path) -> None:
    folder = saved(tmp_path / "m")
    (mine / "my_module.py").write_text("import no_such_module")
    del sys.modules["my_module"]
    recipes.offers(again=True)
    with pytest.raises(
        StoreError, match=r"the recipe 'mine' of my-package 1.2: .*cannot be imported: .*no_such_module"
    ):
        longtail.load(folder)
    settings = {"no_such_setting": 1}
    (mine / "my_module.py").write_text(HEAD + MINE)
    manifest = json.loads((folder / "model.json").read_text()) | {"settings": settings}
    (folder / "model.json").write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match="its settings, written by my-package 1.2, are not valid"):
        longtail.load(folder)


# --- the bench ------------------------------------------------------------------------------------------------------


def test_the_bench_records_the_package(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process of a run finds the package where this one has it, although nothing tells Python of that folder."""
    monkeypatch.setenv("LONGTAIL_THREADS", "1")
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_corpus(CORPUS, tmp_path / "data" / "topics")
    words = ["bench", "topics", "--data", "data", "--recipe", "mine", "--set", "weight=2"]
    assert main(words) == 0
    (record,) = read_lines(Path("bench/results/topics.jsonl"))
    assert record["status"] == "done" and record["settings"] == {"weight": 2.0}
    assert record["versions"]["my-package"] == "1.2" and record["package"] == "my-package"
    assert str(mine) not in json.dumps(record)
    assert main(words) == 0
    assert len(read_lines(Path("bench/results/topics.jsonl"))) == 1  # no run is repeated
    monkeypatch.setattr(recipes["mine"], "version", 2)
    capsys.readouterr()
    assert main([*words, "--dry-run"]) == 0
    assert "to run" in capsys.readouterr().out


def test_a_run_depends_on_the_version_of_the_recipe_and_on_the_package(
    site: Install, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def id_of() -> str:
        return Trial.of("topics", CORPUS.digest, System.of("mine"), 0).id

    first = id_of()
    with monkeypatch.context() as patch:
        patch.setattr(recipes["mine"], "version", 2)
        assert id_of() != first
    assert id_of() == first
    (mine / "my_package-1.2.dist-info" / "entry_points.txt").unlink()
    site("your-package", "3", {"mine": "your_module:Mine"}, your_module=MINE)
    assert id_of() != first


def test_names_of_ours_have_no_package() -> None:
    trial: Any = Trial.of("topics", CORPUS.digest, System.of("popular"), 0)
    assert trial.package == {} and "package" not in trial.record()
