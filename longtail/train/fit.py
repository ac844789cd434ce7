"""The course of every training: split → choose → train → decide → refit.

1. Split: a validation part is cut off train, unless the corpus has one (dev). Test is never read.
2. Choose: augmentation and open settings, by the validation part.
3. Train: a model of the augmented training points, scored on the validation part.
4. Decide: probabilities and a cut-off are fitted on the validation part, if they are wanted.
5. Refit: the same settings once more on all of train; networks only on request or for small corpora.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from longtail._native import native_threads
from longtail.augment import Augmentation, augment
from longtail.core.errors import DataError, StoreError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.run import Run, is_first
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.decide import Rule, fit_decision
from longtail.metrics import Report
from longtail.store.cache import forget
from longtail.train.validation import chosen_by, validate

if TYPE_CHECKING:  # `TrainedRecipe.fit` calls this file
    from longtail.train.recipe import TrainedRecipe

log = logging.getLogger("longtail")
TriedRows = list[dict[str, Any]]  # what was tried: a row of settings and scores for each


def fit(recipe: TrainedRecipe, corpus: Corpus, run: Run) -> Model:
    """Train `recipe` on `corpus.train`; the model knows in `about` how it was made and how good it is."""
    recipe.check_corpus(corpus)
    recipe.check_run(run)
    if run.folder is not None and run.folder.is_symlink():
        raise StoreError(f"{run.folder}: is a symbolic link; checkpoints are not written through one: delete it")
    if run.folder is not None and not run.resume and is_first():
        forget(run.folder)  # checkpoints of an earlier training
    began = time.monotonic()
    with native_threads(run.threads):
        split = with_validation(recipe, corpus, run)
        model = recipe.fit_whole(corpus, run) if split is None else recipe.fit_validated(corpus, split, run)
    on_dev = [corpus.dev] if run.train_on_dev and corpus.dev is not None else []
    model.about |= {
        "corpus": {"name": corpus.name, "digest": corpus.digest, "labels": corpus.labels.digest()},
        "trained_on": [part.digest_of_points() for part in (corpus.train, *on_dev)],
        "seed": run.seed,
        "seconds": round(time.monotonic() - began + model.about.get("seconds_before", 0.0), 3),
    }
    return model


def with_validation(recipe: TrainedRecipe, corpus: Corpus, run: Run) -> Corpus | None:
    """The corpus with a validation part as its dev; None where there is none, which is refused if it is needed."""
    try:
        split = corpus.with_validation(run.seed)
        if split.dev is not None and len(split.dev):
            return split
        reason = "the dev part of the corpus is empty"
    except DataError as error:
        reason = str(error)
    if recipe.decides:
        raise DataError(
            f"{recipe.kind}: calibration and cut_off are fitted on a validation part, and there is none: {reason}",
            fix="give a dev file or more points, or leave both at none",
        )
    log.warning("trained without a validation part, with default settings: %s", reason)
    return None


def fit_validated(recipe: TrainedRecipe, corpus: Corpus, split: Corpus, run: Run) -> Model:
    """Choose, train, decide and refit; `split` is the corpus with its validation part as dev."""
    validation = cast(Dataset, split.dev)
    again = trains_again(recipe, corpus, split, run)
    candidates = recipe.augment.candidates(split.train, split.labels)
    run = with_shared_budget(run, count_trainings(recipe, candidates) + again)

    (model, report), table = choose(recipe, candidates, split, run)
    chosen = recipe_of(model)
    decision, decided = fit_decision(model, validation, chosen.calibration, Rule.parse(chosen.cut_off), run.seed)
    if again:
        model = refit(model, corpus, run)
    model.decision = decision
    model.about["validation"] = {
        "source": "dev" if corpus.dev is not None else "held out of train",
        "points": len(validation),
        "digest": validation.digest(),
        "scores": {name: round(score, 3) for name, score in report.scores.items()},
    }
    model.about |= decided | ({"chosen_from": table} if table else {})
    return model


class Tried(NamedTuple):
    """A model that was trained without the validation part, and its scores there. Its recipe has nothing left open."""

    model: Model
    report: Report


def choose(recipe: TrainedRecipe, candidates: list[Augmentation], split: Corpus, run: Run) -> tuple[Tried, TriedRows]:
    """The model with the augmentation and the settings that are best on the validation part, and what was tried."""
    if len(candidates) == 1:
        return train_trial(replace(recipe, augment=candidates[0]), split, run)
    on_trial, table = recipe.on_trial(), TriedRows()
    best: Tried | None = None  # only the best is kept: a model may be large
    for settings in candidates:
        trial, tried = train_trial(replace(on_trial, augment=settings), split, run)
        scores = chosen_by(trial.report)
        log.info("tried augment=%s: %.2f", settings.spelled, scores["mean"])
        table += [{"augment": settings.spelled} | row for row in tried or [scores]]
        if best is None or scores["mean"] > chosen_by(best.report)["mean"]:
            best = trial
    if best is None:
        raise ValueError("there is no augmentation to try")
    if on_trial != recipe:  # what was tried was cheaper than what is wanted
        best, _ = train_trial(replace(recipe, augment=recipe_of(best.model).augment), split, run)
    return best, table


def train_trial(recipe: TrainedRecipe, split: Corpus, run: Run) -> tuple[Tried, TriedRows]:
    """Fix the open settings of a recipe whose augmentation is settled, train it, score it on the validation part."""
    run, validation = with_clock(run), cast(Dataset, split.dev)
    data = augmented(recipe, split.train, split.labels, run)
    chosen, table = recipe.choose(data, split.labels, validation, run)
    model = chosen.train(data, split.labels, run, validation)
    return Tried(model, validate(model, validation)), table


def train_on(recipe: TrainedRecipe, data: Dataset, labels: Labels, run: Run) -> Model:
    """A model of this data, augmented, where there is no validation part to choose anything by."""
    run = with_clock(run)
    recipe = replace(recipe, augment=recipe.augment.usual(data, labels))
    return recipe.train(augmented(recipe, data, labels, run), labels, run)


def refit(chosen: Model, corpus: Corpus, run: Run) -> Model:
    """A model with the settings of `chosen`, trained on all of train, and on dev if `run.train_on_dev`."""
    run, data = with_clock(run), corpus.train
    if run.train_on_dev and corpus.dev is not None:
        data = data + corpus.dev
    elif run.train_on_dev:
        log.warning("the corpus has no dev part to train on too; all of train is trained on as always")
    recipe = recipe_of(chosen)
    return recipe.retrain(chosen, augmented(recipe, data, corpus.labels, run), corpus.labels, run)


def augmented(recipe: TrainedRecipe, data: Dataset, labels: Labels, run: Run) -> Dataset:
    """The training points, with those that the recipe's `augment` adds."""
    return augment(data, labels, recipe.augment, run.seed, kind=recipe.kind, progress=run.progress)


def trains_again(recipe: TrainedRecipe, corpus: Corpus, split: Corpus, run: Run) -> bool:
    """Whether there are points that the first model has not seen, and a second one is wanted that has."""
    if corpus.dev is not None:
        return run.train_on_dev
    return run.train_on_dev or recipe.refits(1 - len(split.train) / len(corpus.train))


def count_trainings(recipe: TrainedRecipe, candidates: list[Augmentation]) -> int:
    """How many models are trained before the refit."""
    once_more = len(candidates) > 1 and recipe.on_trial() != recipe  # what was tried was a cheaper recipe
    return len(candidates) + once_more


def with_shared_budget(run: Run, trainings: int) -> Run:
    """The run of one of several trainings that have the same share of the budget each."""
    return run if run.budget is None else replace(run, budget=run.budget / trainings)


def with_clock(run: Run) -> Run:
    """The run with its budget counted from now."""
    return run if run.budget is None else replace(run, until=time.monotonic() + run.budget)


def recipe_of(model: Model) -> TrainedRecipe:
    """The recipe that trained a model, with nothing left open."""
    return cast("TrainedRecipe", model.recipe)
