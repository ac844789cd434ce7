"""Stochastic weight averaging (Izmailov et al. 2018): the mean of the weights at the ends of a phase's last epochs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """A running mean of a module's floating-point tensors: weights, tables, and running statistics of batch norms.

    The paper computes batch-norm statistics anew for the averaged weights; here those of the epochs are averaged too.
    """

    def __init__(self, means: dict[str, Tensor] | None = None, count: int = 0):
        self.means, self.count = dict(means or {}), count

    @torch.no_grad()
    def add(self, module: nn.Module) -> None:
        """Add the current weights to the mean."""
        self.count += 1
        for name, tensor in module.state_dict().items():
            if not tensor.is_floating_point():
                continue
            if name not in self.means:
                self.means[name] = tensor.detach().clone()
            else:
                self.means[name] = self.means[name].to(tensor.device).lerp_(tensor, 1 / self.count)

    @torch.no_grad()
    def put_into(self, module: nn.Module) -> None:
        """Replace the module's weights by the means; does nothing before the first `add`."""
        for name, tensor in module.state_dict().items():
            if name in self.means:
                tensor.copy_(self.means[name])

    @contextmanager
    def used_in(self, module: nn.Module) -> Iterator[None]:
        """Within this context the module has the averaged weights, afterwards its own again."""
        own = {name: tensor.detach().clone() for name, tensor in module.state_dict().items() if name in self.means}
        self.put_into(module)
        try:
            yield
        finally:
            with torch.no_grad():
                for name, tensor in module.state_dict().items():
                    if name in own:
                        tensor.copy_(own[name])
