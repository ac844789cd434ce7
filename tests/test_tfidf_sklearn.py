"""TF-IDF against scikit-learn's TfidfVectorizer with the same settings, on ASCII text."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import normalize

from longtail.core.errors import DataError
from longtail.core.texts import Texts
from longtail.encoders.tfidf import Tfidf, TfidfParameters

WORDS = st.lists(st.sampled_from(["ab", "Ab", "c", "d_1", "foo", "bar.", "x-y", "zz!", "42", "it's"]), max_size=12)
TEXT = WORDS.map(" ".join) | st.text("aAbB1_ .'\"\n\t\r\x00\x1c-", max_size=20) | st.text(st.characters(codec="ascii"))
TEXTS = st.lists(TEXT, min_size=1, max_size=12)


def characters(lengths: tuple[int, int], within: bool) -> dict[str, Any]:
    return {"ngrams": 0, "char_ngrams": "{}-{}".format(*lengths), "char_within": within}


RANGE = st.tuples(st.integers(1, 4), st.integers(0, 3)).map(lambda pair: (pair[0], sum(pair)))
ANALYSERS = st.one_of(
    RANGE.filter(lambda r: r[1] <= 5).map(lambda r: ({"min_ngrams": r[0], "ngrams": r[1]}, {"ngram_range": r})),
    RANGE.map(lambda r: (characters(r, True), {"analyzer": "char_wb", "ngram_range": r})),
    RANGE.map(lambda r: (characters(r, False), {"analyzer": "char", "ngram_range": r})),
    st.just((characters((3, 5), True), {"analyzer": "char_wb", "ngram_range": (3, 5)})),
)


def aligned(theirs: TfidfVectorizer, X: sp.csr_matrix, terms: list[str]) -> np.ndarray:
    """Their matrix with our order of columns; the vocabularies must be the same."""
    assert set(terms) == set(theirs.vocabulary_) and len(terms) == len(theirs.vocabulary_)
    return X[:, [theirs.vocabulary_[term] for term in terms]].toarray()


@settings(max_examples=200)
@given(TEXTS, ANALYSERS, st.integers(1, 3), st.sampled_from([1.0, 0.9, 0.5, 0.34]), st.booleans())
def test_same_vocabulary_and_matrix(
    texts: list[str], analyser: tuple[dict, dict], min_texts: int, max_share: float, sublinear: bool
) -> None:
    assume(max_share * len(texts) >= 1)  # below, no term at all would do: ours lets one text be
    ours = TfidfParameters(**analyser[0], min_texts=min_texts, max_share=max_share, sublinear=sublinear)
    theirs = TfidfVectorizer(**analyser[1], min_df=min_texts, max_df=max_share, sublinear_tf=sublinear)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:  # nothing is left
        with pytest.raises(DataError, match="no term"):
            Tfidf.fit(Texts.of(texts), ours)
        return
    encoder, counts = Tfidf.fit(Texts.of(texts), ours)
    terms = list(encoder.terms)
    assert terms == sorted(terms)
    np.testing.assert_allclose(encoder.weigh(counts).toarray(), aligned(theirs, expected, terms), atol=1e-5)
    # and texts that were not there
    new = [*texts[::-1], " ".join(texts), "unknown words", ""]
    found = encoder.encode(Texts.of(new))
    assert found.has_canonical_format and found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), aligned(theirs, theirs.transform(new), terms), atol=1e-5)


@given(TEXTS, ANALYSERS, st.integers(1, 12))
def test_a_limit_keeps_the_most_frequent(texts: list[str], analyser: tuple[dict, dict], limit: int) -> None:
    try:
        all_terms = CountVectorizer(**analyser[1]).fit(texts)
    except ValueError:
        return
    frequency = np.asarray(all_terms.transform(texts).sum(0)).ravel()
    total = {term: frequency[column] for term, column in all_terms.vocabulary_.items()}
    theirs = TfidfVectorizer(**analyser[1], max_features=limit, sublinear_tf=True)
    expected = theirs.fit_transform(texts)
    encoder, counts = Tfidf.fit(Texts.of(texts), TfidfParameters(**analyser[0], limit=limit))
    terms = list(encoder.terms)
    # of terms that are equally frequent ours keeps the first, while theirs makes no promise
    assert terms == sorted(sorted(total, key=lambda term: (-total[term], term))[:limit])
    kept = Counter(total.values())
    if not 0 < sum(total[t] == min(total[t] for t in terms) for t in terms) < kept[min(total[t] for t in terms)]:
        np.testing.assert_allclose(encoder.weigh(counts).toarray(), aligned(theirs, expected, terms), atol=1e-5)


@given(TEXTS, RANGE.filter(lambda r: r[1] <= 5), RANGE, st.booleans(), st.none() | st.integers(1, 10))
def test_words_and_characters_are_two_blocks_under_one_norm(
    texts: list[str], words: tuple[int, int], chars: tuple[int, int], sublinear: bool, limit: int | None
) -> None:
    shared = {"norm": None, "sublinear_tf": sublinear}
    union = FeatureUnion(
        [
            ("words", TfidfVectorizer(ngram_range=words, **shared)),
            ("characters", TfidfVectorizer(analyzer="char_wb", ngram_range=chars, **shared)),
        ]
    )
    try:
        expected = normalize(union.fit_transform(texts)).toarray()
    except ValueError:
        return
    both = characters(chars, True) | {"min_ngrams": words[0], "ngrams": words[1]}
    encoder, counts = Tfidf.fit(Texts.of(texts), TfidfParameters(**both, sublinear=sublinear))
    first, second = (dict(union.transformer_list)[name].get_feature_names_out() for name in ("words", "characters"))
    assert list(encoder.terms) == [*first, *second] and encoder.words == len(first)
    np.testing.assert_allclose(encoder.weigh(counts).toarray(), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(Texts.of(texts)).toarray(), expected, atol=1e-5)
    if limit is not None:  # of each block, not of both together
        cut, _ = Tfidf.fit(Texts.of(texts), TfidfParameters(**both, limit=limit))
        assert (cut.words, len(cut)) == (min(limit, len(first)), min(limit, len(first)) + min(limit, len(second)))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"ngrams": 3, "min_ngrams": 2}, {"ngram_range": (2, 3)}),
        ({"ngrams": 2, "min_texts": 3, "max_share": 0.2}, {"ngram_range": (1, 2), "min_df": 3, "max_df": 0.2}),
        (characters((3, 5), True), {"analyzer": "char_wb", "ngram_range": (3, 5)}),
        (characters((2, 4), False), {"analyzer": "char", "ngram_range": (2, 4)}),
    ],
)
def test_many_texts(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Enough texts that several blocks are counted separately and joined."""
    rng = np.random.default_rng(1)
    words = np.array([f"{a}{b}{n}" for a in ("Pre", "un", "", "overhead") for b in "abcdefg" for n in range(40)])
    chosen = rng.zipf(1.3, (4000, 120)) % len(words)
    texts = [" ".join(words[row]) for row in chosen]
    assert sum(map(len, texts)) > 2 << 20
    vectoriser = TfidfVectorizer(sublinear_tf=True, **theirs)
    expected = vectoriser.fit_transform(texts)
    encoder, counts = Tfidf.fit(Texts.of(texts), TfidfParameters(**ours))
    terms = list(encoder.terms)
    assert terms == sorted(vectoriser.vocabulary_)  # ASCII: by bytes is by characters
    for found in (encoder.weigh(counts), encoder.encode(Texts.of(texts))):
        difference = abs(found - expected[:, [vectoriser.vocabulary_[term] for term in terms]])
        assert found.nnz == expected.nnz and difference.max() < 1e-5
