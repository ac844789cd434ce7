"""What every trained system is: something that ranks labels for texts."""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from longtail.core.decision import Decision
from longtail.core.errors import DataError, LongtailError, ParameterError, UnsupportedError, shorten
from longtail.core.explanation import Explanation
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking, check_k
from longtail.core.texts import Texts

if TYPE_CHECKING:
    from longtail.core.recipe import Recipe

Inputs: TypeAlias = Texts | sp.csr_matrix  # what a point can be: a text, or a row of features
LABELS = 5  # what is suggested for a point where nothing says how many


class Model(ABC):
    """A trained recipe. Only `predict` is required of an engine.

    `about` is what is remembered of the training and shown by `longtail info`: corpus, digests, seed,
    scores on the validation part, seconds. It holds JSON values only. `decision` turns scores into probabilities, or
    cuts off what is not good enough; without one (the default) scores are shown as the engine gives them.
    """

    def __init__(self, recipe: Recipe, labels: Labels, about: dict[str, Any] | None = None):
        self.recipe = recipe
        self.labels = labels
        self.about: dict[str, Any] = about or {}
        self.decision: Decision | None = None

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.recipe.changed().items())
        return f"<{self.recipe.name} model of {len(self.labels):,} labels{settings and ': '}{settings}>"

    def predict(self, x: Any, k: int | None = None, *, cut_off: bool = True) -> Ranking:
        """The k best labels for each point of `x`: a list of texts, or a sparse feature matrix.

        A model with a cut-off gives those above it, at most k; without a k as many as there are. `cut_off=False`
        leaves it out. k is 5 where neither says otherwise.
        """
        decision = self.decision
        if k is None:
            k = decision.cut_off.most if cut_off and decision and decision.cut_off else LABELS
        ranking = self.predict_scores(x, k)
        return ranking if decision is None else decision.apply(ranking, cut_off)

    def predict_scores(self, x: Any, k: int = LABELS) -> Ranking:
        """The k best labels with the engine's own scores: `predict` without the model's decision."""
        check_k(k)
        points = self.check_inputs(x)
        n = len(points) if isinstance(points, Texts) else points.shape[0]
        if not n:
            empty = (0, min(k, len(self.labels)))
            return Ranking(np.empty(empty, np.int32), np.empty(empty, np.float32), self.labels)
        return self.rank(points, k)

    @abstractmethod
    def rank(self, x: Inputs, k: int) -> Ranking:
        """`predict_scores` after its checks: `x` has at least one point and is of the kind `accepts` names."""

    @property
    @abstractmethod
    def accepts(self) -> str | int:
        """`"text"`, or the number of feature columns this model was trained on."""

    def check_inputs(self, x: Any) -> Inputs:
        """`x` as `Texts` or CSR; what this model cannot take is refused."""
        if sp.issparse(x) or (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
            if self.accepts == "text":
                raise ParameterError("this model was trained on texts; got a feature matrix")
            plain = isinstance(x, sp.csr_matrix) and x.dtype == np.float32  # a copy costs a single query dearly
            X = x if plain else sp.csr_matrix(x, dtype=np.float32)
            if X.shape[1] != self.accepts:
                raise ParameterError(f"this model takes {self.accepts:,} features; got {X.shape[1]:,} columns")
            # the product is finite where all values are and none is huge; it takes a fifth of a look at each
            if not math.isfinite(X.data.dot(X.data)) and not np.isfinite(X.data).all():
                raise DataError("the feature matrix holds NaN or infinite values")
            return X
        if isinstance(x, str):
            raise ParameterError(f"x must be a list of texts; got one string {shorten(x)}: wrap it in a list")
        if self.accepts != "text":
            raise ParameterError(
                f"this model was trained on a matrix of {self.accepts:,} features, not on texts; "
                "give it such a matrix (in Python), or a corpus of features to `evaluate`"
            )
        if not isinstance(x, Texts):
            x = list(x)
            for i, text in enumerate(x):
                if not isinstance(text, str):
                    raise ParameterError(f"x must be a list of texts; item {i} is {shorten(text)}")
        return Texts.of(x)

    @abstractmethod
    def save(self, folder: str | Path, overwrite: bool = True, replaces: str | None = None) -> None:
        """Write the model to a folder, atomically; without `overwrite`, only where there is none."""

    def explain(self, x: Any, k: int = 5, labels: Sequence[str] | None = None) -> Explanation:
        """Why each of the k best labels of one point, or each of `labels`, was suggested.

        Engines without an explanation refuse by name.
        """
        can = ", ".join(able_to("explain")) or "none so far"
        raise UnsupportedError(f"recipe {self.recipe.name!r} cannot explain its suggestions; recipes that can: {can}")

    def edit_labels(self, labels: Labels) -> Model:
        """This model over an edited label space: labels renamed, removed (tombstones), or appended with their texts.

        `labels` comes from the model's own by `Labels.add`, `remove`, `restore` and `rename`; this model stays as it
        is. Engines that must be retrained for it refuse by name.
        """
        can = ", ".join(able_to("edit_labels")) or "none so far"
        raise UnsupportedError(
            f"recipe {self.recipe.name!r} cannot change its labels; train it again. Recipes that can: {can}"
        )


def able_to(verb: str) -> list[str]:
    """The recipes whose models do what `Model` itself refuses; for messages, since it imports them all."""
    from longtail.core.recipe import recipes

    able = []
    for name in recipes:
        with contextlib.suppress(LongtailError, ImportError):  # it makes no models of its own, or lacks its extra
            if getattr(recipes[name].model_class(), verb) is not getattr(Model, verb):
                able.append(name)
    return able
