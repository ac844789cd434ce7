"""A trained cascade: one, or several whose scores are averaged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.cascade.nearby import Nearby
from longtail.cascade.serving import Arrays, BagFeatures, Features, Sides, sides_of, two_levels
from longtail.core.errors import MissingExtraError
from longtail.core.labels import Labels
from longtail.core.model import Inputs
from longtail.core.ranking import Ranking
from longtail.core.recipe import Recipe
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.encoders.tfidf import Tfidf
from longtail.encoders.words import UNKNOWN, Words
from longtail.store import Saved, StoredModel
from longtail.store.parts import unpack_csr

BLOCK = 256  # points whose candidates' weights are held at a time


class Cascaded:
    """One trained network: its arrays, and in JSON what they are."""

    def __init__(self, arrays: Arrays, meta: dict[str, Any]):
        self.arrays, self.meta = arrays, meta
        self.encoder: Features = (
            BagFeatures(arrays, meta["residuals"]) if meta["encoder"] == "bag" else inception_features(arrays, meta)
        )
        self.nearby = None
        if "near" in meta:
            Y = unpack_csr("near.Y", arrays)
            near = (arrays["near.centroids"], arrays["near.points"])
            self.nearby = Nearby(*near, Y, meta["near"]["neighbours"], meta["near"]["size"])

    def scores(self, rows: Any) -> sp.csr_matrix:
        """Of the candidates of each point (N, L)."""
        if self.nearby is not None:
            return self.mixed(self.sides(rows), self.meta["near"]["beta"])
        return sp.vstack([two_levels(features, self.arrays, self.meta) for features in self.features(rows)], "csr")

    def features(self, rows: Any) -> Iterator[dict[str, NDArray[np.float32]]]:
        """Block by block."""
        for first in range(0, rows.shape[0], BLOCK):
            yield self.encoder.features(rows[first : first + BLOCK])

    def sides(self, rows: Any) -> list[Sides]:
        """What Astec's scores are mixed of, block by block; to find it takes far longer than to mix it."""
        if self.nearby is None:
            raise RuntimeError("only Astec's scores have two sides")
        return [sides_of(features, self.nearby, self.arrays, self.meta) for features in self.features(rows)]

    def mixed(self, sides: list[Sides], beta: float) -> sp.csr_matrix:
        """Astec's scores (N, L)."""
        L = len(self.arrays["label.weights"])
        return sp.vstack([block.mixed(beta, L) for block in sides], "csr")


def inception_features(arrays: Arrays, meta: dict[str, Any]) -> Features:
    """The encoder of InceptionXML; unlike bags it needs torch."""
    try:
        from longtail.cascade.inception import InceptionFeatures
    except ImportError as error:
        raise MissingExtraError("a model with InceptionXML's encoder", "deep") from error
    return InceptionFeatures(arrays, meta["inception"])


class CascadeModel(StoredModel):
    """What texts are read by, and the networks."""

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        reader: Tfidf | Words,
        parts: list[Cascaded],
        about: dict[str, Any] | None = None,
    ):
        super().__init__(recipe, labels, about)
        self.reader, self.parts = reader, parts

    @property
    def accepts(self) -> str:
        """Texts."""
        return "text"

    def rank(self, x: Inputs, k: int) -> Ranking:
        """The mean of the networks' scores; a text without known words gets the most frequent labels."""
        if not isinstance(x, Texts):
            raise TypeError("texts are asked for")
        rows = self.encoded(x)
        return self.averaged(rows, (part.scores(rows) for part in self.parts), k)

    def rank_by_beta(self, x: Texts, k: int, betas: Sequence[float]) -> Iterator[tuple[float, Ranking]]:
        """For each share of the classifier in Astec's scores what `rank` would be."""
        rows = self.encoded(x)
        found = [part.sides(rows) for part in self.parts]
        for beta in betas:
            scores = (part.mixed(sides, beta) for part, sides in zip(self.parts, found, strict=True))
            yield beta, self.averaged(rows, scores, k)

    def averaged(self, rows: Any, scores: Iterator[sp.csr_matrix], k: int) -> Ranking:
        """The best by the mean of the networks' scores."""
        total = next(scores)
        for one in scores:
            total = total + one
        total.data /= len(self.parts)
        wordless = np.flatnonzero(np.diff(rows.indptr) == 0 if sp.issparse(rows) else ~(rows > UNKNOWN).any(1))
        if len(wordless):
            total = with_rows(total, wordless, self.labels.counts)
        return Ranking.from_csr(total, min(k, len(self.labels)), self.labels)

    def shortlist_recall(self, data: Dataset) -> float:
        """The share of what is true of some points that any network scores: those below its best clusters, or near."""
        Y, rows = data.truth(), self.encoded(data.x)
        scored = sum(part.scores(rows) for part in self.parts).astype(bool)
        found = Y[:, : scored.shape[1]].astype(bool).multiply(scored)  # labels that only the data has are not found
        return float(found.nnz / max(Y.nnz, 1))

    def encoded(self, x: Texts) -> Any:
        """TF-IDF rows, or sequences of words."""
        if isinstance(self.reader, Tfidf):
            return self.reader.encode(x)
        return self.reader.encode(x, self.parts[0].meta["inception"]["length"])

    def set_beta(self, beta: float) -> None:
        """The share of the classifier in Astec's scores."""
        for part in self.parts:
            part.meta["near"]["beta"] = beta

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Reader and networks."""
        arrays, reader = self.reader.state()
        for i, part in enumerate(self.parts):
            arrays |= {f"net{i}.{name}": np.ascontiguousarray(array) for name, array in part.arrays.items()}
        return arrays, {"reader": reader, "parts": [part.meta for part in self.parts]}

    @classmethod
    def from_state(cls, saved: Saved) -> CascadeModel:
        """From `state`."""
        parts = []
        for i, meta in enumerate(saved.meta["parts"]):
            prefix = f"net{i}."
            own = {name.removeprefix(prefix): a for name, a in saved.arrays.items() if name.startswith(prefix)}
            parts.append(Cascaded(own, meta))
        kind = Tfidf if parts[0].meta["encoder"] == "bag" else Words
        return cls(saved.recipe, saved.labels, kind.from_state(saved.arrays, saved.meta["reader"]), parts, saved.about)


def with_rows(scores: sp.csr_matrix, rows: NDArray[np.intp], counts: NDArray[Any]) -> sp.csr_matrix:
    """The scores with some rows replaced by the labels' shares of all examples: those of texts without known words."""
    shares = sp.csr_matrix((counts / max(counts.sum(), 1)).astype(np.float32))
    shares.data = np.maximum(shares.data, np.float32(0))
    own = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, np.zeros(len(rows), np.intp))), (scores.shape[0], 1))
    others = np.ones(scores.shape[0], np.float32)
    others[rows] = 0
    return (sp.diags(others) @ scores + own @ shares).tocsr()
