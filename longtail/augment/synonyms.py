"""Copies of texts with words replaced by words of similar meaning (paper 001, Table 1.6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.augment.settings import Augmentation
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.encoders.vectors import WordVectors, glove

BLOCK = 4096  # words whose similarities to all others are in memory at once


def with_synonyms(
    data: Dataset, settings: Augmentation, rng: np.random.Generator, known: WordVectors | None = None
) -> Dataset:
    """Return `data` followed by copies of its points: other words, the same labels and ignored pairs."""
    pieces = Pieces.of(data.texts)
    near = neighbours([word.lower() for word in pieces.vocabulary], known or glove("augment=synonyms"), settings.near)
    both = data
    for _ in range(settings.copies):
        both = both + Dataset(pieces.replaced(near, settings.words, rng), data.Y, data.ignore, data.groups)
    return both


class Pieces(NamedTuple):
    """Texts split into words and the gaps between them, in turn; a gap may be empty.

    `texts` holds all 2m + 1 pieces, with words at the odd places. `ends` (N,) is the number of bytes up to the end of
    each of the N texts. `word` (m,) is the place of each word in `vocabulary`, which holds every spelling once.
    """

    texts: Texts
    ends: NDArray[np.int64]
    word: NDArray[np.int64]
    vocabulary: Texts
    of_text: NDArray[np.int64]  # (m,): the text that contains each word

    @classmethod
    def of(cls, texts: Texts) -> Pieces:
        """Split texts. A word is a run of ASCII letters, digits and non-ASCII bytes; no word crosses two texts."""
        data = texts.data[texts.offsets[0] : texts.offsets[-1]]
        ends = texts.offsets[1:] - texts.offsets[0]
        inside = np.concatenate([[False], WORD[data], [False]])
        begins = inside[1:] & ~inside[:-1]
        stops = inside[:-1] & ~inside[1:]
        borders = np.unique(ends[(ends > 0) & (ends < len(data))])  # a word that crosses a border is split in two
        cut = borders[inside[borders] & inside[borders + 1]]
        begins[cut] = stops[cut] = True
        first, last = np.flatnonzero(begins), np.flatnonzero(stops)
        offsets = np.empty(2 * len(first) + 2, np.int64)
        offsets[0], offsets[-1] = 0, len(data)
        offsets[1:-1:2], offsets[2:-1:2] = first, last
        pieces = Texts(data, offsets)
        words = pieces.take(np.arange(1, len(pieces), 2))
        _, example, word = np.unique(
            _native.hash_texts(words.data, words.offsets), return_index=True, return_inverse=True
        )
        return cls(pieces, ends, word, words.take(example), np.searchsorted(ends, first, side="right"))

    def replaced(self, near: NDArray[np.int32], share: float, rng: np.random.Generator) -> Texts:
        """Return the texts with a share of their words replaced by one of `near` (V, k), places in the vocabulary.

        −1 in `near` means no neighbour. In every text with replaceable words, at least one is replaced.
        """
        able = np.flatnonzero(near[self.word, 0] >= 0)
        chosen = able[drawn(self.of_text[able], share, rng)]
        options = near[self.word[chosen]]
        others = options[np.arange(len(chosen)), (rng.random(len(chosen)) * (options >= 0).sum(1)).astype(int)]
        at = np.arange(len(self.texts))
        at[2 * chosen + 1] = len(self.texts) + others
        mixed = (self.texts + self.vocabulary).take(at)
        moved = np.zeros(len(self.texts), np.int64)  # by how many bytes each piece grew
        moved[2 * chosen + 1] = self.vocabulary.byte_lengths[others] - self.texts.byte_lengths[2 * chosen + 1]
        longer = np.bincount(self.of_text[chosen], moved[2 * chosen + 1], minlength=len(self.ends))
        offsets = np.append(0, self.ends + np.cumsum(longer).astype(np.int64))
        return Texts(mixed.data, offsets)


def drawn(group: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a share (rounded up) of the members of each group; groups are in ascending order."""
    order = np.lexsort((rng.random(len(group)), group))
    sizes = np.bincount(group)
    rank = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[rank < np.repeat(np.ceil(share * sizes - 1e-9), sizes)])


def neighbours(words: list[str], known: WordVectors, count: int) -> NDArray[np.int32]:
    """Return the nearest other words of each word by cosine, as places in `words` (V, count); −1 pads.

    Only words with a vector take part. Spellings that are equal in lower case are not neighbours of each other.
    """
    place = {word: at for at, word in enumerate(known.words)}
    at = np.array([place.get(word, -1) for word in words], np.int64)
    have = np.flatnonzero(at >= 0)
    found = np.full((len(words), count), -1, np.int32)
    # of several spellings, only the first is a candidate
    _, first, spelling = np.unique(at[have], return_index=True, return_inverse=True)
    vectors = np.asarray(known.vectors[at[have[first]]], np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    near = np.full((len(first), count), -1, np.int32)
    k = min(count, len(first) - 1)
    for start in range(0, len(first), BLOCK) if k > 0 else ():
        scores = vectors[start : start + BLOCK] @ vectors.T
        scores[np.arange(len(scores)), start + np.arange(len(scores))] = -np.inf
        near[start : start + BLOCK, :k] = _native.top_k(scores, k)[0]
    found[have] = np.where(near >= 0, have[first][near], -1)[spelling]
    return found


WORD = np.zeros(256, bool)
WORD[[*range(ord("0"), ord("9") + 1), *range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1)]] = True
WORD[128:] = True
