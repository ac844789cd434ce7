"""`corpus_from_lists`: a corpus from Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.core.errors import DataError, ParameterError
from longtail.core.texts import Texts
from longtail.data.from_lists import corpus_from_lists

TEXTS = ["one", "two", "three"]


def test_lists_of_strings() -> None:
    corpus = corpus_from_lists(TEXTS, [["b", "a"], [], ["a"]])
    assert list(corpus.labels.keys) == ["a", "b"] and not corpus.labels.has_text
    assert corpus.train.Y.toarray().tolist() == [[1, 1], [0, 0], [1, 0]]
    assert corpus.train.Y.dtype == np.float32 and corpus.train.Y.has_sorted_indices
    assert corpus.labels.counts.tolist() == [2, 1] and corpus.labels.points == 3
    assert corpus.name == "data" and list(corpus.train.texts) == TEXTS


@pytest.mark.parametrize(
    "labels",
    [
        [[10, 2], (2,), {10}],
        [np.array([10, 2]), np.array([2]), np.array([10])],
        np.array([[10, 2], [2, 2], [10, 10]], object),
        iter([[10, 2], [2], [10]]),
    ],
)
def test_integers_in_any_container(labels: Any) -> None:
    corpus = corpus_from_lists(iter(TEXTS), labels)
    assert list(corpus.labels.keys) == ["2", "10"]  # by number
    assert corpus.train.Y.toarray().tolist() == [[1, 1], [1, 0], [0, 1]]


def test_mixed_keys_are_sorted_as_strings_and_a_number_equals_its_digits() -> None:
    corpus = corpus_from_lists(TEXTS, [[10, "x"], ["9"], [9]])
    assert list(corpus.labels.keys) == ["10", "9", "x"]
    assert corpus.train.Y.indices.tolist() == [0, 2, 1, 1]


def test_a_label_twice_counts_once_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    corpus = corpus_from_lists(TEXTS, [["a", "b", "a"], ["b"], []])
    assert corpus.train.Y.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]
    assert "counted once: 1 time(s)" in caplog.text


def test_features_instead_of_texts() -> None:
    X = sp.csr_matrix(np.eye(3, 5))
    corpus = corpus_from_lists(X, [["a"], ["b"], ["a"]])
    assert not corpus.train.has_text
    assert corpus.train.features.shape == (3, 5)
    with pytest.raises(DataError, match="NaN"):
        corpus_from_lists(sp.csr_matrix([[np.nan]]), [["a"]])


def test_keys_that_become_one_are_refused() -> None:
    with pytest.raises(DataError, match="twice"):
        corpus_from_lists(["x", "y"], [["\ud800"], ["\ud801"]])


def test_matrix() -> None:
    matrix = sp.coo_matrix(([1, 0.5, 0, 1], ([0, 0, 1, 2], [2, 0, 1, 3])), shape=(3, 5))
    corpus = corpus_from_lists(TEXTS, matrix)
    assert list(corpus.labels.keys) == ["0", "1", "2", "3", "4"]
    assert corpus.train.Y.nnz == 3  # a stored zero is not a label
    assert corpus.train.Y.toarray()[0].tolist() == [0.5, 0, 1, 0, 0]
    assert corpus_from_lists(TEXTS, sp.csr_array(np.eye(3, dtype=bool))).train.Y.nnz == 3


def test_label_texts(caplog: pytest.LogCaptureFixture) -> None:
    names = {"a": "alpha", "c": "gamma"}
    corpus = corpus_from_lists(TEXTS, [["b", "a"], [], ["a"]], label_texts=names)
    assert list(corpus.labels.keys) == ["a", "b", "c"]  # one that no text has is a label too
    assert list(corpus.labels.texts or []) == ["alpha", "", "gamma"]
    assert corpus.labels.counts.tolist() == [2, 1, 0]
    assert "no text for 1 of 3 labels" in caplog.text
    numbered = corpus_from_lists(TEXTS, sp.eye(3).tocsr(), label_texts={"0": "zero", "1": "one", "2": "two"})
    assert list(numbered.labels.texts or []) == ["zero", "one", "two"]


def test_groups_and_texts_object() -> None:
    corpus = corpus_from_lists(Texts.of(TEXTS), [["a"], ["b"], ["a"]], groups=["g", 7, "g"], name="mine")
    assert list(corpus.train.groups or []) == ["g", "7", "g"] and corpus.name == "mine"
    corpus = corpus_from_lists(TEXTS, [["a"], ["b"], ["a"]], groups=["g", None, "g"])  # None: no group
    assert list(corpus.train.groups or []) == ["g", "", "g"]


ROWS = [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    ("texts", "labels", "more", "problem"),
    [
        ([], [], {}, "there are no texts"),
        (TEXTS, ROWS[:2], {}, "3 texts but labels for 2"),
        (TEXTS, sp.eye(2).tocsr(), {}, "3 texts but labels for 2"),
        ("one text", [["a"]], {}, "texts must be a list of strings; got 'one text'"),
        (["one", None, "three"], ROWS, {}, "texts must be a list of strings; item 1 is None"),
        (["one", "two", 3.5], ROWS, {}, "item 2 is 3.5"),
        (None, ROWS, {}, "texts must be a list of strings; got None"),
        (np.eye(3), ROWS, {}, "texts must be a list of strings; item 0"),
        (TEXTS, ["a", "b", "c"], {}, r"item 0 is 'a': if each text has one label, wrap it in a list: \[label\]"),
        (TEXTS, [1, 2, 3], {}, r"item 0 is 1: if each text has one label, wrap it"),
        (TEXTS, "abc", {}, "labels must be a list"),
        (TEXTS, None, {}, "labels must be a list"),
        (TEXTS, [["a"], None, ["b"]], {}, "item 1 is None"),
        (TEXTS, [["a"], {"b": 1.0}, ["b"]], {}, "item 1 is {'b': 1.0}"),
        (TEXTS, [["a"], ["b", None], ["c"]], {}, "the labels of text 1: None"),
        (TEXTS, [["a"], [], [float("nan")]], {}, "the labels of text 2: nan"),
        (TEXTS, [["a"], ["b"], [-1]], {}, "the labels of text 2: -1"),
        (TEXTS, [[True], ["b"], ["c"]], {}, "the labels of text 0: True"),
        (TEXTS, [[], [], []], {}, "no text has a label"),
        (TEXTS, sp.csr_matrix((3, 4)), {}, "no text has a label"),
        (TEXTS, sp.csr_matrix([[1, 0], [0, np.nan], [0, 1]]), {}, r"at most 1 \(row 1, column 1\); found nan"),
        (TEXTS, sp.csr_matrix([[1, 0], [0, 1], [2, 1]]), {}, r"row 2, column 0\); found 2.0"),
        (TEXTS, sp.csr_matrix([[1, 0], [0, 1], [-1, 1]]), {}, r"row 2, column 0\); found -1.0"),
        (TEXTS, np.eye(3), {}, "wrap indicators in scipy.sparse.csr_matrix"),
        (TEXTS, ROWS, {"groups": ["g"]}, "3 texts but 1 groups"),
        (TEXTS, ROWS, {"groups": ["g", 1.5, "h"]}, "groups must be a list of strings; item 1 is 1.5"),
        (TEXTS, ROWS, {"label_texts": {"a": None}}, "'a' has None"),
        (TEXTS, ROWS, {"label_texts": {None: "x"}}, "label_texts: None"),
        (TEXTS, sp.eye(3).tocsr(), {"label_texts": {"7": "x"}}, "label_texts names '7'"),
    ],
)
def test_what_is_refused(texts: Any, labels: Any, more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        corpus_from_lists(texts, labels, **more)
