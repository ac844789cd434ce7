"""The Python functions, the command line and the scikit-learn wrapper have the same names, defaults and rules."""

import argparse
import inspect
import json
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from corpora import topic_corpus
from numpy.typing import NDArray

import longtail
from longtail.cli.main import COMMANDS, build_parser, main
from longtail.core import defaults
from longtail.core.decision import CutOff, Decision, Method
from longtail.core.errors import ParameterError
from longtail.core.how_many import check_ks, labels_to_rank
from longtail.core.model import Model
from longtail.core.recipe import recipe, recipes
from longtail.core.run import Run
from longtail.data.write import WRITERS

CORPUS = topic_corpus()
assert CORPUS.test is not None
NEW = CORPUS.test.x


def default_of(function: Any, name: str) -> Any:
    return inspect.signature(function).parameters[name].default


def parsed(*arguments: str) -> argparse.Namespace:
    return build_parser().parse_args(arguments)


def usage_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 2
    return capsys.readouterr().err


# --- names and defaults ---------------------------------------------------------------------------------------------


def test_the_default_recipe_is_the_same_everywhere() -> None:
    sklearn = pytest.importorskip("longtail.sklearn")
    doors = [default_of(longtail.fit, "recipe"), parsed("train", "d").recipe, sklearn.LongtailClassifier().recipe]
    assert set(doors) == {defaults.RECIPE} and defaults.RECIPE in recipes


def test_seed_device_and_ks_are_the_same_everywhere() -> None:
    train = parsed("train", "d")
    assert (train.seed, train.device) == (Run().seed, Run().device) == (defaults.SEED, defaults.DEVICE)
    assert default_of(longtail.calibrate, "seed") == default_of(longtail.compare, "seed") == defaults.SEED
    compare = parsed("compare", "a", "b", "d")
    assert compare.seed == defaults.SEED and compare.resamples == default_of(longtail.compare, "resamples")
    assert compare.ks == parsed("evaluate", "m", "d").ks == default_of(longtail.evaluate, "ks") == defaults.KS


def test_nothing_is_overwritten_by_default(tmp_path: Path) -> None:
    assert not parsed("train", "d").overwrite and not parsed("convert", "d", "f").overwrite
    for function in (Model.save, type(popular()).save, longtail.write):
        assert default_of(function, "overwrite") is False
    popular().save(tmp_path / "m")
    with pytest.raises(longtail.LongtailError, match="already contains a model"):
        popular().save(tmp_path / "m")


def test_formats_of_convert_and_write_are_the_same() -> None:
    assert parsed("convert", "d", "f").to == default_of(longtail.write, "to")
    for name in WRITERS:
        assert parsed("convert", "d", "f", "--to", name).to == name


def test_calibration_has_one_name_and_one_list_of_methods() -> None:
    (listed,) = [parameter for parameter in recipes["xr-linear"].listed() if parameter.name == "calibration"]
    assert set(get_args(listed.type)) == set(get_args(Method))
    assert parsed("train", "d", "--calibration", "platt").calibration == "platt"
    assert "calibration" in inspect.signature(longtail.calibrate).parameters


def test_help_shows_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {
        "train": [f"(default: {defaults.RECIPE})", f"(default: {defaults.SEED})", f"(default: {defaults.DEVICE})"],
        "predict": [f"without one {defaults.K})"],
        "evaluate": ["(default: 1,3,5)"],
        "graph": [f"(default: {defaults.NEIGHBOURS})"],
    }
    for command, texts in shown.items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        page = " ".join(capsys.readouterr().out.split())
        assert all(text in page for text in texts), command


# --- wrong usage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["bench", "d", "--seed", "1"], "no option --seed. Did you mean --seeds?"),
        (["reproduce", "--seed=1"], "no option --seed. Did you mean --seeds?"),
        (["train", "d", "--seeds", "1"], "no option --seeds. Did you mean --seed?"),
        (["train", "d", "--calibrate", "platt"], "no option --calibrate. Did you mean --calibration?"),
        (["graph", "d", "vim", "--top", "3"], "no option --top. Did you mean -k?"),
        (["train", "d", "--recip", "popular"], "no option --recip. Did you mean --recipe?"),  # no abbreviations
        (["labels", "remove", "m", "x", "--form", "f"], "no option --form. Did you mean --from?"),
        (["info", "m", "superfluous"], "unexpected arguments: superfluous"),
        (["predikt", "m"], "unknown value 'predikt'. Did you mean 'predict'?"),
        (["evaluate", "m", "d", "--part", "tst"], "unknown value 'tst'. Did you mean 'test'?"),
        (["evaluate", "m", "d", "--ks", "1,0"], "whole numbers of at least 1"),
        (["evaluate", "m", "d", "--ks", "1;3"], "whole numbers of at least 1"),
        (["train", "d", "--budget", "10"], "such as 90s, 10m or 2h; got '10'"),
        (["predict", "m", "-k", "many"], "-k: must be a whole number; got 'many'"),
        (["predict", "m", "--threshold", "high"], "--threshold: must be a number; got 'high'"),
        (["predict"], "required: MODEL\n"),
    ],
)
def test_wrong_usage_is_answered_in_two_lines(
    arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = usage_error(capsys, *arguments)
    assert suggestion in error and error.count("\n") == 2
    assert re.search(r"Run `longtail[a-z ]* --help`", error)


def test_a_wrong_method_of_calibration_is_refused_by_the_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "nowhere", "--calibration", "sigmoid"]) == 2
    assert "calibration must be one of 'none', 'isotonic', 'platt'; got 'sigmoid'" in capsys.readouterr().err


