"""Recipes that are trained, scored on a validation part, and (those that are cheap) trained again on everything."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from longtail._native import get_threads, set_threads
from longtail.augment import Augmentation, augment
from longtail.core.errors import DataError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.recipe import recipes
from longtail.core.run import Run, is_first
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.metrics import Report, depth, evaluate
from longtail.recipes.deciding import DecidingRecipe
from longtail.store.cache import forget

log = logging.getLogger("longtail")
CHOSEN_BY = ("P@1", "P@5", "PSP@1", "PSP@5")  # the mean of these, so that head and tail both count


class Draft(NamedTuple):
    """A model trained without the validation part, its recipe with nothing left open, and its scores there."""

    recipe: Any
    model: Model
    report: Report


@dataclass(frozen=True)
class RefitRecipe(DecidingRecipe, ABC):
    """`train` builds a model from a training set; `choose` fixes on the validation part what was left open.

    `fit` trains without the validation part, chooses and is scored on it, fits probabilities and a cut-off on it if
    they are wanted, then (see `keeps_up_to`) trains on all of train. A dev part of the corpus's own stays out of
    training unless `run.train_on_dev`. What is trained on is augmented after the validation part is cut, so `train` and
    `choose` are given points that the recipe's `augment` has added to.
    """

    # What is cheap is trained twice, to choose and be scored, then on everything; what is dear only where more than
    # this share of train was held out.
    keeps_up_to: ClassVar[float] = 0.0
    mixes: ClassVar[bool] = False  # whether it trains a network, which can mix embeddings (augment=mixup)

    augment: Augmentation = param(  # noqa: RUF009
        Augmentation(), "more training points, most often from label texts (docs/augment.md)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.mixes:
            refuse_mixing(self.augment, self.kind)

    @abstractmethod
    def train(self, data: Dataset, labels: Labels, run: Run) -> Model:
        """A model of this data; all parameters are final."""

    def train_watched(self, data: Dataset, labels: Labels, validation: Dataset | None, run: Run) -> Model:
        """`train`, for recipes that can end sooner where the validation part says so."""
        return self.train(data, labels, run)

    def choose(self, data: Dataset, labels: Labels, validation: Dataset, run: Run) -> tuple[Self, list[dict[str, Any]]]:
        """This recipe with open parameters fixed, and the table they were chosen from; nothing is open by default."""
        return self, []

    def on_trial(self) -> Self:
        """What is trained to compare values of `augment`: this recipe, or a cheaper one that ranks them alike."""
        return self

    def check_corpus(self, corpus: Corpus) -> None:
        """Texts must be there where they are to become points."""
        super().check_corpus(corpus)
        self.augment.check(corpus.train, corpus.labels, self.kind)

    def fit(self, corpus: Corpus, run: Run | None = None) -> Model:
        """Train, validate, and train again on all of train."""
        run = run or Run()
        self.check_corpus(corpus)
        self.check_run(run)
        if run.folder is not None and not run.resume and is_first():
            forget(run.folder)
        began, before = time.monotonic(), get_threads()
        set_threads(run.threads)
        try:
            model, validated = self._fit(corpus, run)
        finally:
            set_threads(before)
        model.about |= {
            "corpus": {"name": corpus.name, "digest": corpus.digest, "labels": corpus.labels.digest()},
            "trained_on": [part.digest_of_points() for part in trained_on(corpus, run)],
            "seed": run.seed,
            "seconds": round(time.monotonic() - began, 3),
            **validated,
        }
        return model

    def _fit(self, corpus: Corpus, run: Run) -> tuple[Model, dict[str, Any]]:
        try:
            split = corpus.with_validation(run.seed)
        except DataError as error:
            self.refuse_to_decide(str(error))
            log.warning("trained without a validation part, with default settings: %s", error)
            return self.trained(corpus.train, corpus.labels, run), {}
        if split.dev is None or not len(split.dev):
            self.refuse_to_decide("the dev part of the corpus is empty")
            return self.trained(corpus.train, corpus.labels, run), {}
        draft, table = self.drafted(split.train, split.labels, split.dev, run)
        decision, decided = draft.recipe.decide(draft.model, split.dev, run.seed)
        validated = {
            "validation": {
                "source": "dev" if corpus.dev is not None else "held out of train",
                "points": len(split.dev),
                "digest": split.dev.digest(),
                "scores": {name: round(score, 3) for name, score in draft.report.scores.items()},
            },
            **decided,
            **({"chosen_from": table} if table else {}),
        }
        full = corpus.train
        if run.train_on_dev and corpus.dev is not None:
            full = full + corpus.dev
        elif run.train_on_dev:
            log.warning("the corpus has no dev part to train on too; all of train is trained on as always")
        again = self.trained_again(corpus, split, run)
        model = draft.recipe.trained(full, corpus.labels, run) if again else draft.model
        model.decision = decision
        return model, validated

    def trained_again(self, corpus: Corpus, split: Corpus, run: Run) -> bool:
        """Whether there is more to see than the draft has seen, and it is wanted."""
        if corpus.dev is not None:
            return run.train_on_dev
        return run.train_on_dev or 1 - len(split.train) / len(corpus.train) > self.keeps_up_to

    def trained(self, data: Dataset, labels: Labels, run: Run) -> Model:
        """A model of this data, augmented; nothing is chosen."""
        final = replace(self, augment=self.augment.usual(data, labels))
        return final.train(final.augmented(data, labels, run), labels, run)

    def augmented(self, data: Dataset, labels: Labels, run: Run) -> Dataset:
        """What is trained on, with the points that `augment` adds."""
        return augment(data, labels, self.augment, run.seed, kind=self.kind, progress=run.progress)

    def drafted(
        self, data: Dataset, labels: Labels, validation: Dataset, run: Run
    ) -> tuple[Draft, list[dict[str, Any]]]:
        """What is best on the validation part of all that is open, and the table of what was tried."""
        candidates = self.augment.candidates(data, labels)
        if len(candidates) == 1:
            return replace(self, augment=candidates[0]).draft(data, labels, validation, run)
        trials: list[Draft] = []  # the best so far: a model may be large
        table: list[dict[str, Any]] = []
        for settings in candidates:
            trial, tried = replace(self.on_trial(), augment=settings).draft(data, labels, validation, run)
            mean = chosen_by(trial.report)
            log.info("tried augment=%s: %.2f", settings.spelled, mean["mean"])
            table += [{"augment": settings.spelled} | row for row in tried or [mean]]
            trials = [max([*trials, trial], key=lambda draft: chosen_by(draft.report)["mean"])]
        if self.on_trial() == self:
            return trials[0], table
        best = replace(self, augment=trials[0].recipe.augment)
        return best.draft(data, labels, validation, run)[0], table

    def draft(self, data: Dataset, labels: Labels, validation: Dataset, run: Run) -> tuple[Draft, list[dict[str, Any]]]:
        """A model whose augmentation is settled, and the table its other settings were chosen from."""
        added = self.augmented(data, labels, run)
        chosen, table = self.choose(added, labels, validation, run)
        model = chosen.train_watched(added, labels, validation, run)
        return Draft(model.recipe, model, validate(model, validation)), table


def refuse_mixing(augmentation: Augmentation, kind: str) -> None:
    """Refuse, in the name of a recipe that trains no network, what mixes embeddings."""
    if not augmentation.of_embeddings:
        return
    able = ", ".join(name for name in recipes if getattr(recipes[name], "mixes", False))
    raise UnsupportedError(
        f"{kind} trains no network: augment={augmentation.method} mixes embeddings, which is for {able}; take one of "
        "these (--recipe), or augment=gandalf, self or synonyms"
    )


def chosen_by(report: Report) -> dict[str, float]:
    """The scores that choices are made by, and their mean."""
    row = {name: round(report.scores[name], 3) for name in CHOSEN_BY}
    return row | {"mean": round(float(np.mean(list(row.values()))), 3)}


def trained_on(corpus: Corpus, run: Run) -> list[Dataset]:
    """The parts whose points the final model has seen."""
    return [corpus.train, *([corpus.dev] if run.train_on_dev and corpus.dev is not None else [])]


def validate(model: Model, data: Dataset) -> Report:
    """The metrics of a model on a part of its own corpus."""
    ranking = model.predict(data.x, depth(ignore=data.ignore))
    return evaluate(ranking, data.Y, model.labels, ignore=data.ignore)
