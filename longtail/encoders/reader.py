"""Readers: from texts to what an encoder takes, bags of weighted terms or sequences of numbers. No torch.

A reader is a vocabulary in one of two forms. Vocabularies are found by their registered kind when a model is loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import ParameterError, StoreError
from longtail.core.progress import Progress
from longtail.core.registry import Registry
from longtail.core.texts import Texts
from longtail.encoders.tokens import UNKNOWN

vocabularies: Registry[Any] = Registry("vocabulary")
vocabularies.add("tfidf", "longtail.encoders.tfidf:Tfidf")
vocabularies.add("words", "longtail.encoders.words:Words")
vocabularies.add("subwords", "longtail.encoders.subwords:Subwords")


class Reader(ABC):
    """Texts → rows that an encoder takes; saved with the model."""

    def __init__(self, kind: str, vocabulary: Any):
        self.kind, self.vocabulary = kind, vocabulary  # the registered kind of the vocabulary

    def __len__(self) -> int:
        """V: the rows that a table of vectors needs."""
        return len(self.vocabulary)

    @abstractmethod
    def read(self, texts: Texts, *, cached: bool = False, progress: Progress | None = None) -> Any:
        """N texts, in this reader's form. `cached` keeps the result on disk where reading again would take longer."""

    def names(self) -> list[str]:
        """The term of each number (V,); "" for padding and unknown."""
        names: list[str] = self.vocabulary.names(range(len(self)))
        return names

    @abstractmethod
    def known(self, rows: Any) -> NDArray[np.bool_]:
        """Whether each text that was read has a known term (N,)."""

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON values that make this reader again."""
        arrays, meta = self.vocabulary.state()
        return arrays, {"form": "bag", "vocabulary": self.kind, **meta}


class BagReader(Reader):
    """Texts as TF-IDF rows of unit length (N, V)."""

    def read(self, texts: Texts, *, cached: bool = False, progress: Progress | None = None) -> sp.csr_matrix:
        """Never cached: reading takes tens of microseconds a text."""
        return self.vocabulary.encode(texts) if self.kind == "tfidf" else self.vocabulary.bags(texts)

    def known(self, rows: sp.csr_matrix) -> NDArray[np.bool_]:
        return np.diff(rows.indptr) > 0


class CountReader(Reader):
    """Texts as damped counts of their tokens (N, V): 1 + ln c for a token that occurs c times. Encoders weigh them."""

    def read(self, texts: Texts, *, cached: bool = False, progress: Progress | None = None) -> sp.csr_matrix:
        """Never cached, as in `BagReader`."""
        counts: sp.csr_matrix = self.vocabulary.count(texts, progress)
        counts.data = 1 + np.log(counts.data)
        return counts

    def known(self, rows: sp.csr_matrix) -> NDArray[np.bool_]:
        return np.diff(rows.indptr) > 0

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, meta = super().state()
        return arrays, meta | {"form": "counts"}


class SequenceReader(Reader):
    """Texts as the numbers of their first `length` words or sub-words (N, length), padded by 0."""

    def __init__(self, kind: str, vocabulary: Any, length: int):
        super().__init__(kind, vocabulary)
        self.length = length

    def read(self, texts: Texts, *, cached: bool = False, progress: Progress | None = None) -> NDArray[np.int32]:
        return self.vocabulary.encode(texts, self.length, cached=cached, progress=progress)

    def known(self, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        return np.asarray((rows > UNKNOWN).any(1))

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, meta = super().state()
        return arrays, meta | {"form": "sequence", "length": self.length}


def reader_from_state(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Reader:
    """The reader that `state` described."""
    kind = str(meta.get("vocabulary"))
    try:
        vocabulary = vocabularies[kind].from_state(arrays, meta)
    except ParameterError as error:
        raise StoreError(
            f"the model reads texts by a vocabulary of kind {kind!r}, which this version of longtail does not know; "
            "install the version that saved the model, or train it again"
        ) from error
    if meta["form"] == "sequence":
        return SequenceReader(kind, vocabulary, meta["length"])
    return CountReader(kind, vocabulary) if meta["form"] == "counts" else BagReader(kind, vocabulary)
