"""Astec (Dahiya et al., DeepXML, WSDM 2021): word vectors learnt on clusters, classifiers on what is near.

longtail train DATA --recipe astec --out MODEL
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.data.dataset import Dataset
from longtail.metrics import depth, evaluate
from longtail.recipes.bags import BagRecipe, Read, mixing_of
from longtail.train.validation import chosen_by

if TYPE_CHECKING:
    from longtail.train.learner import Learner

log = logging.getLogger("longtail")
BETAS = (0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2, 0.9, 0.1)  # of values that do equally well the first is taken

NEAR = 10  # at most one point in so many has a vote


@dataclass(frozen=True)
class Astec(BagRecipe):
    """A text is ReLU(W v) + v, v its TF-IDF-weighted word vectors; a label has a free row of weights.

    Phase I (`surrogate`) learns word vectors and residual block on clusters of labels, whose classifiers are then
    thrown away. On these features a shortlist is made once for each point: labels with near centroids, and labels that
    near training points have. Phase III (`labels`) trains the residual block further and the labels' classifiers, on
    shortlist and truth. A label's score is β·σ(classifier) + (1 − β)·σ(similarity), each relative to the best of its
    row; β is chosen on the validation part unless it is given. The search for what is near is exact. The paper's
    optional phase IV, a re-ranker, is left out.
    """

    name = "astec"
    title = "bags of words, free classifiers on a shortlist of near labels and points"
    paper = "DeepXML, Dahiya et al. 2021"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {
            "dimension": 128,
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

    clusters: int = param(65536, "of labels, in the first phase", at_least=1)  # paper: 65,536; 1,024 for 4k labels
    neighbours: int = param(100, "training points that vote for the labels of a shortlist", at_least=1)
    shortlist: int = param(500, "labels of a shortlist", at_least=1)  # paper: 500
    beta: float | None = param(None, "β: share of the classifier in a score", at_least=0.0, at_most=1.0)
    dropout: float = param(0.5, "of a text's vector", at_least=0.0, below=1.0)
    batch: int = param(255, "points of a step", at_least=1)
    surrogate_epochs: int = param(20, "of phase I", at_least=1)
    surrogate_lr: float = param(0.03, "its learning rate", above=0.0)
    epochs: int = param(15, "of phase III", at_least=1)
    lr: float = param(1e-3, "its learning rate", above=0.0)

    def network(self, read: Read, seed: int) -> Learner:
        """The network and its phases."""
        from longtail.cascade.astec import AstecNetwork, Shape
        from longtail.labels.graph import normalised, walk
        from longtail.train.learner import Phase

        label = ("encoder.residuals.text", "levels.1")
        phases = [
            Phase("surrogate", self.surrogate_epochs, self.surrogate_lr, (0,), None, self.schedule, self.warmup),
            Phase("labels", self.epochs, self.lr, (1,), label, self.schedule, self.warmup),
        ]
        graph = normalised(walk(read.Y, seed=seed))
        # of few points only so many are near: votes of nearly all would be popularity
        neighbours = min(self.neighbours, max(1, read.X.shape[0] // NEAR))
        shape = Shape(self.clusters, neighbours, self.shortlist, self.dropout, seed, graph)
        return AstecNetwork(self.corpus(read), self.words(read), phases, shape, mixing_of(self.augment))

    def finish(self, model: Any, validation: Dataset | None) -> Model:
        """Choose β on the validation part, unless it is given; the networks stay as they are."""
        beta = 0.5 if self.beta is None else self.beta
        if self.beta is None and validation is not None:
            beta = best_beta(model, validation)
        model.set_beta(beta)
        model.recipe = replace(model.recipe, beta=beta)
        return cast(Model, model)


def best_beta(model: Any, validation: Dataset) -> float:
    """The β that does best on the validation part; of several the first."""
    scores: dict[float, float] = {}
    for beta, ranking in model.rank_by_beta(validation.x, depth(ignore=validation.ignore), BETAS):
        report = evaluate(ranking, validation.Y, model.labels, ignore=validation.ignore)
        scores[beta] = chosen_by(report)["mean"]
    log.info("β on the validation part: %s", ", ".join(f"{b} {score:.2f}" for b, score in sorted(scores.items())))
    return max(scores, key=lambda tried: scores[tried])
