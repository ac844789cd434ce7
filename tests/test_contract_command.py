"""`longtail contract`: finds a recipe by name, module, class or file, and its checks see what is wrong with one."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpora import topic_corpus, write_corpus
from packages import EXAMPLE, HEAD, forget, install

import longtail.recipes  # noqa: F401  # registers the recipes
from longtail.cli.main import main
from longtail.contract.suite import CASES
from longtail.core.recipe import recipes

Capture = pytest.CaptureFixture[str]
# recipes that break the contract: what is changed of the example, and the checks that must see it
FILL, NEAREST = "return ranking.fill(", "self.words.nearest(self.encoder.encode(x), k)"
BROKEN = {
    "positives": ("data.truth().T", "data.Y.T.maximum(0)", {"ignored_pairs_are_no_positives"}),
    "negatives": ("data.ignore is None", "True", {"ignored_pairs_are_no_negatives"}),
    "seed": ("shares[order >= 0] *", "np.random.rand() *", {"same_seed_same_model"}),
    "k": (FILL, "return ranking.cut(1).fill(", {"it_respects_k[3]", "a_ranking_is_well_formed"}),
    "unknown words": (f"{FILL}order[order >= 0],", "return (lambda *_: ranking)(0,", {"a_text_without_known_words"}),
    "removed": (FILL, f"return Ranking(*{NEAREST}, self.labels).fill(", {"removed_labels_are_never_suggested"}),
    "reloading": ("self.words.lists)", "self.words.lists * 2)", {"it_reloads_to_identical_predictions"}),
    "learning": ("np.maximum(np.log(share / others), 0)", "np.ones_like(share)", {"it_learns"}),
    "docstring": ('    """score', '    # """score', {"it_says_what_it_is"}),
    "raising": ("def rank(self, x, k):", "def rank(self, x, k):\n        1 / 0", {"any_unicode"}),
}


