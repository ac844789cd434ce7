"""Texts and the kernels under them, against plain Python."""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import _native
from longtail._native import terms
from longtail.core.errors import ParameterError
from longtail.core.texts import Texts, TextsBuilder

ANY = st.text(max_size=12) | st.text("ab 1", max_size=40) | st.text("\u3000 é漢字🍅\u0300", max_size=12)
LISTS = st.lists(ANY, max_size=20)


def utf8(text: str) -> str:
    """A text as UTF-8 can store it: a lone surrogate becomes U+FFFD."""
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text)


@given(LISTS)
def test_round_trip(strings: list[str]) -> None:
    texts = Texts.of(strings)
    expected = [utf8(s) for s in strings]
    assert list(texts) == expected and len(texts) == len(strings)
    assert [texts[i] for i in range(len(texts))] == expected
    assert [texts[i] for i in range(-len(texts), 0)] == expected
    assert texts.byte_lengths.tolist() == [len(s.encode()) for s in expected]
    assert texts.offsets.dtype == np.int64 and texts.data.dtype == np.uint8


@given(st.lists(LISTS, max_size=5))
def test_builder_chunks_do_not_matter(chunks: list[list[str]]) -> None:
    by_strings, by_bytes = TextsBuilder(), TextsBuilder()
    for chunk in chunks:
        by_strings.extend(chunk)
        raw = Texts.of(chunk)
        by_bytes.extend_utf8(raw.data, raw.byte_lengths)
        assert len(by_strings) == len(by_bytes)
    whole = Texts.of([s for chunk in chunks for s in chunk])
    one, other = by_strings.finish(), by_bytes.finish()
    assert one == other == whole
    assert one.digest() == other.digest() == whole.digest()


@given(LISTS, st.data())
def test_take_and_masks(strings: list[str], data: st.DataObject) -> None:
    texts, expected = Texts.of(strings), [utf8(s) for s in strings]
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=30) if strings else st.just([]))
    assert list(texts.take(np.array(rows, np.int64))) == [expected[i] for i in rows]
    assert list(texts[np.array(rows, np.int32)]) == [expected[i] for i in rows]
    mask = data.draw(st.lists(st.booleans(), min_size=len(strings), max_size=len(strings)))
    kept = texts[np.array(mask, bool)]
    assert list(kept) == [s for s, keep in zip(expected, mask, strict=True) if keep]


INDEX = st.none() | st.integers(-25, 25)


@given(LISTS, INDEX, INDEX, st.none() | st.integers(-4, 4).filter(bool))
def test_slices(strings: list[str], start: int | None, stop: int | None, step: int | None) -> None:
    texts, expected = Texts.of(strings), [utf8(s) for s in strings]
    part = texts[start:stop:step]
    assert list(part) == expected[start:stop:step]
    assert part.digest() == Texts.of(expected[start:stop:step]).digest()
    assert list(part[1:]) == expected[start:stop:step][1:]  # a slice of a slice


@given(LISTS, LISTS, LISTS)
def test_add(a: list[str], b: list[str], c: list[str]) -> None:
    both = Texts.of(a)[1:] + Texts.of(b)[:-1] + Texts.of(c)
    assert list(both) == [utf8(s) for s in [*a[1:], *b[:-1], *c]]


@given(LISTS, LISTS)
def test_equality_is_of_content(a: list[str], b: list[str]) -> None:
    assert (Texts.of(a) == Texts.of(b)) == ([utf8(s) for s in a] == [utf8(s) for s in b])
    assert Texts.of(["x", *a])[1:] == Texts.of(a)
    assert Texts.of(["ab", "c"]) != Texts.of(["a", "bc"])
    assert Texts.of(["ab", "c"]).digest() != Texts.of(["a", "bc"]).digest()
    assert (Texts.of(a) == a) is False


def test_bad_rows_and_arguments() -> None:
    texts = Texts.of(["a", "b"])
    for row in (2, -3):
        with pytest.raises(IndexError):
            texts[row]
    for rows in ([2], [-1]):
        with pytest.raises(ValueError, match="out of range"):
            texts.take(np.array(rows))
    with pytest.raises(ValueError, match="outside the data"):
        _native.count_words(texts.data, np.array([0, 9], np.int64))
    with pytest.raises(ParameterError, match="got one string 'ab'"):
        Texts.of("ab")
    assert repr(Texts.of(["a", "b", "c", "d"])) == "Texts(4: 'a', 'b', 'c', …)"


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 2], [0, 2, 1], [0, 5, 2], [0, -7, 2], [2, 1, 2]])
def test_offsets_that_fall_or_reach_outside_are_refused(offsets: list[int]) -> None:
    data, cut = np.frombuffer(b"ab", np.uint8), np.array(offsets, np.int64)
    good = Texts.of(["ab", "cd"])
    index = terms.TermIndex(good.data, good.offsets)
    for kernel in (
        lambda: _native.count_words(data, cut),
        lambda: _native.hash_texts(data, cut),
        lambda: terms.fit_terms(terms.Spelled(data, cut)),
        lambda: terms.fit_terms(terms.Spelled(good.data, good.offsets, np.arange(len(cut) - 1), data, cut)),
        lambda: terms.fit_hashed(terms.Spelled(data, cut), 8),
        lambda: _native.has_variants(data, cut),
        lambda: terms.TermIndex(data, cut),
        lambda: index.count(terms.Spelled(data, cut)),
        lambda: _native.gather_texts(data, cut, np.arange(len(cut) - 1)),
    ):
        with pytest.raises(ValueError, match="texts: offsets"):
            kernel()
    assert _native.gather_texts(data, np.array([0, 2, 9], np.int64), np.array([0]))[0].tobytes() == b"ab"


