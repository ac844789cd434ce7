"""What the linear recipes share: features, then trees, then the classifiers of each."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from longtail.core.errors import DataError, ParameterError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param, param_of
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.labels.represent import combined, pifa, with_neighbours
from longtail.labels.tree import LabelTree
from longtail.linear.blocks import FeatureBlock, GivenBlock, TfidfBlock
from longtail.linear.features import Features
from longtail.linear.model import LinearModel
from longtail.linear.parameters import BARE, LinearParameters, Post
from longtail.linear.train import Training, train_ranker
from longtail.train.recipe import TrainedRecipe


@dataclass(frozen=True)
class LinearRecipe(TrainedRecipe):
    """TF-IDF features (or those of the corpus), label trees (`tree`), linear classifiers on every level."""

    supports: ClassVar[frozenset[str]] = frozenset({"resume"})
    renamed: ClassVar[dict[str, str]] = {"budget": "weights_per_label"}

    negatives: Literal["tfn", "tfn+man"] = param_of(LinearParameters, "negatives")
    loss: Literal["squared-hinge", "logistic"] = param_of(LinearParameters, "loss")
    solver: Literal["dcd", "newton"] = param_of(LinearParameters, "solver")
    C: float = param_of(LinearParameters, "C")
    C_negative: float | None = param_of(LinearParameters, "C_negative")
    costs: Literal["equal", "counts"] = param_of(LinearParameters, "costs")
    eps: float = param_of(LinearParameters, "eps")
    prune: float = param_of(LinearParameters, "prune")
    weights_per_label: int | None = param_of(LinearParameters, "weights_per_label")
    weights: Literal["float32", "float16", "int8"] = param_of(LinearParameters, "weights")
    beam: int = param_of(LinearParameters, "beam")
    post: Post = param_of(LinearParameters, "post")  # noqa: RUF009
    trees: int = param(1, "trees trained with different seeds, their scores averaged", at_least=1, at_most=100)
    ngrams: int = param_of(TfidfParameters, "ngrams")
    min_ngrams: int = param_of(TfidfParameters, "min_ngrams")
    char_ngrams: int | str | None = param_of(TfidfParameters, "char_ngrams")
    char_within: bool = param_of(TfidfParameters, "char_within")
    min_texts: int = param_of(TfidfParameters, "min_texts")
    max_share: float = param_of(TfidfParameters, "max_share")
    limit: int | None = param_of(TfidfParameters, "limit")
    hashing: int | None = param_of(TfidfParameters, "hashing")
    sublinear: bool = param_of(TfidfParameters, "sublinear")

    def __post_init__(self) -> None:
        super().__post_init__()
        LinearParameters(**self._part(LinearParameters)).check()
        TfidfParameters(**self._part(TfidfParameters))
        if self.trees > 1 and self.post in BARE:
            raise ParameterError(
                f"{self.kind}: trees={self.trees} are averaged as scores; post={self.post} gives bare margins"
            )

    @classmethod
    def model_class(cls) -> type[Model]:
        """The class of the models, `LinearModel`."""
        return LinearModel

    @abstractmethod
    def tree(self, Z: sp.csr_matrix, labels: Labels, seed: int) -> LabelTree:
        """A tree of the labels whose vectors are the rows of Z (L, d)."""

    @abstractmethod
    def label_vectors(self, data: Training, labels: Labels, encoder: Tfidf | None) -> sp.csr_matrix:
        """A vector for each label (L, d); labels with similar vectors come into one cluster."""

    def on_trial(self) -> Self:
        """The same with one tree: what is better with one tree is better with several."""
        return replace(self, trees=1)

    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> LinearModel:
        """Encode, build the trees, solve their levels from the root down."""
        encoder = None
        if data.has_text:
            encoder, counts = Tfidf.fit(data.texts, TfidfParameters(**self._part(TfidfParameters)))
            X = encoder.weigh(counts)
        else:
            X = normalise_rows(data.features)
        block: FeatureBlock = GivenBlock(X.shape[1]) if encoder is None else TfidfBlock(encoder)
        training = Training(Features.of([X]), data.truth(), data.ignore)
        check_training(training)
        Z = self.label_vectors(training, labels, encoder)
        settings = LinearParameters(**self._part(LinearParameters))
        rankers = []
        for number in range(self.trees):
            own = replace(run, seed=(run.seed + (number << 40)) % 2**63)  # far from the seeds of other trees
            tree = self.tree(Z, labels, own.seed)
            rankers.append(train_ranker(training, tree, settings, own, number))
        return LinearModel(self, labels, [block], rankers)

    def _part(self, owner: type) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(owner) if hasattr(self, field.name)}


@dataclass(frozen=True)
class ClusteredRecipe(LinearRecipe):
    """A linear recipe whose trees are clusters of the labels."""

    represent: Literal["pifa", "text", "pifa+text"] = param(
        "pifa", "labels are clustered by their points (pifa) or texts"
    )
    neighbours: bool = param(False, "add to a label's vector those of labels that occur with it")

    def check_corpus(self, corpus: Any) -> None:
        """Refuse a corpus without label texts if clusters are made from them."""
        super().check_corpus(corpus)
        if "text" in self.represent and not (corpus.labels.has_text and corpus.train.has_text):
            what = "points" if corpus.labels.has_text else "labels"
            raise UnsupportedError(f"{self.kind}: represent={self.represent} needs texts, but the {what} have none")

    def label_vectors(self, data: Training, labels: Labels, encoder: Tfidf | None) -> sp.csr_matrix:
        """PIFA vectors (means of a label's points), label texts in the same features, or both, as `represent` says."""
        texts = None
        if "text" in self.represent and encoder is not None and labels.texts is not None:
            texts = encoder.encode(labels.texts)
        if self.represent == "text" and texts is not None:
            Z = texts
        else:
            Z = pifa(data.features.sparse, data.Y)
            Z = Z if texts is None else combined(Z, texts)
        return with_neighbours(Z, data.Y) if self.neighbours else Z


def check_training(data: Training) -> None:
    """Refuse training data from which nothing can be learnt."""
    if not np.isfinite(data.features.sparse.data).all():
        raise DataError("the features of the training points hold NaN or infinite values")
    if not data.features.sparse.nnz and data.features.dense is None:
        raise DataError("no training point has a feature that is not 0", fix="look at the features of the corpus")
    if not data.Y.nnz:
        raise DataError("no training point has a label", fix="look at the labels with `longtail inspect`")
