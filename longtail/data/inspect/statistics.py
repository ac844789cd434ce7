"""What `longtail inspect` tells about a corpus: statistics that papers print, and duplicates that distort scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.labels import Labels
from longtail.core.texts import Texts, printable
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.inspect.bins import Histogram, length_bins, linear_bins, rank_curve

# groups of labels by their number of training examples: from, to (None: no upper limit)
RANGES = ((0, 0), (1, 1), (2, 5), (6, 20), (21, 100), (101, 1000), (1001, None))
FREQUENT, LONGEST, START = 10, 5, 80
BLOCK = 1 << 23  # bytes of text counted at a time


@dataclass(frozen=True)
class Spread:
    """Mean, median and maximum of some counts; all 0 if there are none."""

    mean: float
    median: float
    max: int

    @classmethod
    def of(cls, values: NDArray[np.integer]) -> Spread:
        """The spread of an array of counts."""
        if not len(values):
            return cls(0.0, 0.0, 0)
        return cls(float(values.mean()), float(np.median(values)), int(values.max()))


@dataclass(frozen=True)
class PartStatistics:
    """Figures of train, dev or test.

    `words` and `empty` (texts without a word) are None for features; `columns` and `nonzeros` are None for texts.
    `unseen` counts labels of this part without a training example, `unseen_mass` is their share of the part's label
    occurrences; both are None for train.
    """

    part: str
    points: int
    labels: Spread
    unlabelled: int
    ignored: int
    words: Spread | None = None
    empty: int | None = None
    columns: int | None = None
    nonzeros: Spread | None = None
    unseen: int | None = None
    unseen_mass: float | None = None


@dataclass(frozen=True)
class LabelGroup:
    """The labels with `low` to `high` training examples.

    `share` is their share of all labels, `occurrence_share` of the label occurrences in train, `test_share` of those in
    test (None without a test part). Shares are between 0 and 1.
    """

    low: int
    high: int | None
    labels: int
    share: float
    occurrences: int
    occurrence_share: float
    test_share: float | None

    @property
    def name(self) -> str:
        """The range as text: `0`, `2–5`, `> 1000`."""
        if self.high is None:
            return f"> {self.low - 1}"
        return f"{self.low}" if self.low == self.high else f"{self.low}–{self.high}"


@dataclass(frozen=True)
class FrequentLabel:
    """A label with many training examples."""

    key: str
    text: str | None
    examples: int


@dataclass(frozen=True)
class Duplicates:
    """How many of the `points` texts of a part equal a text of `other`: exactly, and after folding.

    Folding lower-cases a text and removes digits and punctuation. `other` is "train", "labels" (label texts), or
    "earlier": within train, points whose text already occurred in an earlier row.
    """

    part: str
    other: str
    points: int
    exact: int
    folded: int


@dataclass(frozen=True)
class LongText:
    """A long text: its part and row (from 0), its size, and how it begins."""

    part: str
    row: int
    words: int
    characters: int
    start: str


@dataclass(frozen=True)
class Statistics:
    """A corpus in figures.

    `per_label` are training examples of the labels that occur in train, `per_label_all` of all labels. `curve` holds
    ranks and frequencies of labels for a plot. The histograms count points of train: `labels_per_point`, and `lengths`
    in words or non-zero features.
    """

    name: str
    about: dict[str, str]
    parts: tuple[PartStatistics, ...]
    labels: int
    labels_with_text: int
    labels_in_train: int
    per_label: Spread
    per_label_all: Spread
    groups: tuple[LabelGroup, ...]
    frequent: tuple[FrequentLabel, ...]
    duplicates: tuple[Duplicates, ...]
    longest: tuple[LongText, ...]
    curve: tuple[tuple[int, ...], tuple[int, ...]]
    labels_per_point: Histogram
    lengths: Histogram

    @property
    def train(self) -> PartStatistics:
        """The training part, which every corpus has."""
        return self.parts[0]

    @property
    def labels_unseen(self) -> int:
        """Labels without a training example."""
        return self.labels - self.labels_in_train

    def to_json(self) -> dict[str, Any]:
        """As JSON values, without the data of the plots; shares are between 0 and 1, and None values are left out."""
        parts = {p.part: _present(dataclasses.asdict(p), "part") for p in self.parts}
        return {
            "name": self.name,
            **parts,
            "labels": self.labels,
            "labels_with_text": self.labels_with_text,
            "labels_in_train": self.labels_in_train,
            "labels_unseen": self.labels_unseen,
            "points_per_label": dataclasses.asdict(self.per_label),
            "points_per_label_all": dataclasses.asdict(self.per_label_all),
            "labels_by_examples": [{"examples": g.name, **_present(dataclasses.asdict(g))} for g in self.groups],
            "frequent": [_present(dataclasses.asdict(label)) for label in self.frequent],
            "duplicates": [dataclasses.asdict(d) for d in self.duplicates],
            "longest": [dataclasses.asdict(text) for text in self.longest],
        }


def statistics_of(corpus: Corpus) -> Statistics:
    """The statistics of a corpus, in a few passes over its arrays."""
    counts = corpus.train.label_counts()
    words = {part: _words(data) for part, data in corpus.parts()}
    seen = counts > 0
    ranks, frequencies = rank_curve(counts)
    labels = corpus.labels
    return Statistics(
        name=corpus.name,
        about={key: value for key, value in corpus.about.items() if isinstance(value, str)},
        parts=tuple(_part(part, data, words[part], seen) for part, data in corpus.parts()),
        labels=len(labels),
        labels_with_text=0 if labels.texts is None else int(np.count_nonzero(labels.texts.byte_lengths)),
        labels_in_train=int(seen.sum()),
        per_label=Spread.of(counts[seen]),
        per_label_all=Spread.of(counts),
        groups=tuple(_groups(counts, corpus.test)),
        frequent=tuple(_frequent(counts, labels)),
        duplicates=tuple(_duplicates(corpus)),
        longest=_longest(corpus, words),
        curve=(tuple(ranks.tolist()), tuple(frequencies.tolist())),
        labels_per_point=linear_bins(np.diff(corpus.train.Y.indptr)),
        lengths=length_bins(_sizes(corpus.train, words["train"])),
    )


def characters(texts: Texts) -> NDArray[np.int64]:
    """The number of characters of each text: its UTF-8 bytes, not counting bytes that continue a character."""
    lengths = texts.byte_lengths.copy()
    for first, last in _blocks(texts.offsets):
        cuts = texts.offsets[first : last + 1]
        block = texts.data[cuts[0] : cuts[-1]]
        if block.max(initial=0) >= 0x80:
            within = np.concatenate(
                [[0], np.cumsum((block & 0xC0) == 0x80, dtype=np.int64)]
            )  # continuation bytes so far
            lengths[first:last] -= np.diff(within[cuts - cuts[0]])
    return lengths


def _blocks(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges (first, last) of texts that hold about `BLOCK` bytes, and at least one text each."""
    first, end = 0, len(offsets) - 1
    while first < end:
        last = int(np.searchsorted(offsets, offsets[first] + BLOCK, "right")) - 1
        last = min(max(last, first + 1), end)
        yield first, last
        first = last


