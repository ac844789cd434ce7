"""Texts as sums of static sub-word vectors: an encoder that trains in minutes on a CPU and answers in microseconds."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from longtail.encoders.bag import Bags
from longtail.encoders.encoder import Embedded, Encoder
from longtail.encoders.export import Exported
from longtail.encoders.sums import WeightedSums
from longtail.encoders.table import Table, compact


class StaticEncoder(Encoder):
    """v = Σ_t c_t ω_t E_t, scaled to length 1; the feature "text" is v + W·GELU(v) (B, D).

    c_t is 1 + ln(count) of token t in the text, E_t its vector, ω_t its learnt weight, begun at the token's idf. W
    begins at 0, so the first features are the idf-weighted sums themselves.
    """

    kind = "static"

    def __init__(self, E: Table, idf: NDArray[np.float32], dropout: float = 0.0):
        super().__init__()
        self.E, self.omega = E, Table.of(idf[:, None])
        self.linear, self.dropout = nn.Linear(E.width, E.width), nn.Dropout(dropout)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.widths = {"text": E.width}

    def embed(self, tokens: Bags) -> Embedded:
        """Sums of weighted token vectors (B, D), of unit length; a text without known tokens has 0."""
        ids, at = compact(tokens.words, tokens.vocabulary)
        vectors = self.E.rows(ids) * self.omega.rows(ids)  # (U, D)
        sums: Tensor = WeightedSums.apply(vectors, at, tokens.ptr, tokens.weights)  # type: ignore[no-untyped-call]
        return (functional.normalize(sums, dim=1),)

    def encode(self, embedded: Embedded, detached: frozenset[str] = frozenset()) -> dict[str, Tensor]:
        """{"text": v + W·GELU(v)}."""
        v = self.dropout(embedded[0].detach() if "text" in detached else embedded[0])
        return {"text": v + self.linear(functional.gelu(v))}

    @torch.no_grad()
    def export(self) -> Exported:
        """ω ⊙ E as one table, and W, for `encoders.served.StaticFeatures`."""
        tensors = {"E": self.E.weight * self.omega.weight, "W": self.linear.weight, "b": self.linear.bias}
        return Exported({name: tensor.cpu().numpy() for name, tensor in tensors.items()}, {"kind": self.kind})
