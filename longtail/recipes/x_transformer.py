"""X-Transformer (Chang et al., KDD 2020): a transformer is fine-tuned to find clusters of labels; rankers do the rest.

longtail train DATA --recipe x-transformer --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from longtail._native.linear import Weights
from longtail.cascade.rankers import UNIT, UnitRecipe
from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.labels.tree import LabelTree
from longtail.linear.parameters import LinearParameters
from longtail.linear.rankers import Rankers
from longtail.linear.train import Training
from longtail.train.schedule import Schedule

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")


@dataclass(frozen=True)
class WithinClusters(Rankers):
    """Rankers for the labels of given clusters; the matcher says which clusters are searched."""

    method: Literal["xr-linear"] = param("xr-linear", "linear classifiers on TF-IDF and embedding")
    beam: int = param(10, "clusters that are searched", at_least=1)  # paper: 10 – 20

    def settings(self) -> tuple[LinearParameters, LinearParameters]:
        """Negatives: the points of a label's cluster and those that the matcher sends there. Its weights stay exact."""
        return self.solver(weights="float32"), self.solver(negatives="tfn+man", beam=self.beam)


@dataclass(frozen=True)
class XTransformer(UnitRecipe):
    """1. Labels are clustered once, by PIFA of TF-IDF. 2. The transformer and a classifier for each cluster (the
    matcher) are trained together on all clusters, by the squared hinge. 3. A linear ranker for each label on
    [TF-IDF ; embedding], against the points of its cluster and those that the matcher sends there.

    Prediction keeps the `ranker.beam` clusters that the matcher finds best; a label's score is that of its cluster
    times its own. The matcher reads the embedding at length 1, as the rankers do.
    """

    name = "x-transformer"
    version = 2
    title = "a transformer that finds clusters of labels, and linear rankers on words and embedding within them"
    paper = "X-Transformer, Chang et al. 2020"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {"length": 48, "feature": "text", "batch": 64, "epochs": 5, "lr": 2e-4, "table_lr": 1e-2}
    }

    labels_per_cluster: float = param(64.0, "labels in a cluster, about", at_least=1.0)  # paper: 60 – 80
    epochs: int = param(5, "passes over the training set", at_least=1)  # paper: 1,000 – 200,000 steps
    batch: int = param(32, "points of a step", at_least=1)  # paper: 32 – 128
    lr: float = param(5e-5, "learning rate of the transformer", above=0.0)  # paper: 5e-5
    table_lr: float = param(5e-5, "learning rate of the matcher's classifiers", above=0.0)  # paper: the same
    schedule: Schedule = param("linear", "how learning rates change")  # noqa: RUF009  # paper: linear
    warmup: int = param(100, "steps in which rates rise from 0", at_least=0)  # paper: 100 – 10,000
    clip: float | None = param(1.0, "longest gradient", above=0.0)  # paper: 1
    ranker: WithinClusters = param(WithinClusters(), "linear classifiers within clusters")  # noqa: RUF009

    def network(self, read: parts.Points, seed: int) -> parts.Cascade:
        """The transformer and the matcher: one level, that of the clusters."""
        K = max(2, round(read.labels / self.labels_per_cluster))
        tree = LabelTree.in_clusters(parts.pifa(read.rows, read.Y), [K], seed)
        return self.over_clusters(read, tree, 0, self.phases(), seed)

    def phases(self) -> list[parts.Phase]:
        """One phase: encoder and matcher."""
        return [parts.Phase("clusters", self.epochs, self.fine_tuned(), build=self.build, plan=self.by_length())]

    def build(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """A classifier for each cluster, trained on all points."""
        K, d = net.data.labels, net.encoder.widths[UNIT]
        rows, bias = parts.Free(parts.Table.xavier(K, d)), parts.Table.of(-np.ones((K, 1)))
        net.set_level(0, parts.Dot(K, UNIT, rows, bias, loss=parts.SquaredHinge()))

    def given_tree(self, net: parts.Cascade) -> LabelTree:
        """The clusters that the matcher was trained on."""
        tree: LabelTree = net.memo["labels"][0]
        return tree

    def given_levels(self, net: parts.Cascade, data: Training) -> list[Weights]:
        """The matcher's weights, over the embedding among the features and the bias."""
        arrays = net.level(0).export().arrays
        K, d = arrays["weights"].shape
        W = np.hstack([arrays["weights"] / self.ranker.scale, arrays["bias"][:, None]])  # (K, d + 1)
        columns = np.arange(data.features.width - d, data.features.width + 1, dtype=np.int32)
        return [Weights(np.arange(K + 1) * (d + 1), np.tile(columns, K), np.ascontiguousarray(W, np.float32).ravel())]
