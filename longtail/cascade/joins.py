"""How the scores of levels become one score of a label, in prediction. Joins are found by their registered kind.

| kind | score of a label | which nodes are kept on the way | used by |
| --- | --- | --- | --- |
| `path` | product of σ down the path | by that product | InceptionXML, DECAF, trees in general |
| `parent` | σ(label) · σ(its parent) | by their own σ | CascadeXML |
| `last` | σ(label) | by their own σ | rankings that trust the last level alone |
| `walk` | `path`, and after each level ½ s + ½ topk(s·Ĝ) | the same | ECLARE |
| `near` | β·σ(label) + (1 − β)·σ(similarity) | labels near by, no tree | Astec (cascade/near.py) |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import top_k
from longtail.core.ranking import scores_csr
from longtail.core.registry import Registry
from longtail.encoders.export import Arrays, Exported
from longtail.encoders.served import Floats, sigmoid
from longtail.store.parts import pack_csr, unpack_csr

if TYPE_CHECKING:
    from longtail.cascade.served import ServedLevel

WALKED = 200  # labels kept of a step over the graph


class Join(ABC):
    """Base class: from the features of B texts to the scores of candidate labels."""

    kind: ClassVar[str]
    descends: ClassVar[bool] = True  # whether labels are reached from level to level

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> Join:
        """The join that `export` described."""
        return cls()

    @abstractmethod
    def scores(self, levels: Sequence[ServedLevel], features: dict[str, Floats]) -> sp.csr_matrix:
        """The scores of each text's candidate labels (B, L)."""

    def export(self) -> Exported:
        """Arrays and settings that make this join again."""
        return Exported({}, {"kind": self.kind})


joins: Registry[type[Join]] = Registry("join")
for _kind, _name in {"path": "PathJoin", "parent": "ParentJoin", "last": "LastJoin", "walk": "WalkJoin"}.items():
    joins.add(_kind, f"longtail.cascade.joins:{_name}")
joins.add("near", "longtail.cascade.near:NearJoin")


class Reached(NamedTuple):
    """The nodes of a level that a search has reached, with their scores."""

    nodes: NDArray[np.integer[Any]] | None  # (B, C), padded by −1; None: all nodes of the level
    own: Floats  # (B, C): σ of the level itself
    scores: Floats  # (B, C): joined with the levels above


class PathJoin(Join):
    """The product of σ down the path; beam search by it."""

    kind = "path"

    def scores(self, levels: Sequence[ServedLevel], features: dict[str, Floats]) -> sp.csr_matrix:
        *_, last = self.steps(levels, features)
        return self.after_labels(candidates_csr(last, levels[-1].K))

    def steps(self, levels: Sequence[ServedLevel], features: dict[str, Floats]) -> Iterator[Reached]:
        """The nodes that a search reaches, level by level."""
        step = first_step(levels[0], features)
        yield step
        for t, level in enumerate(levels[1:], 1):
            step = self.below(level, features, self.after(t - 1, step, level.beam))
            yield step

    def below(self, level: ServedLevel, features: dict[str, Floats], above: Reached) -> Reached:
        """The children of the best nodes of the step above."""
        places = best(self.ranked(above), level.beam)  # (B, k)
        parents = places if above.nodes is None else np.take_along_axis(above.nodes, places, 1)
        children = np.where(parents[:, :, None] >= 0, level.children[parents], -1)  # (B, k, W)
        nodes = children.reshape(len(children), -1)  # (B, k·W)
        own = sigmoid(level.logits(features, nodes))
        of_parents = np.take_along_axis(self.passed_on(above), places, 1)  # (B, k)
        return Reached(nodes, own, own * np.repeat(of_parents, children.shape[2], axis=1))

    def ranked(self, step: Reached) -> Floats:
        """The scores (B, C) by which nodes of a level are chosen; pads come last."""
        return step.scores if step.nodes is None else np.where(step.nodes >= 0, step.scores, -1)

    def passed_on(self, step: Reached) -> Floats:
        """What a parent contributes to the scores of its children (B, C)."""
        return step.scores

    def after(self, t: int, step: Reached, beam: int) -> Reached:
        """What is done to the scores of level t before its children are looked at."""
        return step

    def after_labels(self, scores: sp.csr_matrix) -> sp.csr_matrix:
        """What is done to the scores of labels at the end."""
        return scores


class ParentJoin(PathJoin):
    """σ(label) · σ(its parent); each level's nodes are chosen by their own σ (CascadeXML)."""

    kind = "parent"

    def ranked(self, step: Reached) -> Floats:
        return super().ranked(step._replace(scores=step.own))

    def passed_on(self, step: Reached) -> Floats:
        return step.own


class LastJoin(ParentJoin):
    """σ(label) alone; each level's nodes are chosen by their own σ."""

    kind = "last"

    def passed_on(self, step: Reached) -> Floats:
        return np.ones_like(step.own)


class WalkJoin(PathJoin):
    """`path` with a step over a graph after each level: s ← ½ s + ½ topk(s·Ĝ) (ECLARE).

    `graphs` are those of the levels, from coarse to fine; the last is the graph of labels (L, L).
    """

    kind = "walk"

    def __init__(self, graphs: Sequence[sp.csr_matrix]):
        self.graphs = list(graphs)

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> WalkJoin:
        return cls([unpack_csr(f"graph{t}", arrays) for t in range(meta["graphs"])])

    def after(self, t: int, step: Reached, beam: int) -> Reached:
        kept = keep_best(step.scores, beam) if step.nodes is None else candidates_csr(step, self.graphs[t].shape[0])
        scores = walked(kept, self.graphs[t], beam)
        return Reached(None, step.own, scores.toarray())  # (B, K_t): the levels above the labels are small

    def after_labels(self, scores: sp.csr_matrix) -> sp.csr_matrix:
        return walked(scores, self.graphs[-1], WALKED)

    def export(self) -> Exported:
        arrays: dict[str, NDArray[Any]] = {}
        for t, graph in enumerate(self.graphs):
            arrays |= pack_csr(f"graph{t}", graph)
        return Exported(arrays, {"kind": self.kind, "graphs": len(self.graphs)})


def first_step(level: ServedLevel, features: dict[str, Floats]) -> Reached:
    """All nodes of the first level."""
    own = sigmoid(level.logits(features))
    return Reached(None, own, own)


def best(scores: Floats, k: int) -> NDArray[np.integer[Any]]:
    """The places of the k highest scores of each row; of equal ones, the first."""
    if k >= scores.shape[1]:
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return top_k(scores, k)[0]


def walked(scores: sp.csr_matrix, graph: sp.csr_matrix, k: int) -> sp.csr_matrix:
    """½ s + ½ topk(s·Ĝ) for scores s (B, K)."""
    reached = scores_csr(*top_k((scores @ graph).tocsr(), k), scores.shape[1], ordered=False)
    return (0.5 * scores + 0.5 * reached).tocsr()


def keep_best(scores: Floats, k: int) -> sp.csr_matrix:
    """The k highest scores of each row of a full matrix (B, K)."""
    places = best(scores, min(k, scores.shape[1]))
    return scores_csr(places, np.take_along_axis(scores, places, 1), scores.shape[1], ordered=False)


def candidates_csr(step: Reached, K: int) -> sp.csr_matrix:
    """The scores of a step as a sparse matrix (B, K)."""
    if step.nodes is None:
        return sp.csr_matrix(step.scores)
    return scores_csr(step.nodes, step.scores, K, ordered=False)
