"""D becomes D ∪ Z: the one function with which any engine augments its training set."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from longtail.augment.settings import Augmentation, usable_labels
from longtail.augment.synonyms import with_synonyms
from longtail.augment.targets import label_targets
from longtail.core.errors import UnsupportedError
from longtail.core.labels import Labels
from longtail.core.progress import Progress
from longtail.data.dataset import Dataset
from longtail.metrics.frequency import bins_of

log = logging.getLogger("longtail")
SAMPLE, BUDGET, SYNONYMS = 1, 2, 3  # separate random streams for the things drawn at random


def augment(
    data: Dataset,
    labels: Labels,
    settings: Augmentation,
    seed: int = 0,
    *,
    kind: str = "this recipe",
    progress: Progress | None = None,
) -> Dataset:
    """Return the training set that these settings make from `data`; new points are added at the end.

    Targets come from the Y of `data` without its ignored pairs. A point made from a label text has no ignored pairs.
    `labels` are not changed, so counts and propensities stay those of the original training set. `kind` is the
    recipe's name in error messages. Methods that mix embeddings return `data` unchanged: the network does the mixing.
    """
    if settings.method == "none":
        return data
    if settings.method == "auto":
        raise UnsupportedError(f"{kind}: augment=auto must be resolved on the validation part before augmenting")
    settings.check(data, labels, kind)
    if settings.of_embeddings:
        return data
    if settings.method == "synonyms":
        return with_synonyms(data, settings, np.random.default_rng([seed, SYNONYMS]))
    points = label_points(data, labels, settings, seed, progress)
    if settings.method == "labels-only":
        return points
    both = data + points
    if settings.method == "budgeted":  # U(D ∪ Z, N)
        drawn = np.random.default_rng([seed, BUDGET]).choice(len(both), len(data), replace=False)
        return both.take(np.sort(drawn))
    return both


def label_points(
    data: Dataset, labels: Labels, settings: Augmentation, seed: int, progress: Progress | None = None
) -> Dataset:
    """Return Z: label texts as points, with their targets; only a share of the labels if the settings say so."""
    if labels.texts is None:
        raise UnsupportedError("these labels have no texts to use as points")
    usable = np.flatnonzero(usable_labels(labels))
    truth = data.truth()
    counts = np.bincount(truth.indices, minlength=len(labels))
    rows = sample(usable, counts, settings, np.random.default_rng([seed, SAMPLE]))
    without = len(labels) - len(usable) - (0 if labels.removed is None else int(labels.removed.sum()))
    if without:
        log.info("augment: %s of %s labels have no text and add no point", f"{without:,}", f"{len(labels):,}")
    return Dataset(labels.texts.take(rows), label_targets(truth, rows, settings, seed, progress))


def sample(
    usable: NDArray[np.int64], counts: NDArray[np.int64], settings: Augmentation, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the labels (ascending) whose texts become points: `share` of the usable ones.

    They are drawn uniformly, or bin by bin from the tail to the head (see `bins_of`) and uniformly within a bin.
    """
    if settings.share == 1:
        return usable
    wanted = max(round(settings.share * len(usable)), 1)
    drawn = rng.permutation(usable)
    if settings.order == "tail-first":
        drawn = drawn[np.argsort(-bins_of(counts)[drawn], kind="stable")]
    return np.sort(drawn[:wanted])
