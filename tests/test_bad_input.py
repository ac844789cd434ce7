"""Bad input, in every line-based format where it can occur: refused with file and line, or corrected with a warning."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.core.errors import DataError, LongtailError, ParameterError
from longtail.data.corpus import Corpus
from longtail.data.read import read


@dataclass(frozen=True)
class Kind:
    """A format with one point per line: the names of its files, and how a point is written."""

    format: str
    ending: str
    line: Callable[[str, Sequence[str]], str]
    header: str = ""

    @property
    def before(self) -> int:
        """Lines before the first point."""
        return self.header.count("\n")

    def content(self, points: Sequence[tuple[str, Sequence[str]]]) -> bytes:
        return (self.header + "".join(self.line(*point) + "\n" for point in points)).encode()

    def write(self, folder: Path, content: bytes, gz: bool = False, stem: str = "train") -> Path:
        folder.mkdir(exist_ok=True)
        path = folder / f"{stem}{self.ending}{'.gz' if gz else ''}"
        path.write_bytes(gzip.compress(content) if gz else content)
        return path

    def read(self, path: Path, **options: Any) -> Corpus:
        return read(path, **options)


KINDS = [
    Kind("jsonl", ".jsonl", lambda text, labels: orjson.dumps({"text": text, "labels": list(labels)}).decode()),
    Kind("table", ".csv", lambda text, labels: f"{text},{';'.join(labels)}", "text,labels\n"),
    Kind("table", ".tsv", lambda text, labels: f"{text}\t{'|'.join(labels)}", "text\tlabels\n"),
    Kind("fasttext", ".txt", lambda text, labels: " ".join([*(f"__label__{key}" for key in labels), text])),
    Kind("annif", ".tsv", lambda text, labels: f"{text}\t{' '.join(f'<{key}>' for key in labels)}"),
]
each = pytest.mark.parametrize("kind", KINDS, ids=[f"{kind.format}{kind.ending}" for kind in KINDS])

A, B, C = "ex:a", "ex:b", "ex:c"  # keys that are URIs too, as Annif needs them
POINTS: list[tuple[str, list[str]]] = [("first text", [A, B]), ("second text", [B]), ("third é 漢", [C, A])]


def refused(kind: Kind, path: Path, problem: str, **options: Any) -> DataError:
    with pytest.raises(DataError, match=problem) as caught:
        kind.read(path, **options)
    assert str(caught.value.where) in str(caught.value)  # the message names the place
    assert caught.value.line is None or f"line {caught.value.line}:" in str(caught.value)
    return caught.value


@each
def test_good_input(kind: Kind, tmp_path: Path) -> None:
    """The baseline for the other tests: the format is detected, both plain and gzip."""
    path = kind.write(tmp_path, kind.content(POINTS))
    corpus = kind.read(path)
    assert list(corpus.train.texts) == [text for text, _ in POINTS]
    assert list(corpus.labels.keys) == [A, B, C]
    assert corpus.train.Y.toarray().tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    path.unlink()
    assert kind.read(kind.write(tmp_path, kind.content(POINTS), gz=True)).digest == corpus.digest
    assert kind.read(tmp_path).digest == corpus.digest  # as a folder
    assert kind.read(tmp_path, format=kind.format).digest == corpus.digest


# Files


def many(count: int = 20_000) -> list[tuple[str, list[str]]]:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 10**9, (count, 3)).tolist()
    return [(f"text {a} {b} {c}", [A, B]) for a, b, c in words]


@each
@pytest.mark.parametrize("on_bad_line", ["error", "skip"])
def test_truncated_gzip(kind: Kind, tmp_path: Path, on_bad_line: Any) -> None:
    whole = gzip.compress(kind.content(many()))
    path = kind.write(tmp_path, b"", gz=True)
    path.write_bytes(whole[: len(whole) // 2])
    for place in (path, tmp_path):
        error = refused(kind, place, "cut short.*Copy or download it again", on_bad_line=on_bad_line)
        assert error.where == path
        assert error.line is not None and 8_000 < error.line < 12_000  # the line that was reached
    path.write_bytes(whole[:-5])  # only the end mark is missing
    error = refused(kind, tmp_path, "cut short", on_bad_line=on_bad_line)
    assert error.line == 20_000 + kind.before + 1


@each
def test_damaged_gzip(kind: Kind, tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(kind.content(many())))
    path = kind.write(tmp_path, b"", gz=True)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(200) + whole[middle + 200 :])
    error = refused(kind, tmp_path, "damaged.*Copy or download it again", format=kind.format)
    assert error.where == path and error.line is not None and error.line > 1
    path.write_bytes(whole[:-8] + b"\0\0\0\0" + whole[-4:])  # a wrong checksum
    assert refused(kind, tmp_path, "damaged").line == 20_000 + kind.before + 1
    path.write_bytes(whole[:20])
    assert refused(kind, path, "cut short", format=kind.format).line == 1
    path.write_bytes(b"\x1f\x8b and then something else")
    assert refused(kind, path, "damaged", format=kind.format).line == 1


@each
def test_gzip_by_content_not_by_name(kind: Kind, tmp_path: Path) -> None:
    path = kind.write(tmp_path, gzip.compress(kind.content(POINTS)))  # called train.csv, but packed
    assert len(kind.read(path).train) == 3


@each
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n"])
def test_empty_file(kind: Kind, tmp_path: Path, content: bytes) -> None:
    path = kind.write(tmp_path, content)
    for place in (path, tmp_path):
        error = refused(kind, place, "empty|no point", format=kind.format)
        assert error.where == path


@each
def test_header_only_or_empty_gzip(kind: Kind, tmp_path: Path) -> None:
    path = kind.write(tmp_path, kind.content([]), gz=True)
    assert refused(kind, path, "empty|no point|no rows", format=kind.format).where == path


@each
def test_byte_order_mark_and_crlf_change_nothing(kind: Kind, tmp_path: Path) -> None:
    content = kind.content(POINTS)
    plain = kind.read(kind.write(tmp_path, content)).digest
    assert kind.read(kind.write(tmp_path, b"\xef\xbb\xbf" + content)).digest == plain
    assert kind.read(kind.write(tmp_path, content.replace(b"\n", b"\r\n"))).digest == plain
    assert kind.read(kind.write(tmp_path, b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))).digest == plain
    assert kind.read(kind.write(tmp_path, content.removesuffix(b"\n"))).digest == plain  # no end of the last line
    assert kind.read(kind.write(tmp_path, content + b"\n \n")).digest == plain  # blank lines


@each
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16(kind: Kind, tmp_path: Path, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding.endswith("be") else b""
    path = kind.write(tmp_path, mark + kind.content(POINTS).decode().encode(encoding))
    error = refused(kind, path, "the file is UTF-16.*Save it as UTF-8")
    assert error.where == path and error.line == 1
    assert error.found in (b"\xff\xfe", b"\xfe\xff")
    refused(kind, path, "the file is UTF-16", format=kind.format, on_bad_line="skip")


# Lines


@each
@pytest.mark.parametrize("raw", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf"])
def test_invalid_utf8(kind: Kind, tmp_path: Path, raw: bytes, caplog: pytest.LogCaptureFixture) -> None:
    lines = kind.content(POINTS).split(b"\n")
    bad = kind.before + 1  # the second point
    lines[bad] = lines[bad].replace(b"second", b"sec" + raw + b"ond")
    path = kind.write(tmp_path, b"\n".join(lines))
    error = refused(kind, path, "invalid UTF-8 at byte .*Save the file as UTF-8")
    assert error.where == path and error.line == bad + 1
    assert isinstance(error.found, bytes) and b"sec" + raw + b"ond" in error.found
    corpus = kind.read(path, on_bad_line="skip")
    assert list(corpus.train.texts) == [POINTS[0][0], POINTS[2][0]]
    assert "skipped 1 bad line(s)" in caplog.text and f"line {bad + 1}" in caplog.text


@each
def test_a_label_twice_in_one_line(kind: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    points = [("x", [A]), ("y", [B, A, B, B]), ("z", [A, A])]
    corpus = kind.read(kind.write(tmp_path, kind.content(points)))
    assert corpus.train.Y.toarray().tolist() == [[1, 0], [1, 1], [1, 0]]
    line = kind.before + 2
    assert (
        f"a label was repeated in one line and is counted once: 3 time(s), the first in train{kind.ending}, line {line}"
        in caplog.text
    )


@each
@pytest.mark.parametrize("empty", ["", "  ", " " * 40, "\u3000\u00a0 \u2003 " * 5])
def test_empty_text(kind: Kind, tmp_path: Path, empty: str, caplog: pytest.LogCaptureFixture) -> None:
    corpus = kind.read(kind.write(tmp_path, kind.content([("x", [A]), (empty, [B]), ("y", [A])])))
    assert len(corpus.train) == 3 and not corpus.train.texts[1].strip()
    assert corpus.train.Y[1].indices.tolist() == [1]  # its labels are kept
    assert f"an empty text was kept: 1 time(s), the first in train{kind.ending}, line {kind.before + 2}" in caplog.text


@each
def test_a_megabyte_on_one_line(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "wörd " * 300_000 + "end"
    for points in ([(long, [A]), ("short", [B])], [("short", [A]), (long, [B]), ("short too", [B])]):
        corpus = kind.read(
            kind.write(tmp_path, kind.content(points), gz=True), label_sep=";" if kind.ending == ".csv" else None
        )
        assert list(corpus.train.texts) == [text for text, _ in points]


@each
def test_no_labels_at_all(kind: Kind, tmp_path: Path) -> None:
    path = kind.write(tmp_path, kind.content([("x", []), ("y", [])]))
    error = refused_anywhere(lambda: kind.read(path, format=kind.format))
    assert "no point has a label" in str(error) and "labels" in str(error)


def refused_anywhere(call: Callable[[], Any]) -> DataError:
    with pytest.raises(DataError) as caught:
        call()
    return caught.value


@each
def test_chunks_do_not_matter(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kind.write(tmp_path, b"\xef\xbb\xbf" + kind.content(many(300)).replace(b"\n", b"\r\n"))
    whole = kind.read(path)
    for size in (3, 5, 33, 1000):
        monkeypatch.setattr("longtail.data.parse.lines.CHUNK", size)
        assert kind.read(path).digest == whole.digest


BAD_LINES = {
    "jsonl": [b'{"text": "x"', b'{"text": "x", "labels": null}', b"[]", b'{"labels": []}'],
    "table": [b"just one column", b'"open" quote,x', b"n\0ul,x"],
    "fasttext": [b"__label__ nameless"],
    "annif": [b"no tab", b"text\tnot a uri"],
}


@each
def test_skipped_lines_are_the_right_ones(kind: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Good and bad lines alternate, with blank lines between; filter pairs stay with their points."""
    good = [(f"point {i}", [(A, B, C)[i % 3]]) for i in range(40)]
    lines, kept, records, bad = [], [], 0, 0
    for i, point in enumerate(good):
        if i % 4 == 1:
            choices = BAD_LINES[kind.format]
            line = choices[bad % len(choices)]
            lines.append(line.replace(b",", b"\t") if kind.ending == ".tsv" else line)
            bad += 1
            records += 1
        if i % 7 == 2:
            lines.append(b"")
        lines.append(kind.line(*point).encode())
        kept.append((records, i))
        records += 1
    path = kind.write(tmp_path, kind.header.encode() + b"\n".join(lines) + b"\n")
    pairs = "".join(f"{row} {(i + 1) % 3}\n" for row, i in kept) + "1 0\n"  # the last is of a skipped line
    (tmp_path / "filter_labels_train.txt").write_text(pairs)
    error = refused(kind, tmp_path, ".", format=kind.format)
    assert error.where == path and error.line == kind.before + 2
    corpus = kind.read(tmp_path, format=kind.format, on_bad_line="skip")
    assert list(corpus.train.texts) == [text for text, _ in good]
    assert f"skipped {bad} bad line(s); the first: {path}, line {kind.before + 2}:" in caplog.text
    ignore = corpus.train.ignore
    assert ignore is not None
    assert list(zip(*(part.tolist() for part in ignore.nonzero()), strict=True)) == [
        (i, (i + 1) % 3) for i in range(40)
    ]


