"""Word counts, weighted by TF-IDF or BM25: the sparse encoder of the linear engine and of `neighbours`."""

from __future__ import annotations

import copy
import functools
import logging
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail._native.terms import (
    Arrays,
    HashedCounts,
    HashIndex,
    Spelled,
    TermCounts,
    TermIndex,
    Terms,
    fit_hashed,
    fit_terms,
    weigh,
)
from longtail.core.errors import DataError, ParameterError, shorten
from longtail.core.parameters import Parameters, param
from longtail.core.texts import Texts
from longtail.data.sparse import MOST_COLUMNS, csr, with_data

log = logging.getLogger("longtail")

MOST_CHARACTERS = 20  # in an n-gram


@dataclass(frozen=True)
class TfidfParameters(Parameters):
    """What counts as a term, and which terms are kept (docs/features.md).

    A word is a run of at least two letters, digits or underscores, lower-cased. In scripts written without
    spaces (Chinese, Japanese, Thai, …) every character and every pair of neighbours is a term instead.
    """

    kind = "tfidf"
    ngrams: int = param(1, "longest word n-gram; 0: no words", at_least=0, at_most=5)
    min_ngrams: int = param(1, "shortest word n-gram", at_least=1, at_most=5)
    char_ngrams: int | str | None = param(
        None, "also character n-grams of this length, such as 4 or 3-5", at_least=1, at_most=MOST_CHARACTERS
    )
    char_within: bool = param(True, "n-grams of characters stay within a word and the blanks around it")
    min_texts: int = param(1, "a term must occur in at least this many texts", at_least=1)
    max_share: float = param(1.0, "a term may occur in at most this share of the texts", above=0.0, at_most=1.0)
    limit: int | None = param(None, "keep at most this many terms, the most frequent, of each kind", at_least=1)
    hashing: int | None = param(
        None, "no vocabulary: a hash assigns terms to this many columns", at_least=1, at_most=MOST_COLUMNS
    )
    sublinear: bool = param(True, "1 + ln(count) instead of the count")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ngrams and self.min_ngrams > self.ngrams:
            raise ParameterError(
                f"{self.kind}: min_ngrams must be at most ngrams ({self.ngrams}), but is {self.min_ngrams}"
            )
        if self.ngrams == 0 and self.char_ngrams is None:
            raise ParameterError(f"{self.kind}: ngrams=0 leaves no terms; give char_ngrams, such as 3-5")
        if self.limit is not None and self.hashing is not None:
            raise ParameterError(f"{self.kind}: hashing={self.hashing} bounds the features already; leave limit out")
        self.terms()

    def terms(self) -> Terms:
        """The n-grams asked for, as the kernels take them."""
        words = (self.min_ngrams, self.ngrams) if self.ngrams else (0, 0)
        return Terms(words, self._characters(), self.char_within)

    def _characters(self) -> tuple[int, int]:
        if self.char_ngrams is None:
            return 0, 0
        found = re.fullmatch(r"\s*([0-9]{1,3})\s*(?:-\s*([0-9]{1,3})\s*)?", str(self.char_ngrams))
        least, most = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= least <= most <= MOST_CHARACTERS:
            lengths = f"a length or two, such as 4 or 3-5, of 1 to {MOST_CHARACTERS} characters"
            raise ParameterError(f"{self.kind}: char_ngrams must be {lengths}; got {shorten(self.char_ngrams)}")
        return least, most


