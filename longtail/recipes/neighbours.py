"""Nearest training texts vote for their labels; label texts are matched directly.

    longtail train DATA --recipe neighbours --out MODEL

A strong baseline that needs no training. It can find every training text, so it can also suggest a label that has one
example only, or only a text of its own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.editing import about_edit, check_edit
from longtail.core.errors import UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Inputs, Model
from longtail.core.parameters import param, param_of
from longtail.core.progress import Progress
from longtail.core.ranking import Ranking
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.metrics import depth, evaluate
from longtail.recipes.popular import accepts_of, label_shares
from longtail.search.sparse import SparseIndex
from longtail.store import Saved, StoredModel
from longtail.store.parts import pack_csr, unpack_csr
from longtail.train.recipe import TrainedRecipe
from longtail.train.validation import chosen_by

GRID: dict[str, tuple[Any, ...]] = {  # in the order of Voting's fields
    "weighting": ("tfidf", "bm25"),
    "neighbours": (10, 30, 100),
    "power": (2.0, 4.0),
    "label_weight": (0.0, 0.1, 0.2, 0.3, 0.5, 0.7),
}
BLOCK = 4096  # points whose votes are held at a time


class Voting(NamedTuple):
    """m, p and α of the recipe's formula; the defaults are good on most corpora."""

    neighbours: int = 30
    power: float = 2.0
    label_weight: float = 0.2


@dataclass(frozen=True)
class Neighbours(TrainedRecipe):
    """score(l | x) = (1 − α)·Σ_i w_i y_il / Σ_i w_i + α·sim(x, z_l)^p, over the m nearest training texts i.

    w_i = sim(x, x_i)^p; sim is the cosine of TF-IDF vectors, or BM25 relative to the best match. An ignored
    pair (i, l) is left out of both sums. Labels without any score follow by their frequency. Parameters left at
    none are chosen on the validation part, by the mean of P@1, P@5, PSP@1 and PSP@5. The search is exact for the
    `query_terms` heaviest terms of a text; the other terms of a long text are not used.
    """

    name = "neighbours"
    title = "nearest training texts vote, label texts are matched"

    weighting: Literal["tfidf", "bm25"] | None = param(None, "how terms are weighted")
    neighbours: int | None = param(None, "m: how many training points vote", at_least=1)
    power: float | None = param(None, "p: how steeply similarity counts", above=0.0)
    label_weight: float | None = param(None, "α: share of the label texts", at_least=0.0, at_most=1.0)
    ngrams: int = param_of(TfidfParameters, "ngrams")
    min_texts: int = param_of(TfidfParameters, "min_texts")
    query_terms: int = param(64, "of a long text only the heaviest terms search", at_least=1)

    @classmethod
    def model_class(cls) -> type[Model]:
        """The class of the models, `NeighboursModel`."""
        return NeighboursModel

    def voting(self) -> Voting:
        """How neighbours vote; parameters that are not fixed have their usual values."""
        decided = {name: getattr(self, name) for name in Voting._fields if getattr(self, name) is not None}
        return Voting(**decided)

    def choose(
        self, data: Dataset, labels: Labels, validation: Dataset, run: Run
    ) -> tuple[Neighbours, list[dict[str, Any]]]:
        """Try all values of the open parameters; each search is run once, and its votes are counted in many ways."""
        grid = self.grid(data.has_text, labels.has_text)
        weightings = grid.pop("weighting")
        votings = [Voting(*values) for values in itertools.product(*grid.values())]
        if len(weightings) * len(votings) == 1:
            return replace(self, weighting=weightings[0], **votings[0]._asdict()), []
        table = []
        with run.progress.bar("choosing settings", len(weightings) * len(votings), "settings") as bar:
            counted = self.count(data, labels)
            for weighting in weightings:
                model = replace(self, weighting=weighting).index(counted, data, labels)
                found = model.search(validation.x, max(grid["neighbours"]), run.progress)
                for voting in votings:
                    ranking = model.vote(found, voting, depth(ignore=validation.ignore))
                    report = evaluate(ranking, validation.Y, labels, ignore=validation.ignore)
                    table.append({"weighting": weighting, **voting._asdict(), **chosen_by(report)})
                    bar.advance()
        best = max(table, key=lambda row: row["mean"])
        return replace(self, **{name: best[name] for name in GRID}), table

    def grid(self, texts: bool, label_texts: bool) -> dict[str, tuple[Any, ...]]:
        """The values to try for each open parameter; a single one where it is fixed or makes no difference."""
        idle: dict[str, tuple[Any, ...]] = {} if texts else {"weighting": ("tfidf",)}
        idle |= {} if texts and label_texts else {"label_weight": (0.0,)}
        tried = GRID | idle
        return {name: tried[name] if getattr(self, name) is None else (getattr(self, name),) for name in GRID}

    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> NeighboursModel:
        """Count terms, and index the training points and the label texts."""
        return self.index(self.count(data, labels), data, labels)

    def count(self, data: Dataset, labels: Labels) -> tuple[Tfidf, sp.csr_matrix] | None:
        """The encoder and the term counts of training texts, then label texts: a word only a label has is known too."""
        if not data.has_text:
            return None
        texts = data.texts if labels.texts is None else data.texts + labels.texts
        return Tfidf.fit(texts, TfidfParameters(ngrams=self.ngrams, min_texts=self.min_texts))

    def index(self, counted: tuple[Tfidf, sp.csr_matrix] | None, data: Dataset, labels: Labels) -> NeighboursModel:
        """A model over the counted terms, weighted and indexed."""
        encoder, Z = None, None
        if counted is None:
            X = normalise_rows(data.features)
        else:
            encoder, counts = counted
            weigh = encoder.bm25 if self.weighting == "bm25" else encoder.weigh
            X = weigh(counts[: len(data)])
            Z = weigh(counts[len(data) :]) if labels.has_text else None
        return NeighboursModel(
            self,
            labels,
            encoder,
            SparseIndex.of(X),
            None if Z is None else SparseIndex.of(Z),
            data.truth(),
            data.ignore,
            label_shares(data),
            accepts_of(data),
        )


