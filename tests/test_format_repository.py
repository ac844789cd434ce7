"""The layouts of the Extreme Classification Repository as they are on disk; and how bad input is handled."""

import gzip
import logging
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import orjson
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail import _native
from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Propensity
from longtail.data.formats import repository
from longtail.data.options import ReadOptions
from longtail.data.parse import sparse_text
from longtail.data.parse.labelspace import decimal_keys
from longtail.data.parse.text_lines import read_list, read_texts
from longtail.data.read import detect, read


def files(folder, **contents):
    """Write files into a folder; `a__b` is `a.b`, and `gz` at the end packs."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        name = name.replace("__", ".")
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def json_lines(*objects):
    return b"".join(orjson.dumps(o) + b"\n" for o in objects)


def refused(path, problem, *, name=None, line=None, found=None, **options):
    """The DataError that reading raises, checked for file, line and the value found."""
    with pytest.raises(DataError) as caught:
        read(path, **options)
    error = caught.value
    assert problem in error.problem, error
    if name is not None:
        assert error.where.name == name
    assert error.line == line, error
    assert error.found == found, error
    return error


# --- points: one file a part --------------------------------------------------------------------------------------

TRAIN = "3 5 4\n0,2 0:0.5 3:1.25\n 1:2\n3 0:1 4:0.125\n"
TEST = "1 5 4\n1 2:3\n"


def dense(matrix):
    return matrix.toarray().tolist()


@pytest.mark.parametrize("names", [("train", "test"), ("eurlex_train", "eurlex_test"), ("amazonCat-14K_train",) * 2])
def test_points(tmp_path, names):
    train, test = names[0], names[1].replace("_train", "_test")
    folder = files(tmp_path / "data", **{f"{train}__txt": TRAIN, f"{test}__txt": TEST})
    assert detect(folder).name == "repository"
    corpus = read(folder)
    assert corpus.name == "data" and not corpus.train.has_text and corpus.train.features.dtype == np.float32
    assert dense(corpus.train.features) == [[0.5, 0, 0, 1.25, 0], [0, 2, 0, 0, 0], [1, 0, 0, 0, 0.125]]
    assert dense(corpus.train.Y) == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert dense(corpus.test.Y) == [[0, 1, 0, 0]] and corpus.dev is None
    assert list(corpus.labels.keys) == ["0", "1", "2", "3"] and not corpus.labels.has_text
    assert corpus.labels.counts.tolist() == [1, 0, 1, 1] and corpus.labels.points == 3


def test_points_with_all_that_may_lie_beside(tmp_path):
    folder = files(
        tmp_path / "LF",
        train__txt__gz=TRAIN,
        validation__txt=TEST,
        test__txt=TEST,
        lbl__json__gz=json_lines(*({"uid": f"B{i}", "title": f"t{i}", "target_ind": []} for i in range(4))),
        filter_labels_train__txt="0 1\n2 3\n",
        filter_labels_test__txt="",
        corpus__json=b'{"name": "LF-X", "propensity": {"A": 0.6, "B": 2.6}}',
    )
    corpus = read(folder)
    assert corpus.name == "LF-X" and corpus.labels.propensity == Propensity(0.6, 2.6)
    assert list(corpus.labels.keys) == ["B0", "B1", "B2", "B3"] and list(corpus.labels.texts) == [
        "t0",
        "t1",
        "t2",
        "t3",
    ]
    assert dense(corpus.train.ignore) == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert corpus.test.ignore.nnz == 0 and corpus.dev.ignore is None and len(corpus.dev) == 1


def test_one_file_is_a_corpus(tmp_path):
    path = files(tmp_path, Bibtex_data__txt=TRAIN) / "Bibtex_data.txt"
    assert detect(path).name == "repository"
    assert len(read(path).train) == 3 and read(path).test is None and read(path).name == "Bibtex_data"


def test_one_file_with_splits(tmp_path):
    folder = files(
        tmp_path / "Bibtex",
        Bibtex_data__txt=TRAIN,
        bibtex_trSplit__txt="3 1\n1 2\n",  # the second column is another split
        bibtex_tstSplit__txt="2 3\n",
    )
    corpus = read(folder)
    assert dense(corpus.train.Y) == [[0, 0, 0, 1], [1, 0, 1, 0]] and dense(corpus.test.features) == [[0, 2, 0, 0, 0]]
    (folder / "bibtex_tstSplit.txt").write_text("2\n4\n")
    refused(folder, "a split must list points from 1 to 3", name="bibtex_tstSplit.txt", line=2, found=b"4")


def test_byte_order_mark_crlf_tabs_and_blanks(tmp_path):
    odd = b"\xef\xbb\xbf" + TRAIN.replace(" 3:", " \t  3:").replace("\n", " \r\n").encode() + b"\r\n\n"
    plain, crlf = files(tmp_path / "a", train__txt=TRAIN), files(tmp_path / "b", train__txt=odd)
    assert read(plain).train.digest() == read(crlf).train.digest()
    assert detect(crlf).name == "repository"


def test_rows_without_labels_or_features(tmp_path):
    folder = files(tmp_path / "a", train__txt="5 3 2\n0\n\n 1:1\n1:2 2:1\n \n")
    corpus = read(folder)
    assert dense(corpus.train.Y) == [[1, 0], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert dense(corpus.train.features) == [[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 2, 1], [0, 0, 0]]


BAD_ROWS = [
    ("0,4 0:1", "a label index is outside 0 … 3", "4"),
    ("0,-1 0:1", "a label index is outside 0 … 3", "-1"),
    ("0,99999999999999999999 0:1", "a label index is outside 0 … 3", "99999999999999999999"),
    ("a,1 0:1", "a label index must be a whole number", "a"),
    ("1.5 0:1", "a label index must be a whole number", "1.5"),
    ("0,,1 0:1", "a label index must be a whole number", ""),
    ("0, 0:1", "a label index must be a whole number", "0,"),
    ("0 5:1", "a feature index is outside 0 … 4", "5:1"),
    ("0 -1:1", "a feature index is outside 0 … 4", "-1:1"),
    ("0 x:1", "a feature index must be a whole number", "x:1"),
    ("0 :1", "a feature index must be a whole number", ":1"),
    ("0 1", "a feature has no value", "1"),
    ("0 1:", "a feature has no value", "1:"),
    ("0 1:x", "the value of a feature is not a number", "1:x"),
    ("0 1:-", "the value of a feature is not a number", "1:-"),
    ("0 1:.", "the value of a feature is not a number", "1:."),
    ("0 1:nan", "the value of a feature is not finite", "1:nan"),
    ("0 1:-Inf", "the value of a feature is not finite", "1:-Inf"),
    ("0 1:infinity", "the value of a feature is not finite", "1:infinity"),
    ("0 1:1e39", "the value of a feature is not finite", "1:1e39"),
    ("0 1:3e38 1:3e38", "the value of a feature is not finite", "0 1:3e38 1:3e38"),
    ("0 1:1.5abc", "there is extra text after the value of a feature", "1:1.5abc"),
    ("0 1:1:2", "there is extra text after the value of a feature", "1:1:2"),
    ("0 1:1e", "there is extra text after the value of a feature", "1:1e"),
    ("0 1:1 \x00", "a feature index must be a whole number", "\x00"),
    ("0 1:1 é:1", "a feature index must be a whole number", "é:1"),
]


@pytest.mark.parametrize("row, problem, found", BAD_ROWS)
def test_bad_rows(tmp_path, caplog, row, problem, found):
    folder = files(tmp_path / "a", train__txt=f"3 5 4\n0 0:1\n{row}\n3 4:1\n", filter_labels_train__txt="1 0\n2 2\n")
    refused(folder, problem, name="train.txt", line=3, found=found, format="repository")
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder, format="repository", on_bad_line="skip")
    assert "skipped 1 bad line(s)" in caplog.text and "train.txt, line 3" in caplog.text
    assert dense(corpus.train.Y) == [[1, 0, 0, 0], [0, 0, 0, 1]]
    assert dense(corpus.train.features) == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert dense(corpus.train.ignore) == [[0, 0, 0, 0], [0, 0, 1, 0]]  # pairs count the rows of the file
    assert corpus.labels.points == 2


def test_all_rows_bad(tmp_path):
    folder = files(tmp_path / "a", train__txt="2 5 4\n9 0:1\n9 0:1\n")
    with pytest.raises(DataError, match=r"all 2 points were skipped; the first: .*train.txt, line 2"):
        read(folder, on_bad_line="skip")


@pytest.mark.parametrize("mode", ["error", "skip"])
@pytest.mark.parametrize(
    "text, problem, found",
    [
        ("4 5 4\n" + TRAIN[6:], "the header says 4 points, but the file has 3 rows", None),
        ("2 5 4\n" + TRAIN[6:], "the header says 2 points, but the file has 3 rows", None),
        ("3 5\n" + TRAIN[6:], "the first line must contain 3 whole numbers (points, features, labels)", b"3 5"),
        (TRAIN[6:], "the first line must contain 3 whole numbers", b"0,2 0:0.5 3:1.25"),
        ("3 5 -4\n" + TRAIN[6:], "the first line must contain 3 whole numbers", b"3 5 -4"),
        ("0 5 4\n", "the header says that there are no points", b"0 5 4"),
        ("1 5 4000000000\n\n", "the header counts more than 2,147,483,646 features or labels", b"1 5 4000000000"),
        ("1 5 0\n 1:1\n", "the header says that there are no labels", None),
    ],
)
def test_wrong_headers(tmp_path, text, problem, found, mode):
    folder = files(tmp_path / "a", train__txt=text)
    path = folder / "train.txt"  # a folder is only read as points if its header is whole
    refused(path, problem, name="train.txt", line=1, found=found, format="repository", on_bad_line=mode)


def test_too_many_rows_over_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.data.parse.lines.CHUNK", 16)
    folder = files(tmp_path / "a", train__txt="5 5 4\n" + "1 2:1\n" * 20 + "\n" * 7)
    refused(folder, "the header says 5 points, but the file has 2", line=1)
    folder = files(tmp_path / "a", train__txt="20 5 4\n" + "1 2:1\n" * 20 + "\n \r\n" * 7)
    assert len(read(folder).train) == 20


def test_blank_rows_at_the_end_are_rows_up_to_the_header_s_count(tmp_path):
    folder = files(tmp_path / "a", train__txt="3 2 2\n0 1:1\n\n\n\n \n")
    assert dense(read(folder).train.Y) == [[1, 0], [0, 0], [0, 0]]


def test_bad_rows_over_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.data.parse.lines.CHUNK", 20)
    rows = [f"{i % 4} {i % 5}:{i + 1}" for i in range(30)]
    rows[13] = rows[22] = "9 0:1"
    folder = files(tmp_path / "a", train__txt="30 5 4\n" + "\n".join(rows) + "\n")
    refused(folder, "a label index is outside 0 … 3", name="train.txt", line=15, found="9")
    data = read(folder, on_bad_line="skip").train
    kept = [i for i in range(30) if i not in (13, 22)]
    assert data.Y.indices.tolist() == [i % 4 for i in kept] and data.features.data.tolist() == [i + 1 for i in kept]


def test_empty_file(tmp_path):
    path = files(tmp_path / "a", train__txt="") / "train.txt"
    refused(path, "the file is empty", name="train.txt", format="repository")


def test_truncated_gzip(tmp_path):
    folder = files(tmp_path / "a")
    whole = gzip.compress(("500 5 4\n" + "".join(f"1 2:{i}.{i * 7919}\n" for i in range(500))).encode())
    (folder / "train.txt.gz").write_bytes(whole[:-200])
    with pytest.raises(DataError, match="gzip file ends before its end mark") as caught:
        read(folder, format="repository")
    assert caught.value.where.name == "train.txt.gz" and caught.value.line > 0


def test_repeated_labels_and_features_are_merged_and_said(tmp_path, caplog):
    folder = files(tmp_path / "a", train__txt="2 5 4\n1 0:1\n3,1,3,3 2:0.5 0:1 2:0.25 2:0.25\n")
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder)
    assert dense(corpus.train.Y)[1] == [0, 1, 0, 1] and dense(corpus.train.features)[1] == [1, 0, 1, 0, 0]
    assert (
        "a label was repeated in one line and is counted once: 2 time(s), the first in train.txt, line 3" in caplog.text
    )
    assert "a feature was repeated in one line and its values are added up: 2 time(s)" in caplog.text
    assert corpus.train.Y.has_sorted_indices and corpus.train.features.indices.tolist() == [0, 0, 2]


def test_parts_that_do_not_fit(tmp_path):
    folder = files(tmp_path / "a", train__txt=TRAIN, test__txt=TEST.replace("1 5 4", "1 6 4"))
    refused(folder, "train.txt counts 5 features, but test.txt counts 6")
    folder = files(tmp_path / "b", train__txt=TRAIN, test__txt=TEST.replace("1 5 4", "1 5 5"))
    refused(folder, "train.txt counts 4 labels, but test.txt counts 5")
    folder = files(tmp_path / "c", train__txt=TRAIN, lbl__json=json_lines({"uid": "a"}))
    refused(folder, "the label list has 1 labels, but train.txt counts 4")


def test_a_megabyte_on_one_line_and_rows_across_blocks(tmp_path):
    long = " ".join(f"{i}:0.5" for i in range(150_000))
    folder = files(tmp_path / "a", train__txt=f"3 150000 2\n0 1:1\n1 {long}\n0 2:1\n")
    corpus = read(folder)
    assert corpus.train.features.indptr.tolist() == [0, 1, 150_001, 150_002]
    assert dense(corpus.train.Y) == [[1, 0], [0, 1], [1, 0]]


def test_memory_stays_near_the_result(tmp_path):
    rows = "".join(f"{i % 7} " + " ".join(f"{j}:0.{j + i}" for j in range(100)) + "\n" for i in range(20_000))
    folder = files(tmp_path / "a", train__txt=f"20000 200 7\n{rows}")
    del rows
    tracemalloc.start()
    corpus = read(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    X, Y = corpus.train.features, corpus.train.Y
    size = sum(a.nbytes for m in (X, Y) for a in (m.data, m.indices, m.indptr))
    assert peak < 1.4 * size + 16 * 2**20


# --- the native parser against the definition ---------------------------------------------------------------------


def nearest_float32(text: str) -> float | None:
    """The float32 nearest to a decimal, ties to even, by exact fractions; None where it is infinite."""
    value = Fraction(text)
    if abs(value) >= Fraction(2**128 - 2**103):
        return None
    with np.errstate(over="ignore"):
        near = np.float32(float(value))
        around = [np.nextafter(near, np.float32(s), dtype=np.float32) for s in (-np.inf, np.inf)]
    finite = [f for f in (near, *around) if np.isfinite(f)]
    return float(min(finite, key=lambda f: (abs(Fraction(float(f)) - value), int(f.view(np.uint32)) & 1)))


def half_way(m: int, e: int, more: str) -> str:
    """The number half-way between two float32 values, or slightly above it: too little for a double to see."""
    exact = format(Decimal((2 * m + 1) * 2.0**e), "f")
    return f"{exact if '.' in exact else exact + '.0'}00000000000000000000{more}"


decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"[+-]?[0-9]{0,25}\.[0-9]{1,25}([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,22}(e-?[0-9]{1,2})?", fullmatch=True),
    st.builds(half_way, st.integers(2**23, 2**24 - 1), st.integers(-40, 40), st.sampled_from(["", "0", "1"])),
)


@given(st.lists(decimals, min_size=1, max_size=20))
def test_numbers_are_read_as_the_nearest_float32(texts):
    block = "".join(f"7:{text}\n" for text in texts).encode()
    rows = _native.sparse_rows(block, 8)
    expected = [nearest_float32(text) for text in texts]
    values = iter(rows.values.tolist())
    bad = {row: reason for row, reason, _, _ in rows.bad.tolist()}
    assert [None if row in bad else next(values) for row in range(len(texts))] == expected
    assert set(bad.values()) <= {sparse_text.NOT_FINITE}


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=30))
def test_what_is_written_is_read_back_bit_for_bit(values):
    data = np.array(values, np.float32)
    matrix = sp.csr_matrix((data, np.arange(len(data)), np.array([0, len(data)])), shape=(1, 40))
    rows = _native.sparse_rows(_native.sparse_lines(matrix, 0, 1), 40)
    assert not len(rows.bad) and rows.values.view(np.uint32).tolist() == data.view(np.uint32).tolist()


D, L = 6, 4
tokens = st.one_of(
    st.tuples(st.integers(-1, D + 1), st.sampled_from(["0.5", "1", "-2e0", "", "x", "nan", "1e99", "0"])).map(
        lambda t: f"{t[0]}:{t[1]}"
    ),
    st.tuples(st.integers(0, D - 1), st.sampled_from(["0.5", "1", "2", "0.25"])).map(lambda t: f"{t[0]}:{t[1]}"),
    st.sampled_from(["3", "a", ":", "1:1:1", "-"]),
)
label_lists = st.one_of(
    st.lists(st.integers(0, L - 1), max_size=4).map(lambda v: ",".join(map(str, v))),
    st.lists(st.integers(-1, L), max_size=3).map(lambda v: ",".join(map(str, v))),
    st.sampled_from(["x", "1,", ",", "1.0"]),
)


def literal_row(line: str) -> tuple[list[int], dict[int, float]] | None:
    """One row by the definition, slowly; None if it is bad."""
    head, _, rest = line.partition(" ")
    if ":" in head:
        head, rest = "", line
    try:
        labels = [int(word) for word in head.split(",")] if head else []
        pairs: dict[int, float] = {}
        for token in rest.split():
            index, value = token.split(":")
            if not index.isdigit() or not 0 <= int(index) < D or not value:
                return None
            if not np.isfinite(float(value)) or abs(float(value)) > 3e38:
                return None
            pairs[int(index)] = pairs.get(int(index), 0) + float(value)
    except ValueError:
        return None
    return (sorted(set(labels)), pairs) if all(0 <= label < L for label in labels) else None


@given(
    st.lists(st.tuples(label_lists, st.lists(tokens, max_size=4)), max_size=8), st.sampled_from(["\n", "\r\n", " \n"])
)
def test_rows_against_the_definition(rows, end):
    lines = [" ".join([labels, *pairs]) if pairs else labels for labels, pairs in rows]
    found = _native.sparse_rows("".join(line + end for line in lines).encode(), D, labels=L)
    bad = set(found.bad[:, 0].tolist())
    cuts, label_cuts = np.cumsum([0, *found.lengths]), np.cumsum([0, *found.label_lengths])
    assert len(found.lengths) == len(lines)
    for i, line in enumerate(lines):
        expected = literal_row(line)
        assert (expected is None) == (i in bad), line
        inside, labels = slice(cuts[i], cuts[i + 1]), slice(label_cuts[i], label_cuts[i + 1])
        got = dict(zip(found.indices[inside].tolist(), found.values[inside].tolist(), strict=True))
        assert (found.label_indices[labels].tolist(), got) == (expected or ([], {})), line


# --- matrices: labels here, texts or features there ---------------------------------------------------------------

WEIGHTS = "3 2\n0:1.0 1:0.5\n\n1:1.00000\n"
FEATURES = "3 4\n0:1 3:2\n1:1\n\n"


def test_matrices_with_features(tmp_path):
    folder = files(
        tmp_path / "AmazonTitles",
        trn_X_Y__txt=WEIGHTS,
        trn_X_Xf__txt=FEATURES,
        tst_X_Y__txt="1 2\n0:1\n",
        tst_X_Xf__txt="1 4\n2:0.5\n",
        filter_labels_test__txt="0 0\n",
    )
    assert detect(folder).name == "repository"
    corpus = read(folder)
    assert dense(corpus.train.Y) == [[1, 0.5], [0, 0], [0, 1]] and dense(corpus.test.features) == [[0, 0, 0.5, 0]]
    assert dense(corpus.train.features) == [[1, 0, 0, 2], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert dense(corpus.test.ignore) == [[True, False]] and list(corpus.labels.keys) == ["0", "1"]


@pytest.mark.parametrize("place", ["", "raw"])
def test_matrices_with_texts(tmp_path, place, caplog):
    folder = files(tmp_path / "LF", trn_X_Y__txt=WEIGHTS, trn_X_Xf__txt=FEATURES)
    files(folder / place, trn_X__txt="one é\r\n\r\nthree\u2028 \n", Y__txt="first\n\n")
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder)
    assert list(corpus.train.texts) == ["one é", "", "three\u2028 "]  # texts win over features
    assert list(corpus.labels.texts) == ["first", ""] and list(corpus.labels.keys) == ["0", "1"]
    assert "an empty text was kept: 1 time(s), the first in trn_X.txt, line 2" in caplog.text


def test_raw_texts_with_ids_in_front(tmp_path):
    folder = files(tmp_path / "LF", trn_X_Y__txt=WEIGHTS)
    files(folder / "raw_data", train__raw__txt="B01->one -> 1\nB02->\nB03->three\n", label__raw__txt="L1->x\nL2->y\n")
    corpus = read(folder)
    assert list(corpus.train.texts) == ["one -> 1", "", "three"] and list(corpus.labels.texts) == ["x", "y"]
    files(folder / "raw_data", train__raw__txt="one -> two\nplain\nthree\n")
    assert list(read(folder).train.texts) == ["one -> two", "plain", "three"]


LINES = st.lists(
    st.sampled_from(["B1->one", "B2->", "", "->x", "a b->c", " B3 ->x->y", "é->漢", "plain", "x-", ">y"])
    | st.text("ab ->\u3000é", max_size=8),
    min_size=1,
    max_size=12,
)


@given(LINES, st.integers(1, 40))
def test_ids_are_dropped_where_every_line_has_one(tmp_path_factory, lines, block):
    path = tmp_path_factory.mktemp("ids") / "x.txt"
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    cut = [line.partition("->") for line in lines]
    every = all(not line or (mark and len(name.split()) == 1) for line, (name, mark, _) in zip(lines, cut, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longtail.data.parse.lines.CHUNK", block)
        found = read_texts(path, ReadOptions(), ids=True)
        assert list(found.texts) == ([text for _, _, text in cut] if every else lines)
        assert read_list(path, ReadOptions(), ids=True) == found.texts
        assert list(read_texts(path, ReadOptions()).texts) == lines


def test_dropping_ids_stays_near_the_result_in_memory(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("".join(f"B{i:06d}->{'some words of a title ' * 2}{i}\n" for i in range(400_000)))
    tracemalloc.start()
    texts = read_texts(path, ReadOptions(), ids=True).texts
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(texts) == 400_000 and texts[7] == "some words of a title some words of a title 7"
    assert peak < 1.7 * (texts.data.nbytes + texts.offsets.nbytes) + 16 * 2**20


def test_matrices_of_different_length(tmp_path):
    folder = files(tmp_path / "a", trn_X_Y__txt=WEIGHTS, trn_X_Xf__txt="2 4\n0:1\n1:1\n")
    refused(folder, "trn_X_Xf.txt has 2 points, but trn_X_Y.txt has 3 rows of labels")
    folder = files(tmp_path / "b", trn_X_Y__txt=WEIGHTS, trn_X__txt="a\nb\nc\nd\n")
    refused(folder, "trn_X.txt has 4 points, but trn_X_Y.txt has 3 rows of labels")
    folder = files(tmp_path / "c", trn_X_Y__txt=WEIGHTS, trn_X__txt="a\nb\nc\n", Y__txt="x\ny\nz\n")
    refused(folder, "the label list has 3 labels, but trn_X_Y.txt counts 2")
    folder = files(tmp_path / "d", trn_X_Y__txt=WEIGHTS)
    refused(folder, "trn_X_Y.txt has labels, but there are neither texts (trn_X.txt) nor features")


@pytest.mark.parametrize("weight", ["0", "-0.5", "1.001", "2"])
def test_weights_outside_the_unit_interval(tmp_path, weight):
    folder = files(tmp_path / "a", trn_X_Y__txt=f"2 2\n0:1\n1:{weight}\n", trn_X__txt="a\nb\n")
    refused(folder, "a label's weight must be above 0 and at most 1", name="trn_X_Y.txt", line=3, found=f"1:{weight}")


def test_label_indices_of_a_matrix(tmp_path):
    folder = files(tmp_path / "a", trn_X_Y__txt="2 2\n0:1\n2:1\n", trn_X__txt="a\nb\n")
    refused(folder, "a label index is outside 0 … 1", name="trn_X_Y.txt", line=3, found="2:1")


def test_a_bad_row_of_one_file_leaves_both(tmp_path, caplog):
    folder = files(
        tmp_path / "a",
        trn_X_Y__txt="4 2\n0:1\n1:nan\n1:1\n0:0.5 0:0.75\n",
        trn_X__txt=b"one\ntwo\nthr\xffee\nfour\n",
        filter_labels_train__txt="3 1\n1 1\n",
    )
    refused(folder, "the value of a label is not finite", name="trn_X_Y.txt", line=3, found="1:nan")
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder, on_bad_line="skip")
    assert list(corpus.train.texts) == ["one", "four"] and dense(corpus.train.Y) == [[1, 0], [0.75, 0]]
    assert dense(corpus.train.ignore) == [[False, False], [False, True]]
    assert "skipped 2 bad line(s)" in caplog.text and "a label was repeated in one line" in caplog.text


def test_invalid_utf8(tmp_path):
    folder = files(tmp_path / "a", trn_X_Y__txt=WEIGHTS, trn_X__txt=b"one\ntw\xe9o\nthree\n")
    refused(folder, "invalid UTF-8 at byte 3 of the line", name="trn_X.txt", line=2, found=b"tw\xe9o")
    folder = files(tmp_path / "a", trn_X__txt="a\nb\nc\n", Y__txt=b"x\n\xff\n")
    for mode in ("error", "skip"):  # a label list without one of its lines would be another list
        refused(folder, "invalid UTF-8", name="Y.txt", line=2, found=b"\xff", on_bad_line=mode)


def test_named_fields_are_refused_where_there_are_none(tmp_path, caplog):
    folder = files(tmp_path / "a", train__txt=TRAIN, corpus__json=b'{"group": "src"}')
    with pytest.raises(ParameterError, match="no named fields: leave --group-by 'src' out"):
        read(folder, group_by="src")
    with caplog.at_level(logging.WARNING, "longtail"):
        read(folder)
    assert "corpus.json names the group field 'src', but there are no fields" in caplog.text


# --- JSON ---------------------------------------------------------------------------------------------------------


def point(uid="p", title="t", content="c", ind=(0,), rel=None, **more):
    rel = [1.0] * len(ind) if rel is None else rel
    return {"uid": uid, "title": title, "content": content, "target_ind": list(ind), "target_rel": rel, **more}


LABELS = json_lines({"uid": "B0", "title": "one", "content": ""}, {"uid": "B1", "title": "two", "content": "more"})


def test_json(tmp_path):
    folder = files(
        tmp_path / "LF-Amazon",
        trn__json__gz=json_lines(
            point(title="title", content="and content", ind=[1, 0], rel=[0.5, 1.0]), point(ind=[])
        ),
        tst__json__gz=json_lines(point(title="", content="only content", ind=[1])),
        lbl__json__gz=LABELS,
        filter_labels_test__txt="0 0\n",
        trn_X_Y__txt=WEIGHTS,  # JSON wins over matrices
    )
    assert detect(folder).name == "repository"
    corpus = read(folder)
    assert list(corpus.train.texts) == ["title and content", "t c"] and list(corpus.test.texts) == ["only content"]
    assert dense(corpus.train.Y) == [[1, 0.5], [0, 0]] and dense(corpus.test.ignore) == [[True, False]]
    assert list(corpus.labels.keys) == ["B0", "B1"] and list(corpus.labels.texts) == ["one", "two more"]


def test_json_titles_without_content_plain_or_raw(tmp_path):
    titles = [{k: v for k, v in point(title=t).items() if k != "content"} for t in ("one", "two")]
    labels = json_lines({"uid": "a", "title": "A"}, {"uid": "b", "title": "B"})
    for ending in (".json", ".raw.json"):
        folder = files(tmp_path / f"T{ending}", **{f"trn{ending}": json_lines(*titles), f"lbl{ending}": labels})
        corpus = read(folder)
        assert list(corpus.train.texts) == ["one", "two"] and list(corpus.labels.texts) == ["A", "B"]


def test_json_without_a_list_numbers_the_labels(tmp_path):
    folder = files(
        tmp_path / "Cat", trn__json=json_lines(point(ind=[4]), point(ind=[1])), filter_labels_train__txt="0 4\n"
    )
    corpus = read(folder)
    assert list(corpus.labels.keys) == ["0", "1", "2", "3", "4"] and corpus.labels.counts.tolist() == [0, 1, 0, 0, 1]
    assert corpus.train.ignore[0, 4]
    files(folder, Y__txt="a\nb\nc\nd\ne\nf\n")
    assert list(read(folder).labels.texts) == ["a", "b", "c", "d", "e", "f"]
    for wrong in (-1, 2**40, "x"):
        folder = files(tmp_path / "bad", trn__json=json_lines(point(ind=[0]), point(ind=[wrong])))
        refused(folder, "a label must be a key (text) or a whole number of at least 0", line=2, found=wrong)


@pytest.mark.parametrize("skip", [False, True])
def test_an_absurd_number_is_no_label(tmp_path, skip):
    points = [point(ind=[i % 50]) for i in range(300)]
    folder = files(tmp_path / "Cat", trn__json=json_lines(*points, point(ind=[1, 2_000_000_000]), *points))
    options = {"on_bad_line": "skip"} if skip else {}
    refused(folder, "at most 1,060,199 is accepted", name="trn.json", line=301, found=2_000_000_000, **options)
    folder = files(tmp_path / "far", trn__json=json_lines(*points, point(ind=[1_030_099])))
    keys = read(folder).labels.keys
    assert len(keys) == 1_030_100 and keys[-1] == "1030099"
    files(folder, tst__json=json_lines(point(ind=[1_030_201])))  # of 301 + 1 occurrences
    refused(folder, "at most 1,030,199 is accepted", name="tst.json", line=1, found=1_030_201)


def test_labels_of_a_skipped_point_are_not_counted(tmp_path):
    bad = {**point(ind=[7, 3]), "target_rel": [1, 5]}
    folder = files(tmp_path / "Cat", trn__json=json_lines(point(ind=[4]), bad))
    assert len(read(folder, on_bad_line="skip").labels) == 5


@given(st.integers(0, 1234), st.integers(1, 60))
def test_decimal_keys(L, block):
    assert list(decimal_keys(L, block)) == [str(i) for i in range(L)]


def test_many_decimal_keys():
    keys = decimal_keys(3_000_000)
    assert len(keys) == 3_000_000 and keys[2_999_999] == "2999999" and keys[1_048_576] == "1048576"
    assert len(keys.data) == 10 + 2 * 90 + 3 * 900 + 4 * 9000 + 5 * 90_000 + 6 * 900_000 + 7 * 2_000_000


def test_one_json_file_and_fields_by_name(tmp_path):
    path = (
        files(tmp_path / "a", trn__json__gz=json_lines(point(ind=[0], src="g"), point(ind=[1], src="h")))
        / "trn.json.gz"
    )
    assert detect(path).name == "repository"
    corpus = read(path, text="content", group_by="src")
    assert list(corpus.train.texts) == ["c", "c"] and list(corpus.train.groups) == ["g", "h"]


@pytest.mark.parametrize(
    "bad, problem, found",
    [
        (point(ind=[2]), "a label index is outside 0 … 1", 2),
        (point(ind=[-1]), "a label index is outside 0 … 1", -1),
        (point(rel=[1.5]), "a label's weight must be above 0 and at most 1", 1.5),
        (point(rel=[0]), "a label's weight must be above 0 and at most 1", 0.0),
        (point(rel=[1, 1]), "'target_rel' must be a list of 1 numbers, one for each label", [1, 1]),
        (point(title=3), "the field 'title' must be text", 3),
        ({"uid": "x", "title": "t"}, "the field 'target_ind' is missing", ["title", "uid"]),
        (b'{"title": "t", "target_ind": [0], "target_rel": [NaN]}', "not valid JSON", None),
    ],
)
def test_bad_json_points(tmp_path, bad, problem, found):
    line = bad if isinstance(bad, bytes) else orjson.dumps(bad)
    folder = files(tmp_path / "a", trn__json=json_lines(point()) + line + b"\n" + json_lines(point()), lbl__json=LABELS)
    refused(folder, problem, name="trn.json", line=2, found=line if found is None else found)
    assert len(read(folder, on_bad_line="skip").train) == 2


def test_a_label_that_stands_twice_in_json(tmp_path, caplog):
    folder = files(tmp_path / "a", trn__json=json_lines(point(ind=[1, 0, 1], rel=[0.5, 1, 0.75])), lbl__json=LABELS)
    with caplog.at_level(logging.WARNING, "longtail"):
        assert dense(read(folder).train.Y) == [[1, 0.75]]
    assert "a label was repeated in one line and is counted once" in caplog.text


def test_label_lists(tmp_path, caplog):
    folder = files(tmp_path / "a", trn__json=json_lines(point()), lbl__json=json_lines({"uid": "x"}, {"uid": "x"}))
    refused(folder, "the label list contains a key twice", name="lbl.json", found="x")
    files(folder, lbl__json=b'{"uid": "a"}\n{"uid": \n')
    for mode in ("error", "skip"):
        refused(folder, "not valid JSON", name="lbl.json", line=2, found=b'{"uid": ', on_bad_line=mode)
    files(folder, lbl__json=json_lines({"uid": ["a"]}))
    refused(folder, "a label must have a uid", name="lbl.json", line=1, found={"uid": ["a"]})
    files(folder, lbl__json=b"")
    refused(folder, "the label list is empty", name="lbl.json")
    files(folder, lbl__json=json_lines({"title": "first"}, {"uid": 7, "title": None}, {"uid": "z", "content": "c"}))
    with caplog.at_level(logging.WARNING, "longtail"):
        labels = read(folder).labels
    assert list(labels.keys) == ["0", "7", "z"] and list(labels.texts) == ["first", "", "c"]
    assert (
        "a label without uid uses its row in the list as key: 1 time(s), the first in lbl.json, line 1" in caplog.text
    )


def test_truncated_json(tmp_path):
    folder = files(tmp_path / "a", trn__json=b"", lbl__json=LABELS)
    refused(folder, "the file has no points", name="trn.json")
    (folder / "trn.json").unlink()
    whole = gzip.compress(json_lines(*(point(title=str(i * 7919), ind=[i % 2]) for i in range(3000))))
    (folder / "trn.json.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="gzip file ends before its end mark") as caught:
        read(folder)
    assert caught.value.where.name == "trn.json.gz" and caught.value.line > 1


# --- detection ----------------------------------------------------------------------------------------------------


def test_what_is_not_of_the_repository(tmp_path):
    folder = files(
        tmp_path / "jsonl", train__jsonl='{"text": "a", "labels": ["x"]}\n', filter_labels_train__txt="1 2 3\n"
    )
    assert not repository.matches(folder) and detect(folder).name == "jsonl"
    files(folder, trn__json=json_lines(point()))
    assert detect(folder).name == "jsonl"  # a folder of JSON lines stays one, whatever other files it has
    for text in (
        "__label__x a\n",
        "1 2 3\n__label__x 4\n",
        "a b c\n1:1\n",
        "1 2\n0:1\n",
        "1,2\ttext\n",
        "10 20 30\n40 50 60\n",
    ):
        folder = files(tmp_path / "other", train__txt=text)
        assert not repository.matches(folder) and not repository.matches(folder / "train.txt"), text


def test_nothing_to_read(tmp_path):
    folder = files(tmp_path / "a", readme__md="hello")
    refused(folder, "has none of the repository's training files", found=["readme.md"], format="repository")
