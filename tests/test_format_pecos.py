"""Folders of PECOS and X-Transformer, and text2text lines; and what bad input does."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.core.errors import DataError
from longtail.core.labels import Propensity
from longtail.data.read import detect, read


def files(folder, **contents):
    """Write texts, and sparse matrices as scipy saves them."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        path = folder / name.replace("__", ".")
        if sp.issparse(content):
            sp.save_npz(path, content)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def matrix(rows, kind=sp.csr_matrix, dtype=np.float32):
    return kind(np.array(rows, dtype))


Y = matrix([[1, 0, 1], [0, 1, 0]])
X = matrix([[0.5, 0], [0, 2]])


def dense(m):
    return m.toarray().tolist()


def test_texts_with_label_texts(tmp_path, caplog):
    folder = files(
        tmp_path / "wiki10-31k",
        **{"X.trn.txt": "one\n\n", "X.tst.txt": "three\r\n", "Y.trn.npz": Y, "Y.tst.npz": matrix([[0, 0, 1]])},
        **{"output-items.txt": "first\nsecond\nthird\n", "X.trn.npz": X, "X.tst.npz": X[:1]},
        corpus__json=b'{"name": "Wiki10", "propensity": {"A": 0.5}}',
        filter_labels_test__txt="0 1\n",
    )
    assert detect(folder).name == "pecos"
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder)
    assert corpus.name == "Wiki10" and corpus.labels.propensity == Propensity(0.5, 1.5)
    assert list(corpus.train.texts) == ["one", ""] and list(corpus.test.texts) == ["three"]  # texts win over features
    assert dense(corpus.train.Y) == [[1, 0, 1], [0, 1, 0]] and dense(corpus.test.ignore) == [[False, True, False]]
    assert list(corpus.labels.keys) == ["0", "1", "2"] and list(corpus.labels.texts) == ["first", "second", "third"]
    assert "an empty text was kept" in caplog.text


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_features_of_any_sparse_kind(tmp_path, kind, dtype):
    some = kind(np.array([[1, 0], [0, 1]], dtype))
    folder = files(tmp_path / "a", **{"X.trn.npz": some, "Y.trn.npz": kind(Y.astype(dtype))})
    corpus = read(folder)
    assert not corpus.train.has_text and corpus.train.features.dtype == corpus.train.Y.dtype == np.float32
    assert dense(corpus.train.features) == [[1, 0], [0, 1]] and dense(corpus.train.Y) == dense(Y)
    assert corpus.train.Y.has_sorted_indices and not corpus.labels.has_text


@pytest.mark.parametrize(
    "texts, labels",
    [
        ("raw/trn_X.txt", "raw/Y.txt"),
        ("trn_X.txt", "Y.txt"),
        ("raw/X.trn.txt", "output-labels.txt"),
        ("train_raw_texts.txt", "label_map.txt"),
    ],
)
def test_where_others_keep_texts(tmp_path, texts, labels):
    folder = files(tmp_path / "a", **{"Y.trn.npz": Y})
    (folder / "raw").mkdir()
    files(folder, **{texts: "one\ntwo\n", labels: "a\nb\nc\n", "tfidf-attnxml": ""})
    corpus = read(folder)
    assert detect(folder).name == "pecos"
    assert list(corpus.train.texts) == ["one", "two"] and list(corpus.labels.texts) == ["a", "b", "c"]


def test_features_in_their_own_folder_and_a_validation_part(tmp_path):
    folder = files(tmp_path / "eurlex-4k", **{"Y.trn.npz": Y, "Y.val.npz": Y[:1]})
    files(folder / "tfidf-attnxml", **{"X.trn.npz": X, "X.val.npz": X[:1]})
    corpus = read(folder)
    assert dense(corpus.train.features) == dense(X) and dense(corpus.dev.Y) == [[1, 0, 1]] and corpus.test is None


@pytest.mark.parametrize("name", ["Y.trn.npz", "X.trn.npz"])
@pytest.mark.parametrize("damage", ["cut", "empty", "text", "dense", "flipped"])
def test_damaged_matrices(tmp_path, name, damage):
    folder = files(tmp_path / "a", **{"X.trn.npz": X, "Y.trn.npz": Y})
    path, whole = folder / name, (folder / name).read_bytes()
    if damage == "dense":
        np.savez(path, np.ones(3))
    else:
        at = len(whole) // 3
        flipped = whole[:at] + bytes(b ^ 0xFF for b in whole[at : at + 40]) + whole[at + 40 :]
        path.write_bytes({"cut": whole[:-30], "empty": b"", "text": b"not a zip", "flipped": flipped}[damage])
    with pytest.raises(DataError, match="cannot be read as a sparse matrix") as caught:
        read(folder)
    assert caught.value.where == path


