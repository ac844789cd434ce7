"""Astec (Dahiya et al., DeepXML, WSDM 2021): word vectors learnt on clusters, classifiers on what is near.

longtail train DATA --recipe astec --out MODEL
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from longtail.cascade.recipe import BagRecipe
from longtail.core.lazy import Lazy
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.data.dataset import Dataset
from longtail.metrics import depth, evaluate
from longtail.train.validation import chosen_by

if TYPE_CHECKING:
    from longtail.cascade import parts
else:
    parts = Lazy("longtail.cascade.parts")

log = logging.getLogger("longtail")
BETAS = (0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2, 0.9, 0.1, 0.05, 0.02)  # of values that do equally well the first is taken
NEAR = 10  # at most a tenth of the points vote: votes of nearly all would only count popularity
BLOCK = 4096  # points whose shortlists are made at a time


@dataclass(frozen=True)
class Astec(BagRecipe):
    """A text is ReLU(W v) + v, v its TF-IDF-weighted word vectors; a label has a free row of weights.

    Phase I (`surrogate`) learns word vectors and residual block on clusters of labels, whose classifiers are then
    thrown away. On these features a shortlist is made once for each point: labels with near centroids, and labels that
    near training points have. Phase III (`labels`) trains the residual block further and the labels' classifiers, on
    shortlist and truth. A label's score is β·σ(classifier) + (1 − β)·σ(similarity), each relative to the best of its
    row; β is chosen on the validation part unless it is given. The search for what is near is exact. Differs from the
    authors' code: shortlists are made by features after the residual block, not before it; the bag has no ReLU; the
    loss of phase III is a mean over candidates, not a sum. The optional phase IV, a re-ranker, is left out.
    """

    name = "astec"
    title = "bags of words, free classifiers on a shortlist of near labels and points"
    paper = "DeepXML, Dahiya et al. 2021"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "reader": "subwords",
            "vectors": "static",
            "dimension": 256,
            "clusters": 4096,
            "shortlist": 200,
            "dropout": 0.3,
            "surrogate_epochs": 8,
            "surrogate_lr": 0.01,
            "epochs": 8,
            "lr": 0.01,
            "schedule": "linear",
        }
    }

    clusters: int = param(65536, "clusters of labels, in the first phase", at_least=1)  # paper: 65,536; 1,024 for 4k
    neighbours: int = param(100, "training points that vote for the labels of a shortlist", at_least=1)
    shortlist: int = param(500, "labels of a shortlist", at_least=1)  # paper: 500
    beta: float | None = param(None, "β: share of the classifier in a score", at_least=0.0, at_most=1.0)
    dropout: float = param(0.5, "dropout of a text's vector", at_least=0.0, below=1.0)  # paper: 0.5
    batch: int = param(255, "points of a step", at_least=1)  # paper: 255
    surrogate_epochs: int = param(20, "epochs of phase I", at_least=1)  # paper: 20
    surrogate_lr: float = param(0.03, "its learning rate", above=0.0)  # paper: 0.03
    epochs: int = param(15, "epochs of phase III", at_least=1)  # paper: 15
    lr: float = param(1e-3, "its learning rate", above=0.0)  # paper: 0.001

    def network(self, read: parts.Points, seed: int) -> parts.Cascade:
        """A bag encoder with two residual blocks, and the phases.

        Shortlists are made by the feature "near"; the block of "text" begins where that of "near" is then.
        """
        about: dict[str, Any] = {}
        E = self.word_vectors(read.reader, about)
        encoder = parts.BagEncoder(E, ("near", "text"), "astec", self.dropout)
        return parts.Cascade(read, encoder, self.phases(), seed, self.mixing(), about)

    def phases(self) -> list[parts.Phase]:
        """Word vectors on clusters; then labels on shortlists, with word vectors frozen."""
        everything = self.everything(self.surrogate_lr)
        labels = (self.group("encoder.residuals.text", self.lr), self.group("levels.1", self.lr))
        first, then = self.surrogate_epochs, self.epochs
        return [
            parts.Phase(
                "surrogate",
                first,
                everything,
                levels=(parts.CLUSTERS,),
                prepare=self.smoothed_clusters,
                build=self.build_surrogate,
            ),
            parts.Phase(
                "labels", then, labels, levels=(parts.LABELS,), prepare=self.shortlists, build=self.build_labels
            ),
        ]

    # --- phase I

    def smoothed_clusters(self, net: parts.Cascade) -> parts.Structure:
        """Clusters of labels by their TF-IDF centroids, smoothed over the graph of random walks."""
        graph = parts.normalised(parts.walk(net.data.Y, seed=net.seed))  # (L, L)
        Z = graph @ parts.pifa(net.data.rows, net.data.Y)  # (L, V)
        return parts.tree_structure(parts.LabelTree.in_clusters(Z, [self.clusters], net.seed))

    def build_surrogate(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """Free classifiers of the clusters."""
        net.set_tree(structure)
        K = net.size(parts.CLUSTERS)
        weights = parts.Free(parts.Table.random(K, net.encoder.E.width, 0.02))
        net.set_level(parts.CLUSTERS, parts.Dot(K, "near", weights, net.bias_of_shares(parts.CLUSTERS)))

    # --- phase II and III

    def shortlists(self, net: parts.Cascade) -> parts.Structure:
        """With word vectors as they are now, the features of all points (N, D) and their shortlists (N, shortlist)."""
        features = net.features("near")
        nearby = self.nearby(net, features)
        blocks = np.array_split(np.arange(net.points), -(-net.points // BLOCK))
        found = [nearby.shortlist(features[rows], own=rows)[0] for rows in blocks]
        return {"features": features, "shortlist": np.concatenate(found)}

    def build_labels(self, net: parts.Cascade, structure: parts.Structure) -> None:
        """Free classifiers of the labels; those of the clusters are no longer needed."""
        if net.has_level(parts.CLUSTERS):
            net.drop_level(parts.CLUSTERS)
        net.encoder.copy_residual("near", "text")
        candidates = parts.Static(structure["shortlist"])
        L = net.data.labels
        weights = parts.Free(parts.Table.random(L, net.encoder.E.width, 0.02))
        bias = net.bias_of_candidates(candidates.width)
        net.set_level(parts.LABELS, parts.Dot(L, "text", weights, bias, candidates=candidates))
        net.join = parts.NearJoin(self.nearby(net, structure["features"]), 0.5 if self.beta is None else self.beta)

    def nearby(self, net: parts.Cascade, features: np.ndarray) -> parts.Nearby:
        """The points and centroids among which shortlists are searched."""
        neighbours = min(self.neighbours, max(1, net.points // NEAR))
        return parts.Nearby.of(features, net.data.Y, neighbours, self.shortlist)

    # --- afterwards

    def finish(self, model: Model, validation: Dataset | None) -> Model:
        """Choose β on the validation part; the networks stay as they are."""
        beta = 0.5 if self.beta is None else self.beta
        if self.beta is None and validation is not None:
            beta = best_beta(model, validation)
        for network in model.networks:  # type: ignore[attr-defined]
            network.join.beta = beta
        model.recipe = replace(model.recipe, beta=beta)  # type: ignore[call-arg]
        return model


def best_beta(model: Any, validation: Dataset) -> float:
    """The β that does best on the validation part; of equally good ones the first."""
    rows, k = model.reader.read(validation.texts), depth(ignore=validation.ignore)
    # finding both sides of the scores takes far longer than mixing them
    sides = [list(network.each(rows, network.join.sides)) for network in model.networks]
    scores: dict[float, float] = {}
    for beta in BETAS:
        mixed = (sp.vstack([block.mixed(beta) for block in blocks], "csr") for blocks in sides)
        ranking = model.ranked(rows, mixed, k)
        report = evaluate(ranking, validation.Y, model.labels, ignore=validation.ignore)
        scores[beta] = chosen_by(report)["mean"]
    log.info("β on the validation part: %s", ", ".join(f"{b} {score:.2f}" for b, score in sorted(scores.items())))
    return max(scores, key=lambda tried: scores[tried])
