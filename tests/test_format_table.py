"""CSV, TSV and Parquet: columns, separators, dialects, streaming, and what is refused."""

from __future__ import annotations

import csv
import gzip
import io
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.core.errors import DataError, MissingExtraError
from longtail.data.checks import Checks
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.parse.csv_rows import CsvFile, sniff_delimiter
from longtail.data.read import detect, read


def write(path: Path, content: str | bytes) -> Path:
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def points(corpus: Corpus, data: Dataset | None = None) -> list[tuple[str, list[str]]]:
    """(text, label keys) of each point."""
    data = data or corpus.train
    keys = list(corpus.labels.keys)
    rows = [[keys[j] for j in data.Y[i].indices] for i in range(len(data))]
    return list(zip(data.texts, rows, strict=True))


TAGS = "id,body,tags\n1,one,a;b\n2,two,b;c d\n"
EXPECTED = [("one", ["a", "b"]), ("two", ["b", "c d"])]


@pytest.mark.parametrize("name", ["tags.csv", "tags.csv.gz", "tags.tsv", "tags.tsv.gz", "TAGS.CSV"])
def test_one_file_is_a_corpus(tmp_path: Path, name: str) -> None:
    content = TAGS.replace(",", "\t") if "tsv" in name else TAGS
    corpus = read(write(tmp_path / name, content), text="body", labels="tags", label_sep=";")
    assert points(corpus) == EXPECTED
    assert corpus.name == name.split(".")[0]
    assert corpus.labels.counts.tolist() == [1, 2, 1]
    assert corpus.dev is None and corpus.test is None


def test_usual_columns_are_found_whatever_their_case(tmp_path: Path) -> None:
    # `text` comes before `title` in the fixed order, `tags` before `category`
    path = write(tmp_path / "x.csv", "category,TITLE,Tags,Text\nc,t,a,x\n")
    assert points(read(path)) == [("x", ["a"])]