def _part(part: str, data: Dataset, words: NDArray[np.int32] | None, seen: NDArray[np.bool_]) -> PartStatistics:
    labels = np.diff(data.Y.indptr)
    ignored = 0 if data.ignore is None else int(data.ignore.nnz)
    figures: dict[str, Any] = {}
    if words is not None:
        figures |= {"words": Spread.of(words), "empty": int((words == 0).sum())}
    else:
        figures |= {"columns": int(data.features.shape[1]), "nonzeros": Spread.of(np.diff(data.features.indptr))}
    if part != "train":
        new = data.Y.indices[~seen[data.Y.indices]]
        figures |= {"unseen": len(np.unique(new)), "unseen_mass": len(new) / max(data.Y.nnz, 1)}
    return PartStatistics(part, len(data), Spread.of(labels), int((labels == 0).sum()), ignored, **figures)


def _words(data: Dataset) -> NDArray[np.int32] | None:
    return _native.count_words(data.x.data, data.x.offsets) if isinstance(data.x, Texts) else None


def _sizes(data: Dataset, words: NDArray[np.int32] | None) -> NDArray[np.integer]:
    return np.diff(data.features.indptr) if words is None else words


def _groups(counts: NDArray[np.int64], test: Dataset | None) -> Iterator[LabelGroup]:
    group = np.searchsorted([low for low, _ in RANGES], counts, "right") - 1
    labels = np.bincount(group, minlength=len(RANGES))
    occurrences = np.bincount(group, counts, len(RANGES)).astype(np.int64)
    in_test = None if test is None else np.bincount(group[test.Y.indices], minlength=len(RANGES))
    for i, (low, high) in enumerate(RANGES):
        share = labels[i] / max(len(counts), 1)
        occurrence_share = occurrences[i] / max(occurrences.sum(), 1)
        test_share = None if in_test is None else float(in_test[i] / max(in_test.sum(), 1))
        found = int(labels[i]), float(share), int(occurrences[i]), float(occurrence_share)
        yield LabelGroup(low, high, *found, test_share)


