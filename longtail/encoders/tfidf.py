"""Word counts, weighted by TF-IDF or BM25: the sparse encoder of the linear engine and of `neighbours`."""

from __future__ import annotations

import functools
import logging
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.parameters import Parameters, param
from longtail.core.texts import Texts
from longtail.data.sparse import csr, normalise_rows

log = logging.getLogger("longtail")


@dataclass(frozen=True)
class TfidfParameters(Parameters):
    """What counts as a term, and which terms are kept.

    A word is a run of at least two letters, digits or underscores, lower-cased. In scripts written without
    spaces (Chinese, Japanese, Thai, …) every character and every pair of neighbours is a term instead.
    """

    kind = "tfidf"
    ngrams: int = param(1, "longest word n-gram", at_least=1, at_most=5)
    min_texts: int = param(1, "a term must stand in at least this many texts", at_least=1)
    max_share: float = param(1.0, "a term may stand in at most this share of the texts", above=0.0, at_most=1.0)
    limit: int | None = param(None, "keep at most this many terms, the most common", at_least=1)
    sublinear: bool = param(True, "1 + ln(count) instead of the count")


class Tfidf:
    """A fitted vocabulary with document frequencies.

    `encode` gives L2-normalised rows of tf·idf, idf = ln((1 + N)/(1 + df)) + 1, as scikit-learn's
    TfidfVectorizer does; `bm25` the weights of Robertson's BM25 for the side that is searched.
    """

    def __init__(
        self, terms: Texts, texts_with: NDArray[np.int64], texts: int, average: float, settings: TfidfParameters
    ):
        self.terms, self.texts_with, self.texts, self.average = terms, texts_with, texts, average
        self.settings = settings
        self._index = _native.TermIndex(terms.data, terms.offsets, (1, settings.ngrams))

    @classmethod
    def fit(cls, texts: Texts, settings: TfidfParameters | None = None) -> tuple[Tfidf, sp.csr_matrix]:
        """The encoder of a set of texts, and their term counts (N, V), which need not be counted again."""
        settings = settings or TfidfParameters()
        texts = normalised(texts)
        found = _native.fit_terms(
            texts.data,
            texts.offsets,
            ngrams=(1, settings.ngrams),
            min_texts=settings.min_texts,
            max_texts=max(int(settings.max_share * len(texts)), 1),
            limit=settings.limit,
        )
        if not len(found.texts_with):
            fix = "a word is two letters or digits at least, in as many texts as the settings ask for"
            raise DataError("the texts hold no word to tell them by", found=texts[0], fix=fix)
        share = 100 * found.unspaced / max(found.unspaced + found.words, 1)
        if share >= 1:
            log.warning(
                "%.0f %% of the text is in scripts written without spaces: it is cut to characters and pairs of them",
                share,
            )
        counts = csr(*found.counts, (len(texts), len(found.texts_with)), canonical=True)
        average = float(counts.sum()) / max(len(texts), 1)
        return cls(Texts(found.data, found.offsets), found.texts_with, len(texts), average, settings), counts

    def __len__(self) -> int:
        return len(self.terms)

    @functools.cached_property
    def idf(self) -> NDArray[np.float32]:
        """ln((1 + N)/(1 + df)) + 1 for each term (V,)."""
        return (np.log((1 + self.texts) / (1 + self.texts_with)) + 1).astype(np.float32)

    def count(self, texts: Texts) -> sp.csr_matrix:
        """Counts of the known terms (N, V)."""
        texts = normalised(texts)
        return csr(*self._index.count(texts.data, texts.offsets), (len(texts), len(self)), canonical=True)

    def encode(self, texts: Texts) -> sp.csr_matrix:
        """TF-IDF rows of unit length (N, V); a text without known terms has an empty row."""
        return self.weigh(self.count(texts))

    def weigh(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """TF-IDF rows of unit length from counts."""
        tf = 1 + np.log(counts.data) if self.settings.sublinear else counts.data
        weighted = sp.csr_matrix((tf * self.idf[counts.indices], counts.indices, counts.indptr), shape=counts.shape)
        return normalise_rows(weighted)

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
        arrays: dict[str, NDArray[Any]] = {
            "terms.data": self.terms.data,
            "terms.offsets": self.terms.offsets,
            "terms.texts": self.texts_with,
        }
        return arrays, {"texts": self.texts, "average": self.average, "settings": self.settings.changed()}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: dict[str, Any]) -> Tfidf:
        """The encoder that `state` described."""
        terms = Texts(arrays["terms.data"], arrays["terms.offsets"])
        settings = TfidfParameters.of(**meta["settings"])
        return cls(terms, arrays["terms.texts"], meta["texts"], meta["average"], settings)


def normalised(texts: Texts) -> Texts:
    """Texts in one spelling (Unicode NFKC): é as one character or as two, full-width letters, half-width kana."""
    rows = np.flatnonzero(_native.has_variants(texts.data, texts.offsets))
    if not len(rows):
        return texts
    places = np.arange(len(texts))
    places[rows] = len(texts) + np.arange(len(rows))
    return (texts + Texts.of([unicodedata.normalize("NFKC", text) for text in texts.take(rows)])).take(places)