def test_several_text_columns_and_a_name_with_a_comma(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", '"name, first",title,body,tags\nAda,T,B,a\nBob,,B2,b\n')
    assert [t for t, _ in points(read(path, text="title,body"))] == ["T B", "B2"]
    assert [t for t, _ in points(read(path, text="name, first"))] == ["Ada", "Bob"]
    assert [t for t, _ in points(read(path, text="BODY"))] == ["B", "B2"]


def test_a_missing_column_is_named_with_the_columns_there_are(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "id,words,tags\n1,x,a\n")
    with pytest.raises(DataError, match="--text") as caught:
        read(path)
    assert caught.value.where == path and caught.value.found == ["id", "words", "tags"]
    with pytest.raises(DataError, match="no column 'wrds'.*Did you mean 'words'") as caught:
        read(path, text="wrds")
    with pytest.raises(DataError, match="--labels") as caught:
        read(write(tmp_path / "y.csv", "text,about\nx,a\n"))
    assert caught.value.found == ["text", "about"]
    with pytest.raises(DataError, match="no column 'g'.*--group-by"):
        read(path, text="words", group_by="g")


def test_group_column(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "text,tags,src\nx,a,one\ny,b,two\n")
    groups = read(path, group_by="src").train.groups
    assert groups is not None and list(groups) == ["one", "two"]
    path = write(tmp_path / "x.csv", "text,tags,src\nx,a,\ny,b,two\n")  # an empty cell: no group
    assert list(read(path, group_by="src").train.groups or []) == ["", "two"]
    for keys in (["one", None], pa.array([1, None], pa.int32())):
        path = write_parquet(tmp_path / "x.parquet", {"text": ["x", "y"], "tags": ["a", "b"], "src": keys})
        assert list(read(path, group_by="src").train.groups or []) == [str(keys[0]), ""]


def test_a_folder_has_parts_a_label_list_and_about(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", "text,tags,src\nx,b,s\ny,a;b,s\n")
    write(tmp_path / "valid.tsv.gz", "text\ttags\tsrc\nz\ta\ts\n")
    pq.write_table(pa.table({"text": ["w"], "tags": [["c"]], "src": [3]}), tmp_path / "test.parquet")
    write(tmp_path / "labels.csv", 'text,key\nBeta,b\n"Alpha, the first",a\nGamma,c\n')
    write(tmp_path / "corpus.json", '{"name": "letters", "group": "src", "propensity": {"A": 0.6, "B": 2.6}}')
    write(tmp_path / "filter_labels_test.txt", "0 1\n")
    corpus = read(tmp_path)
    assert corpus.name == "letters" and corpus.labels.propensity.A == 0.6
    assert list(corpus.labels.keys) == ["b", "a", "c"]
    assert list(corpus.labels.texts or []) == ["Beta", "Alpha, the first", "Gamma"]
    assert points(corpus) == [("x", ["b"]), ("y", ["b", "a"])]
    assert corpus.dev is not None and points(corpus, corpus.dev) == [("z", ["a"])]
    assert corpus.test is not None and points(corpus, corpus.test) == [("w", ["c"])]
    assert list(corpus.test.groups or []) == ["3"]
    assert corpus.test.ignore is not None and corpus.test.ignore.nonzero()[1].tolist() == [1]


def test_label_list_is_checked(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", "text,tags\nx,b\n")
    for content, problem in [
        ("name,text\nb,B\n", "column 'key'"),
        ("key\n", "the label list is empty"),
        ("key\nb\nc\nb\n", "a key twice"),
        ("key,text\nb,B\n,C\n", "a label has no key"),
        ("key,text\nb,B,more\n", "3 column"),
    ]:
        path = write(tmp_path / "labels.csv", content)
        with pytest.raises(DataError, match=problem) as caught:
            read(tmp_path, on_bad_line="skip")  # rows of a label list count: a bad one is never skipped
        assert caught.value.where == path


def test_unknown_label_is_refused_or_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "train.csv", "text,tags\nx,b\ny,b;q\nz,b\n")
    write(tmp_path / "labels.csv", "key\nb\n")
    with pytest.raises(DataError, match="not in the label list") as caught:
        read(tmp_path)
    assert (caught.value.where, caught.value.line, caught.value.found) == (path, 3, "q")
    assert [t for t, _ in points(read(tmp_path, on_bad_line="skip"))] == ["x", "z"]
    assert "skipped 1 bad line" in caplog.text


# The separator


@pytest.mark.parametrize(
    ("cells", "labels", "level"),
    [
        (["a;b", "c"], [["a", "b"], ["c"]], logging.INFO),
        (["machine learning; nlp", "nlp"], [["machine learning", "nlp"], ["nlp"]], logging.INFO),
        (["a|b", "c"], [["a", "b"], ["c"]], logging.INFO),
        (["a,b", "c"], [["a", "b"], ["c"]], logging.INFO),
        (["a;b", "c, d"], [["a", "b"], ["c, d"]], logging.WARNING),  # two marks: which one is it?
        (["Paris, France", "Rome"], [["France", "Paris"], ["Rome"]], logging.INFO),
        (["Paris, a city", "Rome"], [["Paris", "a city"], ["Rome"]], logging.WARNING),  # perhaps one label
        (["a", "b"], [["a"], ["b"]], logging.INFO),
        (['["x, y", "z"]', "[]"], [["x, y", "z"], []], logging.INFO),
        (["['x', 'y']", "[1, 2]"], [["x", "y"], ["1", "2"]], logging.INFO),  # as pandas writes lists
    ],
)
def test_separator_is_guessed_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cells: list[str], labels: list[list[str]], level: int
) -> None:
    caplog.set_level(logging.INFO, "longtail")
    buffer = io.StringIO()
    csv.writer(buffer).writerows([["text", "tags"], *(["x", cell] for cell in cells)])
    corpus = read(write(tmp_path / "x.csv", buffer.getvalue()))
    assert [row for _, row in points(corpus)] == [sorted(row) for row in labels]
    said = [record for record in caplog.records if "column 'tags'" in record.getMessage()]
    assert len(said) == 1 and said[0].levelno == level


def test_blanks_in_labels_are_never_guessed(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "text,tags\nx,nlp\ny,machine learning\n")
    with pytest.raises(DataError, match="--label-sep ' ' if it separates, or --label-sep ';'") as caught:
        read(path)
    assert caught.value.line == 3 and caught.value.found == "machine learning"
    assert [row for _, row in points(read(path, label_sep=" "))] == [["nlp"], ["learning", "machine"]]
    assert [row for _, row in points(read(path, label_sep=";"))] == [["nlp"], ["machine learning"]]


def test_a_separator_that_first_stands_after_the_sample_is_not_overlooked(tmp_path: Path) -> None:
    rows = "".join(f"x,label{i}\n" for i in range(5000))
    path = write(tmp_path / "x.csv", f"text,tags\n{rows}y,a;b\n")
    with pytest.raises(DataError, match="contains ';'") as caught:
        read(path)
    assert caught.value.line == 5002


def test_empty_cells_say_nothing_about_the_separator(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "x.csv", "text,tags\n" + "x,\n" * 5000 + "y,a;b\n")
    corpus = read(path)
    assert points(corpus)[-1] == ("y", ["a", "b"])
    assert "a point without labels was kept: 5,000 time(s), the first in x.csv, line 2" in caplog.text


def test_the_first_thousand_cells_count_however_large_the_rows_are(tmp_path: Path) -> None:
    long = "word " * 500  # 2.5 kB: the first 1,000 rows are in several blocks and chunks
    rows = "".join(f"{long},{'a;b' if i == 990 else 'c'}\n" for i in range(1500))
    corpus = read(write(tmp_path / "x.csv", f"text,tags\n{rows}"))
    assert points(corpus)[990][1] == ["a", "b"] and points(corpus)[0][1] == ["c"]
    rows = "".join(f"{long},{'a;b' if i == 1001 else 'c'}\n" for i in range(1500))
    with pytest.raises(DataError, match="contains ';'") as caught:
        read(write(tmp_path / "x.csv", f"text,tags\n{rows}"))
    assert caught.value.line == 1003


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_cells_are_looked_at_over_chunks_until_there_are_enough(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = ["", *(["a", "", "b", ""] * 100), "c;d", *["e"] * 50]
    if ending == "csv":
        path = write(tmp_path / "x.csv", "text,tags\n" + "".join(f"t,{cell}\n" for cell in cells))
        monkeypatch.setattr("longtail.data.parse.csv_rows.ROWS", 7)
    else:
        column = [cell or None for cell in cells]
        path = write_parquet(tmp_path / "x.parquet", {"text": ["t"] * len(cells), "tags": column})
        monkeypatch.setattr("longtail.data.formats.table.BATCH", 7)
    expected = [cell.split(";") if cell else [] for cell in cells]
    assert [row for _, row in points(read(path))] == expected  # all of the file: fewer than 1,000
    monkeypatch.setattr("longtail.data.parse.columns.SAMPLE", 201)
    assert [row for _, row in points(read(path))] == expected
    monkeypatch.setattr("longtail.data.parse.columns.SAMPLE", 200)
    with pytest.raises(DataError, match="contains ';'"):
        read(path)


def test_separators_of_several_characters_and_tab(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "text,tags\nx,a :: b\ny,c\td\n")
    assert [row for _, row in points(read(path, label_sep="::"))] == [["a", "b"], ["c\td"]]
    assert [row for _, row in points(read(path, label_sep="\\t"))] == [["a :: b"], ["c", "d"]]
    with pytest.raises(DataError, match="empty label separator"):
        read(path, label_sep="")


def test_a_cell_that_is_no_list_among_lists(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'text,tags\nx,"[""a""]"\n' + 'y,"[""b""]"\n' * 2000 + "z,c\nw,[3.5]\n")
    with pytest.raises(DataError, match="is not a list of labels, but the first cells are") as caught:
        read(path)
    assert caught.value.line == 2003 and caught.value.found == "c"
    assert len(read(path, on_bad_line="skip").train) == 2001


# The dialect


def test_quotes_newlines_and_lines_in_messages(tmp_path: Path) -> None:
    content = 'text,tags\n"one, ""quoted""\nsecond line\n\nfourth",a\n\n  \ntwo,b\nthree\nfour,c\n'
    path = write(tmp_path / "x.csv", content)
    with pytest.raises(DataError, match=r"1 column\(s\), the header has 2") as caught:
        read(path)
    assert caught.value.line == 9 and caught.value.found == ["three"]
    corpus = read(path, on_bad_line="skip")
    assert points(corpus) == [('one, "quoted"\nsecond line\n\nfourth', ["a"]), ("two", ["b"]), ("four", ["c"])]


def test_a_line_of_nul_bytes_costs_no_other_row(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "x.csv", "text,tags\na,x\n\0\nb,y\n\0\0 \n\nc,x\n\0")
    with pytest.raises(DataError, match="NUL") as caught:
        read(path)
    assert caught.value.line == 3
    assert points(read(path, on_bad_line="skip")) == [("a", ["x"]), ("b", ["y"]), ("c", ["x"])]
    assert f"skipped 3 bad line(s); the first: {path}, line 3: a NUL byte" in caplog.text


def test_filter_pairs_count_all_records(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", 'text,tags\n\n"a\nb",x\nbad\nc,x;y\n\nd,y\n')
    write(tmp_path / "filter_labels_train.txt", "0 0\n1 1\n2 1\n3 0\n")
    corpus = read(tmp_path, on_bad_line="skip")
    assert [t for t, _ in points(corpus)] == ["a\nb", "c", "d"]
    ignore = corpus.train.ignore
    assert ignore is not None
    assert ignore.toarray().tolist() == [[True, False], [False, True], [True, False]]


@pytest.mark.parametrize(
    ("header", "name", "delimiter"),
    [
        ("a,b", "x.csv", ","),
        ("a;b;c,d", "x.csv", ";"),
        ("a\tb", "x.csv", "\t"),
        ("a\tb,c,d", "x.tsv", "\t"),
        ("a\tb,c,d", "x.tsv.gz", "\t"),
        ("a,b", "x.tsv", ","),
        ('"x;y;z;w",b', "x.csv", ","),
        ("alone", "x.csv", ","),
    ],
)
def test_delimiter(header: str, name: str, delimiter: str) -> None:
    assert sniff_delimiter(header, Path(name)) == delimiter


def test_crlf_and_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    content = 'text,tags\n"a\nb",x;y\nc,z\n'
    plain = read(write(tmp_path / "plain.csv", content))
    crlf = read(write(tmp_path / "crlf.csv", b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode()))
    assert points(plain) == points(crlf) == [("a\nb", ["x", "y"]), ("c", ["z"])]
    assert plain.digest == crlf.digest


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("", None, "the file is empty"),
        ("\n \n", None, "the file is empty"),
        ("text,tags\n", None, "no rows"),
        ("text,,tags\nx,,a\n", 1, "no name for column 2"),
        ("text,tags,text\nx,a,y\n", 1, "a column twice: 'text'"),
        ("text,tags\nx,a,b\n", 2, "3 column"),
        ("text,tags\nx,a\ny\n", 3, "1 column"),
        ("text,tags\nx\0y,a\n", 2, "NUL"),
        ('text,tags\nx,a\ny,"b\nz,c\n', 3, "never closed"),
        ('text,tags\nx,a\n"y"z,b\n', 3, "not valid CSV"),
        ("text,tags\rx,a\ry,b\r", 1, "carriage return"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, line: int | None, problem: str) -> None:
    path = write(tmp_path / "x.csv", content)
    with pytest.raises(DataError, match=problem) as caught:
        read(path)
    assert caught.value.where == path and caught.value.line == line


def test_an_open_quote_is_never_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'text,tags\nx,a\ny,"b\nz,c\n')
    with pytest.raises(DataError, match="never closed"):
        read(path, on_bad_line="skip")


def test_index_column_of_pandas(tmp_path: Path) -> None:
    assert points(read(write(tmp_path / "x.csv", ",text,tags\n0,x,a\n1,y,b\n"))) == [("x", ["a"]), ("y", ["b"])]


def test_a_megabyte_in_one_field(tmp_path: Path) -> None:
    long = "word " * 250_000
    corpus = read(write(tmp_path / "x.csv", f'text,tags\n"{long}\n{long}",a\ny,b\n'))
    assert corpus.train.texts[0] == f"{long}\n{long}" and len(corpus.train) == 2


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=8), st.sampled_from(",;\t"))
def test_records_agree_with_the_csv_module(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], delimiter: str
) -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerows([["a", "b", "c"], *rows])
    path = write(tmp_path_factory.mktemp("csv") / "x.csv", buffer.getvalue())
    file = CsvFile(path, Checks())
    found = [(line, row) for lines, chunk in file.chunks() for line, row in zip(lines, chunk, strict=True)]
    assert [row for _, row in found] == rows
    # the line of a record: one more than the line ends before it
    starts, line = [], 2
    for row in rows:
        starts.append(line)
        line += 1 + sum(cell.count("\n") for cell in row)
    assert [line for line, _ in found] == starts


