"""A trained linear model: one tree of classifiers, or several whose scores are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import csr_arrays
from longtail._native.linear import CsrArrays
from longtail._native.terms import unit_rows
from longtail.core.explanation import Explanation
from longtail.core.labels import Labels
from longtail.core.model import Inputs
from longtail.core.ranking import Ranking
from longtail.core.recipe import Recipe
from longtail.core.texts import Texts
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf
from longtail.linear.edit import edit_labels
from longtail.linear.explain import explain
from longtail.linear.ranker import Ranker, scores_csr
from longtail.store import Saved, StoredModel

MORE = 50  # labels each tree of several names beyond k, so that the trees have them in common


class LinearRecipe(Protocol):
    """What prediction asks of a recipe."""

    beam: int
    post: str


class LinearModel(StoredModel):
    """An encoder (None for feature corpora) and the rankers."""

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        encoder: Tfidf | None,
        rankers: list[Ranker],
        about: dict[str, Any] | None = None,
    ):
        super().__init__(recipe, labels, about)
        self.encoder, self.rankers, self.width = encoder, rankers, rankers[0].width

    @property
    def accepts(self) -> str | int:
        """Texts, or so many features."""
        return self.width if self.encoder is None else "text"

    def features(self, x: Inputs) -> sp.csr_matrix:
        """Rows of unit length (N, width)."""
        return self.encoder.encode(x) if self.encoder is not None and isinstance(x, Texts) else normalise_rows(x)

    def _rows(self, x: Inputs) -> CsrArrays:
        """The arrays of `features`: a matrix around them would cost a single query more than the search."""
        if self.encoder is not None and isinstance(x, Texts):
            return csr_arrays(self.encoder.encode(x))
        indptr, indices, data = csr_arrays(x)
        return indptr, indices, unit_rows(indptr, data)

    def rank(self, x: Inputs, k: int) -> Ranking:
        """Beam search in each tree; the mean of the scores."""
        recipe, L = cast(LinearRecipe, self.recipe), len(self.labels)
        X, k, gone = self._rows(x), min(k, L), self.labels.removed
        if len(self.rankers) == 1:
            return Ranking(*self.rankers[0].search(X, k, recipe.beam, recipe.post, gone), self.labels)
        found = (ranker.search(X, min(k + MORE, L), recipe.beam, recipe.post, gone) for ranker in self.rankers)
        total = sum((scores_csr(*each, L) for each in found), start=sp.csr_matrix((len(X[0]) - 1, L), dtype=np.float32))
        mean = total.tocsr()
        mean.data /= len(self.rankers)
        return Ranking.from_csr(mean, k, self.labels)

    def explain(self, x: Any, k: int | None = None, labels: Sequence[str] | None = None) -> Explanation:
        """Why each of the k best labels (or each of `labels`) was suggested: exact, word by word."""
        return explain(self, x, k, labels)

    def edit_labels(self, labels: Labels) -> LinearModel:
        """This model with labels renamed, removed or added; new ones get a place and weights from their texts."""
        return edit_labels(self, labels)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Encoder, trees and weights."""
        arrays: dict[str, NDArray[Any]] = {}
        for i, ranker in enumerate(self.rankers):
            arrays |= ranker.state(f"tree{i}")
        levels = [len(ranker.levels) for ranker in self.rankers]
        meta: dict[str, Any] = {"levels": levels, "width": self.width, "encoder": None}
        if self.encoder is not None:
            encoder_arrays, meta["encoder"] = self.encoder.state()
            arrays |= encoder_arrays
        return arrays, meta

    @classmethod
    def from_state(cls, saved: Saved) -> LinearModel:
        """From `state`."""
        arrays, meta = saved.arrays, saved.meta
        encoder = None if meta["encoder"] is None else Tfidf.from_state(arrays, meta["encoder"])
        levels = enumerate(meta["levels"])
        rankers = [Ranker.from_state(arrays, f"tree{i}", count, meta["width"]) for i, count in levels]
        for ranker in rankers:
            ranker.tree.check(len(saved.labels))
        return cls(saved.recipe, saved.labels, encoder, rankers, saved.about)
