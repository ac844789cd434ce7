"""The base of all recipes that learn from data: the settings they share, and the hooks that `fit` calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from longtail.augment import Augmentation
from longtail.core.decision import Method
from longtail.core.errors import UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.recipe import Recipe, recipes
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.decide import Rule
from longtail.train.fit import fit, fit_validated, train_on


@dataclass(frozen=True)
class TrainedRecipe(Recipe, ABC):
    """A recipe whose models are trained. A subclass implements `train`; the other hooks have defaults.

    `longtail.train.fit.fit` is the whole course of a training: it cuts off the validation part, augments the training
    points, and calls these hooks.
    """

    # The first model has not seen the validation part. If that is more than this share of train, a second model is
    # trained on all of train. 0: always, for recipes that train quickly.
    refit_above: ClassVar[float] = 0.0
    augments: ClassVar[bool] = True  # whether more training points make a difference
    chooses_recipes: ClassVar[bool] = False  # whether it trains other recipes
    mixes: ClassVar[bool] = False  # whether it trains a network, which can mix embeddings (augment=mixup)

    calibration: Method = param("none", "how scores become probabilities")  # noqa: RUF009
    cut_off: str = param("none", "what is suggested: f1, precision=P or labels=N; none: the k best")
    augment: Augmentation = param(  # noqa: RUF009
        Augmentation(), "more training points, most often from label texts (docs/augment.md)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        Rule.parse(self.cut_off, f"{self.kind}: cut_off")
        if self.augment.of_embeddings and not self.mixes:
            able = ", ".join(name for name in recipes.own if getattr(recipes[name], "mixes", False))
            raise UnsupportedError(
                f"{self.kind} mixes no embeddings: augment={self.augment.method} is for {able}; "
                "take one of these (--recipe), or augment=gandalf, self or synonyms"
            )

    @property
    def decides(self) -> bool:
        """Whether probabilities or a cut-off are to be fitted on the validation part."""
        return self.calibration != "none" or Rule.parse(self.cut_off) is not None

    def fit(self, corpus: Corpus, run: Run | None = None) -> Model:
        """Train on `corpus.train`, with choices made on a validation part: see `longtail.train.fit.fit`."""
        return fit(self, corpus, run or Run())

    def fit_validated(self, corpus: Corpus, split: Corpus, run: Run) -> Model:
        """Train where there is a validation part: `split` is the corpus with it as dev."""
        return fit_validated(self, corpus, split, run)

    def fit_whole(self, corpus: Corpus, run: Run) -> Model:
        """Train where there is no validation part."""
        return train_on(self, corpus.train, corpus.labels, run)

    @abstractmethod
    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> Model:
        """A model of `data`, which is augmented already; `validation` is for recipes that look at it while training.

        The recipe of the returned model has nothing left open: `model.recipe.train` trains the same kind of model.
        """

    def retrain(self, chosen: Model, data: Dataset, labels: Labels, run: Run) -> Model:
        """A model of all points (`data`), after `chosen` was trained without the validation part; `self` is its recipe.

        By default `train`. Networks take over from `chosen` for how many steps to train.
        """
        return self.train(data, labels, run)

    def choose(self, data: Dataset, labels: Labels, validation: Dataset, run: Run) -> tuple[Self, list[dict[str, Any]]]:
        """This recipe with its open parameters fixed, and a table of what was tried; by default nothing is open."""
        return self, []

    def on_trial(self) -> TrainedRecipe:
        """What is trained to compare values of `augment`: this recipe, or a cheaper one that ranks them alike."""
        return self

    def refits(self, held_out: float) -> bool:
        """Whether to train again on all of train, where this share of it was held out for validation."""
        return held_out > self.refit_above

    def check_corpus(self, corpus: Corpus) -> None:
        """Refuse a corpus that lacks what the recipe or its augmentation needs."""
        super().check_corpus(corpus)
        self.augment.check(corpus.train, corpus.labels, self.kind)
