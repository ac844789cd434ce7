"""Recipes over bags of words: Astec, DECAF, ECLARE. How their texts are read, and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.augment import Augmentation
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param, param_of
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.train.network import NetworkRecipe

if TYPE_CHECKING:
    from longtail.cascade.mixing import Mixing
    from longtail.cascade.network import Corpus
    from longtail.encoders.table import Table
    from longtail.train.learner import Learner


class Read(NamedTuple):
    """A training set as bags of words."""

    reader: Tfidf
    X: sp.csr_matrix  # (N, V)
    Y: sp.csr_matrix  # (N, L)
    ignore: sp.csr_matrix | None
    texts: sp.csr_matrix | None  # (L, V): those of the labels


@dataclass(frozen=True)
class BagRecipe(NetworkRecipe):
    """A network over TF-IDF-weighted word vectors."""

    dimension: int = param(300, "of word vectors", at_least=1)
    min_texts: int = param_of(TfidfParameters, "min_texts")
    limit: int | None = param_of(TfidfParameters, "limit")
    vectors: Literal["learnt", "glove"] = param("learnt", "word vectors to begin with; glove's dimension is 50")
    schedule: Literal["constant", "linear", "cosine", "one-cycle"] = param(
        "constant", "how the learning rate changes within a phase"
    )
    warmup: int = param(0, "steps at first in which it rises from 0 (not of one-cycle)", at_least=0)

    @classmethod
    def model_class(cls) -> type[Model]:
        """CascadeModel."""
        from longtail.cascade.model import CascadeModel

        return CascadeModel

    def read(self, data: Dataset, labels: Labels, run: Run) -> Read:
        """The words of points and label texts; their TF-IDF."""
        settings = TfidfParameters(min_texts=self.min_texts, limit=self.limit)
        texts = labels.texts
        reader, counts = Tfidf.fit(data.texts if texts is None else data.texts + texts, settings)
        rows = reader.weigh(counts)
        N = len(data)
        Z = None if texts is None else rows[N:]
        return Read(reader, rows[:N], data.truth(), data.ignore, Z)

    def corpus(self, read: Read) -> Corpus:
        """The training set as tensors."""
        from longtail.cascade.network import Corpus
        from longtail.encoders.bag import Bags

        tokens = None if read.texts is None else Bags.of(read.texts)
        known = None if tokens is None else tokens.ptr.diff() > 0
        ignore = None if read.ignore is None else sp.csr_matrix(read.ignore, dtype=np.float32)
        return Corpus(Bags.of(read.X), read.Y, ignore, read.texts, tokens, known)

    def words(self, read: Read) -> Table:
        """E (V, D) as training begins."""
        import torch

        from longtail.encoders.table import Table

        if self.vectors == "glove":
            from longtail.encoders.vectors import glove, vectors_for

            words = read.reader.names(range(len(read.reader)))
            return Table(torch.from_numpy(vectors_for(words, glove(f"{self.kind} with vectors=glove"))))
        return Table.random(len(read.reader), self.dimension, self.dimension**-0.5)

    def model(self, read: Read, labels: Labels, learners: list[Learner]) -> Model:
        """The networks as arrays."""
        from longtail.cascade.model import Cascaded, CascadeModel

        parts = [Cascaded(*served(learner)) for learner in learners]
        return CascadeModel(self, labels, read.reader, parts)


def mixing_of(augmentation: Augmentation) -> Mixing | None:
    """How a network mixes points in training, if the augmentation is of that kind."""
    if not augmentation.of_embeddings:
        return None
    from longtail.cascade.mixing import Mixing

    return Mixing(augmentation.method, augmentation.mix)  # type: ignore[arg-type]


def served(learner: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays by which a trained network predicts."""
    arrays: tuple[dict[str, Any], dict[str, Any]] = learner.arrays()
    return arrays
