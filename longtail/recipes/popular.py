"""The simplest baseline: every text gets the most frequent labels.

longtail train DATA --recipe popular --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.editing import about_edit, check_edit
from longtail.core.errors import UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Inputs, Model
from longtail.core.ranking import Ranking
from longtail.core.recipe import Recipe
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.store import Saved, StoredModel
from longtail.train.recipe import TrainedRecipe


@dataclass(frozen=True)
class Popular(TrainedRecipe):
    """Ranks labels by the share of training points that have them. Every other system must beat this."""

    name = "popular"
    title = "the most frequent labels for every text: the baseline"
    augments = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.augment.method != "none":
            raise UnsupportedError(
                f"{self.kind} looks at no text, so augment={self.augment.method} would only distort what it counts; "
                "leave augment at none"
            )

    @classmethod
    def model_class(cls) -> type[Model]:
        """The class of the models, `PopularModel`."""
        return PopularModel

    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> Model:
        """Count how often each label occurs."""
        return PopularModel(self, labels, label_shares(data), accepts_of(data))


class PopularModel(StoredModel):
    """`shares` (L,) float32: the share of points with each label."""

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        shares: NDArray[np.float32],
        accepts: str | int,
        about: dict[str, Any] | None = None,
    ):
        super().__init__(recipe, labels, about)
        self.shares = shares
        self._accepts = accepts

    @property
    def accepts(self) -> str | int:
        """What it was trained on, texts or features; it does not look at them."""
        return self._accepts

    def rank(self, x: Inputs, k: int) -> Ranking:
        """The same ranking for every point, (N, k)."""
        order, scores = self.labels.best(self.shares, k)
        n = len(x) if isinstance(x, Texts) else x.shape[0]
        return Ranking(np.tile(order, (n, 1)), np.tile(scores, (n, 1)), self.labels)

    def edit_labels(self, labels: Labels) -> PopularModel:
        """The same counts over an edited label space; a new label has no example, and is ranked last."""
        check_edit(self.labels, labels)
        shares = np.append(self.shares, np.zeros(len(labels) - len(self.labels), np.float32))
        edited = PopularModel(self.recipe, labels, shares, self.accepts, about_edit(self.about, self.labels, labels))
        edited.decision = self.decision
        return edited

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The shares of the labels, and what the model accepts."""
        return {"shares": self.shares}, {"accepts": self.accepts}

    @classmethod
    def from_state(cls, saved: Saved) -> PopularModel:
        """The model that was saved with `state`."""
        return cls(saved.recipe, saved.labels, saved.arrays["shares"], saved.meta["accepts"], saved.about)


def label_shares(data: Dataset) -> NDArray[np.float32]:
    """Share of the points that have each label (L,), by its targets; an ignored pair counts neither way."""
    counted = np.full(data.Y.shape[1], len(data), np.float64)
    if data.ignore is not None:
        counted -= np.bincount(data.ignore.indices, minlength=data.Y.shape[1])
    truth = data.truth()
    mass = np.bincount(truth.indices, weights=truth.data, minlength=data.Y.shape[1])
    return (mass / np.maximum(counted, 1)).astype(np.float32)


def accepts_of(data: Dataset) -> str | int:
    """What a model trained on this data takes: texts, or the number of features."""
    return "text" if data.has_text else int(data.features.shape[1])
