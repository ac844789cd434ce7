"""Kernels of the sparse encoder: terms of texts, counted and weighted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail._native import Csr, _kernels, csr_arrays

Arrays = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
"""indptr, indices and data of a CSR matrix."""


class Terms(NamedTuple):
    """What counts as a term: n-grams of `words` (shortest, longest) and of `characters`; (0, 0) for none.

    With `within`, character n-grams stay inside pieces between white space, with a blank added on either side.
    """

    words: tuple[int, int] = (1, 1)
    characters: tuple[int, int] = (0, 0)
    within: bool = True

    def flat(self) -> tuple[int, int, int, int, bool]:
        """Return the fields in the order the kernels take them."""
        return (*self.words, *self.characters, self.within)


WORDS = Terms()


class Spelled(NamedTuple):
    """Texts (UTF-8 and offsets), and replacements for the texts at `rows` (ascending): the same in another spelling.

    This avoids a copy of all texts.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64] = np.empty(0, np.int64)
    new_data: NDArray[np.uint8] = np.empty(0, np.uint8)
    new_offsets: NDArray[np.int64] = np.zeros(1, np.int64)


class TermCounts(NamedTuple):
    """The result of `fit_terms`: the vocabulary (UTF-8 and offsets), the number of texts with each term, how many terms
    are words (they come first), and the counts as CSR arrays; also the number of characters in scripts without spaces,
    and the number of other words.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    texts_with: NDArray[np.int64]
    words: int
    counts: Arrays
    unspaced: int
    spaced: int


class HashedCounts(NamedTuple):
    """The result of `fit_hashed`: the number of texts with each bucket (0 if left out); the rest as in `TermCounts`."""

    texts_with: NDArray[np.int64]
    counts: Arrays
    unspaced: int
    spaced: int


def fit_terms(
    texts: Spelled,
    terms: Terms = WORDS,
    *,
    min_texts: int = 1,
    max_texts: int = 2**62,
    limit: int | None = None,
) -> TermCounts:
    """Count the terms of texts and build the vocabulary of those in `min_texts` to `max_texts` texts.

    With `limit`, only that many of the most frequent words, and of the most frequent character n-grams, are kept.
    Words come first, then character n-grams, both sorted by their bytes.
    """
    most = -1 if limit is None else limit
    return TermCounts(*_kernels.fit_terms(*texts, *terms.flat(), min_texts, max_texts, most))


def fit_hashed(
    texts: Spelled,
    buckets: int,
    terms: Terms = WORDS,
    *,
    min_texts: int = 1,
    max_texts: int = 2**62,
) -> HashedCounts:
    """Count the terms of texts by bucket, leaving out those not in `min_texts` to `max_texts` texts."""
    return HashedCounts(*_kernels.fit_hashed(*texts, *terms.flat(), buckets, min_texts, max_texts))


class TermIndex:
    """A vocabulary that counts the terms of texts; its first `words` terms are words."""

    def __init__(
        self, data: NDArray[np.uint8], offsets: NDArray[np.int64], words: int | None = None, terms: Terms = WORDS
    ):
        self._index = _kernels.TermIndex(data, offsets, len(offsets) - 1 if words is None else words, *terms.flat())

    def count(self, texts: Spelled) -> Arrays:
        """Return the counts of known terms as CSR arrays."""
        return self._index.count(*texts)

    def encode(self, texts: Spelled, idf: NDArray[np.float32], sublinear: bool) -> Arrays:
        """Return the counts of known terms as CSR arrays, weighted as in `weigh`."""
        return self._index.encode(*texts, idf, sublinear)


class HashIndex(TermIndex):
    """Hashed terms: buckets (B,) that are set in `kept` are counted."""

    def __init__(self, kept: NDArray[np.bool_], terms: Terms = WORDS):
        self._index = _kernels.HashIndex(kept.astype(np.uint8), *terms.flat())


def weigh(counts: Csr, idf: NDArray[np.float32], sublinear: bool) -> NDArray[np.float32]:
    """Return tf·idf entries scaled to unit length in each row; tf is the count, or (sublinear) 1 + ln(count)."""
    return _kernels.weigh(*csr_arrays(counts), np.ascontiguousarray(idf, np.float32), sublinear)


def unit_rows(indptr: NDArray[np.int64], data: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the entries of a CSR matrix, scaled to unit length in each row."""
    return _kernels.unit_rows(indptr, data)
