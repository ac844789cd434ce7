"""A trained tree of linear classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.linear import BeamSearch, Level
from longtail.core.explanation import Explanation
from longtail.core.labels import Labels
from longtail.core.model import Inputs
from longtail.core.ranking import Ranking
from longtail.core.recipe import Recipe
from longtail.core.texts import Texts
from longtail.encoders.tfidf import Tfidf, normalise_rows
from longtail.labels.tree import LabelTree
from longtail.linear.explain import explain
from longtail.linear.train import BIAS
from longtail.store import Saved, StoredModel


class LinearRecipe(Protocol):
    """What prediction asks of a recipe."""

    beam: int
    post: str


class LinearModel(StoredModel):
    """An encoder (None for feature corpora), a label tree, and the weights of each level."""

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        encoder: Tfidf | None,
        width: int,
        tree: LabelTree,
        levels: list[Level],
        about: dict[str, Any] | None = None,
    ):
        super().__init__(recipe, labels, about)
        self.encoder, self.width, self.tree, self.levels = encoder, width, tree, levels
        self._search = BeamSearch(width, levels)
        self._smallest_cluster = 1 if len(levels) == 1 else int(np.diff(tree.levels[-2]).min())

    @property
    def accepts(self) -> str | int:
        """Texts, or so many features."""
        return self.width if self.encoder is None else "text"

    def features(self, x: Inputs) -> sp.csr_matrix:
        """Rows of unit length (N, width)."""
        return self.encoder.encode(x) if self.encoder is not None and isinstance(x, Texts) else normalise_rows(x)

    def rank(self, x: Inputs, k: int) -> Ranking:
        """Beam search; the beam is widened where it could not reach k labels."""
        recipe, L = cast(LinearRecipe, self.recipe), len(self.labels)
        k = min(k, L)
        gone = self.labels.removed
        usable = None if gone is None or not gone.any() else ~gone[self.tree.order]
        wanted = k if usable is None else k + int((~usable).sum())
        beam = max(recipe.beam, -(-wanted // self._smallest_cluster))
        found, scores = self._search.search(
            self.features(x), bias=BIAS, beam=beam, k=k, post=recipe.post, usable=usable
        )
        return Ranking(np.where(found >= 0, self.tree.order[found], -1).astype(np.int32), scores, self.labels)

    def explain(self, x: Any, k: int = 5, labels: Sequence[str] | None = None) -> Explanation:
        """Why each of the k best labels (or each of `labels`) was suggested: exact, word by word."""
        return explain(self, x, k, labels)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Encoder, tree and weights."""
        arrays: dict[str, NDArray[Any]] = {"tree.order": self.tree.order}
        for t, (ends, level) in enumerate(zip(self.tree.levels, self.levels, strict=True)):
            arrays[f"tree.level{t}"] = ends
            arrays |= {f"level{t}.{name}": array for name, array in level._asdict().items()}
        meta: dict[str, Any] = {"levels": len(self.levels), "width": self.width, "encoder": None}
        if self.encoder is not None:
            encoder_arrays, meta["encoder"] = self.encoder.state()
            arrays |= encoder_arrays
        return arrays, meta

    @classmethod
    def from_state(cls, saved: Saved) -> LinearModel:
        """From `state`."""
        arrays, meta = saved.arrays, saved.meta
        encoder = None if meta["encoder"] is None else Tfidf.from_state(arrays, meta["encoder"])
        numbers = range(meta["levels"])
        tree = LabelTree(arrays["tree.order"], tuple(arrays[f"tree.level{t}"] for t in numbers))
        levels = [Level(*(arrays[f"level{t}.{name}"] for name in Level._fields)) for t in numbers]
        return cls(saved.recipe, saved.labels, encoder, meta["width"], tree, levels, saved.about)