def test_a_pickle_is_not_opened(tmp_path):
    folder = files(tmp_path / "a", **{"X.trn.npz": X})
    np.savez(folder / "Y.trn.npz", data=np.array([object()]), format=b"csr", shape=(1, 1), indices=[0], indptr=[0, 1])
    with pytest.raises(DataError, match=r"cannot be read as a sparse matrix.*pickle"):
        read(folder)


def test_indices_outside_the_shape(tmp_path):
    folder = files(tmp_path / "a", **{"X.trn.npz": X})
    np.savez(
        folder / "Y.trn.npz",
        format=b"csr",
        shape=np.array([2, 3]),
        data=np.ones(2, np.float32),
        indices=np.array([0, 3]),
        indptr=np.array([0, 1, 2]),
    )
    with pytest.raises(DataError, match="cannot be read as a sparse matrix") as caught:
        read(folder)
    assert caught.value.where.name == "Y.trn.npz"


@pytest.mark.parametrize("weight", [np.nan, np.inf, -1, 1.5])
def test_bad_weights(tmp_path, caplog, weight):
    bad = matrix([[1, 0, 0], [0, weight, 0], [0, 0, 0.5]])
    folder = files(tmp_path / "a", **{"X.trn.txt": "a\nb\nc\n", "Y.trn.npz": bad}, filter_labels_train__txt="2 0\n")
    with pytest.raises(DataError) as caught:
        read(folder)
    assert caught.value.problem == "a label's weight must be above 0 and at most 1 (row 2, counted from 1)"
    assert caught.value.where.name == "Y.trn.npz" and caught.value.found[0] == 1
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder, on_bad_line="skip")
    assert list(corpus.train.texts) == ["a", "c"] and dense(corpus.train.Y) == [[1, 0, 0], [0, 0, 0.5]]
    assert corpus.train.ignore[1, 0] and "skipped 1 bad line(s)" in caplog.text


def test_bad_features(tmp_path):
    folder = files(tmp_path / "a", **{"X.trn.npz": matrix([[1, 0], [0, 1e300]], dtype=np.float64), "Y.trn.npz": Y})
    with pytest.raises(DataError, match=r"the value of a feature is not finite \(row 2") as caught:
        read(folder)
    assert caught.value.found == (1, np.inf)
    assert len(read(folder, on_bad_line="skip").train) == 1


def test_repeated_and_zero_entries_are_mended_and_said(tmp_path, caplog):
    columns = np.array([2, 0, 2, 1, 0])
    twice = sp.csr_matrix((np.array([0.25, 1, 0.5, 1, 0], np.float32), columns, np.array([0, 3, 5])), shape=(2, 3))
    folder = files(tmp_path / "a", **{"Y.trn.npz": twice, "X.trn.npz": twice})
    with caplog.at_level(logging.WARNING, "longtail"):
        corpus = read(folder)
    assert dense(corpus.train.Y) == [[1, 0, 0.5], [0, 1, 0]] and corpus.train.Y.nnz == 3
    assert dense(corpus.train.features) == [[1, 0, 0.75], [0, 1, 0]]
    for what in (
        "a label was repeated in one row",
        "a label stored with weight 0",
        "a feature was repeated in one row",
    ):
        assert what in caplog.text


