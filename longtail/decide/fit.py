"""From a model and points it has not seen: its probabilities and its cut-off, and how good they are."""

from __future__ import annotations

import copy
import logging
import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core import defaults
from longtail.core.decision import Calibration, CutOff, Decision, Method
from longtail.core.errors import DataError, ParameterError, shorten
from longtail.core.model import Model
from longtail.core.parameters import describe_type
from longtail.core.ranking import Ranking
from longtail.data.dataset import Dataset
from longtail.data.split import folds
from longtail.decide.cutoff import Rule, choose, curve_of
from longtail.decide.isotonic import fit_isotonic
from longtail.decide.platt import fit_platt
from longtail.metrics import depth, ece
from longtail.metrics.decisions import cut_scores
from longtail.metrics.pairs import Pairs

log = logging.getLogger("longtail")
RANKS: dict[int, int | None] = {1: 1, 2: 2, 3: 3, 4: 5, 6: 10, 11: None}  # groups, first to last rank
DEPTH = 20  # how many labels of a point are looked at, unless it has, or is to get, many
FOLDS = 5  # halves would be too small: where groups are large, one half knows little of the other
FEW = 100  # points; below that probabilities are rough


def calibrate(
    model: Model,
    data: Dataset,
    calibration: str = "isotonic",
    cut_off: str = "none",
    *,
    seed: int = defaults.SEED,
) -> Model:
    """The same model with probabilities and a cut-off fitted on `data`, which it must not have been trained on.

    `calibration` is "isotonic", "platt" or "none"; `cut_off` is "f1", "precision=0.8", "labels=5" or "none". They
    replace the decision of the model; "none" for both removes it. The given model does not change. `data` has the
    labels of the model. The result says how good it is in `about["calibration"]` and `about["cut_off"]`.
    """
    if calibration not in get_args(Method):
        raise ParameterError(f"calibration must be {describe_type(Method)}; got {shorten(calibration)}")
    rule = Rule.parse(cut_off)
    if not isinstance(data, Dataset):
        raise ParameterError(f"data must be a Dataset, as corpus.dev is; got {shorten(data)}")
    if data.Y.shape[1] != len(model.labels):
        raise DataError(f"labels of shape {data.Y.shape} given to a model of {len(model.labels):,} labels")
    if data.digest_of_points() in model.about.get("trained_on", []):
        log.warning("this is the very data the model was trained on: its probabilities will be far too sure")
    decision, told = fit_decision(model, data, calibration, rule, seed)
    decided = copy.copy(model)  # shares its arrays
    decided.about = {key: value for key, value in model.about.items() if key not in ("calibration", "cut_off")} | told
    decided.decision = decision
    return decided


def fit_decision(
    model: Model, data: Dataset, method: str, rule: Rule | None, seed: int
) -> tuple[Decision | None, dict[str, Any]]:
    """What to decide by, fitted on all of `data`, and what is known of it.

    Figures are of points that were not fitted on: each fifth of them is measured by what the others give.
    """
    if method == "none" and rule is None:
        return None, {}
    if not len(data):
        raise DataError("there is no point to fit probabilities or a cut-off on")
    if len(data) < FEW:
        log.warning("only %d points to fit probabilities or a cut-off on: they are rough", len(data))
    k = depth_for(data, rule)
    ranking = model.predict_scores(data.x, depth((k,), data.ignore))
    ranking = ranking.cut(k) if data.ignore is None else ranking.drop(data.ignore, k)
    truth = data.truth()
    pairs = Pairs.of(ranking, truth)
    decision = fit_pairs(pairs, method, rule, k)
    unseen = cross_fit(ranking, pairs, folds(data, seed, FOLDS), method, rule, k)
    return decision, figures(decision, ranking, truth, unseen)


def depth_for(data: Dataset, rule: Rule | None) -> int:
    """How many labels of each point to look at: 20, or twice what points have, or four times what they are to get."""
    have = data.truth().nnz / len(data)
    wanted = rule.value if rule is not None and rule.goal == "labels" else 0.0
    return int(min(max(DEPTH, math.ceil(2 * have), math.ceil(4 * wanted)), max(data.Y.shape[1], 1)))


def fit_pairs(pairs: Pairs, method: str, rule: Rule | None, k: int, say: bool = True) -> Decision:
    """The maps and the threshold of these pairs; `say` whether warnings are."""
    if not pairs.real.any():
        raise DataError("there is nothing to fit on: no label was suggested for any point")
    calibration = None if method == "none" else fit_calibration(pairs, method, say)
    if rule is None:
        return Decision(calibration)
    if calibration is not None:
        pairs = replace(pairs, scores=calibration(pairs.scores))
    return Decision(calibration, CutOff(str(rule), choose(rule, curve_of(pairs), say), k))


def fit_calibration(pairs: Pairs, method: str, say: bool = True) -> Calibration:
    """A map for each group of ranks that has labels."""
    groups = {first: pairs.columns(first - 1, end) for first, end in RANKS.items()}
    groups = {first: group for first, group in groups.items() if group.real.any()}
    if method == "platt":
        return Calibration(tuple(groups), tuple(fit_platt(*group.flat(), say=say) for group in groups.values()))
    return Calibration(tuple(groups), tuple(fit_isotonic(*group.flat()) for group in groups.values()))


def cross_fit(
    ranking: Ranking, pairs: Pairs, fold: NDArray[np.int64], method: str, rule: Rule | None, k: int
) -> tuple[Ranking, Ranking] | None:
    """The ranking, whole and cut off, by what was fitted on the folds that each point is not in; None with one fold."""
    parts = [fold == number for number in np.unique(fold)]
    if not all(pairs.real[~rows].any() for rows in parts):
        return None
    whole, cut = (replace(ranking, indices=ranking.indices.copy(), scores=ranking.scores.copy()) for _ in range(2))
    for rows in parts:
        decision = fit_pairs(pairs[~rows], method, rule, k, say=False)
        for made, cut_off in ((whole, False), (cut, True)):
            part = decision.apply(ranking[rows], cut_off)
            made.indices[rows], made.scores[rows] = part.indices, part.scores
    return whole, cut


def figures(
    decision: Decision, ranking: Ranking, truth: sp.csr_matrix, unseen: tuple[Ranking, Ranking] | None
) -> dict[str, Any]:
    """What is remembered: the calibration error before and after, and what the cut-off lets through."""
    told: dict[str, Any] = {}
    if decision.calibration is not None:
        told["calibration"] = {
            "method": decision.calibration.method,
            "points": len(ranking),
            "before": rounded(ece(ranking, truth)),
            "after": None if unseen is None else rounded(ece(unseen[0], truth)),
        }
    if decision.cut_off is not None:
        told["cut_off"] = {
            "rule": decision.cut_off.rule,
            "points": len(ranking),
            "on": "score" if decision.calibration is None else "probability",
            "threshold": decision.cut_off.threshold,
            "scores": None if unseen is None else rounded(cut_scores(unseen[1], truth)),
        }
    return told


def rounded(scores: dict[str, float]) -> dict[str, float]:
    """As reports show them."""
    return {name: round(score, 3) for name, score in scores.items()}