def test_chunks_do_not_change_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'"text {i}\nmore é",l{i % 7};l{i % 3}\n' for i in range(500))
    path = write(tmp_path / "x.csv", f"text,tags\n{rows}")
    whole = read(path)
    monkeypatch.setattr("longtail.data.parse.lines.CHUNK", 37)
    monkeypatch.setattr("longtail.data.parse.csv_rows.ROWS", 3)
    assert read(path).digest == whole.digest


# Parquet


def write_parquet(path: Path, columns: dict[str, Any], **more: Any) -> Path:
    pq.write_table(pa.table(columns), path, **more)
    return path


@pytest.mark.parametrize(
    "labels",
    [
        pa.array([["a", "b"], ["b"], []]),
        pa.array([["a", "b"], ["b"], None], pa.large_list(pa.large_string())),
        pa.array(["a;b", "b", None]),
        pa.array(["a;b", "b", ""]).dictionary_encode(),
    ],
)
def test_parquet_labels_of_every_kind(tmp_path: Path, labels: pa.Array) -> None:
    path = write_parquet(tmp_path / "x.parquet", {"text": ["x", "ÿ", "🍅"], "labels": labels})
    assert points(read(path)) == [("x", ["a", "b"]), ("ÿ", ["b"]), ("🍅", [])]


