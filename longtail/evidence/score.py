"""Scoring a model on a data set: labels are joined by key, filter pairs are dropped, unknown labels reported."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.progress import Progress
from longtail.core.ranking import Ranking
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.metrics import Report, depth, ece, evaluate
from longtail.metrics.decisions import cut_scores
from longtail.metrics.evaluate import KS

log = logging.getLogger("longtail")
BLOCK = 4096  # points predicted between two steps of the progress bar


@dataclass(frozen=True)
class ScoredModel:
    """Predictions and truth over one label space: the model's labels, then the labels that only the data has.

    `ranking` is without the model's cut-off. `decided` is with the cut-off and without ignored pairs; None if the model
    has no cut-off.
    """

    ranking: Ranking
    data: Dataset
    decided: Ranking | None = None

    def report(self, ks: tuple[int, ...] = KS) -> Report:
        """All metrics; label frequencies are the model's training counts."""
        return evaluate(self.ranking, self.data.Y, ks=ks, ignore=self.data.ignore)

    def calibration_scores(self, ks: tuple[int, ...] = KS) -> dict[str, float]:
        """The calibration error of the k best labels; empty if the ranking does not contain probabilities."""
        if self.ranking.kind != "probability":
            return {}
        return ece(self.ranking, self.data.Y, ks, ignore=self.data.ignore)

    def cut_scores(self) -> dict[str, float]:
        """Micro precision, recall and F1 of the labels above the cut-off, and their number; empty without a cut-off."""
        return {} if self.decided is None else cut_scores(self.decided, self.data.Y, self.data.ignore)


def part_of(corpus: Corpus, part: str | None) -> tuple[str, Dataset]:
    """The part to evaluate on: the named one, else test, else dev, else train."""
    parts: dict[str, Dataset] = dict(corpus.parts())
    if part is not None:
        if part not in parts:
            raise ParameterError(f"{corpus.name!r} has no {part} part; it has: {', '.join(parts)}")
        return part, parts[part]
    chosen = next(name for name in ("test", "dev", "train") if name in parts)
    return chosen, parts[chosen]


def score(
    model: Model,
    corpus: Corpus,
    part: str | None = None,
    ks: tuple[int, ...] = KS,
    progress: Progress | None = None,
) -> ScoredModel:
    """Predict every point of a part of a corpus, and bring predictions and truth into one label space.

    Label counts come from the model's training; propensity constants from the corpus, if it names them.
    """
    _, data = part_of(corpus, part)
    labels = corpus.labels
    if not len(data):
        raise DataError("there is no point to evaluate on")
    model.check_inputs(data.x[:1])
    union, columns = join(model.labels, labels)
    if "propensity" in corpus.about:
        union = replace(union, propensity=labels.propensity)
    data = data.with_labels(columns, len(union))
    tell_leftovers(model.labels, data, labels, columns)
    cut_off = None if model.decision is None else model.decision.cut_off
    k = depth(ks if cut_off is None else (*ks, cut_off.most), data.ignore)
    ranking = replace(predict_all(model, data, k, progress), labels=union)
    if model.decision is None:
        return ScoredModel(ranking, data)
    if data.ignore is not None:
        ranking = ranking.drop(data.ignore)  # probabilities depend on the rank without ignored pairs
    decided = None if cut_off is None else model.decision.apply(ranking)
    return ScoredModel(model.decision.apply(ranking, cut_off=False), data, decided)


def predict_all(model: Model, data: Dataset, k: int, progress: Progress | None = None) -> Ranking:
    """`model.predict_scores` in blocks, under a progress bar."""
    parts = []
    with (progress or Progress()).bar("predicting", len(data), "points") as bar:
        for start in range(0, len(data), BLOCK):
            parts.append(model.predict_scores(data.x[start : start + BLOCK], k))
            bar.advance(len(parts[-1]))
    indices, scores = np.concatenate([p.indices for p in parts]), np.concatenate([p.scores for p in parts])
    return Ranking(indices, scores, model.labels, parts[0].kind)


def join(known: Labels, other: Labels) -> tuple[Labels, np.ndarray]:
    """`known` with the keys that only `other` has appended, and the index of each label of `other` in it."""
    columns = known.indices(other.keys).astype(np.int64)
    new = np.flatnonzero(columns < 0)
    if not len(new):
        return known, columns
    columns[new] = len(known) + np.arange(len(new))
    pad = np.zeros(len(new), np.int64)
    union = replace(
        known,
        keys=known.keys + other.keys.take(new),
        texts=None if known.texts is None else known.texts + Texts.of([""] * len(new)),
        counts=np.concatenate([known.counts, pad]),
        removed=None if known.removed is None else np.concatenate([known.removed, pad.astype(bool)]),
    )
    return union, columns


def tell_leftovers(known: Labels, data: Dataset, labels: Labels, columns: np.ndarray) -> None:
    """Log the labels that only one side has."""
    only_data = np.flatnonzero(columns >= len(known))
    if len(only_data):
        share = 100 * float(np.mean(data.Y.indices >= len(known))) if data.Y.nnz else 0.0
        message = "%s label(s) of the data are unknown to the model and count as misses (%.1f %% of what is true): %s"
        names = ", ".join(repr(labels.keys[int(i)]) for i in only_data[:3]) + (", …" if len(only_data) > 3 else "")
        log.warning(message, f"{len(only_data):,}", share, names)
    only_model = len(known) - int(np.count_nonzero(columns < len(known)))
    if only_model:
        log.warning("%s label(s) of the model are not in the data", f"{only_model:,}")
