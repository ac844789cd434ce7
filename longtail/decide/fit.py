"""Fits probabilities and a cut-off for a model, on points it has not seen, and measures how good they are."""

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
RANKS: dict[int, int | None] = {1: 1, 2: 2, 3: 3, 4: 5, 6: 10, 11: None}  # groups of ranks: first → last
DEPTH = 20  # labels per point to look at, unless points have, or should get, many
FOLDS = 5  # two would be too few: if groups are large, one half says little about the other
FEW = 100  # with fewer points than this, probabilities are inaccurate


def calibrate(
    model: Model,
    data: Dataset,
    calibration: str = "isotonic",
    cut_off: str = "none",
    *,
    seed: int = defaults.SEED,
) -> Model:
    """Return a copy of the model with probabilities and a cut-off fitted on `data`, which it was not trained on.

    `calibration` is "isotonic", "platt" or "none"; `cut_off` is "f1", "precision=0.8", "labels=5" or "none". They
    replace any earlier decision of the model; "none" for both removes it. The given model is not changed. `data` must
    have the model's labels. `about["calibration"]` and `about["cut_off"]` say how good the result is.
    """
    if calibration not in get_args(Method):
        raise ParameterError(f"calibration must be {describe_type(Method)}; got {shorten(calibration)}")
    rule = Rule.parse(cut_off)
    if not isinstance(data, Dataset):
        raise ParameterError(f"data must be a Dataset, such as corpus.dev; got {shorten(data)}")
    if data.Y.shape[1] != len(model.labels):
        raise DataError(f"labels of shape {data.Y.shape} do not fit a model with {len(model.labels):,} labels")
    if data.digest_of_points() in model.about.get("trained_on", []):
        log.warning("the model was trained on this same data: its probabilities will be much too high")
    decision, told = fit_decision(model, data, calibration, rule, seed)
    decided = copy.copy(model)  # shares the arrays of the model
    decided.about = {key: value for key, value in model.about.items() if key not in ("calibration", "cut_off")} | told
    decided.decision = decision
    return decided


def fit_decision(
    model: Model, data: Dataset, method: str, rule: Rule | None, seed: int
) -> tuple[Decision | None, dict[str, Any]]:
    """Return the decision fitted on all of `data`, and figures about its quality.

    The figures come from cross-fitting: each fifth of the points is measured with a fit on the other four fifths.
    """
    if method == "none" and rule is None:
        return None, {}
    if not len(data):
        raise DataError("there are no points to fit probabilities or a cut-off on")
    if len(data) < FEW:
        log.warning("only %d points to fit probabilities or a cut-off on: the result is inaccurate", len(data))
    k = depth_for(data, rule)
    return decide_ranking(model.predict_scores(data.x, depth((k,), data.ignore)), data, method, rule, seed, k)


def decide_ranking(
    ranking: Ranking, data: Dataset, method: str, rule: Rule | None, seed: int, k: int
) -> tuple[Decision | None, dict[str, Any]]:
    """Return the decision fitted on a ranking of `data`, as `fit_decision` does.

    The ranking holds k labels for each point after ignored pairs are dropped.
    """
    if method == "none" and rule is None:
        return None, {}
    ranking = ranking.cut(k) if data.ignore is None else ranking.drop(data.ignore, k)
    truth = data.truth()
    pairs = Pairs.of(ranking, truth)
    decision = fit_pairs(pairs, method, rule, k)
    unseen = cross_fit(ranking, pairs, folds(data, seed, FOLDS), method, rule, k)
    return decision, figures(decision, ranking, truth, unseen)


def depth_for(data: Dataset, rule: Rule | None) -> int:
    """Return how many labels per point to look at: 20, or 2 × the average of the points, or 4 × the rule's number."""
    have = data.truth().nnz / len(data)
    wanted = rule.value if rule is not None and rule.goal == "labels" else 0.0
    return int(min(max(DEPTH, math.ceil(2 * have), math.ceil(4 * wanted)), max(data.Y.shape[1], 1)))


def fit_pairs(pairs: Pairs, method: str, rule: Rule | None, k: int, say: bool = True) -> Decision:
    """Fit the calibration maps and the threshold on these pairs; log warnings only if `say`."""
    if not pairs.real.any():
        raise DataError("cannot fit a calibration: no label was suggested for any point")
    calibration = None if method == "none" else fit_calibration(pairs, method, say)
    if rule is None:
        return Decision(calibration)
    if calibration is not None:
        pairs = replace(pairs, scores=calibration(pairs.scores))
    return Decision(calibration, CutOff(str(rule), choose(rule, curve_of(pairs), say), k))


def fit_calibration(pairs: Pairs, method: str, say: bool = True) -> Calibration:
    """Fit one map for each group of ranks that has labels."""
    groups = {first: pairs.columns(first - 1, end) for first, end in RANKS.items()}
    groups = {first: group for first, group in groups.items() if group.real.any()}
    if method == "platt":
        return Calibration(tuple(groups), tuple(fit_platt(*group.flat(), say=say) for group in groups.values()))
    return Calibration(tuple(groups), tuple(fit_isotonic(*group.flat()) for group in groups.values()))


def cross_fit(
    ranking: Ranking, pairs: Pairs, fold: NDArray[np.int64], method: str, rule: Rule | None, k: int
) -> tuple[Ranking, Ranking] | None:
    """Return the ranking, whole and cut off, each point decided by a fit on the other folds; None with one fold."""
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
    """Return the figures to store: the calibration error before and after, and the quality of the cut-off."""
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
    """Round scores to the digits that reports show."""
    return {name: round(score, 3) for name, score in scores.items()}
