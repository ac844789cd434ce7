"""fastText lines: labels anywhere, what the text is, and how other formats are told apart."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.core.errors import DataError
from longtail.data.formats import fasttext
from longtail.data.read import detect, read

COOKING = "__label__sauce __label__cheese How much does potato starch affect a cheese sauce?\n__label__baking Why?\n"


def test_one_file(tmp_path: Path) -> None:
    path = tmp_path / "cooking.train"
    path.write_text(COOKING)
    corpus = read(path)
    assert list(corpus.labels.keys) == ["baking", "cheese", "sauce"]
    assert list(corpus.train.texts) == ["How much does potato starch affect a cheese sauce?", "Why?"]
    assert corpus.train.Y.toarray().tolist() == [[0, 1, 1], [1, 0, 0]]
    assert corpus.name == "cooking"


def test_a_folder_with_parts_and_gzip(tmp_path: Path) -> None:
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(COOKING.encode()))
    (tmp_path / "valid.txt").write_text("__label__baking bread\n")
    (tmp_path / "test.txt").write_text("__label__soup leek\n")
    corpus = read(tmp_path)
    assert {part: len(data) for part, data in corpus.parts()} == {"train": 2, "dev": 1, "test": 1}
    assert list(corpus.labels.keys) == ["baking", "cheese", "sauce", "soup"]
    assert corpus.labels.counts.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("line", "text", "labels"),
    [
        ("__label__a some text", "some text", ["a"]),
        ("some __label__a text", "some text", ["a"]),
        ("some text __label__a", "some text", ["a"]),
        ("__label__a\t__label__b  keeps   its blanks ", "keeps   its blanks", ["a", "b"]),
        ("not__label__a is a word, and so is (__label__b", "not__label__a is a word, and so is (__label__b", []),
        ("__label____label__x text", "text", ["__label__x"]),
        ("__label__with\u00a0no-break\u3000blank text", "text", ["with\u00a0no-break\u3000blank"]),
        ("__label__a", "", ["a"]),
        ("no label", "no label", []),
    ],
)
def test_parse(line: str, text: str, labels: list[str]) -> None:
    assert fasttext.parse(line) == (text, labels)


@given(
    st.lists(st.tuples(st.booleans(), st.text("ab_l", min_size=1, max_size=12)), max_size=6), st.sampled_from(" \t\v")
)
def test_any_token_with_the_prefix_is_a_label(tokens: list[tuple[bool, str]], space: str) -> None:
    words = [f"__label__{word}" if label else word for label, word in tokens]
    expected = [word.removeprefix("__label__") for word in words if word.startswith("__label__")]
    text, labels = fasttext.parse(space.join(words))
    assert labels == expected
    assert text.split() == [word for word in words if not word.startswith("__label__")]


def test_lines_without_labels_are_kept_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.txt"
    path.write_text("__label__a one\n\nno label here\n__label__b two\n")
    corpus = read(path)
    assert list(corpus.train.texts) == ["one", "no label here", "two"]
    assert corpus.train.Y.getnnz(axis=1).tolist() == [1, 0, 1]
    assert "a point without labels was kept: 1 time(s), the first in x.txt, line 3" in caplog.text


def test_a_label_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("__label__a one\n__label__ two\n__label__b three\n")
    with pytest.raises(DataError, match="without a name") as caught:
        read(path)
    assert caught.value.where == path and caught.value.line == 2
    assert list(read(path, on_bad_line="skip").train.texts) == ["one", "three"]


@pytest.mark.parametrize(
    "content",
    [
        "3 10 4\n0,2 1:0.5 3:1.0\n1 2:1\n2 4:1\n",  # the repository's sparse text
        "some text\nmore text\n",  # AttentionXML's train_texts.txt
        "text,labels\nx,__label__a\n",  # a table that quotes the prefix inside a field
        "",
    ],
)
def test_other_files_are_not_taken_for_it(tmp_path: Path, content: str) -> None:
    for name in ("train.txt", "train_texts.txt", "x.csv"):
        (tmp_path / name).write_text(content)
        assert not fasttext.matches(tmp_path / name)
    assert not fasttext.matches(tmp_path)


def test_detection_with_mark_and_long_first_line(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xef\xbb\xbf" + ("word " * 300_000 + "__label__end\n" + COOKING).encode())
    assert detect(path).name == "fasttext"
    corpus = read(path)
    assert len(corpus.train) == 3 and "end" in list(corpus.labels.keys)


def test_filter_pairs_count_all_lines_but_blank_ones(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("__label__a zero\n\n__label__ bad\n__label__b two\n")
    (tmp_path / "filter_labels_train.txt").write_text("0 1\n1 0\n2 0\n")
    ignore = read(tmp_path, on_bad_line="skip").train.ignore
    assert ignore is not None and ignore.toarray().tolist() == [[False, True], [True, False]]