def test_names_that_differ_in_case_are_suggested() -> None:
    with pytest.raises(ParameterError, match="no parameter 'c'. Did you mean 'C'?"):
        recipe("xr-linear", c=1)


def test_descriptions_fit_the_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main([command, "--help"])
        before, _, _ = capsys.readouterr().out.partition("examples:")
        assert max(map(len, before.splitlines())) <= 90, command


# --- k, cut-offs and thresholds -------------------------------------------------------------------------------------


def popular() -> Model:
    return recipe("popular").fit(CORPUS)


def counts(model: Model, **options: Any) -> NDArray[np.int64]:
    return np.count_nonzero(model.predict(NEW, **options).indices >= 0, axis=1)


def test_k_without_a_cut_off() -> None:
    model, L = popular(), len(CORPUS.labels)
    assert model.predict(NEW).k == model.predict_scores(NEW).k == defaults.K < L
    assert model.predict(NEW, 2).k == 2
    assert model.predict(NEW, L + 9).k == model.predict([], L + 9).k == L  # no error: there are no more labels
    assert model.predict(NEW, threshold=-np.inf).k == defaults.K
    for bad in (0, -1, 1.5, True, "3"):
        with pytest.raises(ParameterError, match="k must be a whole number of at least 1"):
            model.predict(NEW, bad)  # type: ignore[arg-type]
    for wrong in (float("nan"), "0.5", True):
        with pytest.raises(ParameterError, match="threshold must be a number"):
            model.predict(NEW, threshold=wrong)  # type: ignore[arg-type]


def test_k_with_a_cut_off() -> None:
    model = popular()
    scores = model.predict_scores(NEW, 6).scores[0]  # the same for every text, falling
    model.decision = Decision(cut_off=CutOff("f1", float(scores[2]), 6))
    assert (counts(model) == 3).all()  # above the cut-off, although 5 is the default without one
    assert (counts(model, k=2) == 2).all() and (counts(model, k=6) == 3).all()
    assert (counts(model, cut_off=False) == defaults.K).all()
    assert (counts(model, k=6, cut_off=False) == 6).all()
    lower = float(scores[5])
    assert (counts(model, threshold=lower) == 6).all()  # replaces the cut-off, and allows as many labels
    assert (counts(model, threshold=lower, k=4) == 4).all()
    assert (counts(model, threshold=lower, cut_off=False) == 6).all()
    model.decision = Decision(cut_off=CutOff("f1", lower, 4))
    assert (counts(model) == 4).all() and (counts(model, k=6) == 4).all()


def test_the_doors_give_the_same_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sklearn = pytest.importorskip("longtail.sklearn")
    texts = list(CORPUS.train.texts)
    tagger = sklearn.LongtailClassifier("popular").fit(texts, CORPUS.train.Y)
    scores = tagger.model_.predict_scores(texts[:1], 6).scores[0]
    tagger.model_.decision = Decision(cut_off=CutOff("f1", float(scores[2]), 6))
    tagger.model_.save(tmp_path / "m")
    for k in (None, 1, 4):
        for threshold in (None, float(scores[3])):
            python = tagger.model_.predict(texts[:1], k, threshold=threshold)
            assert tagger.set_params(k=k, threshold=threshold).predict(texts[:1]).nnz == len(python.keys()[0])
            options = [*([] if k is None else ["-k", k]), *([] if threshold is None else ["--threshold", threshold])]
            assert main(["predict", str(tmp_path / "m"), texts[0], *map(str, options)]) == 0
            found = json.loads(capsys.readouterr().out)["labels"]
            assert [label["label"] for label in found] == python.keys()[0]


def test_rules_in_numbers() -> None:
    assert [labels_to_rank(k, most) for k, most in ((None, None), (None, 7), (3, 7), (9, 7))] == [5, 7, 3, 9]
    assert check_ks([5, 1, 5]) == (1, 5) and check_ks(3) == (3,)
    for bad in ([], [0], [True], [1.5]):
        with pytest.raises(ParameterError):
            check_ks(bad)  # type: ignore[arg-type]