@dataclass(frozen=True)
class Matches:
    """The nearest training points (N, m) and labels (N, m) of some points, and their similarities."""

    points: NDArray[np.int32]
    point_scores: NDArray[np.float32]
    labels: NDArray[np.int32] | None
    label_scores: NDArray[np.float32] | None


class NeighboursModel(StoredModel):
    """The training set, indexed.

    `points` (V × N) and `label_index` (V × L) are inverted lists; `Y` (N × L) are the votes, `ignore` the pairs
    that do not vote; `shares` (L,) orders the labels that have no score.
    """

    recipe: Neighbours

    def __init__(
        self,
        recipe: Neighbours,
        labels: Labels,
        encoder: Tfidf | None,
        points: SparseIndex,
        label_index: SparseIndex | None,
        Y: sp.csr_matrix,
        ignore: sp.csr_matrix | None,
        shares: NDArray[np.float32],
        accepts: str | int,
        about: dict[str, Any] | None = None,
    ):
        super().__init__(recipe, labels, about)
        self.encoder, self.points, self.label_index = encoder, points, label_index
        self.Y, self.ignore, self.shares = Y, ignore, shares
        self._accepts = accepts

    @property
    def accepts(self) -> str | int:
        """The string "text", or the number of features."""
        return self._accepts

    def rank(self, x: Inputs, k: int) -> Ranking:
        """Search, and let the neighbours vote, a block of points at a time."""
        n = len(x) if isinstance(x, Texts) else x.shape[0]
        voting = self.recipe.voting()
        parts = [
            self.vote(self.search(x[start : start + BLOCK], voting.neighbours), voting, k)
            for start in range(0, n, BLOCK)
        ]
        indices, scores = np.concatenate([p.indices for p in parts]), np.concatenate([p.scores for p in parts])
        return Ranking(indices, scores, self.labels)

    def search(self, x: Inputs, m: int, progress: Progress | None = None) -> Matches:
        """The m nearest training points and labels of each point."""
        Q = self._queries(x)
        points, point_scores = self.points.nearest(Q, min(m, len(self.points)), progress)
        if self.recipe.weighting == "bm25":
            point_scores = relative(point_scores)
        if self.label_index is None:
            return Matches(points, point_scores, None, None)
        labels, label_scores = self.label_index.nearest(Q, min(max(m, 50), len(self.labels)), progress)
        if self.recipe.weighting == "bm25":
            label_scores = relative(label_scores)
        return Matches(points, point_scores, labels, label_scores)

    def vote(self, found: Matches, voting: Voting, k: int) -> Ranking:
        """The k best labels by what was found."""
        m, p, alpha = voting
        alpha = alpha if found.labels is not None else 0.0  # without label texts only neighbours count
        weights = similarity_weights(found.point_scores[:, :m], p)
        weights /= np.maximum(weights.sum(1, keepdims=True), np.float32(1e-30))
        matches = np.empty((len(weights), 0), np.int32), np.empty((len(weights), 0), np.float32)
        if alpha > 0 and found.labels is not None and found.label_scores is not None:
            matches = found.labels, np.float32(alpha) * similarity_weights(found.label_scores, p)
        removed = np.zeros(len(self.labels), bool) if self.labels.removed is None else self.labels.removed
        voters = found.points[:, :m], weights
        best = _native.vote(voters, self.Y, self.ignore, 1 - alpha, matches, removed, min(k, len(self.labels)))
        ranking = Ranking(*best, self.labels)
        order, shares = self.labels.best(self.shares, 2 * k)
        return ranking.fill(order[order >= 0], shares[order >= 0] * np.float32(1e-6))

    def _queries(self, x: Inputs) -> sp.csr_matrix:
        """Query rows, long ones cut to their heaviest terms."""
        if self.encoder is None or not isinstance(x, Texts):
            weighted = normalise_rows(x)
            return at_columns(weighted, heaviest(weighted, self.recipe.query_terms))
        counts = self.encoder.count(x)
        weighted = self.encoder.weigh(counts)
        columns = heaviest(weighted, self.recipe.query_terms)
        return at_columns(counts if self.recipe.weighting == "bm25" else weighted, columns)

    def edit_labels(self, labels: Labels) -> NeighboursModel:
        """This model over an edited label space; new labels are found by their texts only, since no point has them."""
        check_edit(self.labels, labels)
        L, new, index = len(labels), len(labels) - len(self.labels), self.label_index
        if new:
            if self.encoder is None or index is None or labels.texts is None or not self.recipe.voting().label_weight:
                raise UnsupportedError(
                    f"this {self.recipe.name!r} model does not look at label texts, and a new label has nothing else; "
                    "train it again with the label"
                )
            counts = self.encoder.count(labels.texts[len(self.labels) :])
            rows = self.encoder.bm25(counts) if self.recipe.weighting == "bm25" else self.encoder.weigh(counts)
            index = SparseIndex(sp.hstack([index.lists, rows.T], format="csr"))
        edited = NeighboursModel(
            self.recipe,
            labels,
            self.encoder,
            self.points,
            index,
            wider(self.Y, L),
            None if self.ignore is None else wider(self.ignore, L),
            np.append(self.shares, np.zeros(new, np.float32)),
            self.accepts,
            about_edit(self.about, self.labels, labels),
        )
        edited.decision = self.decision
        return edited

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The indexes, the votes and the encoder."""
        arrays = pack_csr("points", self.points.lists) | pack_csr("votes", self.Y) | pack_csr("abstain", self.ignore)
        arrays |= pack_csr("label_index", None if self.label_index is None else self.label_index.lists)
        arrays["shares"] = self.shares
        meta: dict[str, Any] = {"accepts": self.accepts, "encoder": None}
        if self.encoder is not None:
            encoder_arrays, meta["encoder"] = self.encoder.state()
            arrays |= encoder_arrays
        return arrays, meta

    @classmethod
    def from_state(cls, saved: Saved) -> NeighboursModel:
        """The model that `state` described."""
        arrays, meta = saved.arrays, saved.meta
        encoder = None if meta["encoder"] is None else Tfidf.from_state(arrays, meta["encoder"])
        points, label_lists = unpack_csr("points", arrays), unpack_csr("label_index", arrays)
        votes, abstain = unpack_csr("votes", arrays), unpack_csr("abstain", arrays)
        if points is None or votes is None:
            raise KeyError("points" if points is None else "votes")
        V, N, L = (meta["accepts"] if encoder is None else len(encoder)), points.shape[1], len(saved.labels)
        for name, matrix, shape in (
            ("points", points, (V, N)),
            ("votes", votes, (N, L)),
            ("abstain", abstain, (N, L)),
            ("label_index", label_lists, (V, L)),
        ):
            if matrix is not None and matrix.shape != shape:
                raise ValueError(f"{name} has the shape {matrix.shape}, but should have {shape}")
        return cls(
            cast(Neighbours, saved.recipe),
            saved.labels,
            encoder,
            SparseIndex(points),
            None if label_lists is None else SparseIndex(label_lists),
            votes,
            abstain,
            arrays["shares"],
            meta["accepts"],
            saved.about,
        )


def wider(matrix: sp.csr_matrix, columns: int) -> sp.csr_matrix:
    """The same entries in a matrix of more columns; its arrays are shared, mapped ones stay mapped."""
    same = sp.csr_matrix((matrix.shape[0], columns), dtype=matrix.dtype)
    same.data, same.indices, same.indptr = matrix.data, matrix.indices, matrix.indptr
    same.has_sorted_indices, same.has_canonical_format = matrix.has_sorted_indices, matrix.has_canonical_format
    return same


def relative(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores divided by the best of their row."""
    best = scores[:, :1]
    return np.divide(scores, np.where(np.isfinite(best) & (best > 0), best, 1), dtype=np.float32)


def similarity_weights(scores: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """scores^power, 0 at pads."""
    return np.power(np.where(np.isfinite(scores), scores, 0), power, dtype=np.float32)


def heaviest(matrix: sp.csr_matrix, count: int) -> NDArray[np.int32]:
    """The columns (N, m) of the `count` entries largest by size in each row, rising; −1 fills up."""
    sizes = sp.csr_matrix((np.abs(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    widest = int(np.diff(matrix.indptr).max(initial=0))
    return np.sort(_native.top_k(sizes, min(count, widest))[0], axis=1)


def at_columns(matrix: sp.csr_matrix, columns: NDArray[np.int32]) -> sp.csr_matrix:
    """The entries of `matrix` at (row, columns[row]), which are rising; −1 stands for none."""
    real = columns >= 0
    indptr = np.append(0, np.cumsum(real.sum(1)))
    return sp.csr_matrix((_native.pick(matrix, columns)[real], columns[real], indptr), shape=matrix.shape)
