"""The small maps that follow a bag of word vectors: each paper's residual block."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

Form = Literal["astec", "decaf", "eclare", "frugal"]


class Residual(nn.Module):
    """(B, D) → (B, D); W is bounded by its spectral norm in all but DECAF's form.

    | form | |
    | --- | --- |
    | astec | ReLU(W v) + v |
    | decaf | σ(a) ⊙ W·ReLU(v) + σ(b) ⊙ v, with a, b (D,) learnt |
    | eclare | k·W·ReLU(v) + v, with k learnt |
    | frugal | α·W·GELU(v) + β·v, with α, β learnt (InceptionXML-LF) |

    As in the authors' code, W begins at the identity and the bias (of Astec and ECLARE) at 0.
    """

    def __init__(self, D: int, form: Form):
        super().__init__()
        self.form = form
        linear = nn.Linear(D, D, bias=form in ("astec", "eclare"))
        nn.init.eye_(linear.weight)
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
        self.linear: Any = linear if form == "decaf" else spectral_norm(linear)
        size = {"astec": 0, "decaf": D, "eclare": 1, "frugal": 1}[form]
        self.change = nn.Parameter(torch.zeros(size) if form == "decaf" else torch.ones(size))  # a, k or α
        self.keep = nn.Parameter(torch.zeros(size) if form == "decaf" else torch.ones(size))  # b or β

    def forward(self, v: Tensor) -> Tensor:
        """v (B, D) → (B, D), by the formula of its form."""
        if self.form == "astec":
            return functional.relu(self.linear(v)) + v
        if self.form == "decaf":
            return torch.sigmoid(self.change) * self.linear(functional.relu(v)) + torch.sigmoid(self.keep) * v
        if self.form == "eclare":
            return self.change * self.linear(functional.relu(v)) + v
        return self.change * self.linear(functional.gelu(v)) + self.keep * v

    @torch.no_grad()
    def arrays(self) -> dict[str, np.ndarray]:
        """W as it is applied, a or k or α, and b or β, for use without torch."""
        self.eval()  # its spectral norm is as the last step left it
        parts = {"weight": self.linear.weight, "change": self.change, "keep": self.keep}
        if self.linear.bias is not None:
            parts["bias"] = self.linear.bias
        return {name: tensor.detach().cpu().numpy() for name, tensor in parts.items()}
