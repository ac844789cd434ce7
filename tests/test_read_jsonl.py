"""JSON lines: every feature, and the native path against the line-by-line one."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longtail import _native
from longtail.core.errors import DataError, LongtailError
from longtail.core.texts import Texts
from longtail.data.read import read


def lines(*objects: Any) -> bytes:
    return b"".join(orjson.dumps(one) + b"\n" for one in objects)


def folder(tmp_path: Path, **files: bytes) -> Path:
    """Writes `train=…` to train.jsonl, and so on."""
    for stem, content in files.items():
        (tmp_path / f"{stem}.jsonl").write_bytes(content)
    return tmp_path


LABELS = lines({"id": 0, "key": "a", "text": "Alpha"}, {"id": 1, "key": "b", "text": "Beta"}, {"id": 2, "key": "c"})


def test_parts_labels_and_about(tmp_path: Path) -> None:
    folder(tmp_path, train=lines({"text": "x", "labels": [1]}), test=lines({"text": "z", "labels": [2, 0]}))
    (tmp_path / "dev.jsonl.gz").write_bytes(gzip.compress(lines({"text": "y", "labels": [0]})))
    (tmp_path / "labels.jsonl.gz").write_bytes(gzip.compress(LABELS))
    (tmp_path / "corpus.json").write_text('{"name": "three", "propensity": {"A": 0.5, "B": 0.4}, "licence": "CC0"}')
    corpus = read(tmp_path)
    assert corpus.name == "three" and corpus.about["licence"] == "CC0"
    assert (corpus.labels.propensity.A, corpus.labels.propensity.B) == (0.5, 0.4)
    assert list(corpus.labels.keys) == ["a", "b", "c"]
    assert list(corpus.labels.texts or []) == ["Alpha", "Beta", ""]
    assert corpus.labels.counts.tolist() == [0, 1, 0] and corpus.labels.points == 1
    assert {part: data.Y.toarray().tolist() for part, data in corpus.parts()} == {
        "train": [[0, 1, 0]],
        "dev": [[1, 0, 0]],
        "test": [[1, 0, 1]],
    }


def test_integers_are_rows_and_strings_are_keys(tmp_path: Path) -> None:
    train = lines(
        {"text": "x", "labels": [0, "b"]}, {"text": "y", "labels": ["c", 1, "a"]}, {"text": "z", "labels": []}
    )
    corpus = read(folder(tmp_path, train=train, labels=LABELS))
    assert corpus.train.Y.toarray().tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 0]]


def test_without_a_list_labels_are_inferred_and_sorted(tmp_path: Path) -> None:
    numbers = lines({"text": "x", "labels": [10, 9]}, {"text": "y", "labels": [100]})
    assert list(read(folder(tmp_path, train=numbers)).labels.keys) == ["9", "10", "100"]
    mixed = lines({"text": "x", "labels": [10, "9"]}, {"text": "y", "labels": [9, "z"]})
    corpus = read(folder(tmp_path, train=mixed))
    assert list(corpus.labels.keys) == ["10", "9", "z"]
    assert corpus.train.Y.toarray().tolist() == [[1, 1, 0], [0, 1, 1]]
    unseen = folder(tmp_path, train=lines({"text": "x", "labels": ["b"]}), test=lines({"text": "y", "labels": ["a"]}))
    corpus = read(unseen)
    assert list(corpus.labels.keys) == ["a", "b"] and corpus.labels.counts.tolist() == [0, 1]


def test_a_list_without_keys_or_texts(tmp_path: Path) -> None:
    train = lines({"text": "x", "labels": [1]})
    corpus = read(folder(tmp_path, train=train, labels=lines({"text": "Alpha"}, {"text": "Beta"})))
    assert list(corpus.labels.keys) == ["0", "1"] and corpus.labels.has_text
    corpus = read(folder(tmp_path, train=train, labels=lines({"key": "a"}, {"key": "b"})))
    assert list(corpus.labels.keys) == ["a", "b"] and not corpus.labels.has_text


@pytest.mark.parametrize(
    ("labels", "line", "problem"),
    [
        (lines({"id": 0, "key": "a"}, {"id": 2, "key": "b"}), 2, "id 2 is on row 1"),
        (lines({"key": "a"}) + b"\n" + lines({"key": 5}), 3, "strings"),
        (lines({"key": "a"}, {"key": "a"}), None, "a key twice"),
        (lines({"key": "a"}) + b"{\n", 2, "not valid JSON"),
        (lines({"key": "a"}, ["b"]), 2, "must contain a JSON object"),
        (b"\n", None, "the label list is empty"),
    ],
)
def test_bad_label_lists(tmp_path: Path, labels: bytes, line: int | None, problem: str) -> None:
    folder(tmp_path, train=lines({"text": "x", "labels": ["a"]}), labels=labels)
    with pytest.raises(DataError, match=problem) as caught:
        read(tmp_path, on_bad_line="skip")  # a bad label is never skipped: rows count
    assert caught.value.where == tmp_path / "labels.jsonl" and caught.value.line == line


def test_weights(tmp_path: Path) -> None:
    train = lines({"text": "x", "labels": ["b", "a"], "weights": [0.25, 1]}, {"text": "y", "labels": [], "weights": []})
    assert read(folder(tmp_path, train=train)).train.Y.toarray().tolist() == [[1, 0.25], [0, 0]]
    some = train + lines({"text": "z", "labels": ["a"]}, {"text": "w", "labels": ["a"], "weights": None})
    assert read(folder(tmp_path, train=some)).train.Y.toarray().tolist() == [[1, 0.25], [0, 0], [1, 0], [1, 0]]


@pytest.mark.parametrize("weights", [[1], [1, 1, 1], "1", [1, "1"], [1, True], {"a": 1}, [0.5, None]])
def test_weights_of_the_wrong_form(tmp_path: Path, weights: Any) -> None:
    train = lines({"text": "x", "labels": [0]}, {"text": "x", "labels": [0, 1], "weights": weights})
    with pytest.raises(DataError, match="must be a list of 2 numbers") as caught:
        read(folder(tmp_path, train=train))
    assert caught.value.line == 2 and caught.value.found == weights


def test_groups_and_other_fields(tmp_path: Path) -> None:
    train = lines(
        {"title": "T", "body": "B", "tags": ["a"], "src": "s"}, {"title": "U", "body": "", "tags": [], "src": "t"}
    )
    corpus = read(folder(tmp_path, train=train), text="title,body", labels="tags", group_by="src")
    assert list(corpus.train.texts) == ["T B", "U"] and list(corpus.train.groups or []) == ["s", "t"]
    (tmp_path / "corpus.json").write_text('{"group": "src"}')
    assert list(read(tmp_path, text="body", labels="tags").train.groups or []) == ["s", "t"]
    numbers = lines({"text": "T", "labels": ["a"], "src": 7})  # numbers are keys too
    assert list(read(folder(tmp_path, train=numbers)).train.groups or []) == ["7"]


def test_null_is_no_group(tmp_path: Path) -> None:
    train = lines(*({"text": f"t{i}", "labels": ["a"], "src": src} for i, src in enumerate(["s", None, 3, None, "s"])))
    groups = read(folder(tmp_path, train=train), group_by="src").train.groups
    assert list(groups or []) == ["s", "", "3", "", "s"]


@pytest.mark.parametrize("stem", ["dev", "valid", "validation", "val"])
def test_a_validation_part_is_found_by_its_usual_names(tmp_path: Path, stem: str) -> None:
    folder(tmp_path, train=lines({"text": "x", "labels": ["a"]}), **{stem: lines({"text": "y", "labels": ["b"]})})
    corpus = read(tmp_path)
    assert corpus.dev is not None and list(corpus.dev.texts) == ["y"]


COMMA = """
import locale, sys
from longtail.data.read import read
locale.setlocale(locale.LC_NUMERIC, sys.argv[2])
assert locale.localeconv()["decimal_point"] == ","
print(read(sys.argv[1]).train.Y.toarray().tolist())
"""


def test_numbers_do_not_depend_on_the_locale(tmp_path: Path) -> None:
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "comma")], capture_output=True, check=False
    ) if shutil.which("localedef") else None  # fmt: skip
    if made is None or made.returncode:
        pytest.skip("no locale with a decimal comma can be made here")
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "x", "labels": ["a", "b"], "weights": [0.25, 5e-1], "more": 1.5e3}\n')
    environment = os.environ | {"LOCPATH": str(tmp_path)}
    arguments = [sys.executable, "-c", COMMA, str(path), "comma"]
    found = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False)
    assert found.stdout.strip() == "[[0.25, 0.5]]", found.stderr


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)


@given(st.lists(NUMBERS, min_size=1, max_size=10))
def test_numbers_are_read_as_the_nearest_double(texts: list[str]) -> None:
    finite = [text for text in texts if math.isfinite(float(text))]
    found = _native.json_columns(f'{{"n": [{", ".join(finite)}]}}\n'.encode(), numbers=["n"])
    assert found is not None and found.numbers[0][1].tolist() == [float(text) for text in finite]
    if len(finite) < len(texts):  # too large for a double: the full parser refuses them
        assert _native.json_columns(f'{{"n": [{", ".join(texts)}]}}\n'.encode(), numbers=["n"]) is None


def test_label_strings_are_cut_when_asked(tmp_path: Path) -> None:
    folder(tmp_path, train=lines({"text": "x", "labels": "b; a;;"}))
    with pytest.raises(DataError, match="--label-sep"):
        read(tmp_path)
    assert list(read(tmp_path, label_sep=";").labels.keys) == ["a", "b"]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b'{"text": "x"}', "'labels' is missing"),
        (b'{"labels": ["a"]}', "'text' is missing"),
        (b'{"text": 5, "labels": ["a"]}', "'text' must be text"),
        (b'{"text": "x", "labels": 5}', "must be a list"),
        (b'{"text": "x", "labels": [1.5]}', "whole number"),
        (b'{"text": "x", "labels": [null]}', "whole number"),
        (b'{"text": "x", "labels": [true]}', "whole number"),
        (b'{"text": "x", "labels": [["a"]]}', "whole number"),
        (b'{"text": "x", "labels": ["a"]', "not valid JSON"),
        (b'{"text": "x", "labels": ["a"]} {}', "not valid JSON"),
        (b'{"text": "\\ud800", "labels": ["a"]}', "not valid JSON"),
        (b"[1]", "must contain a JSON object"),
        (b'{"text": "x", "labels": ["a"], "weights": [NaN]}', "not valid JSON"),
        (b'{"text": "x", "labels": ["a"], "more": 1e999}', "not valid JSON"),
    ],
)
def test_bad_lines_are_named_or_skipped(tmp_path: Path, bad: bytes, problem: str) -> None:
    good = lines({"text": "x", "labels": ["a"]})
    folder(tmp_path, train=good + b"\n" + bad + b"\n" + good)
    with pytest.raises(DataError, match=problem) as caught:
        read(tmp_path)
    assert caught.value.where == tmp_path / "train.jsonl" and caught.value.line == 3
    assert len(read(tmp_path, on_bad_line="skip").train) == 2


def test_filter_pairs_with_skipped_and_blank_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = [{"text": f"point {i}", "labels": [i % 3]} for i in range(30)]
    rows = [orjson.dumps(one) for one in good]
    rows[4] = b'{"text": "no labels"}'
    rows[17] = b"{broken"
    rows[23] = orjson.dumps({"text": "x", "labels": [99]})  # refused by the builder, not by the parser
    # blank lines of every kind, before, between and after
    content = b"\n\n" + b"\n \n".join(rows[:10]) + b"\n" + b"\r\n".join(rows[10:]) + b"\n\n"
    folder(tmp_path, train=content, labels=LABELS)
    (tmp_path / "filter_labels_train.txt").write_text("".join(f"{i} {(i + 1) % 3}\n" for i in range(30)))
    kept = [i for i in range(30) if i not in (4, 17, 23)]
    for chunk in (1 << 20, 1000, 64, 7):
        monkeypatch.setattr("longtail.data.parse.lines.CHUNK", chunk)
        train = read(tmp_path, on_bad_line="skip").train
        assert list(train.texts) == [f"point {i}" for i in kept]
        assert train.ignore is not None
        assert train.ignore.nonzero()[0].tolist() == list(range(27))
        assert train.ignore.nonzero()[1].tolist() == [(i + 1) % 3 for i in kept]


@pytest.mark.parametrize(
    ("pairs", "line", "found"),
    [
        ("0 0\n2 0\n", 2, (2, 0)),
        ("0 0\n\n0 3\n", 3, (0, 3)),
        ("-1 0\n", 1, (-1, 0)),
        ("0 0\n01 -2\n", 2, (1, -2)),
        ("0 0\n1\n", 2, b"1"),
        ("0 0\n0 1 2\n", 2, b"0 1 2"),
        ("0 x\n", 1, b"0 x"),
        ("0 1_0\n", 1, b"0 1_0"),
        ("0 99999999999999999999\n", 1, b"0 99999999999999999999"),
    ],
)
def test_bad_filter_pairs(tmp_path: Path, pairs: str, line: int, found: Any, caplog: pytest.LogCaptureFixture) -> None:
    point = lines({"text": "x", "labels": [0]})
    folder(tmp_path, train=point + point, labels=LABELS)
    path = tmp_path / "filter_labels_train.txt"
    path.write_text(pairs)
    with pytest.raises(DataError, match="filter") as caught:
        read(tmp_path)
    assert (caught.value.where, caught.value.line, caught.value.found) == (path, line, found)
    path.write_text(pairs + pairs + "1 2\n")
    ignore = read(tmp_path, on_bad_line="skip").train.ignore
    assert ignore is not None and ignore[1, 2]
    assert "skipped 2 bad line(s)" in caplog.text


def test_one_file_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "export"
    path.write_bytes(b"\xef\xbb\xbf \n" + lines({"text": "x", "labels": ["a"]}))
    assert len(read(path).train) == 1


# The native reader against orjson

NAMES = {"strings": ["text", "käse"], "values": ["labels"], "numbers": ["weights"], "integers": ["id"]}


def reference(block: bytes) -> list[tuple[Any, ...]] | None:
    """What `json_columns` must find, computed with orjson; None if it must not answer."""
    rows = []
    for number, line in enumerate(block.split(b"\n")):
        if not line.strip(b" \t\r"):
            continue
        try:
            point = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(point, dict):
            return None
        row: list[Any] = [number]
        for name in NAMES["strings"]:
            if not isinstance(point.get(name, ""), str):
                return None
            row.append(point.get(name))
        labels, weights, place = point.get("labels", []), point.get("weights", []), point.get("id", 0)
        if not isinstance(labels, list) or not all(type(v) in (int, str) for v in labels):
            return None
        if not isinstance(weights, list) or not all(type(v) in (int, float) for v in weights):
            return None
        if type(place) is not int or any(type(v) is int and abs(v) >= 2**63 for v in (*labels, place)):
            return None
        rows.append((*row, point.get("labels"), point.get("weights"), point.get("id")))
    return rows


def found(block: bytes) -> list[tuple[Any, ...]] | None:
    """What `json_columns` finds, in the same form."""
    columns = _native.json_columns(block, **NAMES)  # type: ignore[arg-type]
    if columns is None:
        return None
    n = len(columns.lines)
    strings = []
    for data, sizes in columns.strings:
        texts = Texts.from_utf8(data, np.maximum(sizes, 0))
        strings.append([None if size < 0 else text for text, size in zip(texts, sizes, strict=True)])
    lengths, is_string, integers, data, sizes = columns.values[0]
    names, numbers = iter(Texts.from_utf8(data, sizes)), iter(integers.tolist())
    flat = iter([next(names) if text else next(numbers) for text in is_string])
    labels = [None if size < 0 else [next(flat) for _ in range(size)] for size in lengths]
    assert next(flat, None) is None
    weight_lengths, all_weights = columns.numbers[0]
    weights = iter(all_weights.tolist())
    rows = [None if size < 0 else [next(weights) for _ in range(size)] for size in weight_lengths]
    assert next(weights, None) is None
    ids = [None if i == np.iinfo(np.int64).min else i for i in columns.integers[0].tolist()]
    assert all(len(column) == n for column in (*strings, labels, rows, ids))
    return list(zip(columns.lines.tolist(), *strings, labels, rows, ids, strict=True))


def check(block: bytes) -> bool:
    """Native and reference agree, or native leaves it to the full parser; returns whether it answered."""
    answer = found(block)
    if answer is not None:
        assert answer == reference(block)
    return answer is not None


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
INTEGERS = st.integers(-(2**64), 2**64) | st.integers(-100, 100)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "text": TEXT,
        "käse": TEXT,
        "labels": st.lists(st.integers(-5, 2**63 - 1) | TEXT, max_size=4),
        "weights": st.lists(FLOATS | st.integers(0, 2), max_size=4),
        "id": st.integers(-(2**63) + 1, 2**63 - 1),
        "more": JSON,
        "Labels": JSON,
    },
)
ODD = st.dictionaries(st.sampled_from(["text", "labels", "weights", "id", "käse", ""]) | TEXT, JSON, max_size=4)


def dump(value: Any, how: str) -> bytes:
    if how == "orjson":
        return orjson.dumps(value)
    return json.dumps(
        value, ensure_ascii=how == "ascii", separators=None if how == "ascii" else (" , ", "\t: ")
    ).encode()


HOW = st.sampled_from(["orjson", "ascii", "blanks"])


@settings(max_examples=300)
@given(st.lists(st.tuples(PLAIN, HOW, st.sampled_from(["\n", "\r\n", "\n\n", " \n\t\n"])), max_size=6))
def test_plain_objects_are_read_natively_as_orjson_reads_them(rows: list[tuple[dict[str, Any], str, str]]) -> None:
    assert check(b"".join(dump(row, how) + end.encode() for row, how, end in rows))


@settings(max_examples=300)
@given(st.lists(st.tuples(PLAIN | ODD, HOW), max_size=4), st.lists(INTEGERS, max_size=3))
def test_odd_objects_are_read_right_or_left_to_the_parser(rows: list[tuple[Any, str]], numbers: list[int]) -> None:
    check(b"".join(dump(row, how) + b"\n" for row, how in rows) + json.dumps({"labels": numbers}).encode())


@settings(max_examples=500)
@given(st.lists(st.tuples(PLAIN, HOW), min_size=1, max_size=3), st.data())
def test_mutated_bytes_never_crash_nor_lie(rows: list[tuple[dict[str, Any], str]], data: st.DataObject) -> None:
    block = bytearray(b"".join(dump(row, how) + b"\n" for row, how in rows))
    for _ in range(data.draw(st.integers(1, 3))):
        if block:
            block[data.draw(st.integers(0, len(block) - 1))] = data.draw(
                st.integers(0, 255) | st.sampled_from(b'"\\{}[],:0e.-')
            )
    check(bytes(block))
    check(bytes(block[: data.draw(st.integers(0, len(block)))]))


@example(b"")
@example(b"{")
@example(b'{"text":"\\')
@example(b'{"text":"\\u12')
@example(b'{"text":"\\ud83d\\u')
@given(st.binary(max_size=40))
def test_random_bytes(block: bytes) -> None:
    check(block)


@pytest.mark.parametrize(
    ("line", "answered"),
    [
        (b'{"text": "\\u00e9\\ud83c\\udf45\\/\\b\\f\\n\\r\\t\\"\\\\"}', True),
        (b'{"te\\u0078t": "x"}', True),  # an escape in a key
        (b'{"text": "\\ud83c"}', False),
        (b'{"text": "\\udf45\\ud83c"}', False),
        (b'{"text": "\\ud83cx"}', False),
        (b'{"text": "\\x41"}', False),
        (b'{"text": "a\tb"}', False),
        (b'{"text": "a", "text": "b"}', False),
        (b'{"more": 1, "more": 2, "text": "b"}', True),
        (b'{"labels": [1], "labels": [2]}', False),
        (b'{"labels": [01]}', False),
        (b'{"labels": [-0, 9223372036854775807, -9223372036854775807]}', True),
        (b'{"labels": [9223372036854775808]}', False),
        (b'{"labels": [1.0]}', False),
        (b'{"labels": [1e2]}', False),
        (b'{"labels": [1,]}', False),
        (b'{"labels": null}', False),
        (b'{"weights": [1e-400, -0.0, 5, 1E+2]}', True),
        (b'{"weights": [1e999]}', False),
        (b'{"more": -1e999}', False),
        (b'{"more": ' + b"9" * 400 + b"}", False),
        (b'{"more": ' + b"[" * 150 + b"]" * 150 + b"}", True),
        (b'{"more": ' + b"[" * 100_000, False),
        (b'{"more": ' + b'{"a":' * 100_000, False),
        (b'{"text": "\xc0\x80"}', False),
        (b'{"text": "\xed\xa0\x80"}', False),
        (b'{"text": "\xf4\x90\x80\x80"}', False),
        (b'{"text": "\xff"}', False),
        (b'\xef\xbb\xbf{"text": "x"}', False),
        (b'{"text": "x"}}', False),
        (b'{"text": "x"} {"text": "y"}', False),
        (b'{"text": "x" "labels": []}', False),
        (b"{'text': 'x'}", False),
        (b'{"text": tru}', False),
        (b'{"more": nul', False),
        (b"null", False),
    ],
)
def test_native_reader_on_edges(line: bytes, answered: bool) -> None:
    assert check(line + b"\n") is answered
    assert check(b'{"text": "before"}\n' + line) is answered


POINT = st.fixed_dictionaries(
    {},
    optional={
        "text": TEXT | st.just(5),
        "labels": st.lists(st.integers(-1, 3) | st.sampled_from(["a", "b", "q"]), max_size=3) | st.just("a"),
        "weights": st.lists(st.sampled_from([1, 0.5, 0, 2, "x"]), max_size=3) | st.none(),
        "src": TEXT | st.integers(0, 3),
        "more": JSON,
    },
)
GOOD = st.fixed_dictionaries(
    {"text": TEXT, "labels": st.lists(st.sampled_from([0, 1, 2, "a", "b"]), max_size=3), "src": TEXT}
)


@settings(max_examples=200)
@given(
    st.lists(POINT | GOOD | GOOD | st.just("blank") | st.just("broken"), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from(["error", "skip"]),
    st.sampled_from([None, "src"]),
)
def test_both_paths_give_the_same_corpus_or_the_same_error(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], listed: bool, on_bad_line: Any, group: str | None
) -> None:
    where = tmp_path_factory.mktemp("paths")
    special = {"blank": b"", "broken": b'{"text": '}
    content = b"".join((special[row] if isinstance(row, str) else orjson.dumps(row)) + b"\n" for row in rows)
    folder(where, train=content, **({"labels": LABELS} if listed else {}))

    def outcome() -> Any:
        try:
            corpus = read(where, on_bad_line=on_bad_line, group_by=group)
            return corpus.digest, list(corpus.labels.keys), corpus.train.Y.toarray().tolist()
        except LongtailError as error:
            return str(error)

    native = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "json_columns", lambda *_, **__: None)
        assert outcome() == native
