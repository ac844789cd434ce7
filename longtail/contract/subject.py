"""The recipe that is checked: how the checks train it, and what they share between them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from longtail.contract import settings
from longtail.contract.corpora import topic_corpus
from longtail.contract.require import not_applicable, require
from longtail.core.errors import UnsupportedError
from longtail.core.model import Model
from longtail.core.recipe import Recipe
from longtail.core.recipe import recipe as make_recipe
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.recipes.from_lists import fit

BASELINE = "popular"  # learns nothing about texts, by design


class Subject:
    """A registered recipe under the contract.

    `given`: settings that replace those of `contract/settings.py`, and `preset` its preset. Checks save models in
    folders of their own in `folder`.
    """

    def __init__(
        self, recipe: type[Recipe], folder: Path, given: Mapping[str, Any] | None = None, preset: str | None = None
    ):
        self.recipe = recipe
        self.name = recipe.name
        self.given = dict(given or {})
        self.preset = preset
        self._folder = folder
        self._failed: Exception | None = None

    @property
    def baseline(self) -> bool:
        """Whether it learns nothing about texts, by design."""
        return self.name == BASELINE

    @property
    def network(self) -> bool:
        """Whether it trains a network."""
        return settings.is_network(self.recipe)

    @property
    def retrieves(self) -> bool:
        """Whether labels are found by their texts."""
        return settings.retrieves(self.recipe)

    @property
    def fine_tunes(self) -> bool:
        """Whether its encoder is always a transformer."""
        return settings.fine_tunes(self.recipe)

    @property
    def attends(self) -> bool:
        """Whether its levels are networks of their own."""
        return settings.attends(self.recipe)

    @cached_property
    def small(self) -> dict[str, Any]:
        """The settings with which it learns tiny corpora; `preset` may be among them."""
        own = {} if self.preset is None else {"preset": self.preset}
        return (settings.small(self.recipe) if self.preset is None else own) | self.given

    def made(self, **changed: Any) -> Recipe:
        """The recipe with settings that learn labels that have points."""
        return self._made(settings.short(self.recipe) if self.preset is None else {}, changed)

    def briefly(self, **changed: Any) -> Recipe:
        """The recipe with settings for which it only matters whether two trainings are the same."""
        return self._made(settings.shorter(self.recipe) if self.preset is None else {}, changed)

    def fully(self, **changed: Any) -> Recipe:
        """The recipe with the settings of `small` alone."""
        return self._made({}, changed)

    def _made(self, steps: dict[str, Any], changed: dict[str, Any]) -> Recipe:
        return make_recipe(self.name, **{**self.small, **steps, **self.given, **changed})

    def fit(self, texts: list[str], labels: list[list[str]], **others: Any) -> Model:
        """Train on lists, as `longtail.fit` does."""
        return fit(texts, labels, self.name, **{**self.small, **others})

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus that most checks train on."""
        return topic_corpus()

    @property
    def test(self) -> Dataset:
        """Its test part."""
        return cast(Dataset, self.corpus.test)

    @cached_property
    def model(self) -> Model:
        """A model of that corpus, which the checks share; if training fails, it is not tried again."""
        if self._failed is not None:
            raise self._failed
        try:
            return self.made().fit(self.corpus, Run(seed=1))
        except Exception as error:
            self._failed = error
            raise

    @cached_property
    def why_not_augmented(self) -> str | None:
        """Why it cannot use more training points, which it must say by name; None if it can."""
        if "augment" not in self.recipe.names():
            return "it has no setting `augment`, as recipes derived from TrainedRecipe have"
        try:
            self.made(augment="self")
        except UnsupportedError as error:
            said = self.name in str(error) and "augment=self" in str(error)
            require(said, f"a refusal of augment=self must name it and the recipe; the message was: {error}")
            return f"it cannot be trained on label texts: {error}"
        return None

    def needs_augment(self) -> None:
        """End a check that is about more training points, for a recipe that cannot use them."""
        if self.why_not_augmented is not None:
            not_applicable(self.why_not_augmented)

    def needs_setting(self, name: str) -> None:
        """End a check that is about a setting of `TrainedRecipe`, for a recipe without it."""
        if name not in self.recipe.names():
            not_applicable(f"it has no setting `{name}`, as recipes derived from TrainedRecipe have")

    def new_folder(self) -> Path:
        """An empty folder."""
        return Path(tempfile.mkdtemp(dir=self._folder))
