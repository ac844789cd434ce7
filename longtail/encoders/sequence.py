"""Texts as sequences of words, through a table of word vectors and a network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from longtail.data.sparse import normalise_rows
from longtail.encoders.encoder import Embedded, Encoder
from longtail.encoders.export import Exported
from longtail.encoders.inception import Inception
from longtail.encoders.table import Table, compact
from longtail.encoders.tfidf import smoothed_idf
from longtail.encoders.tokens import UNKNOWN


class Sequences(NamedTuple):
    """The words of N texts (N, T), padded by 0."""

    words: Tensor

    @classmethod
    def of(cls, words: NDArray[np.int32]) -> Sequences:
        """From an array, which may be mapped from a file and read-only."""
        return cls(torch.from_numpy(np.array(words)))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def lengths(self) -> Tensor:
        """How many words each text has (N,)."""
        return (self.words > 0).sum(1)

    def take(self, rows: Tensor) -> Sequences:
        """Some texts (B,), in this order."""
        return Sequences(self.words[rows].long())


class WordEncoder(Encoder):
    """Base class of encoders over sequences of word vectors E (V, D)."""

    def __init__(self, E: Table):
        super().__init__()
        self.E = E

    def embed(self, tokens: Sequences) -> Embedded:
        """Word vectors (B, T, D), and which of them belong to words (B, T)."""
        numbers, at = compact(tokens.words, len(self.E))
        return functional.embedding(at, self.E.rows(numbers)), tokens.words > 0

    def mix(self, one: Embedded, other: Embedded, share: float) -> Embedded:
        """Word vectors are mixed place by place; where a text has no word, its vector counts as 0."""
        (x, words), (y, others) = one, other  # (B, T, D), (B, T)
        return share * x * words.unsqueeze(2) + (1 - share) * y * others.unsqueeze(2), words | others


class SequenceEncoder(WordEncoder):
    """Word vectors and InceptionXML's network over them."""

    kind = "inception"

    def __init__(self, E: Table, net: Inception):
        super().__init__(E)
        self.net, self.widths = net, net.widths

    def encode(self, embedded: Embedded, detached: frozenset[str] = frozenset()) -> dict[str, Tensor]:
        """The features "meta" and "label" (B, d); a detached one trains its own last layer only."""
        vectors, words = embedded
        features: dict[str, Tensor] = self.net(vectors, words, detached)
        return features

    @torch.no_grad()
    def export(self) -> Exported:
        """Word vectors and network, for `encoders.inception_served.InceptionFeatures`."""
        arrays = {f"inception.{name}": tensor.cpu().numpy() for name, tensor in self.net.state_dict().items()}
        return Exported(arrays | {"E": self.E.weight.cpu().numpy()}, {"kind": self.kind, **self.net.shape})


def tfidf_of(words: NDArray[np.int32], vocabulary: int, idf: NDArray[np.float32] | None = None) -> sp.csr_matrix:
    """TF-IDF rows of unit length (N, V) of the known words of sequences (N, T).

    Labels are clustered by them, and label texts weighted. `idf` (V,) is that of these texts unless it is given.
    """
    counts = counts_of(words, vocabulary)
    weights = idf_of(words, vocabulary) if idf is None else idf
    counts.data = (1 + np.log(counts.data)) * weights[counts.indices]
    return normalise_rows(counts.astype(np.float32))


def idf_of(words: NDArray[np.int32], vocabulary: int) -> NDArray[np.float32]:
    """The inverse document frequency of each word (V,) in sequences (N, T)."""
    return smoothed_idf(len(words), np.bincount(counts_of(words, vocabulary).indices, minlength=vocabulary))


def counts_of(words: NDArray[np.int32], vocabulary: int) -> sp.csr_matrix:
    """How often each known word occurs in each sequence (N, V)."""
    rows, places = np.nonzero(words > UNKNOWN)
    ones = np.ones(len(rows), np.float32)
    return sp.csr_matrix((ones, (rows, words[rows, places])), shape=(len(words), vocabulary))  # repeated words add up
