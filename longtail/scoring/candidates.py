"""Which nodes of a level a point is trained on.

| class | candidates of a point | used by |
| --- | --- | --- |
| `All` | every node of the level | first levels |
| `Below` | children of the best nodes of the level above, true parents first | systems that train levels together |
| `Static` | a shortlist made before the phase, and what is true | systems that train one level after the other |

Candidates are modules, so that their tensors move to a device with the network.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail._native import top_k
from longtail._native.rows import join_truth
from longtail.encoders.held import Held
from longtail.labels.tree import LabelTree
from longtail.scoring.targets import Truth

LOWEST = torch.finfo(torch.float32).min


class Scored(NamedTuple):
    """The logits of one level for a batch; the level below reads them."""

    nodes: Tensor | None  # (B, C), padded by −1; None: all K nodes of the level
    logits: Tensor  # (B, C) or (B, K)
    truth: Truth  # of this level


class Shortlist(NamedTuple):
    """The candidates of a batch."""

    nodes: Tensor | None  # (B, C), padded by −1; None: all nodes of the level
    counted: Tensor | None = None  # (B, C): 1, or 0 for pads; None where nodes is None
    recall: Tensor | None = None  # the share of true nodes in the list before true nodes are added
    targets: Tensor | None = None  # (B, C), where building the list gave them


class Candidates(nn.Module):
    """Base class. `forward` lists the candidates of points (B,), whose true nodes on this level are `truth`."""

    @abstractmethod
    def forward(self, points: Tensor, truth: Truth, above: Scored | None) -> Shortlist:
        """`above` has the logits of the level above; None if this level is trained alone."""


class All(Candidates):
    """Every node of the level."""

    def forward(self, points: Tensor, truth: Truth, above: Scored | None) -> Shortlist:
        return Shortlist(None)


class Family(NamedTuple):
    """Which nodes of a level are children of which nodes of the level above."""

    children: Tensor  # (K_above, W), padded by −1
    parent: Tensor  # (K,)

    @classmethod
    def of(cls, tree: LabelTree, t: int) -> Family:
        """Of levels t − 1 and t of a tree; labels have their own numbers, not their places in the tree."""
        children = children_of(tree, t)
        parent = np.empty(len(tree.levels[t]) - 1, np.int64)
        at, place = np.nonzero(children >= 0)
        parent[children[at, place]] = at
        return cls(torch.from_numpy(children.astype(np.int64)), torch.from_numpy(parent))


class Below(Candidates):
    """The children of `beam` parents: true parents first, then those with the highest logits on the level above.

    If a point has more true parents than `beam`, the labels below those that do not fit are left out of the step. The
    parents' scores are constants here: no gradient reaches the level above through them. The recall of a third level or
    a deeper one counts from what the level above was trained on, into which true nodes were put.
    """

    def __init__(self, tree: LabelTree, t: int, beam: int):
        super().__init__()
        self.family: Held[Family] = Held(Family.of(tree, t))
        self.beam = max(1, min(beam, len(tree.levels[t - 1]) - 1))

    @property
    def width(self) -> int:
        """The number of candidates of a point, C, pads included."""
        return self.beam * int(self.family.value.children.shape[1])

    def forward(self, points: Tensor, truth: Truth, above: Scored | None) -> Shortlist:
        if above is None:
            raise RuntimeError("candidates below parents need the level above in the same phase")
        family = self.family.value
        known = above.logits.detach().float()  # (B, K) or (B, C)
        forced = with_truth_first(known, above)
        if above.nodes is not None:  # a pad has no children; it is chosen only if there are too few nodes
            known, forced = (scores.masked_fill(above.nodes < 0, LOWEST) for scores in (known, forced))
        parents = nodes_at(above.nodes, best(forced, self.beam))  # (B, beam)
        nodes = self.below(parents)
        by_score = nodes_at(above.nodes, best(known, self.beam))  # (B, beam), without knowing the truth
        recall = share_found(by_score, truth, family.parent[truth.labels])
        return Shortlist(nodes, (nodes >= 0).float(), recall)

    def below(self, parents: Tensor) -> Tensor:
        """The children (B, k·W) of parents (B, k), both padded by −1."""
        children = self.family.value.children[parents.clamp(min=0)]  # (B, k, W)
        return children.masked_fill((parents < 0)[:, :, None], -1).flatten(1)


class Static(Candidates):
    """Shortlists made before the phase, (N, S) padded by −1, and beside them what is true; nothing counts twice.

    The lists hold nodes of this level; with `below` they hold clusters, whose children are meant (which takes a
    fraction of the memory). With `truth_first` true clusters stand before those of the list, and `below.beam` of all
    are kept: a true node then has its siblings as negatives, even if its cluster is not in the list (AttentionXML).
    """

    lists: Tensor

    def __init__(self, lists: NDArray[np.int32], below: Below | None = None, truth_first: bool = False):
        super().__init__()
        self.register_buffer("lists", torch.from_numpy(np.require(lists, np.int32, "W")), persistent=False)
        self.below, self.truth_first = below, truth_first

    @property
    def width(self) -> int:
        """The number of candidates of a point before true ones are added, pads included."""
        each = 1 if self.below is None else int(self.below.family.value.children.shape[1])
        return int(self.lists.shape[1]) * each

    def forward(self, points: Tensor, truth: Truth, above: Scored | None) -> Shortlist:
        listed = self.lists[points].long()  # (B, S)
        if self.below is None:
            return with_truth(listed, truth)
        if not self.truth_first:
            return with_truth(self.below.below(listed), truth)
        wanted = self.below.family.value.parent[truth.labels]  # (P,)
        recall = share_found(listed, truth, wanted)
        parents = true_parents_first(listed, truth, wanted, self.below)
        return with_truth(self.below.below(parents), truth)._replace(recall=recall)


def children_of(tree: LabelTree, t: int) -> NDArray[np.int32]:
    """The nodes of level t below each node of level t − 1 (K_{t−1}, W), padded by −1; labels by their own numbers."""
    ptr = tree.child_ptr(t)
    widths = np.diff(ptr)
    at = np.arange(widths.max())[None, :]
    nodes = np.where(at < widths[:, None], ptr[:-1, None] + at, -1)
    last = t == len(tree.levels) - 1
    return np.where(nodes >= 0, tree.order[nodes] if last else nodes, -1).astype(np.int32)


def with_truth_first(known: Tensor, above: Scored) -> Tensor:
    """Scores (B, C) in which true nodes stand above all others, those with higher targets favoured."""
    lowest, highest = known.aminmax()
    span, truth = highest - lowest + 1, above.truth
    if above.nodes is None:
        return known.index_put((truth.rows, truth.labels), span * (1 + truth.values), accumulate=True)
    targets = truth.at(above.nodes)  # (B, C)
    return known + torch.where(targets > 0, span * (1 + targets), 0.0)


def share_found(parents: Tensor, truth: Truth, wanted: Tensor) -> Tensor:
    """The share of true nodes whose parents, `wanted` (P,), are among those of their points (B, k)."""
    if not len(wanted):
        return torch.ones((), device=parents.device)
    return (parents[truth.rows] == wanted[:, None]).any(1).float().mean()


def true_parents_first(listed: Tensor, truth: Truth, wanted: Tensor, below: Below) -> Tensor:
    """Parents (B, k), k ≤ `beam`, padded by −1: those of true nodes, `wanted` (P,), then others of a list (B, S)."""
    K = len(below.family.value.children)
    keys = (truth.rows * K + wanted).unique()
    true = Truth(keys // K, keys % K, torch.ones(len(keys), device=keys.device), (truth.shape[0], K))
    joined = with_truth(listed, true)
    if joined.nodes is None or joined.counted is None:
        raise RuntimeError("a shortlist has nodes, and says which of them count")
    place = joined.counted.cumsum(1).long() - 1  # of each among those that count
    kept = (joined.counted > 0) & (place < below.beam)
    width = max(min(int(joined.counted.sum(1).max()), below.beam), 1) if len(listed) else 1
    parents = listed.new_full((len(listed), width), -1)
    parents[kept.nonzero()[:, 0], place[kept]] = joined.nodes[kept]
    return parents


def nodes_at(nodes: Tensor | None, places: Tensor) -> Tensor:
    """The nodes at these places (B, k) of a level's candidates; where all nodes are candidates, places are nodes."""
    return places if nodes is None else nodes.gather(1, places)


