"""Does Gandalf's premise hold for a corpus? Measured on texts that are both a label and a training point.

Gandalf (paper 001, eq. 1.6) trains the text of label j with the labels that occur together with j, as if these were
labels of the text itself. Where the same text is a training point as well, its own labels say how often that is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.augment.settings import Augmentation, usable_labels
from longtail.augment.targets import label_targets, own
from longtail.core.labels import Labels
from longtail.core.progress import Progress
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.sparse import csr, keep_entries, pairs, without

BLOCK = 1 << 16  # labels whose targets are held in memory at a time
GANDALF = Augmentation("gandalf")
# Measured by bench/premise.py on validation parts: up to 6.4 % `self` was ahead of `gandalf`, from 16.1 % on behind it.
LOW, HIGH = 0.07, 0.16


@dataclass(frozen=True)
class Premise:
    """What the labels of points say about the targets of label texts.

    `texts`: pairs of a label and a training point that are the same text. `given`: co-labels that the augmentation
    gives these label texts. `true`: how many of them are labels of the point too. `known`: all labels of the points.
    """

    texts: int
    given: int
    true: int
    known: int

    @property
    def share(self) -> float | None:
        """The share of the given co-labels that are true, from 0 to 1; None where nothing is given."""
        return self.true / self.given if self.given else None

    def to_json(self) -> dict[str, Any]:
        """All figures, for the JSON output of commands."""
        return {
            "texts": self.texts,
            "co_labels": self.given,
            "true": self.true,
            "share": self.share,
            "labels_of_texts": self.known,
        }

    def __str__(self) -> str:
        """One sentence with the share and the advice that follows from it."""
        if not self.texts:
            return "No training text is also a label text, so only a validation part can say whether Gandalf helps."
        if self.share is None:
            return f"Gandalf gives no co-labels to the {self.texts:,} label texts that are training texts too."
        return (
            f"Of the {self.given:,} co-labels that Gandalf gives the {self.texts:,} label texts that are training "
            f"texts too, {100 * self.share:.1f} % are true of these texts: {advice(self.share)}."
        )


def advice(share: float) -> str:
    """What to do when this share of the co-labels is true; measured on few corpora, so it is worded as a hint."""
    if share <= LOW:
        return "prefer augment=self or gandalf-shrunk"
    if share >= HIGH:
        return "augment=gandalf is likely to help"
    return "compare augment=self, gandalf-shrunk and gandalf on validation (augment=auto does)"


def premise_of(corpus: Corpus, progress: Progress | None = None) -> Premise | None:
    """The premise of a corpus at Gandalf's defaults; None where it cannot be used: no texts, or no label texts."""
    if not corpus.train.has_text or not usable_labels(corpus.labels).any():
        return None
    return premise(corpus.train, corpus.labels, progress=progress)


def premise(
    data: Dataset, labels: Labels, settings: Augmentation = GANDALF, seed: int = 0, progress: Progress | None = None
) -> Premise:
    """Compare the targets that `settings` give label texts with the labels that the same texts have as points.

    A point says nothing about the targets of the label it is linked to: such pairs are left out before co-labels are
    counted, as ignored pairs are. Co-labels that are ignored for the point are left out on both sides.
    """
    links = same_texts(data, labels)
    if not links.nnz:
        return Premise(0, 0, 0, 0)
    truth = without(data.truth(), links)
    given = true = 0
    linked = np.unique(links.indices).astype(np.int64)
    for first in range(0, len(linked), BLOCK):
        rows = linked[first : first + BLOCK]
        if not truth.nnz:
            break
        co_labels = label_targets(truth, rows, settings, seed, progress)  # (B, L)
        co_labels = keep_entries(co_labels, ~own(co_labels, rows))
        co_labels.data[:] = 1
        at_points = (links[:, rows].astype(np.float32) @ co_labels).tocsr()  # (N, L): how often a pair is given
        if data.ignore is not None:
            at_points = without(at_points, data.ignore)
        given += int(at_points.sum(dtype=np.float64))
        true += int(at_points.multiply(truth > 0).sum(dtype=np.float64))
    known = int(np.diff(links.indptr) @ np.diff(truth.indptr))
    return Premise(links.nnz, given, true, known)


def same_texts(data: Dataset, labels: Labels) -> sp.csr_matrix:
    """Which point is the same thing as which label (N, L): their texts are equal, or the pair is ignored.

    Corpora that relate things of one kind list such pairs as filter pairs, whatever the texts are. Labels without
    text and removed labels have no pairs, and neither have points that are rows of features.
    """
    usable = usable_labels(labels)
    if labels.texts is None or not data.has_text or not usable.any():
        return sp.csr_matrix(data.Y.shape, dtype=bool)
    found = equal_texts(_hashes(data.texts), _hashes(labels.texts))
    if data.ignore is not None:
        found = found + data.ignore.astype(np.float32)
    return pairs(keep_entries(found, usable[found.indices]))


def equal_texts(points: NDArray[np.uint64], labels: NDArray[np.uint64]) -> sp.csr_matrix:
    """1 where the hash of a point equals that of a label (N, L)."""
    values, place = np.unique(labels, return_inverse=True)
    order = np.argsort(place, kind="stable").astype(np.int32)
    ends = np.append(0, np.cumsum(np.bincount(place, minlength=len(values))))
    by_value = csr(ends, order, np.ones(len(order), np.float32), (len(values), len(labels)))
    at = np.searchsorted(values, points)
    hit = values[np.minimum(at, len(values) - 1)] == points
    picked = csr(
        np.append(0, np.cumsum(hit)),
        at[hit].astype(np.int32),
        np.ones(hit.sum(), np.float32),
        (len(points), len(values)),
    )
    return (picked @ by_value).tocsr()


def _hashes(texts: Any) -> NDArray[np.uint64]:
    """64 bits of each text: among a million texts, two different ones are unlikely to share them."""
    return _native.hash_texts(texts.data, texts.offsets)
