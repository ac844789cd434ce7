"""Texts as weighted bags of word vectors: the encoder of Astec, DECAF and ECLARE, and the label texts of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from longtail.encoders.residual import Form, Residual
from longtail.encoders.sums import WeightedSums
from longtail.encoders.table import Table, compact


class Bags(NamedTuple):
    """The rows of a CSR matrix of weights (N, V), as tensors."""

    ptr: Tensor  # (N + 1,)
    words: Tensor  # (nnz,)
    weights: Tensor  # (nnz,)
    vocabulary: int  # V

    @classmethod
    def of(cls, matrix: sp.csr_matrix) -> Bags:
        """Those of a matrix."""
        arrays = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float32))
        ptr, words, weights = (torch.from_numpy(array) for array in arrays)
        return cls(ptr, words, weights, matrix.shape[1])

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def apply(self, move: Callable[[Tensor], Tensor]) -> Bags:
        """As a module's tensors are moved to a device."""
        return Bags(move(self.ptr), move(self.words), move(self.weights), self.vocabulary)

    def take(self, rows: Tensor) -> Bags:
        """These rows (B,)."""
        first, lengths = self.ptr[rows], self.ptr[rows + 1] - self.ptr[rows]
        ptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        at = torch.repeat_interleave(first - ptr[:-1], lengths) + torch.arange(int(ptr[-1]), device=rows.device)
        return Bags(ptr, self.words[at], self.weights[at], self.vocabulary)


def bag_vectors(E: Table, bags: Bags) -> Tensor:
    """Σ_w weight · E_w of each row (B, D): its TF-IDF times the word vectors. An empty row gives 0."""
    words, at = compact(bags.words, bags.vocabulary)
    summed: Tensor = WeightedSums.apply(E.rows(words), at, bags.ptr, bags.weights)  # type: ignore[no-untyped-call]
    return summed


class BagEncoder(nn.Module):
    """Bag of word vectors, dropout, and a residual block for each feature (B, D) that levels read."""

    def __init__(self, E: Table, features: tuple[str, ...], form: Form, dropout: float):
        super().__init__()
        self.E, self.form, self.dropout = E, form, nn.Dropout(dropout)
        self.residuals = nn.ModuleDict({name: Residual(E.width, form) for name in features})
        self.widths = dict.fromkeys(features, E.width)

    def embed(self, bags: Bags) -> Tensor:
        """v (B, D)."""
        return bag_vectors(self.E, bags)

    def encode(self, v: Tensor) -> dict[str, Tensor]:
        """From v (B, D)."""
        v = self.dropout(v)
        return {name: residual(v) for name, residual in self.residuals.items()}

    def forward(self, bags: Bags) -> dict[str, Tensor]:
        """Both."""
        return self.encode(self.embed(bags))

    @torch.no_grad()
    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What prediction needs of it (see `cascade.serving.BagFeatures`), and what JSON holds."""
        found = {"E": self.E.weight.cpu().numpy()}
        for name, residual in self.residuals.items():
            found |= {f"residual.{name}.{part}": array for part, array in residual.arrays().items()}  # type: ignore[operator]
        return found, {"encoder": "bag", "residuals": dict.fromkeys(self.residuals, self.form)}
