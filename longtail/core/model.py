"""The interface of every trained model: it ranks labels for texts."""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.decision import Decision
from longtail.core.defaults import K
from longtail.core.errors import DataError, LongtailError, ParameterError, UnsupportedError, shorten
from longtail.core.explanation import Explanation
from longtail.core.how_many import check_k, check_threshold, labels_to_rank
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.core.texts import Texts

if TYPE_CHECKING:
    from longtail.core.recipe import Recipe

Inputs: TypeAlias = Texts | sp.csr_matrix  # points are texts, or rows of features


class Model(ABC):
    """A trained recipe. Engines must implement `rank`, `accepts` and `save`.

    `explain`, `edit_labels`, `embed` and `label_embeddings` are optional.

    `about` describes the training, as `longtail info` shows it: corpus, digests, seed, validation scores, seconds. It
    contains JSON values only. `decision` turns scores into probabilities, leaves out labels below a cut-off, or both.
    Without a decision (the default), `predict` returns the scores of the engine.
    """

    def __init__(self, recipe: Recipe, labels: Labels, about: dict[str, Any] | None = None):
        self.recipe = recipe
        self.labels = labels
        self.about: dict[str, Any] = about or {}
        self.decision: Decision | None = None

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.recipe.changed().items())
        return f"<{self.recipe.name} model of {len(self.labels):,} labels{settings and ': '}{settings}>"

    def predict(self, x: Any, k: int | None = None, *, cut_off: bool = True, threshold: float | None = None) -> Ranking:
        """The best labels for each of N points: a `Ranking` of shape (N, min(k, L)).

        `x` is a list of N texts, or a sparse feature matrix with N rows. Without a cut-off, each point gets its k best
        labels (5 by default). If the model has a cut-off, only labels above it are kept, at most k; `cut_off=False`
        switches it off. `threshold` replaces the cut-off: labels that score below it are left out.
        `core/how_many.py` has the rules.
        """
        decision = self.decision
        limit = None if decision is None or decision.cut_off is None else decision.cut_off.most
        if threshold is not None:
            check_threshold(threshold)
        elif not cut_off:
            limit = None
        ranking = self.predict_scores(x, labels_to_rank(k, limit))
        if decision is not None:
            ranking = decision.apply(ranking, cut_off and threshold is None)
        return ranking if threshold is None else ranking.above(threshold)

    def predict_scores(self, x: Any, k: int = K) -> Ranking:
        """The k best labels with the scores of the engine, without the model's decision: (N, min(k, L))."""
        check_k(k)
        k = min(k, len(self.labels))
        points = self.check_inputs(x)
        n = len(points) if isinstance(points, Texts) else points.shape[0]
        if not n:
            return Ranking(np.empty((0, k), np.int32), np.empty((0, k), np.float32), self.labels)
        return self.rank(points, k)

    @abstractmethod
    def rank(self, x: Inputs, k: int) -> Ranking:
        """The k best labels of each point by the engine's scores.

        Called by `predict_scores` after its checks: `x` has at least one point and is what `accepts` says; k ≤ L.
        """

    @property
    @abstractmethod
    def accepts(self) -> str | int:
        """`"text"`, or the number of feature columns that this model was trained on."""

    def check_inputs(self, x: Any) -> Inputs:
        """`x` as `Texts` or CSR; refuses input that this model cannot use."""
        if sp.issparse(x) or (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
            if self.accepts == "text":
                raise ParameterError("this model was trained on texts; got a feature matrix")
            plain = isinstance(x, sp.csr_matrix) and x.dtype == np.float32  # a copy would slow down single queries
            X = x if plain else sp.csr_matrix(x, dtype=np.float32)
            if X.shape[1] != self.accepts:
                raise ParameterError(f"this model takes {self.accepts:,} features; got {X.shape[1]:,} columns")
            # the sum of squares is finite if all values are finite and none is huge; this takes a fifth of the time
            if not math.isfinite(X.data.dot(X.data)) and not np.isfinite(X.data).all():
                raise DataError(
                    "the feature matrix contains NaN or infinite values", fix="replace them with finite numbers"
                )
            return X
        if isinstance(x, str):
            raise ParameterError(f"x must be a list of texts; got one string {shorten(x)}: wrap it in a list")
        if self.accepts != "text":
            raise ParameterError(
                f"this model was trained on a matrix of {self.accepts:,} features, not on texts; "
                "give it such a matrix (in Python), or use `evaluate` with a corpus of features"
            )
        if not isinstance(x, Texts):
            x = list(x)
            for i, text in enumerate(x):
                if not isinstance(text, str):
                    raise ParameterError(f"x must be a list of texts; item {i} is {shorten(text)}")
        return Texts.of(x)

    @abstractmethod
    def save(self, folder: str | Path, overwrite: bool = False, replaces: str | None = None) -> None:
        """Write the model to a folder, atomically. A model that is already there is replaced only with `overwrite`.

        `replaces` is the generation of the model that this one was made from (`describe` returns it). The model in the
        folder is then replaced only if it is still that generation; this needs no `overwrite`.
        """

    def explain(self, x: Any, k: int | None = None, labels: Sequence[str] | None = None) -> Explanation:
        """Why the labels of one point were suggested: those that `predict` gives for k, or the keys in `labels`.

        Raises an `UnsupportedError` that names the recipe if its models have no explanations.
        """
        can = ", ".join(able_to("explain")) or "none so far"
        raise UnsupportedError(f"recipe {self.recipe.name!r} cannot explain its suggestions; recipes that can: {can}")

    def edit_labels(self, labels: Labels) -> Model:
        """A copy of this model for an edited label space; this model does not change.

        `labels` is made from `self.labels` by `Labels.add` (with texts), `remove`, `restore` and `rename`. Raises an
        `UnsupportedError` that names the recipe if its models must be trained again for this.
        """
        can = ", ".join(able_to("edit_labels")) or "none so far"
        raise UnsupportedError(
            f"recipe {self.recipe.name!r} cannot change its labels; train it again. Recipes that can: {can}"
        )

    def with_settings(self, **settings: Any) -> Model:
        """A copy of this model with other values of `recipe.settings_after_training()`; without any, the model itself.

        Raises an `UnsupportedError` that names a setting which needs a training.
        """
        self.check_after_training(settings)
        return self

    def check_after_training(self, settings: Iterable[str]) -> None:
        """Refuse settings that need a training, by name."""
        if trained := sorted(set(settings) - self.recipe.settings_after_training()):
            raise UnsupportedError(f"{trained[0]} of recipe {self.recipe.name!r} needs a training")

    def embed(self, x: Any, head: str | None = None) -> NDArray[np.float32]:
        """The vectors (N, ·) of N texts; `head` is "de", "clf" or "both".

        By default they are those that the model ranks labels by: their inner products with `label_embeddings()` are
        its scores. Raises an `UnsupportedError` that names the recipe if its models have no such vectors.
        """
        raise self._without_vectors()

    def label_embeddings(self, head: str | None = None) -> NDArray[np.float32]:
        """The vectors (L, ·) of all labels, also of removed ones, in the order of `labels`; `head` as in `embed`."""
        raise self._without_vectors()

    def _without_vectors(self) -> UnsupportedError:
        can = ", ".join(able_to("embed")) or "none so far"
        return UnsupportedError(
            f"recipe {self.recipe.name!r} has no vectors of texts and labels; recipes that have them: {can}"
        )


def able_to(verb: str) -> list[str]:
    """Our recipes whose models implement the optional method `verb`. For error messages: it imports all of them."""
    from longtail.core.recipe import recipes

    able = []
    for name in recipes.own:
        with contextlib.suppress(LongtailError, ImportError):  # has no model class, or its extra is not installed
            if getattr(recipes[name].model_class(), verb) is not getattr(Model, verb):
                able.append(name)
    return able
