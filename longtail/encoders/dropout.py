"""Dropout that draws its random numbers four times as fast on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.core.errors import ParameterError

STEPS = 2**16  # rates are rounded to multiples of 1 / STEPS


class Dropout(nn.Module):
    """Zeros for a share `rate` of the values, the others scaled so that the mean stays.

    torch draws a random number of 64 bits for each value, one after another, which takes longer than a convolution;
    here one such number serves four values. The rate is rounded to the nearest multiple of 2⁻¹⁶.
    """

    def __init__(self, rate: float):
        super().__init__()
        if not 0 <= rate < 1:
            raise ParameterError(f"dropout: a rate must be at least 0 and below 1, but is {rate}")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """x, of any shape, with a share of its values set to 0."""
        dropped = round(self.rate * STEPS)
        if not self.training or not dropped:
            return x
        if x.device.type != "cpu":
            return functional.dropout(x, self.rate)
        drawn = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        chance = drawn.view(torch.int16)[: x.numel()].view(x.shape)  # uniform in −2¹⁵ … 2¹⁵ − 1
        return x * ((chance >= dropped - STEPS // 2).to(x.dtype) * (STEPS / (STEPS - dropped)))

    def extra_repr(self) -> str:
        """The rate, for torch's printout of a network."""
        return f"rate={self.rate}"
