"""The true labels of a batch as sparse pairs, and the targets of candidates looked up in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail._native import pick
from longtail.encoders.bag import Bags
from longtail.encoders.held import Held


class Truth(NamedTuple):
    """The targets of B points among K labels or clusters: (row, label) pairs in rising order, and their values."""

    rows: Tensor  # (P,)
    labels: Tensor  # (P,)
    values: Tensor  # (P,), in (0, 1]
    shape: tuple[int, int]  # (B, K)

    @property
    def keys(self) -> Tensor:
        """Each pair as one number, row · K + label, in rising order (P,)."""
        return self.rows * self.shape[1] + self.labels

    def dense(self) -> Tensor:
        """The same as a full matrix (B, K)."""
        whole = torch.zeros(self.shape, device=self.values.device)
        whole[self.rows, self.labels] = self.values
        return whole

    def at(self, candidates: Tensor) -> Tensor:
        """The targets of candidates (B, C); 0 for those that are not true, and for pads (−1)."""
        if not len(self.rows):
            return torch.zeros(candidates.shape, device=candidates.device)
        if candidates.device.type == "cpu":
            return torch.from_numpy(pick(self.matrix(), candidates.numpy()))
        first = torch.arange(self.shape[0], device=candidates.device)[:, None] * self.shape[1]  # (B, 1)
        wanted = first + candidates
        place = torch.searchsorted(self.keys, wanted).clamp_(max=len(self.rows) - 1)
        return torch.where((self.keys[place] == wanted) & (candidates >= 0), self.values[place], 0.0)

    def matrix(self) -> sp.csr_matrix:
        """The same as a sparse matrix (B, K) that shares the memory of the tensors."""
        return sp.csr_matrix((self.values.numpy(), self.labels.numpy(), self.ptr()), shape=self.shape)

    def ptr(self) -> NDArray[np.int64]:
        """Row pointers (B + 1,), as in a CSR matrix."""
        return np.searchsorted(self.rows.numpy(), np.arange(self.shape[0] + 1)).astype(np.int64)

    def padded(self) -> Tensor:
        """The labels of each point, side by side (B, most), padded by −1."""
        counts = torch.bincount(self.rows, minlength=self.shape[0])
        most = int(counts.max()) if len(self.rows) else 0
        whole = torch.full((self.shape[0], most), -1, dtype=torch.long, device=self.rows.device)
        begins = counts.cumsum(0) - counts
        whole[self.rows, torch.arange(len(self.rows), device=self.rows.device) - begins[self.rows]] = self.labels
        return whole

    def turned(self) -> Truth:
        """The same pairs with rows and labels swapped, (K, B), in rising order again."""
        order = (self.labels * self.shape[0] + self.rows).argsort()
        return Truth(self.labels[order], self.rows[order], self.values[order], (self.shape[1], self.shape[0]))

    def among(self, labels: Tensor) -> Truth:
        """The pairs whose label is one of `labels` (P,), which rise; label p is then the place in them: (B, P)."""
        place = torch.searchsorted(labels, self.labels).clamp_(max=max(len(labels) - 1, 0))
        kept = labels[place] == self.labels if len(labels) else torch.zeros_like(self.labels, dtype=torch.bool)
        return Truth(self.rows[kept], place[kept], self.values[kept], (self.shape[0], len(labels)))

    def without(self, other: Truth) -> Truth:
        """The pairs that `other` does not have."""
        kept = torch.isin(self.keys, other.keys, invert=True)
        return Truth(self.rows[kept], self.labels[kept], self.values[kept], self.shape)

    def with_pairs(self, other: Truth | None) -> Truth:
        """The pairs of both, each once, with the value 1."""
        if other is None:
            return self
        keys = torch.cat([self.keys, other.keys]).unique()
        ones = torch.ones(len(keys), device=keys.device)
        return Truth(keys // self.shape[1], keys % self.shape[1], ones, self.shape)

    def scaled(self, share: float | Tensor) -> Truth:
        """The values multiplied by one number, or by one number for each point (B,)."""
        return self._replace(values=self.values * (share[self.rows] if isinstance(share, Tensor) else share))

    def plus(self, other: Truth) -> Truth:
        """The sum, pair by pair."""
        keys, at = torch.cat([self.keys, other.keys]).unique(return_inverse=True)
        total = torch.zeros(len(keys), device=keys.device).index_add_(0, at, torch.cat([self.values, other.values]))
        return Truth(keys // self.shape[1], keys % self.shape[1], total, self.shape)


class Targets(nn.Module):
    """The targets Y of a training set on one level, CSR (N, K) as tensors."""

    def __init__(self, Y: sp.csr_matrix):
        super().__init__()
        Y = Y.tocsr()
        Y.sort_indices()
        self.rows, self.width = Held(Bags.of(Y.astype(np.float32))), Y.shape[1]

    def of(self, points: Tensor) -> Truth:
        """The targets of some points (B,)."""
        taken = self.rows.value.take(points)
        rows = torch.repeat_interleave(torch.arange(len(points), device=points.device), taken.ptr.diff())
        return Truth(rows, taken.words, taken.weights, (len(points), self.width))
