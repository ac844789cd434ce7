"""A trained cascade as a model: one network, or several whose scores are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.cascade.joins import PathJoin, Reached
from longtail.cascade.served import Network, ServedLevel
from longtail.core.errors import StoreError
from longtail.core.labels import Labels
from longtail.core.model import Inputs
from longtail.core.ranking import Ranking, mean_scores
from longtail.core.recipe import Recipe
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.encoders.export import arrays_under
from longtail.encoders.reader import Reader, reader_from_state
from longtail.store import Saved, StoredModel

FORMAT = 2  # of what `state` gives; raised when models saved before can no longer be read


class CascadeModel(StoredModel):
    """A reader of texts, and the networks."""

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        reader: Reader,
        networks: list[Network],
        about: dict[str, Any] | None = None,
    ):
        super().__init__(recipe, labels, about)
        breadth = getattr(recipe, "breadth", 1.0)  # systems without clusters have no such setting
        self.reader, self.networks = reader, [network.widened(breadth) for network in networks]

    @property
    def accepts(self) -> str:
        """Cascades read texts, not feature matrices."""
        return "text"

    def rank(self, x: Inputs, k: int) -> Ranking:
        """The best labels by the mean of the networks' scores."""
        if not isinstance(x, Texts):
            raise TypeError("x must be Texts")
        rows = self.reader.read(x)
        return self.ranked(rows, (network.scores(rows) for network in self.networks), k)

    def ranked(self, rows: Any, scores: Iterable[sp.csr_matrix], k: int) -> Ranking:
        """The best labels by the mean of several score matrices (N, L); rows without known words get frequent ones."""
        ranking = Ranking.from_csr(mean_scores(scores), min(k, len(self.labels)), self.labels)
        wordless = ~self.reader.known(rows)
        if wordless.any():
            ranking.indices[wordless], ranking.scores[wordless] = self.labels.most_frequent(k)
        return ranking

    def with_settings(self, **settings: Any) -> CascadeModel:
        """A copy that looks into more or fewer clusters (`breadth`)."""
        self.check_after_training(settings)
        changed = type(self)(replace(self.recipe, **settings), self.labels, self.reader, self.networks, self.about)
        changed.decision = self.decision
        return changed

    def shortlist_recall(self, data: Dataset) -> dict[str, float]:
        """The share of the true pairs whose label any network scores at all.

        "all" is over all labels, "seen" over those with training examples; labels that only the data has are not found.
        """
        Y, rows = data.truth().astype(bool), self.reader.read(data.texts)
        scored = sum(network.scores(rows) for network in self.networks).astype(bool)
        own = Y[:, : scored.shape[1]]
        true, found = pairs_of_each(own), pairs_of_each(own.multiply(scored))
        seen = self.labels.counts > 0
        return {
            "all": float(found.sum() / max(Y.nnz, 1)),
            "seen": float(found[seen].sum() / max(true[seen].sum(), 1)),
        }

    def recall_by_level(self, data: Dataset) -> list[float]:
        """The share of true pairs whose label or cluster is a candidate, for each level below the first.

        Of several networks, the first counts. Empty for a system that does not go from level to level.
        """
        network, rows = self.networks[0], self.reader.read(data.texts)
        Y, join = data.truth().tocsr()[:, : len(self.labels)], network.join
        if not isinstance(join, PathJoin) or len(network.levels) == 1:
            return []
        nodes = nodes_above(network.levels)  # (L,) for each level
        found = np.zeros(len(nodes), np.int64)
        begin = 0
        for steps in network.each(rows, lambda levels, features: list(join.steps(levels, features))):
            size = len(steps[0].own)
            true = Y[begin : begin + size].tocoo()
            begin += size
            for t, step in enumerate(steps[1:], 1):
                reached = pairs_matrix(step, network.levels[t].K)
                wanted = nodes[t][true.col]
                found[t] += int(np.asarray(reached[true.row, wanted]).sum()) if len(wanted) else 0
        return [float(count / max(Y.nnz, 1)) for count in found[1:]]

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Reader and networks."""
        arrays, reader = self.reader.state()
        exported = [network.export() for network in self.networks]
        for i, network in enumerate(exported):
            arrays |= {name: np.ascontiguousarray(array) for name, array in network.under(f"net{i}").items()}
        return arrays, {"format": FORMAT, "reader": reader, "networks": [network.meta for network in exported]}

    @classmethod
    def from_state(cls, saved: Saved) -> CascadeModel:
        """The model that `state` described."""
        if saved.meta.get("format") != FORMAT:
            raise StoreError(
                f"this network was saved in format {saved.meta.get('format', 1)}, and this version of longtail reads "
                f"format {FORMAT}; train it again with the same settings (`longtail info MODEL` shows them)"
            )
        networks = [Network(arrays_under(f"net{i}", saved.arrays), m) for i, m in enumerate(saved.meta["networks"])]
        reader = reader_from_state(saved.arrays, saved.meta["reader"])
        return cls(saved.recipe, saved.labels, reader, networks, saved.about)


def nodes_above(levels: Sequence[ServedLevel]) -> list[NDArray[np.int64]]:
    """For each level, the node (L,) that each label belongs to."""
    found = [np.arange(levels[-1].K)]
    for level in reversed(levels[1:]):
        parent = np.full(level.K, -1, np.int64)
        above, place = np.nonzero(level.children >= 0)
        parent[level.children[above, place]] = above
        found.append(parent[found[-1]])
    return found[::-1]


def pairs_matrix(step: Reached, K: int) -> sp.csr_matrix:
    """Which nodes of a level each of B texts has reached (B, K)."""
    if step.nodes is None:
        return sp.csr_matrix(np.ones((len(step.own), K), np.int32))
    real = step.nodes >= 0
    rows = np.nonzero(real)[0]
    return sp.csr_matrix((np.ones(len(rows), np.int32), (rows, step.nodes[real])), (len(step.nodes), K))


def pairs_of_each(Y: sp.spmatrix) -> NDArray[np.intp]:
    """The number of entries of each column."""
    return np.bincount(Y.tocsr().indices, minlength=Y.shape[1])
