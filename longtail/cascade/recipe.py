"""What the recipes of cascades share: how texts are read, where word vectors begin, how a model is made.

Importing this file needs no torch: recipes are listed and saved models opened without it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from longtail.core.errors import ParameterError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param, param_of
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.encoders.tfidf import TfidfParameters
from longtail.train.network import NetworkRecipe
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.cascade.cascade import Cascade
    from longtail.cascade.mixing import Mixing
    from longtail.cascade.points import Points
    from longtail.encoders.reader import Reader
    from longtail.encoders.subwords import Subwords
    from longtail.encoders.table import Table
    from longtail.train.phase import Group, Structure

LEAST_CLUSTERS = 64  # unless there are fewer labels, or `clusters` is given


@dataclass(frozen=True)
class CascadeRecipe(NetworkRecipe):
    """A network with levels from few clusters to all labels. A subclass implements `reader_of` and `network`."""

    dimension: int = param(300, "dimensions of word vectors", at_least=1)
    reader: Literal["words", "subwords"] = param("words", "what texts are cut to; subwords: by an encoder's tokenizer")
    vectors: Literal["learnt", "static", "glove"] = param(
        "learnt", "vectors to begin with; static: distilled from an encoder; glove: 50 dimensions"
    )
    encoder: str | None = param(None, "folder of the encoder of subwords and static (none: the installed one)")
    word_rate: float = param(1.0, "learning rate of word vectors, as a share of the others'; 0 freezes", at_least=0.0)
    min_texts: int = param_of(TfidfParameters, "min_texts")
    limit: int | None = param_of(TfidfParameters, "limit")
    schedule: Schedule = param("constant", "how the learning rate changes within a phase")  # noqa: RUF009
    warmup: int = param(0, "steps in which the rate rises from 0 at first (not of one-cycle)", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reader == "subwords" and (self.min_texts > 1 or self.limit is not None):
            raise ParameterError(
                f"{self.kind}: reader=subwords has the vocabulary of its tokenizer; leave min_texts and limit out"
            )
        if self.reader == "subwords" and self.vectors == "glove":
            raise ParameterError(f"{self.kind}: vectors=glove are of words; take reader=words, or vectors=static")
        if self.encoder is not None and self.reader == "words" and self.vectors != "static":
            raise ParameterError(
                f"{self.kind}: encoder={self.encoder!r} has no use without reader=subwords or vectors=static"
            )

    @classmethod
    def model_class(cls) -> type[Model]:
        """Networks are saved as, and opened by, CascadeModel."""
        from longtail.cascade.model import CascadeModel

        return CascadeModel

    def read(self, data: Dataset, labels: Labels, run: Run) -> Points:
        """Points and label texts, through a reader learnt from both."""
        from longtail.cascade.points import Points

        texts = data.texts if labels.texts is None else data.texts + labels.texts
        return Points.read(self.reader_of(texts, run), data, labels, run.progress)

    @abstractmethod
    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """A reader whose vocabulary, or its weights, are learnt from these texts."""

    def subwords(self, texts: Texts, run: Run) -> Subwords:
        """The sub-words of an encoder, with their document frequencies in these texts."""
        from longtail.encoders.subwords import Subwords

        return Subwords.fit(texts, self.encoder, progress=run.progress)[0]

    def word_vectors(self, reader: Reader, about: dict[str, Any]) -> Table:
        """E (V, D) as training begins; `about` is told where vectors come from, for the model to record."""
        from longtail.encoders.table import Table

        if self.vectors == "glove":
            from longtail.encoders.vectors import glove, vectors_for

            return Table.of(vectors_for(reader.names(), glove(f"{self.kind} with vectors=glove")))
        if self.vectors == "static":
            from longtail.encoders.distil import static_vectors, vectors_of

            static = static_vectors(self.encoder, self.dimension)
            about["vectors"] = static.about
            return Table.of(vectors_of(reader.vocabulary, static))
        return Table.random(len(reader), self.dimension, self.dimension**-0.5)

    def group(self, modules: str, lr: float) -> Group:
        """What a phase trains, at this rate and by the recipe's schedule."""
        from longtail.train.phase import Group

        return Group(modules, lr, self.schedule, self.warmup)

    def everything(self, lr: float) -> tuple[Group, Group]:
        """All parts of a network at this rate, word vectors at their share of it."""
        return self.group("", lr), self.group("encoder.E", lr * self.word_rate)

    def mixing(self) -> Mixing | None:
        """How points are mixed in training, if `augment` asks for it."""
        method = self.augment.method
        if method not in ("mixup", "label-mixup"):
            return None
        from longtail.cascade.mixing import Mixing

        return Mixing(method, self.augment.mix)

    def model(self, read: Points, labels: Labels, learners: list[Cascade]) -> Model:  # type: ignore[override]
        """The trained networks as arrays."""
        from longtail.cascade.model import CascadeModel
        from longtail.cascade.served import Network

        networks = [Network(*learner.export()) for learner in learners]
        return CascadeModel(self, labels, read.reader, networks, dict(learners[0].about))


@dataclass(frozen=True)
class WithClusters:
    """The settings of systems whose first level is clusters of labels, all through training."""

    clusters: int | None = param(None, "clusters of labels (none: by labels_per_cluster)", at_least=1)
    labels_per_cluster: float = param(4.0, "labels in a cluster, about", at_least=1.0)

    def clustered(self, net: Cascade, Z: Any) -> Structure:
        """Balanced clusters of labels with vectors Z (L, d), as the structure of a phase."""
        from longtail.cascade.cascade import tree_structure
        from longtail.labels.tree import LabelTree

        L = net.data.labels
        # few labels are clusters of their own: to tell apart two or three clusters would help nobody
        count = self.clusters or max(min(L, LEAST_CLUSTERS), round(L / self.labels_per_cluster))
        return tree_structure(LabelTree.in_clusters(Z, [count], net.seed))


@dataclass(frozen=True)
class BagRecipe(CascadeRecipe):
    """A cascade over bags of words: TF-IDF rows times a table of word vectors."""

    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """TF-IDF of words, or of sub-words."""
        from longtail.encoders.reader import BagReader
        from longtail.encoders.tfidf import Tfidf

        if self.reader == "subwords":
            return BagReader("subwords", self.subwords(texts, run))
        return BagReader("tfidf", Tfidf.fit(texts, TfidfParameters(min_texts=self.min_texts, limit=self.limit))[0])


@dataclass(frozen=True)
class SequenceRecipe(CascadeRecipe):
    """A cascade over sequences of words."""

    length: int = param(32, "words of a text that are read", at_least=1)  # InceptionXML: 32 for titles
    min_texts: int = param(1, "a word must occur in at least this many texts", at_least=1)

    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """The numbers of the first `length` words, or sub-words."""
        from longtail.encoders.reader import SequenceReader
        from longtail.encoders.words import Words

        if self.reader == "subwords":
            return SequenceReader("subwords", self.subwords(texts, run), self.length)
        words = Words.fit(texts, min_texts=self.min_texts, limit=self.limit, progress=run.progress)
        return SequenceReader("words", words, self.length)
