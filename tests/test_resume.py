"""A killed training continues where it stopped."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpora import topic_corpus

import longtail
from longtail.cli.main import main
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.run import Run
from longtail.data.from_lists import corpus_from_lists
from longtail.data.write import write
from longtail.linear import checkpoint
from longtail.linear import solve as solving

SMALL = {"leaf_size": 2, "branching": 2}
SETTINGS = {"xr-linear": SMALL, "parabel": {"leaf_size": 2}, "bonsai": SMALL, "dismec": {}}
# a training in which every part is kept, and which dies as soon as it has solved some
KILLED = """
import os, signal, sys
from longtail.cli.main import main
from longtail.linear import checkpoint, solve as solving
checkpoint.WORTH_KEEPING, solving.PART = 0.0, 1.0
solve, solved = solving.solve, []
def counted(*arguments):
    if len(solved) == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    solved.append(1)
    return solve(*arguments)
solving.solve = counted
main({arguments!r})
"""


CASES = [*SETTINGS.items(), ("xr-linear", {**SMALL, "augment": "gandalf"}), ("auto", {})]


def corpus_for(recipe: str) -> longtail.Corpus:
    if recipe != "dismec":
        return topic_corpus()
    letters = "abcdefghijklmnop"
    words = [a + b for a in letters for b in letters][:200]  # labels enough for several blocks
    texts = [f"{word} {letter}{letter} common" for word in words for letter in letters[:6]]
    return corpus_from_lists(texts, [[f"label{i:03d}"] for i in range(200) for _ in range(6)])


@pytest.mark.parametrize(("recipe", "chosen"), CASES)
@pytest.mark.parametrize("after", [1, 4])
def test_a_killed_training_is_taken_up_again(
    recipe: str, chosen: dict, after: int, tmp_path: Path, monkeypatch
) -> None:
    data, model = tmp_path / "data", tmp_path / "model"
    write(corpus_for(recipe), data, to="jsonl")
    settings = [f"--set={key}={value}" for key, value in chosen.items()]
    arguments = ["train", str(data), "--recipe", recipe, *settings, "--quiet"]
    whole = tmp_path / "whole"
    monkeypatch.setattr(solving, "PART", 1.0)
    assert main([*arguments, "--out", str(whole)]) == 0
    arguments += ["--out", str(model)]
    died = subprocess.run([sys.executable, "-c", KILLED.format(after=after, arguments=arguments)], capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    kept = len(list((model / ".run").iterdir()))
    assert kept == after
    monkeypatch.setattr(checkpoint, "WORTH_KEEPING", 0.0)
    solved = []
    solve = solving.solve
    monkeypatch.setattr(solving, "solve", lambda *a: (solved.append(1), solve(*a))[1])
    assert main([*arguments, "--resume"]) == 0
    assert not (model / ".run").exists()
    monkeypatch.setattr(solving, "solve", solve)
    one, other = (longtail.load(folder).state()[0] for folder in (whole, model))
    assert one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
    again = []
    monkeypatch.setattr(solving, "solve", lambda *a: (again.append(1), solve(*a))[1])
    longtail.recipe(recipe, **chosen).fit(longtail.read(data, test=False), Run())
    if recipe == "auto":  # two variants that come to the same points are solved once
        assert len(solved) <= len(again) - kept
    else:
        assert len(solved) == len(again) - kept


def test_other_data_or_settings_are_not_mixed_up(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "WORTH_KEEPING", 0.0)
    corpus, run = topic_corpus(), Run(folder=tmp_path / ".run", resume=True)
    longtail.recipe("xr-linear", C=0.1).fit(corpus, run)
    resumed = longtail.recipe("xr-linear", C=2.0).fit(corpus, run)
    fresh = longtail.recipe("xr-linear", C=2.0).fit(corpus)
    for name, array in fresh.state()[0].items():  # type: ignore[attr-defined]
        assert np.array_equal(array, resumed.state()[0][name])  # type: ignore[attr-defined]


def test_without_resume_what_was_kept_is_forgotten(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "WORTH_KEEPING", 0.0)
    folder = tmp_path / ".run"
    longtail.recipe("xr-linear").fit(topic_corpus(), Run(folder=folder))
    (folder / "notes.txt").write_text("mine")
    before = set(folder.iterdir())
    longtail.recipe("xr-linear", C=3.0).fit(topic_corpus(), Run(folder=folder))
    assert before & set(folder.iterdir()) == {folder / "notes.txt"}


def test_resume_needs_a_place_and_a_recipe_that_can() -> None:
    with pytest.raises(ParameterError, match="say where it is saved"):
        longtail.recipe("xr-linear").fit(topic_corpus(), Run(resume=True))
    with pytest.raises(UnsupportedError, match="no use for resume"):
        longtail.recipe("popular").fit(topic_corpus(), Run(resume=True))


def test_what_is_solved_in_no_time_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "WORTH_KEEPING", 1e9)  # seconds, on a machine however slow
    longtail.recipe("xr-linear").fit(topic_corpus(), Run(folder=tmp_path / ".run"))
    assert not (tmp_path / ".run").exists()
