"""D becomes D ∪ Z: the one call by which any engine augments its training set."""

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
SAMPLE, BUDGET, SYNONYMS = 1, 2, 3  # what is drawn at random, each apart from the others


def augment(
    data: Dataset,
    labels: Labels,
    settings: Augmentation,
    seed: int = 0,
    *,
    kind: str = "this recipe",
    progress: Progress | None = None,
) -> Dataset:
    """The training set that these settings make of `data`; what is added comes last.

    Targets come from the Y of `data` without its ignored pairs. A point that is a label's text ignores nothing.
    `labels` are not changed, so counts and propensities stay those of the original training set. `kind` is in whose
    name data that lacks texts is refused. What mixes embeddings leaves `data` as it is: that is for networks to do.
    """
    if settings.method == "none":
        return data
    if settings.method == "auto":
        raise UnsupportedError(f"{kind}: augment=auto is decided on a validation part before anything is augmented")
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
    """Z: the texts of labels as points, with their targets; of a share of the labels where that is asked for."""
    if labels.texts is None:
        raise UnsupportedError("these labels have no texts that could be points")
    usable = np.flatnonzero(usable_labels(labels))
    truth = data.truth()
    counts = np.bincount(truth.indices, minlength=len(labels))
    rows = sample(usable, counts, settings, np.random.default_rng([seed, SAMPLE]))
    without = len(labels) - len(usable) - (0 if labels.removed is None else int(labels.removed.sum()))
    if without:
        log.info("augment: %s of %s labels have no text, and no point of their own", f"{without:,}", f"{len(labels):,}")
    return Dataset(labels.texts.take(rows), label_targets(truth, rows, settings, seed, progress))


def sample(
    usable: NDArray[np.int64], counts: NDArray[np.int64], settings: Augmentation, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The labels whose texts become points, rising: `share` of the usable ones.

    Uniformly, or by bins of equal volume from the tail to the head (see `bins_of`), uniformly within a bin.
    """
    if settings.share == 1:
        return usable
    wanted = max(round(settings.share * len(usable)), 1)
    drawn = rng.permutation(usable)
    if settings.order == "tail-first":
        drawn = drawn[np.argsort(-bins_of(counts)[drawn], kind="stable")]
    return np.sort(drawn[:wanted])
