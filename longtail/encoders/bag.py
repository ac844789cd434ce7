"""Texts as weighted bags of word vectors: the encoder of Astec, DECAF and ECLARE, and the label texts of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from longtail.encoders.encoder import Embedded, Encoder
from longtail.encoders.export import Exported
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
        """The rows of a matrix."""
        arrays = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float32))
        ptr, words, weights = (torch.from_numpy(array) for array in arrays)
        return cls(ptr, words, weights, matrix.shape[1])

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def take(self, rows: Tensor) -> Bags:
        """Some rows (B,), in this order."""
        first, lengths = self.ptr[rows], self.ptr[rows + 1] - self.ptr[rows]
        ptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        at = torch.repeat_interleave(first - ptr[:-1], lengths) + torch.arange(int(ptr[-1]), device=rows.device)
        return Bags(ptr, self.words[at], self.weights[at], self.vocabulary)


def bag_vectors(E: Table, bags: Bags) -> Tensor:
    """Σ_w weight · E_w of each row (B, D): its TF-IDF times the word vectors. An empty row gives 0."""
    words, at = compact(bags.words, bags.vocabulary)
    summed: Tensor = WeightedSums.apply(E.rows(words), at, bags.ptr, bags.weights)  # type: ignore[no-untyped-call]
    return summed


class BagEncoder(Encoder):
    """Bag of word vectors, dropout, and a residual block for each feature (B, D) that levels read.

    All features begin with one word table E; `own_table` gives a feature a table of its own, for systems that go on
    training word vectors for one level after another level is done with them (DECAF).
    """

    kind = "bag"

    def __init__(self, E: Table, features: tuple[str, ...], form: Form, dropout: float):
        super().__init__()
        self.E, self.form, self.dropout = E, form, nn.Dropout(dropout)
        self.tables = nn.ModuleDict()  # of features that have their own
        self.residuals = nn.ModuleDict({name: Residual(E.width, form) for name in features})
        self.widths = dict.fromkeys(features, E.width)

    def table(self, feature: str) -> Table:
        """The word table that a feature is made from."""
        found = dict(self.tables.items()).get(feature, self.E)
        if not isinstance(found, Table):
            raise TypeError(f"the word table of {feature} is a {type(found).__name__}")
        return found

    def own_table(self, feature: str) -> Table:
        """Give a feature a word table of its own, begun as a copy of the common one."""
        self.tables[feature] = Table(self.E.weight.clone())
        return self.table(feature)

    def copy_residual(self, source: str, target: str) -> None:
        """Let the block of one feature begin where that of another is now."""
        self.residuals[target].load_state_dict(self.residuals[source].state_dict())

    def embed(self, tokens: Bags) -> Embedded:
        """v = Σ_w x_w E_w (B, D) by each table: the common one, then those of features that have their own."""
        return tuple(bag_vectors(E, tokens) for E in (self.E, *self.tables.values()))  # type: ignore[arg-type]

    def encode(self, embedded: Embedded, detached: frozenset[str] = frozenset()) -> dict[str, Tensor]:
        """The residual block of each feature's v (B, D); a detached feature does not train word vectors."""
        common, *own = (self.dropout(v) for v in embedded)
        of_feature = dict(zip(self.tables, own, strict=True))
        features = {}
        for name, residual in self.residuals.items():
            v = of_feature.get(name, common)
            features[name] = residual(v.detach() if name in detached else v)
        return features

    @torch.no_grad()
    def export(self) -> Exported:
        """Word vectors and blocks, for `encoders.served.BagFeatures`."""
        arrays = {"E": self.E.weight.cpu().numpy()}
        for name in self.tables:
            arrays[f"E.{name}"] = self.table(name).weight.cpu().numpy()
        for name, residual in self.residuals.items():
            arrays |= {f"residual.{name}.{part}": array for part, array in residual.arrays().items()}  # type: ignore[operator]
        return Exported(arrays, {"kind": self.kind, "residuals": dict.fromkeys(self.residuals, self.form)})
