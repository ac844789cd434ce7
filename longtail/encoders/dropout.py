"""Dropout that a CPU draws four times as fast."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.core.errors import ParameterError

STEPS = 2**16  # a rate is taken to the nearest of so many


class Dropout(nn.Module):
    """Zeros for a share `rate` of the values, the others scaled so that the mean stays.

    torch draws a random number of 64 bits for each value, one after another, which takes longer than a convolution;
    here one does for four values. The scale is that of the share really drawn, at most 2⁻¹⁷ from the rate.
    """

    def __init__(self, rate: float):
        super().__init__()
        if not 0 <= rate < 1:
            raise ParameterError(f"dropout: a rate must be at least 0 and below 1, but is {rate}")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Any shape."""
        dropped = round(self.rate * STEPS)
        if not self.training or not dropped:
            return x
        if x.device.type != "cpu":
            return functional.dropout(x, self.rate)
        drawn = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        chance = drawn.view(torch.int16)[: x.numel()].view(x.shape)  # uniform in −2¹⁵ … 2¹⁵ − 1
        return x * ((chance >= dropped - STEPS // 2).to(x.dtype) * (STEPS / (STEPS - dropped)))

    def extra_repr(self) -> str:
        """What torch shows of it."""
        return f"rate={self.rate}"