@pytest.mark.parametrize(
    ("labels", "rows"),
    [
        (pa.array([[10, 2], [2], []], pa.list_(pa.int32())), [["2", "10"], ["2"], []]),
        (pa.array([10, 2, None], pa.uint8()), [["10"], ["2"], []]),
        (pa.array([10, 2, 2], pa.uint64()), [["10"], ["2"], ["2"]]),
        (pa.array([[10, 2], [2, 3], [4, 5]], pa.list_(pa.int64(), 2)), [["2", "10"], ["2", "3"], ["4", "5"]]),
    ],
)
def test_parquet_integers(tmp_path: Path, labels: pa.Array, rows: list[list[str]]) -> None:
    corpus = read(write_parquet(tmp_path / "x.parquet", {"text": ["x", "y", "z"], "labels": labels}))
    assert [row for _, row in points(corpus)] == rows  # sorted by number: all were integers


def test_parquet_by_its_first_bytes_and_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 3000
    columns = {"text": [f"text {i}" for i in range(n)], "tags": [[f"t{i % 5}", f"u{i % 3}"] for i in range(n)]}
    path = write_parquet(tmp_path / "no-ending", columns, row_group_size=700)
    assert detect(path).name == "table"
    whole = read(path)
    assert len(whole.train) == n and whole.train.Y.nnz == 2 * n
    monkeypatch.setattr("longtail.data.formats.table.BATCH", 64)
    assert read(path).digest == whole.digest


