"""Folders of AttentionXML, LightXML and CascadeXML; and what bad input does."""

import gzip
import logging

import pytest

from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Propensity
from longtail.data.read import detect, read


def files(folder, **contents):
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        name = name.replace("__", ".")
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


TEXTS = "council regulation /SEP/ no 1\nfish\nwine and bread\n"
LABELS = "fisheries trade\ntrade\n1089 fisheries\n"


def rows(data, labels):
    """Label names of each point."""
    keys = list(labels.keys)
    return [[keys[j] for j in row.indices] for row in data.Y]


@pytest.mark.parametrize("kind", ["texts", "raw_texts"])
@pytest.mark.parametrize("ending", ["txt", "txt__gz"])
def test_a_folder(tmp_path, kind, ending):
    folder = files(
        tmp_path / "EUR-Lex",
        **{f"train_{kind}__{ending}": TEXTS, f"train_labels__{ending}": LABELS},
        **{f"test_{kind}__{ending}": "meat\n", f"test_labels__{ending}": "trade unseen\n"},
        corpus__json=b'{"propensity": {"A": 0.5, "B": 0.4}}',
        filter_labels_test__txt="0 3\n",
        train__txt="3 9 4\n0 1:1\n1 1:1\n0 2:1\n",  # LightXML keeps its features beside the texts
    )
    assert detect(folder).name == "attentionxml"
    corpus = read(folder)
    assert corpus.name == "EUR-Lex" and corpus.labels.propensity == Propensity(0.5, 0.4)
    assert list(corpus.train.texts) == TEXTS.splitlines() and list(corpus.test.texts) == ["meat"]
    assert list(corpus.labels.keys) == ["1089", "fisheries", "trade", "unseen"] and not corpus.labels.has_text
    assert rows(corpus.train, corpus.labels) == [["fisheries", "trade"], ["trade"], ["1089", "fisheries"]]
    assert rows(corpus.test, corpus.labels) == [["trade", "unseen"]] and corpus.test.ignore[0, 3]
    assert corpus.labels.counts.tolist() == [1, 2, 2, 0] and corpus.dev is None


def test_raw_texts_win_over_tokens(tmp_path):
    raw = files(tmp_path / "a", train_texts__txt="a b\n", train_raw_texts__txt="A-b\n", train_labels__txt="x\n")
    assert list(read(raw).train.texts) == ["A-b"]


def test_labels_of_cascadexml_and_a_validation_part(tmp_path):
    folder = files(tmp_path / "a", train_raw_texts__txt=TEXTS, Y__trn__txt="0 2\n1\n10\n")
    files(folder, valid_raw_texts__txt="a\n", Y__val__txt="1\n")
    corpus = read(folder)
    assert detect(folder).name == "attentionxml" and rows(corpus.dev, corpus.labels) == [["1"]]
    assert list(corpus.labels.keys) == ["0", "1", "10", "2"]  # names, sorted as LightXML sorts them


def test_blank_lines_crlf_marks_and_unicode(tmp_path, caplog):
    folder = files(
        tmp_path / "a",
        train_texts__txt="\ufeffone\r\n\r\nthree \u2028 x\r\n \t\r\n",
        train_labels__txt="\ufeffé\u00a0x  b\t b\r\n\r\nb\r\nc",
    )
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder)
    assert list(corpus.train.texts) == ["one", "", "three \u2028 x", " \t"]
    assert rows(corpus.train, corpus.labels) == [["b", "é\u00a0x"], [], ["b"], ["c"]]  # cut at ASCII blanks only
    assert "an empty text was kept: 2 time(s), the first in train_texts.txt, line 2" in caplog.text
    assert "a point without labels was kept: 1 time(s), the first in train_labels.txt, line 2" in caplog.text
    assert "a label was repeated in one line and is counted once: 1 time(s)" in caplog.text


def test_texts_and_labels_of_different_length(tmp_path):
    folder = files(tmp_path / "a", train_texts__txt=TEXTS, train_labels__txt="x\ny\n")
    for mode in ("error", "skip"):
        with pytest.raises(DataError) as caught:
            read(folder, on_bad_line=mode)
        assert caught.value.problem == "train_texts.txt has 3 points, but train_labels.txt has 2 rows of labels"
        assert caught.value.where == folder