@each
def test_nothing_but_bad_lines(kind: Kind, tmp_path: Path) -> None:
    line = BAD_LINES[kind.format][0]
    path = kind.write(tmp_path, kind.header.encode() + (line + b"\n") * 3)
    error = refused(kind, path, "all 3 points were skipped as bad", format=kind.format, on_bad_line="skip")
    assert f"line {kind.before + 1}" in str(error)


# Labels


def listed(tmp_path: Path, kind: str, points: list[tuple[str, list[Any]]]) -> Path:
    """A folder with a list of the labels a and b."""
    if kind == "jsonl":
        (tmp_path / "train.jsonl").write_bytes(
            b"".join(orjson.dumps({"text": t, "labels": x}) + b"\n" for t, x in points)
        )
        (tmp_path / "labels.jsonl").write_bytes(b'{"key": "ex:a"}\n{"key": "ex:b"}\n')
        return tmp_path / "train.jsonl"
    if kind == "parquet":
        pq.write_table(
            pa.table({"text": [t for t, _ in points], "labels": [x for _, x in points]}), tmp_path / "train.parquet"
        )
        (tmp_path / "labels.csv").write_text("key\nex:a\nex:b\n")
        return tmp_path / "train.parquet"
    if kind == "csv":
        (tmp_path / "train.csv").write_text("text,labels\n" + "".join(f"{t},{';'.join(x)}\n" for t, x in points))
        (tmp_path / "labels.csv").write_text("key\nex:a\nex:b\n")
        return tmp_path / "train.csv"
    (tmp_path / "train.tsv").write_text("".join(f"{t}\t{' '.join(x)}\n" for t, x in points))
    (tmp_path / "vocab.tsv").write_text("<ex:a>\tAlpha\n<ex:b>\tBeta\n")
    return tmp_path / "train.tsv"


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv", "annif"])
def test_a_label_in_no_list(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = listed(tmp_path, kind, [("x", [A]), ("y", [B, "ex:q", "ex:r"]), ("z", [B])])
    error = refused_anywhere(lambda: read(tmp_path))
    assert "not in the label list" in str(error) and "--on-bad-line skip" in str(error)
    assert (error.where, error.line, error.found) == (path, 3 if kind == "csv" else 2, "ex:q")
    corpus = read(tmp_path, on_bad_line="skip")
    assert list(corpus.train.texts) == ["x", "z"] and "skipped 1 bad line(s)" in caplog.text


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize("index", [2, -1, 10**15])
def test_a_label_index_out_of_range(kind: str, index: int, tmp_path: Path) -> None:
    path = listed(tmp_path, kind, [("x", [0]), ("y", [1, index]), ("z", [1])])
    error = refused_anywhere(lambda: read(tmp_path))
    assert "a label index is outside 0 … 1" in str(error) and "from 0" in str(error)
    assert (error.where, error.line, error.found) == (path, 2, index)
    assert read(tmp_path, on_bad_line="skip").train.Y.toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("index", [-1, -(10**15)])
def test_a_negative_label_without_a_list(index: int, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "x", "labels": [3]}\n' + orjson.dumps({"text": "y", "labels": [4, index]}) + b"\n")
    error = refused_anywhere(lambda: read(path))
    assert "whole number of at least 0" in str(error)
    assert (error.where, error.line, error.found) == (path, 2, index)
    corpus = read(path, on_bad_line="skip")
    assert len(corpus.train) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"text": "y", "labels": ["zz", 4], "weights": [0.5, 2]},
        {"text": "y", "labels": [9, "zz", -1]},
        {"text": "y", "labels": ["zz", None]},
    ],
)
def test_labels_of_a_skipped_line_are_no_labels(bad: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = [{"text": "x", "labels": [10]}, {"text": "z", "labels": [9]}]
    path.write_bytes(b"".join(orjson.dumps(point) + b"\n" for point in (good[0], bad, good[1])))
    corpus = read(path, on_bad_line="skip")
    assert list(corpus.labels.keys) == ["9", "10"]  # nor do they make the others text, sorted as such
    assert corpus.train.Y.toarray().tolist() == [[0, 1], [1, 0]]


def test_a_line_that_is_wrong_twice_is_skipped_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.jsonl"
    good, bad = b'{"text": "x", "labels": ["a"]}\n', b'{"text": "y", "labels": [-1, "a"], "weights": [0.5, 7]}\n'
    path.write_bytes(good + bad + good)
    assert len(read(path, on_bad_line="skip").train) == 2
    assert "skipped 1 bad line(s)" in caplog.text


@pytest.mark.parametrize(
    ("weight", "problem"),
    [
        (b"NaN", "not valid JSON"),  # JSON has neither
        (b"1e-60", "above 0 and at most 1"),  # nothing is left of it in 32 bits
        (b"Infinity", "not valid JSON"),
        (b"1e999", "not valid JSON"),
        (b"0", "above 0 and at most 1"),
        (b"-0.5", "above 0 and at most 1"),
        (b"1.5", "above 0 and at most 1"),
        (b'"1"', "numbers, one for each label"),
        (b"null", "numbers, one for each label"),
    ],
)
def test_bad_weights(weight: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = b'{"text": "x", "labels": ["a", "b"], "weights": [1, 0.5]}\n'
    path.write_bytes(good + good.replace(b"0.5", weight) + good)
    error = refused_anywhere(lambda: read(path))
    assert problem in str(error) and error.where == path and error.line == 2
    assert read(path, on_bad_line="skip").train.Y.toarray().tolist() == [[1, 0.5], [1, 0.5]]


# Paths


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    error = refused_anywhere(lambda: read(tmp_path / "nowhere.csv"))
    assert error.where == tmp_path / "nowhere.csv" and "no such file or folder" in str(error)
    with pytest.raises(DataError, match="no such file or folder"):
        read("debian-realted")


def test_a_folder_of_no_known_format(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hello")
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    error = refused_anywhere(lambda: read(tmp_path))
    assert error.where == tmp_path and error.found == ["notes.md", "photo.jpg"]
    assert "--format" in str(error) and "jsonl" in str(error) and "table" in str(error)
    error = refused_anywhere(lambda: read(tmp_path / "notes.md"))
    assert error.found == b"hello"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused_anywhere(lambda: read(empty)).found == []


@pytest.mark.parametrize("format", ["jsonl", "table", "fasttext", "annif", "huggingface"])
def test_a_forced_format_on_an_empty_folder(format: str, tmp_path: Path) -> None:
    with pytest.raises(LongtailError) as caught:
        read(tmp_path, format=format)
    assert str(tmp_path) in str(caught.value)


def test_names_of_formats_and_choices(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("text,labels\nx,a\n")
    with pytest.raises(ParameterError, match="unknown format 'tabel'. Did you mean 'table'"):
        read(path, format="tabel")
    with pytest.raises(ParameterError, match="on_bad_line must be 'error' or 'skip'; got 'ignore'"):
        read(path, on_bad_line="ignore")  # type: ignore[arg-type]


def test_bad_corpus_json(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,labels\nx,a\n")
    about = tmp_path / "corpus.json"
    for content, problem in [
        ("{", "not valid JSON"),
        ("[]", "one JSON object"),
        ('{"propensity": {"A": -1}}', "'propensity' is invalid"),
        ('{"propensity": {"C": 1}}', "'propensity' must be an object with A and B"),
        ('{"propensity": {"A": "x"}}', "'propensity' is invalid"),
        ('{"group": 3}', "'group' must name a field"),
        ('{"name": 3}', "'name' must be text"),
    ]:
        about.write_text(content)
        error = refused_anywhere(lambda: read(tmp_path))
        assert problem in str(error) and error.where == about, content


# Anything at all


@each
@settings(max_examples=60)
@given(data=st.data())
def test_mutated_files_never_fail_otherwise(
    kind: Kind, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Flipped, dropped and doubled bytes: the result is a corpus or a LongtailError."""
    content = bytearray(kind.content(POINTS))
    for _ in range(data.draw(st.integers(1, 4))):
        at, end = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        change = data.draw(st.sampled_from(["byte", "drop", "double"]))
        if change == "byte":
            content[at : at + 1] = data.draw(
                st.sampled_from([b"\0", b'"', b"\n", b"\r", b"\t", b"\xff", b"<", b"{", b""])
            )
        elif change == "drop":
            del content[at:end]
        else:
            content[at:at] = content[at:end]
    path = kind.write(tmp_path_factory.mktemp("fuzz"), bytes(content))
    for format in (None, kind.format):
        for on_bad_line in ("error", "skip"):
            try:
                corpus = read(path, format=format, on_bad_line=on_bad_line)  # type: ignore[arg-type]
            except LongtailError as error:
                assert "train" in str(error)  # says which file
            else:
                assert len(corpus.train) == len(corpus.train.texts) == corpus.train.Y.shape[0] > 0


@pytest.mark.parametrize("format", ["parquet", "huggingface"])
@settings(max_examples=60)
@given(data=st.data())
def test_mutated_arrow_files(format: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    if format == "parquet":
        file = place = folder / "train.parquet"
        pq.write_table(pa.table({"text": [t for t, _ in POINTS], "labels": [x for _, x in POINTS]}), file)
    else:
        place = folder / "set"
        shutil.copytree(Path(__file__).parent / "fixtures" / "huggingface" / "splits" / "train", place)
        file = place / "data-00000-of-00001.arrow"
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    try:
        corpus = read(place, on_bad_line="skip")
    except LongtailError as error:
        assert str(folder) in str(error)
    else:
        assert len(corpus.train) == corpus.train.Y.shape[0]
