"""XR-Transformer (paper 003): a transformer fine-tuned from coarse label clusters to fine ones, then linear rankers.

longtail train DATA --recipe xr-transformer --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from longtail.cascade.rankers import UNIT, UnitRecipe
from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.labels.tree import LabelTree, level_sizes
from longtail.linear.features import Features
from longtail.linear.parameters import LinearParameters
from longtail.linear.rankers import Rankers
from longtail.linear.solve import Groups, as_matches, dense_weights, solve_level
from longtail.linear.train import Training, train_ranker
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")


@dataclass(frozen=True)
class Refined(Rankers):
    """Rankers as released for Eurlex-4K."""

    method: Literal["xr-linear", "dismec"] = param("xr-linear", "linear classifiers on TF-IDF and embedding")
    negative: float = param(2.0, "cost of errors on negatives, as a multiple", above=0.0)  # large sets: 1
    costs: Literal["equal", "counts"] = param("counts", "counts: a node costs by its share of the point's labels")
    leaf_size: int = param(16, "labels in a cluster of the refined tree, at most", at_least=2)  # large sets: 100
    branching: int = param(8, "children of a node of the refined tree", at_least=2)  # large sets: 32


@dataclass(frozen=True)
class XRTransformer(UnitRecipe):
    """Algorithm 1 of the paper, for one encoder; algorithm 2 predicts.

    1. A preliminary tree of labels, from PIFA of TF-IDF.
    2. For each of its levels from the root down, as long as it has at most `most_clusters` nodes:
       a. A linear model on Φ_cat finds the `matched` best nodes of the level above for each point. A point is trained
          on the children of these and of its true nodes.
       b. W^(t) is solved by the linear engine on the embeddings as they now are (eq. 11).
       c. Encoder and W^(t) are trained by the squared hinge; a true node costs by how many of the point's labels are
          below it (eq. 9).
    3. Φ_cat = [TF-IDF ; embedding], a refined tree from its PIFA, and linear rankers down that tree.

    The embedding is scaled to length 1 in fine-tuning too, so that W^(t) of (b) is exactly where (c) begins. In (a) the
    linear model is solved anew for all levels above; the authors' code keeps those of earlier levels.
    """

    name = "xr-transformer"
    version = 2
    title = "a transformer fine-tuned level by level of a label tree, then linear rankers on words and embedding"
    paper = "XR-Transformer, Zhang et al. 2021"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {"length": 48, "feature": "text", "epochs": 3, "lr": 1e-4, "table_lr": 2e-3}
    }

    branching: int = param(16, "children of a node of the preliminary tree", at_least=2)  # paper: 16
    leaf_size: int = param(16, "labels in its smallest clusters, at most", at_least=2)  # paper: 16 – 32
    most_clusters: int = param(32_768, "levels with more nodes are not fine-tuned on", at_least=2)  # paper: 32,768
    matched: int = param(5, "nodes of the level above that the linear model gives a point", at_least=1)  # paper: 5
    candidates: int = param(1000, "nodes that a point is trained on, at most", at_least=1)  # paper: 500 – 1,000
    costs: Literal["counts", "shares", "equal"] = param(
        "counts", "cost of a true node: how many labels are below it, its share of them, or 1"
    )  # released: counts; eq. 9: shares
    negative: float = param(1.0, "α: cost of other nodes", above=0.0)
    bootstrap: bool = param(True, "begin each level at weights solved on the embeddings; false: at random")
    fine_tune: bool = param(True, "false: leave the encoder as it is, and train rankers alone")
    epochs: int = param(3, "passes for the last level; all levels above share as many", at_least=1)  # Eurlex-4K: 2.5
    batch: int = param(32, "points of a step", at_least=1)  # paper: 32
    lr: float = param(5e-5, "learning rate of the transformer", above=0.0)  # paper: 5e-5; large sets 1e-4
    table_lr: float = param(5e-5, "learning rate of classifiers", above=0.0)  # paper: the same
    schedule: Schedule = param("linear", "how learning rates change")  # noqa: RUF009  # paper: linear
    warmup: int = param(100, "steps in which rates rise from 0", at_least=0)  # paper: 100 – 200
    clip: float | None = param(1.0, "longest gradient", above=0.0)  # paper: 1
    ranker: Refined = param(Refined(), "linear classifiers on TF-IDF and embedding")  # noqa: RUF009

    def settings_of_last_stage(self) -> frozenset[str]:
        """Those of `ranker` that neither find candidates nor begin a level."""
        return super().settings_of_last_stage() - {"ranker.C", "ranker.negative", "ranker.costs", "ranker.prune"}

    def network(self, read: parts.Points, seed: int) -> parts.Cascade:
        """The transformer, over the levels of the preliminary tree that are fine-tuned."""
        tree = LabelTree.in_clusters(parts.pifa(read.rows, read.Y), self.clusters(read.labels), seed)
        last = self.last_level(read.labels)
        return self.over_clusters(read, tree, last, self.phases(last + 1, len(read)), seed)

    def clusters(self, L: int) -> list[int]:
        """The clusters of each level of the preliminary tree; the first has at least `branching`, if there are more."""
        sizes = level_sizes(L, self.branching, self.leaf_size, None)
        return sizes[1:] if len(sizes) > 1 and sizes[0] < self.branching else sizes  # released: min_codes

    def last_level(self, L: int) -> int:
        """The number of the last level that is fine-tuned on: the first, if no other."""
        if not self.fine_tune:
            return 0
        sizes = [*self.clusters(L), L]
        return max(sum(size <= self.most_clusters for size in sizes) - 1, 0)

    def phases(self, T: int, N: int) -> list[parts.Phase]:
        """One phase for each of T levels, coarse first; the levels above the last share as many steps as it has."""
        if not self.fine_tune:  # one step of classifiers that nobody reads
            levels = (self.group("levels", self.table_lr),)
            return [parts.Phase("as-it-is", 1, levels, steps=1, build=partial(self.build, 0))]
        last = max(self.epochs * -(-N // self.batch), self.min_steps)
        return [
            parts.Phase(
                f"level{t}",
                self.epochs,
                self.fine_tuned(),
                levels=(t,),
                prepare=partial(self.prepare, t),
                build=partial(self.build, t),
                plan=self.by_length(),
                steps=last if t == T - 1 else -(-last // (T - 1)),
            )
            for t in range(T)
        ]

    def prepare(self, t: int, net: parts.Cascade) -> parts.Structure:
        """(a) the best nodes of the level above for each point (N, b); (b) W^(t) and biases (K_t, d + 1)."""
        found, E = parts.Structure(), parts.unit(net.features(UNIT))  # (N, d)
        if t > 0:
            found["matched"] = self.matches(net, Features.of([net.data.rows, E]), t - 1)
        if self.bootstrap:
            found["W"] = self.solved(net, t, Features.of([E]), found.get("matched"))
        return found

    def matches(self, net: parts.Cascade, features: Features, t: int) -> Any:
        """The `matched` best nodes of level t for each training point (N, b), by a linear model on Φ_cat."""
        tree, data = net.known_tree().down_to(t), Training(features, net.targets_of(t))
        beam = 2 * self.matched
        last = self.ranker.solver(negatives="tfn+man", beam=beam)
        ranker = train_ranker(data, tree, self.ranker.solver(), Run(seed=net.seed), last=last)
        return ranker.search(features, min(self.matched, len(tree)), beam, "l3-hinge")[0]

    def solved(self, net: parts.Cascade, t: int, embeddings: Features, matched: Any) -> Any:
        """W^(t), biases (K_t, d + 1) of eq. 11; a node learns from points whose parent is true or matched."""
        tree, N = net.known_tree(), len(net.data)
        rows = Groups.everything(N, net.size(t))
        if matched is not None:
            true = net.targets_of(t - 1).astype(bool)
            rows = Groups.matched(as_matches(matched, true.shape[1]) + true, tree.child_ptr(t))
        ignore = None if net.data.ignore is None else tree.all_of(net.data.ignore, t)
        costs, targets = self.relevance(net, t), tree.targets(net.data.Y, t).sorted_indices()
        settings = LinearParameters(C=self.ranker.C, C_negative=self.negative * self.ranker.C, prune=0.0)
        weights = solve_level(embeddings, targets, costs, rows, settings, ignore=ignore, seed=net.seed)
        return dense_weights(weights, embeddings.width)[places(net, t)]

    def relevance(self, net: parts.Cascade, t: int) -> Any:
        """R^(t), or its shares R̂^(t) (N, K_t), nodes as the tree numbers them; None where costs are equal."""
        tree, Y = net.memo["labels"]
        if self.costs == "equal":
            return None
        return (tree.shares if self.costs == "shares" else tree.counts)(Y, t).sorted_indices()

    def build(self, t: int, net: parts.Cascade, structure: parts.Structure) -> None:
        """(c) W^(t), trained on all nodes of the first level, and below it on the children of the listed ones."""
        K, d, costs = net.size(t), net.encoder.widths[UNIT], self.relevance(net, t)
        W = structure.get("W")
        rows = parts.Table.xavier(K, d) if W is None else parts.Table.of(W[:, :d])
        bias = parts.Table.of(np.zeros((K, 1)) if W is None else W[:, d:])
        listed = None
        if t > 0:
            siblings = int(np.diff(net.known_tree().child_ptr(t)).max())
            parents = net.below(t, max(self.candidates // siblings, 1))  # as many as allowed: true and matched ones
            listed = parts.Static(structure["matched"], parents, truth_first=True)
        loss = parts.SquaredHinge(self.negative)
        net.set_level(t, parts.Dot(K, UNIT, parts.Free(rows), bias, candidates=listed, loss=loss))
        if costs is not None:
            net.set_costs(t, costs[:, places(net, t)])


def places(net: parts.Cascade, t: int) -> Any:
    """Where the tree has the nodes (K_t,) that the cascade numbers: labels of the last level stand in its order."""
    tree = net.known_tree()
    return tree.nodes(t) if t == net.depth - 1 else np.arange(net.size(t))