def test_parquet_null_texts_and_two_columns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_parquet(tmp_path / "x.parquet", {"title": ["a", None], "body": ["b", None], "tags": ["t", "u"]})
    assert [t for t, _ in points(read(path, text="title,body"))] == ["a b", ""]
    assert "an empty text was kept: 1 time(s), the first in x.parquet, line 2" in caplog.text


def test_parquet_what_is_refused(tmp_path: Path) -> None:
    def refused(columns: dict[str, Any], problem: str, **options: Any) -> DataError:
        path = write_parquet(tmp_path / "x.parquet", columns)
        with pytest.raises(DataError, match=problem) as caught:
            read(path, **options)
        assert caught.value.where == path
        return caught.value

    assert "int64" in str(refused({"text": [1, 2], "tags": ["a", "b"]}, "column 'text' must be text"))
    assert "double" in str(refused({"text": ["x"], "tags": [1.5]}, "must contain labels"))
    error = refused({"text": ["x", "y"], "tags": [["a"], ["b", None]]}, "null")
    assert error.line == 2 and error.found == ["b", None]
    assert refused({"text": ["x", "y"], "tags": [[1], [2, -3]]}, "at least 0").found == -3
    assert refused({"words": ["x"], "tags": ["a"]}, "--text").found == ["words", "tags"]
    assert "no rows" in str(refused({"text": pa.array([], pa.string()), "tags": pa.array([], pa.string())}, "no rows"))
    refused({"text": ["x"], "tags": pa.array([None], pa.null())}, "no point has a label")


