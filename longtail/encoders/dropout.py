"""Dropout that draws its random numbers four times as fast on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.core.errors import ParameterError

STEPS = 2**16  # rates are rounded to multiples of 1 / STEPS


class Dropout(nn.Dropout):
    """Zeros for a share `rate` of the values, the others scaled so that the mean stays (`dropped`)."""

    def __init__(self, rate: float):
        if not 0 <= rate < 1:
            raise ParameterError(f"dropout: a rate must be at least 0 and below 1, but is {rate}")
        super().__init__(rate)

    def forward(self, x: Tensor) -> Tensor:
        """x, of any shape, with a share of its values set to 0."""
        return dropped(x, self.p) if self.training else x


def dropped(x: Tensor, rate: float) -> Tensor:
    """x, of any shape, with a share `rate` of its values set to 0 and the others divided by 1 − rate.

    torch draws a random number of 64 bits for each value, one after another, which takes longer than a convolution;
    here one such number serves four values. On a CPU the rate is rounded to the nearest multiple of 2⁻¹⁶.
    """
    zeros = round(rate * STEPS)
    if not zeros:
        return x
    if x.device.type != "cpu":
        return functional.dropout(x, rate)
    drawn = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    chance = drawn.view(torch.int16)[: x.numel()].view(x.shape)  # uniform in −2¹⁵ … 2¹⁵ − 1
    return x * ((chance >= zeros - STEPS // 2).to(x.dtype) * (STEPS / (STEPS - zeros)))


def use_fast_dropout(model: nn.Module) -> None:
    """Put `Dropout` in the place of every torch dropout of a model."""
    for module in list(model.modules()):
        for name, part in list(module.named_children()):
            if type(part) is nn.Dropout:
                setattr(module, name, Dropout(part.p))
