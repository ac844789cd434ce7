"""The two heads of a dual encoder: g1 for comparing texts, g2 for classifiers."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from longtail.encoders.dropout import Dropout
from longtail.encoders.export import Exported

Activation = Literal["tanh", "none"]


class Head(nn.Module):
    """Linear → activation → dropout, then (with `unit`) scaled to length 1: (B, D) → (B, d).

    UniDEC's g1 has tanh and unit length, its g2 no tanh. The linear map begins at the identity (its first d rows): what
    a pretrained encoder knows of which texts are alike is then still there at the first step. Systems without a head
    have one without a linear map (`linear=False`), of which the length remains.
    """

    def __init__(
        self,
        D: int,
        d: int | None = None,
        activation: Activation = "none",
        dropout: float = 0.0,
        unit: bool = True,
        linear: bool = True,
    ):
        super().__init__()
        self.width, self.activation, self.unit = d or D, activation, unit
        self.linear = nn.Linear(D, self.width) if linear else None
        if self.linear is not None:
            nn.init.eye_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, D) → (B, d)."""
        x = x if self.linear is None else self.linear(x)
        x = self.dropout(torch.tanh(x) if self.activation == "tanh" else x)
        return unit_rows(x.float()) if self.unit else x

    @torch.no_grad()
    def export(self) -> Exported:
        """Weight, bias and form, for `dual.served.ServedHead`."""
        parts = {} if self.linear is None else {"weight": self.linear.weight, "bias": self.linear.bias}
        arrays = {name: tensor.cpu().numpy() for name, tensor in parts.items()}
        return Exported(arrays, {"activation": self.activation, "unit": self.unit, "width": self.width})


def unit_rows(x: Tensor) -> Tensor:
    """Rows (B, d) scaled to length 1; rows of zeros, as of texts without known tokens, stay.

    `functional.normalize` divides such rows, and their gradients, by 1e-12: one of them would spoil Adam's moments.
    """
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x / torch.where(length > 0, length.clamp(min=1e-12), 1.0)
