"""What several training processes exchange within a step. With one process, nothing."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
from torch import Tensor


def processes() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def own_share(items: Tensor) -> Tensor:
    """The items that fall to this process, every n-th one of n processes. All get as many; the first may repeat."""
    process, count = processes()
    if count == 1 or not len(items):
        return items
    each = -(-len(items) // count)
    places = torch.arange(each * count, device=items.device) % len(items)
    return items[places[process::count]]


def of_all(share: Tensor, total: int | None = None) -> Tensor:
    """The items of all processes, in the order in which `own_share` dealt them out, cut to `total`; with gradients.

    Each process then computes the whole loss. The gradient that comes back to its own items is the sum over processes,
    and gradients of parameters are averaged afterwards: together this is the gradient of one process with all items.
    """
    if processes()[1] == 1:
        return share
    whole: Tensor = Gathered.apply(share)  # type: ignore[no-untyped-call]
    return whole[:total]


class Gathered(torch.autograd.Function):
    """The items (b, …) of all n processes (b · n, …): item 0 of each process, then item 1 of each, and so on."""

    @staticmethod
    def forward(ctx: Any, share: Tensor) -> Tensor:
        parts = [torch.empty_like(share) for _ in range(processes()[1])]
        torch.distributed.all_gather(parts, share.contiguous())
        return torch.stack(parts, dim=1).flatten(0, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """The gradient of this process's items: the sum over all processes."""
        process, count = processes()
        total = grads[0].contiguous().clone()
        torch.distributed.all_reduce(total)
        return total.unflatten(0, (-1, count))[:, process]


def distinct(points: Tensor) -> int:
    """How many of the points (B,) of all processes are different: those repeated to fill up stand at the end."""
    return len(points.unique())
