"""InceptionXML (Kharbanda et al., SIGIR 2023): convolutions over short texts, negatives found as training goes.

longtail train DATA --recipe inceptionxml --out MODEL
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.recipes.bags import mixing_of, served
from longtail.train.network import NetworkRecipe

if TYPE_CHECKING:
    from longtail.cascade.joint import Shape
    from longtail.encoders.sequence import SequenceEncoder
    from longtail.encoders.words import Words
    from longtail.train.learner import Learner, Phase

LEAST = 64  # labels of a shortlist, however few there are
DETACHED = 10 / 45  # the paper's share of epochs, where there are no more than `detached`


class Read(NamedTuple):
    """A training set as sequences of words."""

    reader: Words
    words: NDArray[np.int32]  # (N, T)
    Y: sp.csr_matrix  # (N, L)
    ignore: sp.csr_matrix | None
    labels: NDArray[np.int32] | None  # (L, T): the label texts


@dataclass(frozen=True)
class InceptionXML(NetworkRecipe):
    """Words of a title are channels of convolutions along the dimensions of their vectors (encoders/inception.py).

    One network with two tasks, trained together: clusters of labels, all of them; and labels, on those below the
    clusters that score best for the point just now, its true ones first. So negatives grow harder as the encoder
    learns. For the first `detached` epochs labels do not train the encoder; if there are no more epochs than that, for
    the paper's share of them, 10 of 45. A label's score is σ(cluster)·σ(label).
    """

    name = "inceptionxml"
    title = "convolutions over short texts, clusters and labels trained together"
    paper = "InceptionXML, Kharbanda et al. 2023"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "dimension": 128,
            "clusters": 8192,
            "shortlist": 400,
            "dropout": 0.2,
            "bias": True,
            "epochs": 5,
            "detached": 0,
            "lr": 0.01,
        }
    }

    dimension: int = param(300, "of word vectors", at_least=1)
    length: int = param(32, "words of a text that are read", at_least=1)  # paper: 32 for titles
    min_texts: int = param(1, "a word must stand in at least this many texts", at_least=1)
    vectors: Literal["learnt", "glove"] = param("learnt", "word vectors to begin with; glove's dimension is 50")
    clusters: int = param(16384, "of labels", at_least=1)  # paper: 16,384 for 131K labels, 65,536 for the largest
    shortlist: int | None = param(None, "labels a point is trained on and ranked among (none: √L)", at_least=1)
    dropout: float = param(0.3, "before classifiers", at_least=0.0, below=1.0)  # paper: 0.3 – 0.5
    epochs: int = param(45, "passes over the training set", at_least=1)
    detached: int = param(10, "epochs at first in which labels do not train the encoder", at_least=0)
    lr: float = param(5e-3, "highest learning rate", above=0.0)
    bias: bool = param(False, "a bias for each cluster and label, begun at log odds; saves steps")  # paper: none

    @classmethod
    def model_class(cls) -> type[Model]:
        """CascadeModel."""
        from longtail.cascade.model import CascadeModel

        return CascadeModel

    def read(self, data: Dataset, labels: Labels, run: Run) -> Read:
        """Words of points and label texts, and where they stand."""
        from longtail.encoders.words import Words

        texts = labels.texts
        reader = Words.fit(data.texts if texts is None else data.texts + texts, min_texts=self.min_texts)
        words = reader.encode(data.texts, self.length, cached=True, progress=run.progress)
        own = None if texts is None else reader.encode(texts, self.length, cached=True, progress=run.progress)
        return Read(reader, words, data.truth(), data.ignore, own)

    def phases(self) -> list[Phase]:
        """One: rate rising over a third of it, then falling."""
        from longtail.train.learner import Phase

        return [Phase("joint", self.epochs, self.lr, levels=(0, 1), schedule="one-cycle")]

    def encoder(self, read: Read) -> SequenceEncoder:
        """Word vectors and network."""
        from longtail.encoders.inception import Inception
        from longtail.encoders.sequence import SequenceEncoder

        E = self.word_vectors(read)
        return SequenceEncoder(E, Inception(E.width, self.length))

    def word_vectors(self, read: Read) -> Any:
        """E (V, D) as training begins."""
        import torch

        from longtail.encoders.table import Table

        if self.vectors == "glove":
            from longtail.encoders.vectors import glove, vectors_for

            known = glove(f"{self.kind} with vectors=glove")
            return Table(torch.from_numpy(vectors_for(["", "", *read.reader.terms], known)))
        return Table.random(len(read.reader), self.dimension, self.dimension**-0.5)

    def shape(self, read: Read, seed: int) -> Shape:
        """How large it is; labels are clustered by the TF-IDF of their points."""
        from longtail.cascade.joint import Shape
        from longtail.encoders.sequence import tfidf_of
        from longtail.labels.represent import pifa

        L = read.Y.shape[1]
        size = self.shortlist or max(math.isqrt(L), LEAST)
        centroids = pifa(tfidf_of(read.words, len(read.reader)), read.Y)
        return Shape(self.clusters, size, self.dropout, self.detached_share, seed, centroids, bias=self.bias)

    @property
    def detached_share(self) -> float:
        """The part of training in which labels do not train the encoder: never all of it."""
        return self.detached / self.epochs if self.detached < self.epochs else DETACHED

    def network(self, read: Read, seed: int) -> Learner:
        """The network and its phase."""
        import torch

        from longtail.cascade.joint import Joint
        from longtail.cascade.network import Corpus
        from longtail.encoders.sequence import Sequences, tfidf_of

        def sequences(words: NDArray[np.int32]) -> Sequences:
            return Sequences(torch.from_numpy(np.array(words)))

        tokens = None if read.labels is None else sequences(read.labels)
        known = None if tokens is None else (tokens.words > 0).any(1)
        texts = None if read.labels is None else tfidf_of(read.labels, len(read.reader))
        ignore = None if read.ignore is None else sp.csr_matrix(read.ignore, dtype=np.float32)
        corpus = Corpus(sequences(read.words), read.Y, ignore, texts, tokens, known)
        return Joint(corpus, self.encoder(read), self.phases(), self.shape(read, seed), mixing_of(self.augment))

    def model(self, read: Read, labels: Labels, learners: list[Learner]) -> Model:
        """The networks as arrays."""
        from longtail.cascade.model import Cascaded, CascadeModel

        shape = {"D": 0, "length": self.length, "routed": self.routed}
        parts = []
        for learner in learners:
            arrays, meta = served(learner)
            parts.append(Cascaded(arrays, meta | {"inception": shape | {"D": int(arrays["E"].shape[1])}}))
        return CascadeModel(self, labels, read.reader, parts)

    @property
    def routed(self) -> bool:
        """Whether the encoder is that of -LF."""
        return False
