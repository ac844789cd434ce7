"""Vectors of very many words or labels, of which a training step touches few."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class Table(nn.Module):
    """`weight` (n, d), float32. A step takes the rows it needs and has gradients for these alone.

    `rows` copies them to a leaf of the step's graph and remembers it; after `backward`, `gradient` returns the
    gradients of these rows. No other tensor has the size of the table, except its moments (`train.adam`). With
    `trainable` off, as in phases that freeze it, rows are plain constants.
    """

    weight: Tensor

    def __init__(self, weight: Tensor):
        super().__init__()
        self.register_buffer("weight", weight.float().contiguous())
        self.trainable = True
        self._taken: list[tuple[Tensor, Tensor]] = []
        self._gathered: list[tuple[Tensor, Tensor]] = []  # gradients that `gather` has added up

    @classmethod
    def of(cls, rows: NDArray[Any]) -> Table:
        """A table that begins at these rows (n, d)."""
        return cls(torch.from_numpy(np.ascontiguousarray(rows, np.float32)))

    @classmethod
    def random(cls, n: int, d: int, std: float) -> Table:
        """Normal entries of this standard deviation."""
        return cls(torch.empty(n, d).normal_(std=std))

    @classmethod
    def xavier(cls, n: int, d: int) -> Table:
        """Uniform entries by Glorot's rule for a matrix (n, d): with many rows they are small."""
        return cls(nn.init.xavier_uniform_(torch.empty(n, d)))

    def __len__(self) -> int:
        return int(self.weight.shape[0])

    @property
    def width(self) -> int:
        """The number of dimensions, d."""
        return int(self.weight.shape[1])

    def rows(self, ids: Tensor) -> Tensor:
        """The vectors (U, d) of these numbers (U,), each of which stands there once."""
        found = self.weight[ids]
        if self.trainable and torch.is_grad_enabled():
            found.requires_grad_()
            self._taken.append((ids, found))
        return found

    def whole(self) -> Tensor:
        """All vectors (n, d), for losses over all labels: the gradient is then as large as the table."""
        return self.rows(torch.arange(len(self), device=self.weight.device))

    def gradient(self) -> tuple[Tensor, Tensor] | None:
        """Numbers (U,), each once, and the gradients (U, d) of all rows taken since the last call; None: no row was."""
        taken = [*self._gathered, *((ids, rows.grad) for ids, rows in self._taken if rows.grad is not None)]
        self._taken, self._gathered = [], []
        if not taken:
            return None
        if len(taken) == 1:
            return taken[0][0], taken[0][1]
        unique, at = compact(torch.cat([ids for ids, _ in taken]), len(self))
        total = torch.zeros(len(unique), self.width, device=unique.device)
        for own, (_, grad) in zip(at.split([len(ids) for ids, _ in taken]), taken, strict=True):
            total.index_add_(0, own, grad)
        return unique, total

    @torch.no_grad()
    def scale_to(self, size: float) -> None:
        """Multiply all entries by one number, so that the square root of their mean square is `size`."""
        found = self.weight.square().mean().sqrt()
        if found > 0:
            self.weight.mul_(size / found)

    def gather(self) -> None:
        """Add up the gradients so far, so that a step in many parts holds each row's gradient once."""
        if len(self._taken) + len(self._gathered) > 1 and (found := self.gradient()) is not None:
            self._gathered = [found]


def compact(ids: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The different numbers below n among `ids`, rising, and the place of each of `ids` among them.

    As `unique`, but without sorting: the cost is that of n bytes, which for millions of entries is less.
    """
    seen = torch.zeros(n, dtype=torch.bool, device=ids.device)
    seen[ids] = True
    found = seen.nonzero().flatten()
    place = torch.empty(n, dtype=torch.long, device=ids.device)
    place[found] = torch.arange(len(found), device=ids.device)
    return found, place[ids]