class Tfidf:
    """A fitted vocabulary with document frequencies.

    `encode` gives L2-normalised rows of tf·idf, idf = ln((1 + N)/(1 + df)) + 1, as scikit-learn's
    TfidfVectorizer does; `bm25` the weights of Robertson's BM25 for the side that is searched. `terms` are those of
    words, the first `words` of them, then those of characters; where terms are hashed there are none to name, and
    `texts_with` (V,) is 0 for the buckets that are left out.
    """

    def __init__(
        self,
        terms: Texts,
        words: int,
        texts_with: NDArray[Any],
        texts: int,
        average: float,
        settings: TfidfParameters,
    ):
        self.terms, self.words, self.texts_with = terms, words, texts_with
        self.texts, self.average, self.settings = texts, average, settings
        if settings.hashing is None:
            self._index = TermIndex(terms.data, terms.offsets, words, settings.terms())
        else:
            self._index = HashIndex(texts_with > 0, settings.terms())

    @classmethod
    def fit(cls, texts: Texts, settings: TfidfParameters | None = None) -> tuple[Tfidf, sp.csr_matrix]:
        """The encoder of a set of texts, and their term counts (N, V), which need not be counted again."""
        settings = settings or TfidfParameters()
        spelled = normalised(texts, settings)
        least, most = settings.min_texts, max(int(settings.max_share * len(texts)), 1)
        found: TermCounts | HashedCounts
        if settings.hashing is None:
            found = fit_terms(spelled, settings.terms(), min_texts=least, max_texts=most, limit=settings.limit)
            terms, words = Texts(found.data, found.offsets), found.words
        else:
            found = fit_hashed(spelled, settings.hashing, settings.terms(), min_texts=least, max_texts=most)
            terms, words = Texts.of([]), 0
        if not found.texts_with.any():
            fix = "a word has at least two letters or digits; min_texts and max_share may leave out too many terms"
            found_text = texts[0] if len(texts) else None
            raise DataError("the texts contain no term that can be used", found=found_text, fix=fix)
        share = 100 * found.unspaced / max(found.unspaced + found.spaced, 1)
        if share >= 1:
            log.warning(
                "%.0f %% of the text is in scripts written without spaces: it is split into characters and pairs of "
                "characters",
                share,
            )
        counts = csr(*found.counts, (len(texts), len(found.texts_with)), canonical=True)
        average = float(counts.data.sum(dtype=np.float64)) / max(len(texts), 1)
        return cls(terms, words, found.texts_with, len(texts), average, settings), counts

    def __len__(self) -> int:
        return len(self.texts_with)

    def names(self, columns: Iterable[int]) -> list[str]:
        """The terms of these features; a hashed one, whose terms are not kept, is named by its number."""
        return [f"#{column}" if self.settings.hashing is not None else self.terms[int(column)] for column in columns]

    @functools.cached_property
    def idf(self) -> NDArray[np.float32]:
        """The inverse document frequency of each term (V,)."""
        return smoothed_idf(self.texts, self.texts_with)

    def count(self, texts: Texts) -> sp.csr_matrix:
        """Counts of the known terms (N, V)."""
        return self._matrix(self._index.count(normalised(texts, self.settings)))

    def encode(self, texts: Texts) -> sp.csr_matrix:
        """TF-IDF rows of unit length (N, V); a text without known terms has an empty row."""
        spelled = normalised(texts, self.settings)
        return self._matrix(self._index.encode(spelled, self.idf, self.settings.sublinear))

    def weigh(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """TF-IDF rows of unit length from counts."""
        return with_data(counts, weigh(counts, self.idf, self.settings.sublinear))

    def _matrix(self, arrays: Arrays) -> sp.csr_matrix:
        """The matrix of CSR arrays. A single row, as a server has it, gets a copied frame: five times as fast."""
        indptr, indices, data = arrays
        if len(indptr) != 2:
            return csr(indptr, indices, data, (len(indptr) - 1, len(self)), canonical=True)
        row = copy.copy(self._frame)
        row.indptr, row.indices, row.data = indptr.astype(np.int32), indices, data
        return row

    @functools.cached_property
    def _frame(self) -> sp.csr_matrix:
        frame = sp.csr_matrix((1, len(self)), dtype=np.float32)
        frame.has_canonical_format = True
        return frame

    def bm25(self, counts: sp.csr_matrix, k1: float = 1.2, b: float = 0.75) -> sp.csr_matrix:
        """BM25 weights: idf · tf·(k1 + 1) / (tf + k1·(1 − b + b·length/average)).

        idf = ln(1 + (N − df + ½)/(df + ½)), never negative.
        """
        lengths = np.repeat(np.asarray(counts.sum(1), np.float32).ravel(), np.diff(counts.indptr))
        idf = np.log1p((self.texts - self.texts_with + 0.5) / (self.texts_with + 0.5)).astype(np.float32)
        tf = counts.data
        weight = idf[counts.indices] * tf * (k1 + 1) / (tf + k1 * (1 - b + b * lengths / max(self.average, 1e-9)))
        return sp.csr_matrix((weight, counts.indices, counts.indptr), shape=counts.shape, dtype=np.float32)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON values that make this encoder again."""
        arrays: dict[str, NDArray[Any]] = {"terms.texts": self.texts_with}
        if self.settings.hashing is None:
            arrays |= {"terms.data": self.terms.data, "terms.offsets": self.terms.offsets}
        meta = {"texts": self.texts, "average": self.average, "words": self.words}
        return arrays, meta | {"settings": self.settings.changed()}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: dict[str, Any]) -> Tfidf:
        """The encoder that `state` described."""
        settings = TfidfParameters.of(**meta["settings"])
        hashed = settings.hashing is not None
        terms = Texts.of([]) if hashed else Texts(arrays["terms.data"], arrays["terms.offsets"])
        width = settings.hashing or len(terms)
        if arrays["terms.texts"].shape != (width,) or not 0 <= meta["words"] <= width:
            raise ValueError(f"{width:,} terms have counts of shape {arrays['terms.texts'].shape}")
        return cls(terms, meta["words"], arrays["terms.texts"], meta["texts"], meta["average"], settings)


def smoothed_idf(texts: int, texts_with: NDArray[Any]) -> NDArray[np.float32]:
    """ln((1 + N)/(1 + n)) + 1 of terms (V,) that occur in n = `texts_with` (V,) of N = `texts` texts."""
    return np.asarray(np.log((1 + texts) / (1 + texts_with)) + 1, np.float32)


def normalised(texts: Texts, settings: TfidfParameters) -> Spelled:
    """Texts in one spelling (Unicode NFKC): é as one character or as two, full-width letters, half-width kana.

    Only texts where it matters are looked at: those with such letters, or, for n-grams of characters, with such
    punctuation.
    """
    variants = _native.has_variants(texts.data, texts.offsets, words=settings.char_ngrams is None)
    if not variants.any():
        return Spelled(texts.data, texts.offsets)
    rows = np.flatnonzero(variants)
    new = Texts.of([unicodedata.normalize("NFKC", text) for text in texts.take(rows)])
    return Spelled(texts.data, texts.offsets, rows, new.data, new.offsets)
