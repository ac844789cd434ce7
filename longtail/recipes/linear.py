"""What the linear recipes share: features, then a tree, then its classifiers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Literal

import scipy.sparse as sp

from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param_of
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.labels.tree import LabelTree
from longtail.linear.model import LinearModel
from longtail.linear.train import LinearParameters, train_levels
from longtail.recipes.refit import RefitRecipe


@dataclass(frozen=True)
class LinearTreeRecipe(RefitRecipe):
    """TF-IDF features (or those of the corpus), a label tree (`tree`), squared-hinge classifiers on every level."""

    negatives: Literal["tfn", "tfn+man"] = param_of(LinearParameters, "negatives")
    C: float = param_of(LinearParameters, "C")
    eps: float = param_of(LinearParameters, "eps")
    prune: float = param_of(LinearParameters, "prune")
    budget: int | None = param_of(LinearParameters, "budget")
    beam: int = param_of(LinearParameters, "beam")
    post: Literal["l3-hinge", "sigmoid", "none"] = param_of(LinearParameters, "post")
    ngrams: int = param_of(TfidfParameters, "ngrams")
    min_texts: int = param_of(TfidfParameters, "min_texts")

    @classmethod
    def model_class(cls) -> type[Model]:
        """LinearModel."""
        return LinearModel

    @abstractmethod
    def tree(self, X: sp.csr_matrix, Y: sp.csr_matrix, run: Run) -> LabelTree:
        """The label tree of a training set."""

    def train(self, data: Dataset, labels: Labels, run: Run) -> LinearModel:
        """Encode, build the tree, solve its levels from the root down."""
        encoder = None
        if data.has_text:
            encoder, counts = Tfidf.fit(data.texts, TfidfParameters(**self._part(TfidfParameters)))
            X = encoder.weigh(counts)
        else:
            X = normalise_rows(data.features)
        Y = data.truth()
        tree = self.tree(X, Y, run)
        levels = train_levels(X, Y, data.ignore, tree, LinearParameters(**self._part(LinearParameters)), run)
        return LinearModel(self, labels, encoder, X.shape[1], tree, levels)

    def _part(self, owner: type) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(owner) if hasattr(self, field.name)}