def test_parquet_invalid_utf8(tmp_path: Path) -> None:
    raw = pa.array([b"fine", b"bro\xffken", b"fine too"])
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    path = write_parquet(tmp_path / "x.parquet", {"text": text, "tags": [["a"], ["b"], ["c"]]})
    with pytest.raises(DataError, match="invalid UTF-8 at byte 4") as caught:
        read(path)
    assert caught.value.line == 2 and caught.value.found == b"bro\xffken"
    assert points(read(path, on_bad_line="skip")) == [("fine", ["a"]), ("fine too", ["c"])]


def test_damaged_parquet(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x.parquet", {"text": ["x"] * 100, "tags": ["a"] * 100})
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(DataError, match="Parquet") as caught:
        read(path)
    assert caught.value.where == path
    path.write_bytes(b"")
    with pytest.raises(DataError, match="Parquet"):
        read(path)


def test_missing_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    path = write_parquet(tmp_path / "x.parquet", {"text": ["x"], "tags": ["a"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"longtail\[tables\]"):
        read(path)


def test_parquet_invalid_utf8_in_labels(tmp_path: Path) -> None:
    raw = pa.array([b"fine", b"bro\xffken", b"fine"])
    cells = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    for labels in (cells, pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), cells)):
        path = write_parquet(tmp_path / "x.parquet", {"text": ["x", "y", "z"], "labels": labels})
        with pytest.raises(DataError, match="invalid UTF-8") as caught:
            read(path)
        assert caught.value.line == 2 and caught.value.found == b"bro\xffken"
        assert points(read(path, on_bad_line="skip")) == [("x", ["fine"]), ("z", ["fine"])]
