"""The training points of a network, as its encoder reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.labels import Labels
from longtail.core.progress import Progress
from longtail.data.dataset import Dataset
from longtail.encoders.bag import Bags
from longtail.encoders.reader import Reader
from longtail.encoders.sequence import Sequences, idf_of, tfidf_of
from longtail.encoders.tfidf import Tfidf, TfidfParameters


@dataclass(frozen=True)
class Points:
    """N points and L labels, with label texts if there are any, and pairs that count neither way."""

    reader: Reader
    tokens: Bags | Sequences  # (N)
    rows: sp.csr_matrix  # (N, V): TF-IDF of the points
    Y: sp.csr_matrix  # (N, L), soft targets in (0, 1]
    ignore: sp.csr_matrix | None = None  # (N, L)
    label_tokens: Bags | Sequences | None = None  # (L): label texts as the encoder reads texts
    label_rows: sp.csr_matrix | None = None  # (L, V): TF-IDF of the label texts
    keys: NDArray[np.uint64] | None = None  # (N,): by which a memory finds the points again
    tfidf: Tfidf | None = None  # what made `rows`, where these are of whole texts and not of what the reader reads

    @classmethod
    def read(cls, reader: Reader, data: Dataset, labels: Labels, progress: Progress | None = None) -> Points:
        """Points and label texts through a reader."""
        read = reader.read(data.texts, cached=True, progress=progress)
        idf = None if sp.issparse(read) else idf_of(read, len(reader))
        tokens, rows = tokens_of(reader, read, idf)
        label_tokens, label_rows = None, None
        if labels.texts is not None:
            label_tokens, label_rows = tokens_of(reader, reader.read(labels.texts, cached=True, progress=progress), idf)
        ignore = None if data.ignore is None else sp.csr_matrix(data.ignore, dtype=np.float32)
        return cls(reader, tokens, rows, data.truth(), ignore, label_tokens, label_rows)

    def with_whole_texts(self, data: Dataset) -> Points:
        """The same with TF-IDF rows of the words of whole texts: of long ones a transformer reads the beginning only.

        There are no rows of label texts then.
        """
        tfidf, counts = Tfidf.fit(data.texts, TfidfParameters())
        return replace(self, tfidf=tfidf, rows=tfidf.weigh(counts), label_rows=None)

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    @property
    def labels(self) -> int:
        """L."""
        return int(self.Y.shape[1])

    @property
    def texts(self) -> sp.csr_matrix:
        """`label_rows` (L, V), for systems that need label texts."""
        if self.label_rows is None:
            raise RuntimeError("this system needs label texts; its recipe should have refused the corpus")
        return self.label_rows

    def label_known(self) -> NDArray[np.bool_]:
        """Whether each label has a text with known words (L,)."""
        return np.diff(self.texts.indptr) > 0


def tokens_of(reader: Reader, read: Any, idf: NDArray[np.float32] | None) -> tuple[Bags | Sequences, sp.csr_matrix]:
    """What a reader gives, as tensors for an encoder and as TF-IDF rows. Sequences are weighed by `idf` (V,)."""
    if sp.issparse(read):
        return Bags.of(read), read
    return Sequences.of(read), tfidf_of(read, len(reader), idf)
