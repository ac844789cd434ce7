"""Probabilities and cut-offs; a recipe has them from `TrainedRecipe`."""

from __future__ import annotations

import numpy as np

from longtail.contract.check import check
from longtail.contract.require import refused, require, require_same
from longtail.contract.subject import Subject
from longtail.core.errors import DataError
from longtail.core.run import Run
from longtail.metrics import ece, micro_f1
from longtail.store import load


@check(method=["isotonic", "platt"])
def calibration_gives_probabilities_in_the_same_order(subject: Subject, method: str) -> None:
    """Calibrated scores are probabilities in the same order, well calibrated on new texts, and saved."""
    subject.needs_setting("calibration")
    corpus, texts, folder = subject.corpus, subject.corpus.train.x, subject.new_folder() / "model"
    calibrated = subject.made(calibration=method).fit(corpus, Run(seed=1))
    plain, probabilities = subject.model.predict(texts, 5), calibrated.predict(texts, 5)
    require(probabilities.kind == "probability", f"a ranking must hold probabilities; it holds a {probabilities.kind}")
    require(np.array_equal(plain.indices, probabilities.indices), "probabilities must be in the order of the scores")
    require_same(plain, calibrated.predict_scores(texts, 5), "scores without and beneath a calibration")
    values = probabilities.scores
    extremes = f"{values.min():.6g} to {values.max():.6g}"
    require(((values >= 0) & (values <= 1)).all(), f"probabilities must be from 0 to 1; they are {extremes}")
    require((np.diff(values, axis=1) <= 0).all(), "the probabilities of a row must not rise")
    require(np.array_equal(calibrated.predict(texts, 2).scores, values[:, :2]), "probabilities must not depend on k")
    kind = calibrated.predict([], 3).kind
    require(kind == "probability", f"a ranking of no texts must hold probabilities too; it holds a {kind}")
    told, names = calibrated.about["calibration"], {"ECE@1", "ECE@3", "ECE@5"}
    complete = told["method"] == method and set(told["before"]) == set(told["after"]) == names
    require(complete, f"model.about must tell of the calibration; found {told}")
    error = ece(calibrated.predict(subject.test.x, 5), subject.test.Y)["ECE@5"]
    require(error < 15, f"ECE@5 on the test part must be below 15; it is {error:.1f}")
    calibrated.save(folder)
    require_same(load(folder).predict(texts, 5), probabilities, "a calibrated model and the same one, saved and loaded")


@check(calibration=["none", "isotonic"])
def a_cut_off_keeps_the_first_labels_of_each_row(subject: Subject, calibration: str) -> None:
    """A cut-off keeps the first labels of a row, gives good decisions on new texts, and is saved."""
    subject.needs_setting("cut_off")
    test, folder = subject.test, subject.new_folder() / "model"
    cut = subject.made(cut_off="f1", calibration=calibration).fit(subject.corpus, Run(seed=1))
    limit = None if cut.decision is None else cut.decision.cut_off
    if limit is None:
        return require(False, "a recipe with a cut-off must train a model with a decision")
    whole, decided = cut.predict(test.x, 6, cut_off=False), cut.predict(test.x)
    plain = subject.model.predict(test.x, 6).indices
    require(np.array_equal(whole.indices, plain), "without its cut-off, a model must rank as without one")
    kept = np.where(whole.scores >= limit.threshold, whole.indices, -1)
    require(np.array_equal(decided.indices, kept), "a cut-off must keep the labels that score at least its threshold")
    first = np.array_equal(cut.predict(test.x, 1).indices, decided.indices[:, :1])
    require(first, "with k=1, a cut-off must keep the first of its labels")
    if not subject.baseline:  # one or two labels are true
        found, told = micro_f1(decided, test.Y), cut.about["cut_off"]["scores"]["microF1"]
        require(found > 90, f"micro F1 on the test part must be more than 90; it is {found:.1f}")
        require(told > 80, f"micro F1 on the validation part must be more than 80; it is {told:.1f}")
    cut.save(folder)
    require_same(load(folder).predict(test.x), decided, "a model with a cut-off and the same one, saved and loaded")


@check()
def probabilities_need_a_validation_part(subject: Subject) -> None:
    """A calibration is refused where there is no validation part to fit it on."""
    subject.needs_setting("calibration")
    expected = "fitted on a validation part, and there is none"
    with refused("a calibration on a corpus of one text", DataError, match=expected):
        subject.fit(["boat wind"], [["a"]], label_texts={"a": "boat"}, calibration="isotonic")
