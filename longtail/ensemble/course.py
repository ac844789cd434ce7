"""The course of an ensemble's training: members → what they say of the validation part → fuser → members again.

All members are trained without the validation part and make their own choices on it; the fuser is fitted on what they
say of it, and scored by cross-fitting. Then the members that train quickly are trained once more, on all of train.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from longtail.core.decision import Decision
from longtail.core.errors import DataError, LongtailError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.decide import Rule, decide_ranking, depth_for, fit_decision
from longtail.ensemble.checkpoint import Kept
from longtail.ensemble.choose import Fused, fuse, thinned
from longtail.ensemble.fuser import Sum
from longtail.ensemble.heard import Heard
from longtail.ensemble.members import Member
from longtail.ensemble.model import EnsembleModel, Part, candidates_of
from longtail.metrics import depth
from longtail.train.fit import (
    choose,
    count_trainings,
    recipe_of,
    refit,
    train_on,
    trains_again,
    with_clock,
    with_shared_budget,
)
from longtail.train.validation import chosen_by, validate

if TYPE_CHECKING:
    from longtail.recipes.ensemble import Ensemble

log = logging.getLogger("longtail")


@dataclass(frozen=True, eq=False)
class Trained:
    """A member with its model, its scores on the validation part (by which choices are made), and its seconds."""

    member: Member
    model: Model
    scores: dict[str, float]
    seconds: float

    def row(self) -> dict[str, Any]:
        """The member in the table of what was tried."""
        return {"what": self.member.name, **self.scores, "seconds": round(self.seconds, 1)}

    def told(self) -> dict[str, Any]:
        """The member in `about`."""
        own = {"name": self.member.name, "recipe": self.model.recipe.name, "mean": self.scores["mean"]}
        return own | {"seconds": round(self.seconds, 3)}


def train_validated(recipe: Ensemble, corpus: Corpus, split: Corpus, run: Run) -> Model:
    """An ensemble of members that are trained without `split.dev`, fused by what they say of it."""
    run = with_clock(run)
    trained = train_members(recipe, recipe.trained_members(), corpus, split, run)
    return finish(recipe, trained, corpus, split, run)


def train_members(
    recipe: Ensemble, members: Sequence[Member], corpus: Corpus, split: Corpus, run: Run
) -> list[Trained]:
    """The members, those that take no budget first: the others share what is left of it."""
    quick = [member for member in members if "budget" not in member.recipe.supports]
    slow = [member for member in members if "budget" in member.recipe.supports]
    kept = Kept(run, split)
    trained: dict[str, Trained] = {}
    for i, member in enumerate([*quick, *slow]):
        left = kept.budget(run, sum(one.seconds for one in trained.values()), len(members) - i)
        try:
            trained[member.name] = train_member(member, corpus, split, own_run(member, run, left), kept)
        except Exception as error:
            failed(recipe, member, error)
    found = [trained[member.name] for member in members if member.name in trained]
    if not found:
        raise LongtailError(f"{recipe.kind}: no member could be trained; the warnings above say why")
    return found


def train_member(member: Member, corpus: Corpus, split: Corpus, run: Run, kept: Kept) -> Trained:
    """One member, trained without the validation part and scored there; or as a killed training left it."""
    validation = cast(Dataset, split.dev)
    found = kept.find(member, "held out")
    if found is not None:
        model, seconds = found
        log.info("resuming: member %s was trained before", member.name)
        return Trained(member, model, chosen_by(validate(model, validation)), seconds)
    log.info("training member %s", member.name)
    began = time.monotonic()
    candidates = member.recipe.augment.candidates(split.train, split.labels)
    trainings = count_trainings(member.recipe, candidates) + trains_again(member.recipe, corpus, split, run)
    (model, report), table = choose(member.recipe, candidates, split, with_shared_budget(run, trainings))
    if table:
        model.about["chosen_from"] = table
    seconds = time.monotonic() - began
    kept.keep(member, "held out", model, seconds)
    return Trained(member, model, chosen_by(report), seconds)


def finish(
    recipe: Ensemble, trained: Sequence[Trained], corpus: Corpus, split: Corpus, run: Run, thin: bool = False
) -> Model:
    """Fit the fuser, decide, train members again that are to be.

    With `thin`, members that add nothing are left out; if one is left, its own model is returned.
    """
    validation = cast(Dataset, split.dev)
    parts = [Part(one.member.name, one.model) for one in trained]
    candidates = candidates_of(parts, validation.x, split.labels, recipe.depth)
    heard = Heard.of(candidates, validation, split.labels, run.seed, split.train)
    best, tried = fuse(heard, recipe.fuse_settings())
    table = table_of(trained, tried)
    report_fusing(tried)
    if thin and len(trained) > 1:
        kept, best = thinned(heard, recipe.fuse_settings(), best)
        for one in [one for m, one in enumerate(trained) if m not in kept]:
            log.info("member %s adds nothing and is left out", one.member.name)
        trained, heard = [trained[m] for m in kept], heard.of_members(kept)
    model: Model
    if thin and len(trained) == 1:
        model, decided = alone(recipe, trained[0], corpus, split, run)
    else:
        decision, decided = decide(recipe, heard, best, run)
        parts = [again(recipe, one, corpus, split, run) for one in trained]
        model = EnsembleModel(recipe.settled(parts, best.fuser), corpus.labels, parts, best.fuser, recipe.depth)
        model.decision = decision
        model.about |= {"fused": best.fuser.told(), "members": [one.told() for one in trained]}
    model.about["validation"] = {
        "source": "dev" if corpus.dev is not None else "held out of train",
        "points": len(validation),
        "digest": validation.digest(),
        "scores": {name: round(score, 3) for name, score in heard.report(best.values).scores.items()},
    }
    model.about |= decided | {"chosen_from": table}
    return model


def alone(recipe: Ensemble, one: Trained, corpus: Corpus, split: Corpus, run: Run) -> tuple[Model, dict[str, Any]]:
    """The model of one member, with the probabilities and the cut-off that the ensemble was to have."""
    rule = Rule.parse(recipe.cut_off)
    decision, decided = fit_decision(one.model, cast(Dataset, split.dev), recipe.calibration, rule, run.seed)
    model = copy.copy(again(recipe, one, corpus, split, run).model)
    model.recipe = replace(recipe_of(model), calibration=recipe.calibration, cut_off=recipe.cut_off)
    model.decision, model.about = decision, dict(model.about)
    return model, decided


def decide(recipe: Ensemble, heard: Heard, best: Fused, run: Run) -> tuple[Decision | None, dict[str, Any]]:
    """Probabilities and a cut-off, fitted on values of fusers that have not seen the point."""
    rule = Rule.parse(recipe.cut_off)
    k = depth_for(heard.data, rule)
    unseen = replace(heard.ranking(best.values, depth((k,), heard.data.ignore)), kind=best.fuser.gives)
    return decide_ranking(unseen, heard.data, recipe.calibration, rule, run.seed, k)


def table_of(trained: Sequence[Trained], tried: Sequence[Fused]) -> list[dict[str, Any]]:
    """Members and ways to fuse them with their scores on the validation part."""
    rows = [one.row() for one in trained]
    total = round(sum(one.seconds for one in trained), 1)
    return rows + [
        {"what": f"fused: {one.what}", **one.scores, "seconds": total} for one in tried if one.what != "alone"
    ]


def table_of_fusing(parts: Sequence[Part], heard: Heard, tried: Sequence[Fused]) -> list[dict[str, Any]]:
    """As `table_of`, of models that were trained before."""
    rows = [{"what": part.name, **heard.scores(heard.alone(m))} for m, part in enumerate(parts)]
    return rows + [{"what": f"fused: {one.what}", **one.scores} for one in tried]


def report_fusing(tried: Sequence[Fused]) -> None:
    """Log how the ways to fuse do."""
    for one in tried:
        told = one.fuser.told()
        weights = f", weights {told['weights']}" if "weights" in told else ""
        log.info("fused by %s: mean score %.2f%s", one.what, one.scores["mean"], weights)


def again(recipe: Ensemble, one: Trained, corpus: Corpus, split: Corpus, run: Run) -> Part:
    """The member trained once more, on all of train, if it is one that is."""
    own, kept = recipe_of(one.model), Kept(run, split)
    wanted = {"all": True, "none": False}.get(recipe.refit, trains_again(own, corpus, split, run))
    if not wanted or (corpus.dev is not None and not run.train_on_dev):
        return Part(one.member.name, one.model)
    found = kept.find(one.member, "all of train")
    if found is None:
        log.info("training member %s again, on all of train", one.member.name)
        began = time.monotonic()
        model = refit(one.model, corpus, own_run(one.member, run, None))
        model.about |= {key: value for key, value in one.model.about.items() if key not in model.about}
        kept.keep(one.member, "all of train", model, time.monotonic() - began)
    else:
        model = found[0]
    return Part(one.member.name, model)


def train_whole(recipe: Ensemble, data: Dataset, labels: Labels, run: Run) -> Model:
    """An ensemble where there is no validation part: usual settings, and a mean with the weights that are given."""
    run = with_clock(run)
    parts = []
    for member in recipe.trained_members():
        try:
            model = train_on(member.recipe, data, labels, own_run(member, run, None))
        except Exception as error:
            failed(recipe, member, error)
        else:
            parts.append(Part(member.name, model))
    if not parts:
        raise LongtailError(f"{recipe.kind}: no member could be trained; the warnings above say why")
    weights = recipe.given_weights(len(parts)) or (1 / len(parts),) * len(parts)
    fuser = Sum(weights, "rank" if recipe.fuse == "rank" else "score")
    model = EnsembleModel(recipe.settled(parts, fuser), labels, parts, fuser, recipe.depth)
    model.about["fused"] = fuser.told()
    return model


def own_run(member: Member, run: Run, budget: float | None) -> Run:
    """The run of one member, without what it has no use for."""
    able = member.recipe.supports
    return replace(
        run,
        budget=budget if "budget" in able else None,
        until=None,
        resume=run.resume and "resume" in able,
        device=run.device if "device" in able else "auto",
    )


def failed(recipe: Ensemble, member: Member, error: Exception) -> None:
    """Say which member failed; the training goes on only if that is wanted."""
    told = str(error) if isinstance(error, LongtailError) else f"{type(error).__name__}: {error}"
    if recipe.on_failure == "continue":
        log.warning("member %s failed and is left out: %s", member.name, told)
        return
    if isinstance(error, DataError | MemoryError):
        raise error
    raise LongtailError(f"member {member.name} failed: {told}; on_failure=continue goes on without it") from error