@pytest.mark.parametrize("name", ["train_texts.txt", "train_labels.txt"])
def test_invalid_utf8_leaves_both_files(tmp_path, caplog, name):
    folder = files(tmp_path / "a", train_texts__txt=TEXTS, train_labels__txt=LABELS, filter_labels_train__txt="2 0\n")
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    lines[1] = b"tr\xc3(de\n"
    (folder / name).write_bytes(b"".join(lines))
    with pytest.raises(DataError, match="invalid UTF-8 at byte 3") as caught:
        read(folder)
    assert caught.value.where.name == name and caught.value.line == 2 and caught.value.found == b"tr\xc3(de"
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder, on_bad_line="skip")
    assert list(corpus.train.texts) == ["council regulation /SEP/ no 1", "wine and bread"]
    assert rows(corpus.train, corpus.labels) == [["fisheries", "trade"], ["1089", "fisheries"]]
    assert corpus.train.ignore.toarray().tolist() == [[False] * 3, [True, False, False]]
    assert "skipped 1 bad line(s)" in caplog.text and "a point without labels" not in caplog.text


def test_nothing_in_it(tmp_path):
    folder = files(tmp_path / "a", train_texts__txt="", train_labels__txt="")
    with pytest.raises(DataError, match="no point has a label") as caught:
        read(folder)
    assert caught.value.where.name == "train_labels.txt"
    folder = files(tmp_path / "b", train_texts__txt="a\n")
    with pytest.raises(DataError, match="has no training part"):
        read(folder, format="attentionxml")


def test_truncated_gzip(tmp_path):
    folder = files(tmp_path / "a", train_labels__txt=LABELS)
    whole = gzip.compress("".join(f"text {i * 7919}\n" for i in range(5000)).encode())
    (folder / "train_texts.txt.gz").write_bytes(whole[:-100])
    with pytest.raises(DataError, match="gzip file ends before its end mark") as caught:
        read(folder)
    assert caught.value.where.name == "train_texts.txt.gz" and caught.value.line > 1


def test_a_megabyte_on_one_line(tmp_path):
    long = "word " * 400_000
    folder = files(tmp_path / "a", train_texts__txt=f"a\n{long}\nc\n", train_labels__txt="x\ny\nz\n")
    texts = read(folder).train.texts
    assert [len(t) for t in texts] == [1, len(long), 1]


def test_lines_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.data.parse.lines.CHUNK", 7)
    folder = files(tmp_path / "a", train_texts__txt=TEXTS, train_labels__txt=LABELS.replace("\n", "\r\n"))
    corpus = read(folder)
    assert list(corpus.train.texts) == TEXTS.splitlines()
    assert rows(corpus.train, corpus.labels) == [["fisheries", "trade"], ["trade"], ["1089", "fisheries"]]


def test_bad_lines_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.data.parse.lines.CHUNK", 20)
    texts, labels = [b"text %d" % i for i in range(30)], [b"label%02d" % i for i in range(30)]
    texts[11], labels[23] = b"\xff", b"\xfe x"
    folder = files(tmp_path / "a", train_texts__txt=b"\n".join(texts), train_labels__txt=b"\n".join(labels))
    with pytest.raises(DataError) as caught:
        read(folder)
    assert caught.value.where.name == "train_texts.txt" and caught.value.line == 12
    corpus = read(folder, on_bad_line="skip")
    kept = [i for i in range(30) if i not in (11, 23)]
    assert list(corpus.train.texts) == [f"text {i}" for i in kept]
    assert rows(corpus.train, corpus.labels) == [[f"label{i:02d}"] for i in kept]


def test_named_fields_are_refused(tmp_path):
    folder = files(tmp_path / "a", train_texts__txt=TEXTS, train_labels__txt=LABELS)
    with pytest.raises(ParameterError, match="the AttentionXML format has no named fields: leave --label-sep ';' out"):
        read(folder, label_sep=";")


def test_labels_of_a_text_that_is_skipped_are_no_labels(tmp_path, caplog):
    folder = files(tmp_path / "a", train_texts__txt=b"one\n\xff\nthree\n", train_labels__txt="x\nonly here\nx y\n")
    with pytest.raises(DataError, match="invalid UTF-8"):
        read(folder)
    corpus = read(folder, on_bad_line="skip")
    assert list(corpus.train.texts) == ["one", "three"] and list(corpus.labels.keys) == ["x", "y"]
    assert rows(corpus.train, corpus.labels) == [["x"], ["x", "y"]]
    assert "a point without labels" not in caplog.text and "skipped 1 bad line(s)" in caplog.text


def test_a_long_blank_text_is_an_empty_one(tmp_path, caplog):
    folder = files(tmp_path / "a", train_texts__txt=f"one\n{' ' * 60}\n\u3000\n", train_labels__txt="x\ny\ny\n")
    assert len(read(folder).train) == 3
    assert "an empty text was kept: 2 time(s), the first in train_texts.txt, line 2" in caplog.text
