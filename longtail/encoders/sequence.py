"""Texts as sequences of words, through a table of word vectors and a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from longtail.data.sparse import normalise_rows
from longtail.encoders.inception import Inception
from longtail.encoders.table import Table, compact


class Sequences(NamedTuple):
    """The words of N texts (N, T), padded by 0."""

    words: Tensor

    def __len__(self) -> int:
        return len(self.words)

    def apply(self, move: Callable[[Tensor], Tensor]) -> Sequences:
        """As a module's tensors are moved to a device."""
        return Sequences(move(self.words))

    def take(self, rows: Tensor) -> Sequences:
        """These texts (B,)."""
        return Sequences(self.words[rows].long())


class SequenceEncoder(nn.Module):
    """Word vectors E (V, D) and InceptionXML's network over them."""

    def __init__(self, E: Table, net: Inception):
        super().__init__()
        self.E, self.net, self.widths = E, net, net.widths

    def embed(self, sequences: Sequences) -> tuple[Tensor, Tensor]:
        """Word vectors (B, T, D), and which of them are words (B, T)."""
        numbers, at = compact(sequences.words, len(self.E))
        return functional.embedding(at, self.E.rows(numbers)), sequences.words > 0

    def encode(self, embedded: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        """Features (B, d)."""
        features: dict[str, Tensor] = self.net(*embedded)
        return features

    def forward(self, sequences: Sequences) -> dict[str, Tensor]:
        """Both."""
        return self.encode(self.embed(sequences))

    @torch.no_grad()
    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What prediction needs of it (see `cascade.model`), and what JSON holds."""
        found = {f"inception.{name}": tensor.cpu().numpy() for name, tensor in self.net.state_dict().items()}
        return found | {"E": self.E.weight.cpu().numpy()}, {"encoder": "inception"}


def tfidf_of(words: NDArray[np.int32], vocabulary: int, idf: NDArray[np.float32] | None = None) -> sp.csr_matrix:
    """TF-IDF rows of unit length (N, V) of sequences (N, T): what labels are clustered by, and label texts weighted.

    idf = ln((1 + N)/(1 + df)) + 1 over these texts, unless it is given.
    """
    rows, places = np.nonzero(words > 0)
    counts = sp.csr_matrix(
        (np.ones(len(rows), np.float32), (rows, words[rows, places])), shape=(len(words), vocabulary)
    )  # the same word twice is added up
    if idf is None:
        idf = idf_of(counts)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    return normalise_rows(counts.astype(np.float32))


def idf_of(counts: sp.csr_matrix) -> NDArray[np.float32]:
    """ln((1 + N)/(1 + df)) + 1 of each column (V,)."""
    df = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.asarray(np.log((1 + counts.shape[0]) / (1 + df)) + 1, np.float32)
