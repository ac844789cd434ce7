"""Which labels a point is trained on at a level below the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail._native import top_k
from longtail._native.rows import join_truth
from longtail.cascade.targets import Truth
from longtail.labels.tree import LabelTree


class Family(NamedTuple):
    """Which nodes of a level stand below which of the one above."""

    children: Tensor  # (K, W), padded by −1
    parent: Tensor  # (L,)

    @classmethod
    def of(cls, tree: LabelTree, t: int) -> Family:
        """Levels t − 1 and t of a tree; labels by their own numbers."""
        children = children_of(tree, t)
        parent = np.empty(len(tree.levels[t]) - 1, np.int64)
        at, place = np.nonzero(children >= 0)
        parent[children[at, place]] = at
        return cls(torch.from_numpy(children.astype(np.int64)), torch.from_numpy(parent))

    def apply(self, move: Callable[[Tensor], Tensor]) -> Family:
        """As a module's tensors are moved to a device."""
        return Family(move(self.children), move(self.parent))


def children_of(tree: LabelTree, t: int) -> NDArray[np.int32]:
    """The nodes of level t below each of level t − 1 (K_{t−1}, W), padded by −1; labels by their own numbers."""
    ptr = tree.child_ptr(t)
    widths = np.diff(ptr)
    at = np.arange(widths.max())[None, :]
    nodes = np.where(at < widths[:, None], ptr[:-1, None] + at, -1)
    last = t == len(tree.levels) - 1
    return np.where(nodes >= 0, tree.order[nodes] if last else nodes, -1).astype(np.int32)


class Shortlist(NamedTuple):
    """Candidates (B, C), padded by −1; whether each is counted (B, C); the share of true labels it found by itself.

    `targets` (B, C) are those of the candidates, where making the list told them.
    """

    candidates: Tensor
    counted: Tensor
    recall: Tensor
    targets: Tensor | None = None


def below_parents(logits: Tensor, above: Truth, truth: Truth, family: Family, k: int) -> Shortlist:
    """The children of k parents: the true ones first, then those with the highest logits (B, K) on the level above.

    Truth below parents that do not fit among the k is left out of the step. Parents' scores are constants here.
    """
    known = logits.detach().float()  # (B, K)
    k = min(k, known.shape[1])
    lowest, highest = known.aminmax()
    beyond = (highest - lowest + 1) * (1 + above.values)  # truth above the rest, by its targets more than by logits
    forced = known.index_put((above.rows, above.labels), beyond, accumulate=True)
    candidates = family.children[best(forced, k)].flatten(1)  # (B, k·W)
    found = torch.zeros_like(known, dtype=torch.bool).scatter_(1, best(known, k), True)
    recall = found[truth.rows, family.parent[truth.labels]].float().mean() if len(truth.rows) else found.new_ones(())
    return Shortlist(candidates, (candidates >= 0).float(), recall.float())


def best(scores: Tensor, k: int) -> Tensor:
    """The places (B, k) of the k highest scores of each row; some or other where a network has lost its way to NaN."""
    if scores.device.type == "cpu":
        return torch.from_numpy(top_k(scores.numpy(), k)[0]).long().clamp_(min=0)
    return scores.topk(k, sorted=False).indices


def with_truth(shortlist: Tensor, truth: Truth) -> Shortlist:
    """A shortlist (B, S) made beforehand, and beside it what is true; nothing counts twice."""
    pairs = max(len(truth.rows), 1)
    if shortlist.device.type == "cpu":
        joined = join_truth(truth.ptr(), truth.labels.numpy(), truth.values.numpy(), shortlist.numpy())
        candidates, counted, targets = (torch.from_numpy(array) for array in joined[:3])
        return Shortlist(candidates, counted, torch.tensor(joined[3] / pairs), targets)
    positives = truth.padded()  # (B, most)
    found = truth.at(shortlist)
    true = found > 0
    candidates = torch.cat([positives, shortlist.long()], 1)
    counted = torch.cat([positives >= 0, (shortlist >= 0) & ~true], 1)
    recall = (true.sum() / pairs).float()
    return Shortlist(candidates, counted.float(), recall, torch.cat([truth.at(positives), found], 1))