def _frequent(counts: NDArray[np.int64], labels: Labels) -> Iterator[FrequentLabel]:
    best = _top(counts, FREQUENT)
    for i in best[counts[best] > 0].tolist():
        yield FrequentLabel(labels.keys[i], None if labels.texts is None else labels.texts[i], int(counts[i]))


def _duplicates(corpus: Corpus) -> Iterator[Duplicates]:
    """Count duplicates by 64-bit hashes; among a million texts, two different ones hardly ever share a hash."""
    if not isinstance(corpus.train.x, Texts):
        return
    train = _hashes(corpus.train.x)
    unique = [np.unique(hashes) for hashes in train]
    yield Duplicates("train", "earlier", len(corpus.train), *(len(corpus.train) - len(u) for u in unique))
    for part, data in corpus.parts():
        if part != "train" and isinstance(data.x, Texts):
            yield Duplicates(part, "train", len(data), *_found(_hashes(data.x), unique))
    if corpus.labels.texts is not None:
        yield Duplicates("train", "labels", len(corpus.train), *_found(train, _hashes(corpus.labels.texts)))


def _found(own: Sequence[NDArray[np.uint64]], other: Sequence[NDArray[np.uint64]]) -> Iterator[int]:
    return (int(np.isin(a, b).sum()) for a, b in zip(own, other, strict=True))


def _hashes(texts: Texts) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """64-bit hashes of the texts, exact and folded."""
    exact, folded = (_native.hash_texts(texts.data, texts.offsets, fold=fold) for fold in (False, True))
    return exact, folded


def _longest(corpus: Corpus, words: dict[Any, NDArray[np.int32] | None]) -> tuple[LongText, ...]:
    found = []
    for part, data in corpus.parts():
        if isinstance(data.x, Texts) and (count := words[part]) is not None:
            for row, size in zip(*_longest_rows(data.x, LONGEST), strict=True):
                found.append(LongText(part, row, int(count[row]), size, printable(data.x[row][:START])))
    return tuple(sorted(found, key=lambda text: -text.characters)[:LONGEST])


def _longest_rows(texts: Texts, k: int) -> tuple[list[int], list[int]]:
    """Rows and characters of the k longest texts.

    A text has at most as many characters as bytes, so only texts with enough bytes are counted.
    """
    if not len(texts):
        return [], []
    least = characters(texts.take(_top(texts.byte_lengths, k))).min()
    rows = np.flatnonzero(texts.byte_lengths >= least)
    sizes = characters(texts.take(rows))
    best = _top(sizes, k)
    return rows[best].tolist(), sizes[best].tolist()


def _top(values: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Indices of the k largest, largest first, ties by lower index."""
    if len(values) > k:
        least = np.partition(values, -k)[-k]
        rows = np.concatenate([np.flatnonzero(values > least), np.flatnonzero(values == least)[:k]])
    else:
        rows = np.arange(len(values))
    return rows[np.lexsort((rows, -values[rows]))][:k]


def _present(values: dict[str, Any], *but: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None and key not in but}
