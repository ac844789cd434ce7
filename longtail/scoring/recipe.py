"""What the recipes of all networks over texts share: how texts are read, and where word vectors begin.

Importing this file needs no torch: recipes are listed and saved models opened without it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from longtail.core.errors import ParameterError
from longtail.core.labels import Labels
from longtail.core.parameters import param, param_of
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.encoders.tfidf import TfidfParameters
from longtail.train.network import NetworkRecipe
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.encoders.reader import Reader
    from longtail.encoders.subwords import Subwords
    from longtail.encoders.table import Table
    from longtail.scoring.points import Points
    from longtail.train.phase import Group


@dataclass(frozen=True)
class TextNetworkRecipe(NetworkRecipe):
    """A network over texts. A subclass implements `reader_of`, `network` and `model`."""

    encoder: str | None = param(
        None, "encoder of subwords and static: folder, or name in `longtail encoders` (none: the first there)"
    )
    word_rate: float = param(1.0, "learning rate of word vectors, as a share of the others'; 0 freezes", at_least=0.0)
    schedule: Schedule = param("constant", "how the learning rate changes within a phase")  # noqa: RUF009
    warmup: int = param(0, "steps in which the rate rises from 0 at first (not of one-cycle)", at_least=0)

    def read(self, data: Dataset, labels: Labels, run: Run) -> Points:
        """Points and label texts, through a reader learnt from both."""
        from longtail.scoring.points import Points

        texts = data.texts if labels.texts is None else data.texts + labels.texts
        return Points.read(self.reader_of(texts, run), data, labels, run.progress)

    @abstractmethod
    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """A reader whose vocabulary, or its weights, are learnt from these texts."""

    def subwords(self, texts: Texts, run: Run) -> Subwords:
        """The sub-words of an encoder, with their document frequencies in these texts."""
        from longtail.encoders.subwords import Subwords

        return Subwords.fit(texts, self.encoder, progress=run.progress)[0]

    def group(self, modules: str, lr: float) -> Group:
        """What a phase trains, at this rate and by the recipe's schedule."""
        from longtail.train.phase import Group

        return Group(modules, lr, self.schedule, self.warmup)

    def everything(self, lr: float) -> tuple[Group, Group]:
        """All parts of a network at this rate, word vectors at their share of it."""
        return self.group("", lr), self.group("encoder.E", lr * self.word_rate)


@dataclass(frozen=True)
class WordVectorRecipe(TextNetworkRecipe):
    """A network over vectors of words or sub-words, which are learnt or begin at vectors made elsewhere."""

    dimension: int = param(300, "dimensions of word vectors", at_least=1)
    reader: Literal["words", "subwords"] = param("words", "what texts are cut to; subwords: by an encoder's tokenizer")
    vectors: Literal["learnt", "static", "glove"] = param(
        "learnt", "vectors to begin with; static: distilled from an encoder; glove: 50 dimensions"
    )
    min_texts: int = param_of(TfidfParameters, "min_texts")
    limit: int | None = param_of(TfidfParameters, "limit")

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

    def word_vectors(self, reader: Reader, about: dict[str, Any]) -> Table:
        """E (V, D) as training begins; `about` receives where vectors come from, for the model to record."""
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
