"""Annif's TSV corpora and vocabularies, and how they are told apart from tables."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from longtail.core.errors import DataError
from longtail.data.read import detect, read

# the form of Annif's own documentation and tutorial data
TRAIN = (
    "Bill of the west\t<http://example.org/entity/Q1>\n"
    'A title with "quotes and, commas\t<http://example.org/entity/Q2> <http://example.org/entity/Q1>\n'
)
VOCAB = "<http://example.org/entity/Q2>\tcomputer science\n<http://example.org/entity/Q1>\tnetworking\t42.42\n"
Q1, Q2 = "http://example.org/entity/Q1", "http://example.org/entity/Q2"


@pytest.mark.parametrize("name", ["x.tsv", "x.tsv.gz"])
def test_one_file(tmp_path: Path, name: str) -> None:
    raw = TRAIN.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    corpus = read(tmp_path / name)
    assert list(corpus.labels.keys) == [Q1, Q2] and not corpus.labels.has_text
    assert list(corpus.train.texts) == ["Bill of the west", 'A title with "quotes and, commas']
    assert corpus.train.Y.toarray().tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("name", ["vocab.tsv", "subjects.tsv", "labels.tsv", "yso-vocab.tsv"])
def test_a_folder_with_a_vocabulary(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.tsv").write_text(TRAIN)
    (tmp_path / "test.tsv").write_text(f"plain\t{Q2}\n")
    (tmp_path / name).write_text(VOCAB)
    corpus = read(tmp_path)
    assert list(corpus.labels.keys) == [Q2, Q1]  # the vocabulary's order
    assert list(corpus.labels.texts or []) == ["computer science", "networking"]
    assert corpus.train.Y.toarray().tolist() == [[0, 1], [1, 1]]
    assert corpus.test is not None and corpus.test.Y.toarray().tolist() == [[1, 0]]


def test_plain_uris_more_tabs_and_no_subjects(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("a\tnews:sci.med\turn:isbn:1\nb\t\n\nc\t<news:sci.med>\n")
    corpus = read(path)
    assert list(corpus.labels.keys) == ["news:sci.med", "urn:isbn:1"]
    assert corpus.train.Y.toarray().tolist() == [[1, 1], [0, 0], [1, 0]]
    assert "a point without labels was kept: 1 time(s), the first in x.tsv, line 2" in caplog.text


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (TRAIN, "annif"),
        ("text\tlabels\na title\t<http://example.org/1>\n", "table"),
        ("text\turi\nx\thttp://example.org/1\n", "table"),
        ("text\ttags\nx\ta;b\n", "table"),
        (VOCAB, "table"),  # a vocabulary is not a corpus
        ("no tab at all\n", "table"),
        ("", "table"),
    ],
)
def test_told_apart_from_tables(tmp_path: Path, content: str, format: str) -> None:
    (tmp_path / "train.tsv").write_text(content)
    assert detect(tmp_path / "train.tsv").name == format
    assert detect(tmp_path).name == format


@pytest.mark.parametrize(
    ("line", "problem", "found"),
    [
        ("no tab", "no TAB", "no tab"),
        ("a title\tcomputer science", "must be a URI", "computer"),
        ("a title\t<http://example.org/1", "must be a URI", "<http://example.org/1"),
        ("a title\t<>", "must be a URI", "<>"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, problem: str, found: str) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(f"{TRAIN}{line}\n{TRAIN}")
    with pytest.raises(DataError, match=problem) as caught:
        read(path, format="annif")
    assert (caught.value.where, caught.value.line, caught.value.found) == (path, 3, found)
    assert len(read(path, format="annif", on_bad_line="skip").train) == 4


def test_vocabulary_is_checked(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(TRAIN)
    vocab = tmp_path / "vocab.tsv"
    for content, problem in [
        ("", "empty"),
        (VOCAB + VOCAB, "a key twice"),
        (VOCAB + "networking\n", "must start with a URI"),
        (f"<{Q1}>\tnetworking\n", "not in the label list"),
    ]:
        vocab.write_text(content)
        with pytest.raises(DataError, match=problem):
            read(tmp_path)
    vocab.unlink()
    (tmp_path / "a-vocab.tsv").write_text(VOCAB)
    (tmp_path / "b-vocab.tsv").write_text(VOCAB)
    with pytest.raises(DataError, match="more than one vocabulary") as caught:
        read(tmp_path)
    assert caught.value.found == ["a-vocab.tsv", "b-vocab.tsv"]
