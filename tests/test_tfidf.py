"""TF-IDF against a literal implementation."""

import logging
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import longtail
from longtail import _native
from longtail._native.terms import Spelled, fit_hashed
from longtail.core.errors import DataError, ParameterError
from longtail.core.texts import Texts
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.search.sparse import SparseIndex

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
        with pytest.raises(DataError, match="no term"):
            Tfidf.fit(Texts.of(texts), settings)
        return
    encoder, counts = Tfidf.fit(Texts.of(texts), settings)
    assert list(encoder.terms) == terms
    assert np.allclose(encoder.weigh(counts).toarray(), expected, atol=1e-6)
    assert np.allclose(encoder.encode(Texts.of(texts)).toarray(), expected, atol=1e-6)


SETTINGS = [
    {},
    {"ngrams": 3, "min_ngrams": 2, "min_texts": 2},
    {"ngrams": 2, "limit": 500},
    {"ngrams": 0, "char_ngrams": "2-4"},
    {"ngrams": 2, "char_ngrams": 3, "char_within": False, "limit": 300},
    {"ngrams": 2, "char_ngrams": "2-3", "hashing": 1000, "max_share": 0.4},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_threads_and_blocks_do_not_matter(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}é" if i % 9 == 0 else f"Wo{i}" for i in range(300)]
    strings = [" ".join(rng.choice(words, size=200)) for _ in range(2500)]
    texts, few = Texts.of(strings), Texts.of(strings[::50])
    assert len(texts.data) > 2 << 20  # several blocks
    results = []
    for threads in (1, 3):
        _native.set_threads(threads)
        encoder, counts = Tfidf.fit(texts, TfidfParameters(**settings))
        results.append((encoder, counts, encoder.weigh(counts), encoder.encode(texts), encoder.encode(few)))
    (one, *matrices), (other, *others) = results
    assert one.terms == other.terms and np.array_equal(one.texts_with, other.texts_with)
    for a, b in zip(matrices, others, strict=True):
        assert same(a, b)
    _, weighed, encoded, part = matrices
    assert same(weighed, encoded) and same(part, encoded[::50])
    assert sum(same(one.encode(Texts.of([s])), encoded[i]) for i, s in enumerate(strings[:20])) == 20


def same(a: sp.csr_matrix, b: sp.csr_matrix) -> bool:
    """Equal to the last bit."""
    return a.shape == b.shape and all(
        np.array_equal(getattr(a, n), getattr(b, n)) for n in ("indptr", "indices", "data")
    )


def test_limit_keeps_the_most_frequent() -> None:
    encoder, _ = Tfidf.fit(Texts.of(["aa bb cc cc cc", "aa bb", "aa dd"]), TfidfParameters(limit=2))
    assert list(encoder.terms) == ["aa", "cc"]


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


AWKWARD = [
    "a line\nbreak, \"quotes\" and 'more'",
    "NUL \0 inside, back\\slash, tab\t, CR\r\n",
    "emoji 👩\u200d🚀 and \u2028 separators \x85",
    "naïve_term 日本語 ΣΑΣ",
    "\ufeffmark",
]


@pytest.mark.parametrize(
    "settings",
    [{"ngrams": 2}, {"ngrams": 0, "char_ngrams": "1-3", "char_within": False}, {"ngrams": 3, "char_ngrams": "3-5"}],
)
def test_any_vocabulary_survives_in_a_saved_model(settings: dict[str, Any], tmp_path: Path) -> None:
    texts = Texts.of(AWKWARD)
    encoder, counts = Tfidf.fit(texts, TfidfParameters(**settings))
    again = Tfidf.from_state(*encoder.state())
    assert again.terms == encoder.terms and again.settings == encoder.settings
    assert same(encoder.encode(texts), again.encode(texts))
    # put into a model, saved, and loaded
    model = longtail.fit(AWKWARD, [[str(i)] for i in range(len(AWKWARD))], recipe="neighbours", power=1)
    model.encoder, model.points = encoder, SparseIndex.of(encoder.weigh(counts))
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert list(loaded.encoder.terms) == list(encoder.terms)
    assert same(loaded.encoder.encode(texts), encoder.weigh(counts))
    if settings.get("char_within") is False:
        assert {"\n", '"', "\0", "🚀", "\\", "\u200d"} <= set(loaded.encoder.terms)


def test_state_of_hashed_terms() -> None:
    texts = Texts.of(AWKWARD)
    encoder, counts = Tfidf.fit(texts, TfidfParameters(ngrams=2, char_ngrams=3, hashing=64))
    arrays, meta = encoder.state()
    assert set(arrays) == {"terms.texts"} and len(arrays["terms.texts"]) == 64
    again = Tfidf.from_state(arrays, meta)
    assert same(again.encode(texts), encoder.weigh(counts))
    assert again.names([5, 63]) == ["#5", "#63"]


def test_names_of_terms() -> None:
    encoder, _ = Tfidf.fit(Texts.of(["some words"]), TfidfParameters(ngrams=2, char_ngrams=4))
    assert encoder.names(np.array([0, 1, encoder.words])) == ["some", "some words", " som"]


def test_normalise_rows_with_empty_rows() -> None:
    matrix = sp.csr_matrix(np.array([[0, 0], [3, 4], [0, 0], [0, 2], [0, 0]], np.float32))
    expected = np.array([[0, 0], [0.6, 0.8], [0, 0], [0, 1], [0, 0]])
    assert np.allclose(normalise_rows(matrix).toarray(), expected)


def test_rows_of_extreme_values_have_unit_length() -> None:
    matrix = sp.csr_matrix(np.array([[1e30, 1e30], [1e-30, 0], [-3, 4]], np.float32))
    expected = np.array([[0.5**0.5, 0.5**0.5], [1, 0], [-0.6, 0.8]])
    assert np.allclose(normalise_rows(matrix).toarray(), expected)


def test_lengths_of_character_ngrams() -> None:
    def lengths(value: Any) -> tuple[int, int]:
        return TfidfParameters.of(char_ngrams=value).terms().characters

    assert [lengths(v) for v in (4, "4", "3-5", " 3 - 5 ", None, "none")] == [
        (4, 4), (4, 4), (3, 5), (3, 5), (0, 0), (0, 0)
    ]  # fmt: skip
    for bad in ("5-3", "0-2", "3-99", "three", "3-", "-3", "3-4-5", "", 0, 21):
        with pytest.raises(ParameterError, match="char_ngrams must be"):
            lengths(bad)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ngrams": 0}, "ngrams=0 leaves no terms"),
        ({"ngrams": 2, "min_ngrams": 3}, "min_ngrams must be at most ngrams \\(2\\), but is 3"),
        ({"hashing": 8, "limit": 8}, "hashing=8 bounds the features already"),
        ({"hashing": 0}, "hashing must be at least 1"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        TfidfParameters(**settings)


def test_texts_without_a_term_and_no_texts_are_refused() -> None:
    for texts in ([], ["", "a b"]):
        for settings in (TfidfParameters(), TfidfParameters(hashing=16)):
            with pytest.raises(DataError, match="no term"):
                Tfidf.fit(Texts.of(texts), settings)


def test_characters_in_any_script_and_spelling() -> None:
    settings = TfidfParameters(ngrams=0, char_ngrams=2)
    encoder, counts = Tfidf.fit(Texts.of(["Äb\u3000🍅", "A\u0308b！", "…", "..."]), settings)
    assert set(encoder.terms) == {" ä", "äb", "b ", " 🍅", "🍅 ", "b!", "! ", " .", "..", ". "}
    assert same(counts[2], counts[3])  # punctuation has compatibility forms too


def literal_hash(text: str, buckets: int) -> int:
    """The bucket of a word must be the same on every machine: saved models rely on it."""
    mask = 2**64 - 1

    def scramble(h: int) -> int:
        h ^= h >> 32
        h = h * 0xFF51AFD7ED558CCD & mask
        h ^= h >> 29
        h = h * 0xC4CEB9FE1A85EC53 & mask
        return h ^ h >> 32

    raw = text.encode()
    tag, rest = 0x9E3779B97F4A7C15, raw
    while len(rest) > 8:
        tag = (tag ^ int.from_bytes(rest[:8], "little")) * 0xFF51AFD7ED558CCD & mask
        tag ^= tag >> 32
        rest = rest[8:]
    tail = int.from_bytes(rest, "little")
    tag = scramble(tag ^ tail) if len(raw) > 8 else tail
    word = scramble(tag ^ len(raw) * 0xC2B2AE3D27D4EB4F & mask)
    return (scramble(word) >> 32) * buckets >> 32


LETTERS = st.text("abcxyzéßλж_0", min_size=2, max_size=30)


@given(st.lists(LETTERS, min_size=1, max_size=10), st.sampled_from([1, 7, 2**10, 2**20, 10**6 + 3]))
def test_buckets_are_the_same_everywhere(words: list[str], buckets: int) -> None:
    texts = Texts.of(words)
    found = fit_hashed(Spelled(texts.data, texts.offsets), buckets)
    assert found.counts[1].tolist() == [literal_hash(word, buckets) for word in words]


@given(st.lists(WORDS, min_size=1, max_size=10), st.integers(1, 2), st.sampled_from([1.0, 0.5]), st.booleans())
def test_hashing_is_tfidf_of_buckets(texts: list[str], min_texts: int, max_share: float, sublinear: bool) -> None:
    rules = {"min_texts": min_texts, "max_share": max_share, "sublinear": sublinear}
    B = 8  # few: terms do meet
    counts = np.zeros((len(texts), B))
    for i, text in enumerate(texts):
        for word in re.findall(r"\b\w\w+\b", text.lower()):
            counts[i, literal_hash(word, B)] += 1
    df = (counts > 0).sum(0)
    kept = (df >= min_texts) & (df <= max(int(max_share * len(texts)), 1))
    if not kept.any():
        with pytest.raises(DataError, match="no term"):
            Tfidf.fit(Texts.of(texts), TfidfParameters(hashing=B, **rules))
        return
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) if sublinear else counts
    expected = np.where(kept, weights * (np.log((1 + len(texts)) / (1 + df)) + 1), 0)
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-30)
    encoder, found = Tfidf.fit(Texts.of(texts), TfidfParameters(hashing=B, **rules))
    assert found.shape == (len(texts), B) and len(encoder) == B and len(encoder.terms) == 0
    assert np.allclose(encoder.weigh(found).toarray(), expected, atol=1e-6)
    assert np.allclose(encoder.encode(Texts.of(texts)).toarray(), expected, atol=1e-6)


def test_hashed_terms_of_all_kinds_spread_over_the_buckets() -> None:
    texts = Texts.of([f"word{i} other{i}" for i in range(2000)])
    for settings in ({"ngrams": 1}, {"ngrams": 2, "min_ngrams": 2}, {"ngrams": 0, "char_ngrams": "6-8"}):
        plain, _ = Tfidf.fit(texts, TfidfParameters(**settings))
        hashed, _ = Tfidf.fit(texts, TfidfParameters(**settings, hashing=2**16))
        filled = 2**16 * (1 - math.exp(-len(plain) / 2**16))  # of buckets filled at random
        assert abs(np.count_nonzero(hashed.texts_with) - filled) < 4 * math.sqrt(filled)
    word, gram = (
        Tfidf.fit(Texts.of(["abc"]), TfidfParameters(**kind, hashing=2**16))[1].indices[0]
        for kind in ({"ngrams": 1}, {"ngrams": 0, "char_ngrams": 3, "char_within": False})
    )
    assert word != gram  # the word abc and the characters abc are not the same term