def test_what_does_not_fit(tmp_path):
    def problem(**contents):
        folder = files(tmp_path / str(len(list(tmp_path.iterdir()))), **contents)
        with pytest.raises(DataError) as caught:
            read(folder, format="pecos")
        return caught.value.problem

    texts = "a\nb\n"
    assert (
        problem(**{"X.trn.txt": "a\n", "Y.trn.npz": Y}) == "X.trn.txt has 1 points, but Y.trn.npz has 2 rows of labels"
    )
    assert (
        problem(**{"X.trn.npz": X[:1], "Y.trn.npz": Y}) == "X.trn.npz has 1 points, but Y.trn.npz has 2 rows of labels"
    )
    fewer = {"X.tst.txt": texts, "Y.tst.npz": matrix([[1], [1]])}
    expected = "Y.trn.npz counts 3 labels, but Y.tst.npz counts 1"
    assert problem(**{"X.trn.txt": texts, "Y.trn.npz": Y}, **fewer) == expected
    expected = "Y.trn.npz counts 3 labels, but output-items.txt counts 2"
    assert problem(**{"X.trn.txt": texts, "Y.trn.npz": Y, "output-items.txt": texts}) == expected
    narrow = {"X.tst.npz": matrix([[1], [1]]), "Y.tst.npz": Y}
    expected = "X.trn.npz counts 2 features, but X.tst.npz counts 1"
    assert problem(**{"X.trn.npz": X, "Y.trn.npz": Y}, **narrow) == expected
    assert "neither texts nor features" in problem(**{"Y.trn.npz": Y})
    assert "has no training part" in problem(**{"Y.tst.npz": Y, "X.tst.npz": X})


# --- text2text ----------------------------------------------------------------------------------------------------

LINES = "0,2\tAlan Turing is\tthe father\n\n1\tHinton\n\tnobody\n"


def test_text2text_folder(tmp_path):
    folder = files(
        tmp_path / "t2t",
        **{"training-data.txt": LINES, "test-data.txt": "2\tLeCun\n", "output-labels.txt": "AI\nUK\nTuring Award\n"},
    )
    assert detect(folder).name == "pecos"
    corpus = read(folder)
    assert list(corpus.train.texts) == ["Alan Turing is\tthe father", "Hinton", "nobody"]
    assert dense(corpus.train.Y) == [[1, 0, 1], [0, 1, 0], [0, 0, 0]] and dense(corpus.test.Y) == [[0, 0, 1]]
    assert list(corpus.labels.texts) == ["AI", "UK", "Turing Award"]


def test_text2text_file(tmp_path):
    folder = files(tmp_path / "t2t", **{"mine.txt": LINES, "output-items.txt": "AI\nUK\nTuring Award\n"})
    assert detect(folder / "mine.txt").name == "pecos"
    corpus = read(folder / "mine.txt")
    assert corpus.name == "mine" and list(corpus.labels.texts) == ["AI", "UK", "Turing Award"]
    (folder / "output-items.txt").unlink()
    corpus = read(folder / "mine.txt", format="pecos")
    assert list(corpus.labels.keys) == ["0", "1", "2"] and not corpus.labels.has_text


@pytest.mark.parametrize(
    "line, problem, found",
    [
        (b"3\tx", "a label index is outside 0 … 2", 3),
        (b"-1\tx", "a line must consist of label numbers joined by commas, a TAB, and a text", "-1\tx"),
        (b"0;1\tx", "a line must consist of label numbers joined by commas, a TAB, and a text", "0;1\tx"),
        (b"0,1", "a line must consist of label numbers joined by commas, a TAB, and a text", "0,1"),
        (b"0\t\xff", "invalid UTF-8 at byte 3 of the line", b"0\t\xff"),
    ],
)
def test_bad_text2text_lines(tmp_path, line, problem, found):
    names = {"training-data.txt": b"0\ta\n" + line + b"\n1\tc\n", "output-items.txt": "x\ny\nz\n"}
    folder = files(tmp_path / "a", **names, filter_labels_train__txt="2 0\n")
    with pytest.raises(DataError) as caught:
        read(folder, format="pecos")
    error = caught.value
    assert (error.problem, error.where.name, error.line, error.found) == (problem, "training-data.txt", 2, found)
    corpus = read(folder, format="pecos", on_bad_line="skip")
    assert list(corpus.train.texts) == ["a", "c"] and corpus.train.ignore[1, 0]


def test_other_tab_files_are_not_text2text(tmp_path):
    from longtail.data.formats import pecos

    folder = files(tmp_path / "a", **{"data.tsv": "text\thttp://x\n", "years.tsv": "1999\tx\nsong\ty\n"})
    files(folder, **{"numbers.tsv": "1,2\ta text\n"})
    assert not pecos.matches(folder)
    for name in ("data.tsv", "years.tsv", "numbers.tsv"):  # the last has no list beside it
        assert not pecos.matches(folder / name)