def best(scores: Tensor, k: int) -> Tensor:
    """The places (B, k) of the k highest scores of each row; arbitrary ones where scores have become NaN."""
    k = min(k, scores.shape[1])
    if scores.device.type == "cpu":
        return torch.from_numpy(top_k(scores.numpy(), k)[0]).long().clamp_(min=0)
    return scores.topk(k, sorted=False).indices


def with_truth(shortlist: Tensor, truth: Truth) -> Shortlist:
    """A shortlist (B, S) made beforehand, joined by what is true; nothing counts twice."""
    pairs = max(len(truth.rows), 1)
    if shortlist.device.type == "cpu":
        joined = join_truth(truth.ptr(), truth.labels.numpy(), truth.values.numpy(), shortlist.numpy())
        nodes, counted, targets = (torch.from_numpy(array) for array in joined[:3])
        return Shortlist(nodes, counted, torch.tensor(joined[3] / pairs), targets)
    positives = truth.padded()  # (B, most)
    found = truth.at(shortlist)
    true = found > 0
    nodes = torch.cat([positives, shortlist.long()], 1)
    counted = torch.cat([positives >= 0, (shortlist >= 0) & ~true], 1)
    recall = (true.sum() / pairs).float()
    return Shortlist(nodes, counted.float(), recall, torch.cat([truth.at(positives), found], 1))