@pytest.fixture(autouse=True)
def _modules_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports from files is forgotten after it, and so is what it has installed."""
    loaded = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield
    monkeypatch.undo()
    forget(tmp_path, loaded)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example, installed: its entry points are those of its pyproject.toml."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    offers = project["entry-points"]["longtail.recipes"]
    folder = install(tmp_path / "site", project["name"], project["version"], offers)
    shutil.copy(EXAMPLE / "word_odds.py", folder)
    sys.path.append(str(folder))
    recipes.offers(again=True)
    return folder


def contract(capsys: Capture, *words: object, code: int = 0) -> dict[str, Any]:
    """The outcome of a contract, and its checks by name."""
    capsys.readouterr()
    assert main(["contract", *map(str, words), "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    return found | {"checks": {row["check"]: row for row in found["checks"]}}


def error_of(capsys: Capture, code: int, *words: object) -> str:
    assert main([str(word) for word in words]) == code
    return capsys.readouterr().err


# --- the example ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("example")
def test_the_example_passes_every_check(capsys: Capture) -> None:
    assert main(["contract", "word-odds"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:-1]] == [["passed", str(case)] for case in CASES]
    assert lines[-1].startswith(f"word-odds: {len(CASES)} passed, 0 failed, 0 not applicable, in ")


def test_the_example_from_the_command_line(example: Path, tmp_path: Path) -> None:
    """In processes that find it as an installed package is found."""
    write_corpus(topic_corpus(), tmp_path / "topics")
    environment = {"PYTHONPATH": str(example), "LONGTAIL_THREADS": "1", "LONGTAIL_CACHE": str(tmp_path / "cache")}

    def run(*words: str) -> str:
        command = [sys.executable, "-P", "-m", "longtail", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "naive Bayes" in run("recipes")
    run("train", "topics", "--recipe", "word-odds", "--set", "smoothing=0.5", "--out", "model", "--quiet")
    (label,) = json.loads(run("predict", "model", "boat wind harbour", "-k", "1"))["labels"]
    assert label["label"] == "sailing"
    assert "word-odds" in run("bench", "topics", "--recipe", "word-odds", "xr-linear", "--table", "--quiet")


# --- what is checked ------------------------------------------------------------------------------------------------


def test_a_recipe_is_found_in_a_module_a_class_or_a_file(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "__init__.py").write_text("")
    (tmp_path / "my_package" / "recipe.py").write_text((EXAMPLE / "word_odds.py").read_text())
    two = HEAD + "\n".join(
        f'@dataclass(frozen=True)\nclass {name}(Popular):\n    """P."""\n    name = "{name.lower()}"\n    title = "t"'
        for name in ("One", "Two")
    )
    (tmp_path / "two.py").write_text(two)
    check = ["--only", "it_reloads_to_identical_predictions", "it_respects_k[3]"]
    shutil.copy(EXAMPLE / "word_odds.py", tmp_path / "file.py")
    for target in ("my_package.recipe", "my_package.recipe:WordOdds", "file.py", tmp_path / "file.py"):
        found = contract(capsys, target, *check)
        assert found["recipe"] == "word-odds" and found["counts"] == {"passed": 2, "failed": 0, "not applicable": 0}
    assert contract(capsys, "two:Two", "--only", "it_respects_k")["recipe"] == "two"
    assert "word-odds" not in recipes  # only during its contract
    found = contract(capsys, "longtail.recipes.popular", "--only", "it_respects_k[3]")
    assert found["recipe"] == "popular" and found["counts"]["passed"] == 1
    assert "found two:One, two:Two" in error_of(capsys, 2, "contract", "two")
    assert "there is no Tow. Did you mean 'Two'?" in error_of(capsys, 2, "contract", "two:Tow")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["populer"], 2, "neither a recipe nor a module that can be imported from here. Did you mean 'popular'?"),
        (["no-such"], 2, "unknown recipe 'no-such'"),
        (["nowhere.py"], 2, "nowhere.py: there is no such file"),
        (["broken.py"], 1, "broken.py cannot be imported: NameError: name 'undefined'"),
        (["broken"], 1, "broken cannot be imported: NameError"),
        (["needs.py"], 1, "needs.py cannot be imported: ModuleNotFoundError: No module named 'absent'"),
        (["plain.py"], 2, "must have one recipe, or say which (module:Class); found none"),
        (["plain.py:VALUE"], 1, "plain.py:VALUE is no class derived from longtail.core.recipe.Recipe, but 3"),
        (["ours.py"], 2, "longtail itself has a recipe 'popular'; choose another name"),
        (["popular", "--only", "it_lerns"], 2, "unknown check 'it_lerns'. Did you mean 'it_learns'?"),
        (["popular", "--set", "weight=1"], 2, "has no parameter 'weight'"),
        (["popular", "--preset", "tiny"], 2, "has no preset 'tiny'"),
        (["exempt.py"], 2, "is exempt from 'it_lerns', which is no check"),
        ([], 2, "say which recipe to check"),
    ],
)
def test_wrong_usage(words: list[str], code: int, message: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "broken.py").write_text("undefined")
    (tmp_path / "needs.py").write_text("import absent")
    (tmp_path / "plain.py").write_text("VALUE = 3")
    (tmp_path / "ours.py").write_text(f'{HEAD}\nclass Mine(Popular):\n    name = "popular"')
    exempt = 'class Mine(Popular):\n    name = "mine"\n    exempt = {"it_lerns": "typing"}'
    (tmp_path / "exempt.py").write_text(f"{HEAD}\n{exempt}")
    assert message in error_of(capsys, code, "contract", *words)


def test_the_list_of_checks(capsys: Capture) -> None:
    assert main(["contract", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["check"] for row in listed] == list(dict.fromkeys(case.check for case in CASES))
    assert all(row["says"].endswith(".") for row in listed)
    assert main(["contract", "--list", "--only", "it_learns"]) == 0
    out = capsys.readouterr().out
    assert "it_learns" in out and "it_respects_k" not in out


# --- what the checks see --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # what is broken may compute nonsense
@pytest.mark.parametrize("broken", BROKEN)
def test_a_recipe_that_breaks_the_contract_fails(broken: str, tmp_path: Path, capsys: Capture) -> None:
    plain, changed, seen_by = BROKEN[broken]
    source = (EXAMPLE / "word_odds.py").read_text()
    assert source.count(plain) == 1
    (tmp_path / "changed.py").write_text(source.replace(plain, changed))
    checks = contract(capsys, "changed.py", "--only", *seen_by, code=1)["checks"]
    assert {name for name, row in checks.items() if row["result"] == "failed" and row["reason"]} == seen_by
    if broken == "raising":
        assert "ZeroDivisionError in " in checks["any_unicode"]["reason"]
        assert "changed.py:" in checks["any_unicode"]["reason"]


def test_presets_and_settings_of_the_contract(tmp_path: Path, capsys: Capture) -> None:
    """The preset "contract" is used where it is there, "contract-brief" where nothing is to be learnt; --set wins."""
    source = (EXAMPLE / "word_odds.py").read_text()
    noted = '    def train(self, data, labels, run, validation=None):\n        print("smoothing", self.smoothing)\n'
    source = source.replace("    def train(self, data, labels, run, validation=None):\n", noted)
    presets = '    presets = {"contract": {"smoothing": 0.2}, "contract-brief": {"smoothing": 0.3}}\n'
    name = '    name = "word-odds"\n'
    (tmp_path / "with_presets.py").write_text(source.replace(name, name + presets))
    (tmp_path / "without.py").write_text(source)

    def used(*words: str) -> set[str]:
        """What was trained with, in a check that learns, and in one that does not."""
        found = set()
        for check in ("it_learns", "ignored_pairs_are_no_positives"):
            assert main(["contract", *words, "--only", check]) == 0
            lines = capsys.readouterr().out.splitlines()
            found |= {f"{check} {line.split()[1]}" for line in lines if line.startswith("smoothing")}
        return found

    learns, brief = "it_learns", "ignored_pairs_are_no_positives"
    assert used("without.py") == {f"{learns} 0.1", f"{brief} 0.1"}
    assert used("with_presets.py") == {f"{learns} 0.2", f"{brief} 0.3"}
    assert used("with_presets.py", "--set", "smoothing=0.4") == {f"{learns} 0.4", f"{brief} 0.4"}
    assert used("with_presets.py", "--preset", "contract-brief") == {f"{learns} 0.3", f"{brief} 0.3"}


@pytest.mark.parametrize(("given", "used"), [([], 3), (["--threads", "2"], 2)])
def test_trainings_have_the_threads_that_are_given(
    given: list[str], used: int, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTAIL_THREADS", "3")
    source = (EXAMPLE / "word_odds.py").read_text()
    start = "    def train(self, data, labels, run, validation=None):\n"
    (tmp_path / "told.py").write_text(source.replace(start, f'{start}        print("threads", run.threads)\n'))
    assert main(["contract", "told.py", "--only", "it_learns", *given]) == 0
    assert {line for line in capsys.readouterr().out.splitlines() if "threads" in line} == {f"threads {used}"}
    assert os.environ["LONGTAIL_THREADS"] == "3"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_lines_reach_a_file_although_the_bar_is_on_a_terminal(tmp_path: Path) -> None:
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "longtail", "contract", "popular", "--only", "it_respects_k"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=end, text=True, cwd=tmp_path, timeout=120)
    os.close(end)
    os.close(terminal)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["passed"] * 4 + ["popular:"]


def test_checks_that_do_not_apply_say_why(tmp_path: Path, capsys: Capture) -> None:
    source = (EXAMPLE / "word_odds.py").read_text()
    name = '    name = "word-odds"\n'
    exempt = '    exempt = {"any_unicode": "it reads ASCII"}\n'
    (tmp_path / "exempt.py").write_text(source.replace(name, name + exempt))
    row = contract(capsys, "exempt.py", "--only", "any_unicode")["checks"]["any_unicode"]
    assert (row["result"], row["reason"]) == ("not applicable", "the recipe says: it reads ASCII")
    check = "labels_that_never_stand_together"
    row = contract(capsys, "popular", "--only", check)["checks"][check]
    assert row["result"] == "not applicable" and "popular" in row["reason"]