@given(LISTS, st.data())
def test_texts_in_another_spelling_stand_for_those_at_their_rows(strings: list[str], data: st.DataObject) -> None:
    strings = [*strings, "some words"] * data.draw(st.sampled_from([1, 1, 1, 300]))
    rows = sorted(data.draw(st.sets(st.integers(0, len(strings) - 1), max_size=20)))
    new = Texts.of(data.draw(st.lists(ANY, min_size=len(rows), max_size=len(rows))))
    replaced = list(strings)
    for row, text in zip(rows, new, strict=True):
        replaced[row] = text
    texts, expected = Texts.of(["before", *strings])[1:], Texts.of(replaced)
    given = terms.Spelled(texts.data, texts.offsets, np.array(rows, np.int64), new.data, new.offsets)
    for a, b in zip(
        terms.fit_terms(given), terms.fit_terms(terms.Spelled(expected.data, expected.offsets)), strict=True
    ):
        assert (
            all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
            if isinstance(a, tuple)
            else (np.array_equal(a, b))
        )
    for bad in ([len(strings)], [-1], [0, 0]):
        other = Texts.of(["x"] * len(bad))
        with pytest.raises(ValueError, match="texts: row"):
            terms.fit_terms(given._replace(rows=np.array(bad), new_data=other.data, new_offsets=other.offsets))
    with pytest.raises(ValueError, match="texts: as many rows"):
        terms.fit_terms(given._replace(rows=np.arange(len(rows) + 1)))


def test_modules_that_native_code_names_exist() -> None:
    source = Path(__file__).parent.parent / "longtail" / "_native" / "src"
    named = {name for file in source.glob("*") for name in re.findall(r"\blongtail(?:\.\w+)+", file.read_text("utf-8"))}
    assert "longtail.data.parse.sparse_text" in named
    assert all(importlib.util.find_spec(name) for name in named)


# Every version of Python carries this old table: what it knows is the same in all newer ones.
KNOWN = st.text(st.characters(codec="utf-8").filter(lambda c: unicodedata.ucd_3_2_0.category(c) != "Cn"), max_size=20)
WORDS = st.lists(KNOWN | st.text("aB1_ .-\u00a0\u3000\x85\x1c\t", max_size=20), max_size=8)


@given(WORDS)
def test_texts_that_normalisation_changes_are_found(strings: list[str]) -> None:
    texts = Texts.of(strings)
    found = _native.has_variants(texts.data, texts.offsets, words=False)
    for text, variant in zip(strings, found, strict=True):
        changed = unicodedata.normalize("NFKC", text)
        assert (
            variant
            or changed == "".join(" " if c.isspace() and ord(c) >= 128 else c for c in text)
            or (changed.split() == text.split())
        )


@given(WORDS)
def test_count_words(strings: list[str]) -> None:
    texts = Texts.of(strings)
    assert _native.count_words(texts.data, texts.offsets).tolist() == [len(s.split()) for s in strings]


def fold(text: str) -> str:
    """Lower case, without digits, underscores and punctuation, white space as single blanks."""
    kept = []
    for c in text:
        if c.isspace():
            kept.append(" ")
        elif unicodedata.category(c) != "Nd" and (c.isalnum() or unicodedata.category(c)[0] == "M"):
            kept.append(c.lower() if len(c.lower()) == 1 else c)
    return " ".join("".join(kept).split())


def hashes(strings: list[str], seed: int = 0, folded: bool = False) -> list[int]:
    texts = Texts.of(strings)
    return _native.hash_texts(texts.data, texts.offsets, seed, fold=folded).tolist()


@settings(max_examples=300)
@given(WORDS)
def test_folded_hash_is_the_hash_of_the_folded_text(strings: list[str]) -> None:
    assert hashes(strings, 3, folded=True) == hashes([fold(s) or s for s in strings], 3)


@given(LISTS, st.integers(0, 2**64 - 1))
def test_hash_is_of_the_content_alone(strings: list[str], seed: int) -> None:
    together = hashes(strings, seed)
    assert together == [hashes([s], seed)[0] for s in strings]
    assert len(set(together)) == len({utf8(s) for s in strings})
    assert together == hashes(["shifted", *strings], seed)[1:]


def test_hash_depends_on_seed_and_every_byte() -> None:
    strings = ["", "a", "b", "aa", "a\0", "\0", "\0\0", "abcdefgh", "abcdefg\0", "abcdefgh\0", "abcdefghi"]
    seen = [h for seed in range(50) for h in hashes(strings, seed)]
    assert len(set(seen)) == len(seen)
    values = np.array(hashes([f"text {i}" for i in range(4096)]), np.uint64)
    for shift in (0, 20, 60):  # all sixteenths are about equally full, wherever one looks
        counts = np.bincount(((values >> np.uint64(shift)) & np.uint64(15)).astype(int), minlength=16)
        assert counts.min() > 180 and counts.max() < 340


def test_threads_do_not_matter() -> None:
    strings = [f"word{i} Ünï 漢字 {i * 7}" for i in range(5000)]
    texts = Texts.of(strings)
    rows = np.arange(5000)[::-1].copy()
    results = []
    for threads in (1, 2, 5):
        _native.set_threads(threads)
        results.append(
            (hashes(strings, 1, True), texts.take(rows).digest(), _native.count_words(texts.data, texts.offsets).sum())
        )
    assert results[0] == results[1] == results[2]
