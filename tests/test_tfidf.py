"""TF-IDF against a literal implementation."""

import logging
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.texts import Texts
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf, TfidfParameters

WORDS = st.lists(st.sampled_from(["ab", "Ab", "c", "d_1", "foo", "bar.", "x-y", "zz!", "42"]), max_size=8).map(" ".join)


def literal(texts: list[str], ngrams: int, min_texts: int, sublinear: bool) -> tuple[list[str], np.ndarray]:
    """scikit-learn's definition, in plain Python: tokens \\b\\w\\w+\\b, smooth idf, unit rows."""
    documents = []
    for text in texts:
        words = re.findall(r"\b\w\w+\b", text.lower())
        grams = [" ".join(words[i : i + n]) for n in range(1, ngrams + 1) for i in range(len(words) - n + 1)]
        documents.append(grams)
    df = {t: sum(t in d for d in documents) for d in documents for t in d}
    terms = sorted(t for t, n in df.items() if n >= min_texts)
    matrix = np.zeros((len(texts), len(terms)))
    for i, document in enumerate(documents):
        for j, term in enumerate(terms):
            tf = document.count(term)
            if tf:
                weight = 1 + math.log(tf) if sublinear else tf
                matrix[i, j] = weight * (math.log((1 + len(texts)) / (1 + df[term])) + 1)
        norm = np.linalg.norm(matrix[i])
        if norm:
            matrix[i] /= norm
    return terms, matrix


@given(st.lists(WORDS, min_size=1, max_size=10), st.integers(1, 3), st.integers(1, 2), st.booleans())
def test_against_the_definition(texts: list[str], ngrams: int, min_texts: int, sublinear: bool) -> None:
    terms, expected = literal(texts, ngrams, min_texts, sublinear)
    settings = TfidfParameters(ngrams=ngrams, min_texts=min_texts, sublinear=sublinear)
    if not terms:
        with pytest.raises(DataError, match="no word"):
            Tfidf.fit(Texts.of(texts), settings)
        return
    encoder, counts = Tfidf.fit(Texts.of(texts), settings)
    assert list(encoder.terms) == terms
    assert np.allclose(encoder.weigh(counts).toarray(), expected, atol=1e-6)
    assert np.allclose(encoder.encode(Texts.of(texts)).toarray(), expected, atol=1e-6)


def test_threads_and_blocks_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(300)]
    texts = Texts.of([" ".join(rng.choice(words, size=20)) for _ in range(2000)])
    results = []
    for threads in (1, 3):
        _native.set_threads(threads)
        encoder, counts = Tfidf.fit(texts)
        results.append((encoder.terms, counts))
    assert results[0][0] == results[1][0]
    assert (results[0][1] != results[1][1]).nnz == 0


def test_limit_keeps_the_most_common() -> None:
    encoder, _ = Tfidf.fit(Texts.of(["aa bb cc", "aa bb", "aa dd"]), TfidfParameters(limit=2))
    assert list(encoder.terms) == ["aa", "bb"]


def test_max_share() -> None:
    encoder, _ = Tfidf.fit(Texts.of(["aa bb", "aa cc", "aa dd", "aa dd"]), TfidfParameters(max_share=0.5))
    assert list(encoder.terms) == ["bb", "cc", "dd"]


def test_scripts_without_spaces_are_cut_to_characters_and_it_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="longtail"):
        encoder, _ = Tfidf.fit(Texts.of(["東京都 text", "京都"]))
    assert list(encoder.terms) == sorted(["東", "京", "都", "東京", "京都", "text"], key=lambda t: t.encode())
    assert "without spaces" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="longtail"):
        Tfidf.fit(Texts.of(["plain words only"]))
    assert "without spaces" not in caplog.text


def test_lower_case_and_marks_of_other_scripts() -> None:
    encoder, _ = Tfidf.fit(Texts.of(["ÉCOLE Straße ΑΒΓ हिन्दी"]))
    assert set(encoder.terms) == {"école", "straße", "αβγ", "हिन्दी"}


def test_one_word_spelled_in_two_ways() -> None:
    composed, apart, wide, kana = "caf\u00e9", "cafe\u0301", "ｃａｆé", "ｶﾚｰ"
    encoder, counts = Tfidf.fit(Texts.of([composed, apart, "カレー", "other words"]))
    assert "café" in list(encoder.terms)
    assert (counts[0] != counts[1]).nnz == 0
    assert (encoder.count(Texts.of([wide])) != counts[0]).nnz == 0
    assert (encoder.count(Texts.of([kana])) != counts[2]).nnz == 0


def test_bm25_by_hand() -> None:
    encoder, counts = Tfidf.fit(Texts.of(["aa aa bb", "bb"]))
    weights = encoder.bm25(counts, k1=1.2, b=0.75).toarray()
    idf_aa, idf_bb = math.log(1 + 1.5 / 1.5), math.log(1 + 0.5 / 2.5)
    # lengths 3 and 1, average 2: k1·(1 − b + b·3/2) = 1.65 and k1·(1 − b + b/2) = 0.75
    assert weights[0, 0] == pytest.approx(idf_aa * 2 * 2.2 / (2 + 1.65), rel=1e-5)
    assert weights[0, 1] == pytest.approx(idf_bb * 1 * 2.2 / (1 + 1.65), rel=1e-5)
    assert weights[1, 1] == pytest.approx(idf_bb * 1 * 2.2 / (1 + 0.75), rel=1e-5)


def test_state_round_trip_with_awkward_terms() -> None:
    texts = Texts.of(["naïve_term ZWJ\u200dx 日本", "second text"])
    encoder, _ = Tfidf.fit(texts, TfidfParameters(ngrams=2))
    arrays, meta = encoder.state()
    again = Tfidf.from_state(arrays, meta)
    assert (encoder.encode(texts) != again.encode(texts)).nnz == 0


def test_normalise_rows_with_empty_rows() -> None:
    import scipy.sparse as sp

    matrix = sp.csr_matrix(np.array([[0, 0], [3, 4], [0, 0], [0, 2], [0, 0]], np.float32))
    expected = np.array([[0, 0], [0.6, 0.8], [0, 0], [0, 1], [0, 0]])
    assert np.allclose(normalise_rows(matrix).toarray(), expected)
