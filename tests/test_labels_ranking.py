"""Labels (append-only edits) and Ranking (every operation against brute force)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import orjson
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Labels, Propensity
from longtail.core.ranking import Ranking
from longtail.core.texts import Texts

ABC = Labels.of(["a", "b", "c"], ["Alpha", "Beta", "Gamma"]).with_counts(np.array([5, 2, 0]), 10)


# Labels


def test_add_appends_and_leaves_the_old_alone() -> None:
    grown = ABC.add(["d", "é"], ["Delta", ""])
    assert list(grown.keys) == ["a", "b", "c", "d", "é"] and list(grown.texts or [])[3:] == ["Delta", ""]
    assert grown.counts.tolist() == [5, 2, 0, 0, 0] and grown.points == 10
    assert [grown.index(key) for key in grown.keys] == [0, 1, 2, 3, 4]
    assert len(ABC) == 3 and ABC.indices(["d"]).tolist() == [-1]
    assert grown.digest() != ABC.digest()


def test_add_refuses() -> None:
    with pytest.raises(ParameterError, match="'b' already exists"):
        ABC.add(["x", "b"], ["", ""])
    with pytest.raises(ParameterError, match="these labels have texts"):
        ABC.add(["x"])
    with pytest.raises(ParameterError, match="these labels have no texts"):
        Labels.of(["a"]).add(["b"], ["Beta"])
    with pytest.raises(DataError, match="a key twice") as caught:
        ABC.add(["x", "x"], ["", ""])
    assert caught.value.found == "x"
    with pytest.raises(DataError, match="got texts of 4 labels for 5 keys"):
        ABC.add(["x", "y"], ["one only"])


def test_remove_sets_tombstones() -> None:
    less = ABC.remove(["b"])
    assert less.removed is not None and less.removed.tolist() == [False, True, False]
    assert len(less) == 3 and less.index("b") == 1 and ABC.removed is None
    both = less.remove(["a"]).add(["d"], ["Delta"])
    assert both.removed is not None and both.removed.tolist() == [True, True, False, False]
    assert less.remove([]).removed is not None
    with pytest.raises(ParameterError, match="no label has the key 'z'"):
        ABC.remove(["a", "z"])


def test_rename_keeps_the_index() -> None:
    swapped = ABC.rename({"a": "b", "b": "a"})
    assert list(swapped.keys) == ["b", "a", "c"] and swapped.index("b") == 0
    assert list(swapped.texts or []) == ["Alpha", "Beta", "Gamma"]
    assert ABC.rename({"c": "new"}).index("new") == 2
    with pytest.raises(ParameterError, match="'a' cannot be renamed: label 'c' already exists"):
        ABC.rename({"a": "c"})
    with pytest.raises(ParameterError, match="label 'c' was removed, but its key is still reserved; restore it"):
        ABC.remove(["c"]).rename({"a": "c"})
    with pytest.raises(DataError, match="a key twice"):
        ABC.rename({"a": "new", "b": "new"})
    with pytest.raises(ParameterError, match="no label has the key 'x'"):
        ABC.rename({"x": "y"})


def test_index_suggests_the_nearest() -> None:
    labels = Labels.of(["python", "pandas", "numpy"])
    with pytest.raises(ParameterError, match="no label has the key 'pyton'. Did you mean 'python'?"):
        labels.index("pyton")
    assert labels.indices(["numpy", "no", "python"]).tolist() == [2, -1, 0]


def test_of_and_lengths_are_checked() -> None:
    with pytest.raises(DataError, match="a key twice"):
        Labels.of(["a", "b", "a"])
    with pytest.raises(DataError, match="got texts of 1 labels for 2 keys"):
        Labels.of(["a", "b"], ["x"])
    with pytest.raises(DataError, match="got counts of 3 labels for 2 keys"):
        Labels.of(["a", "b"]).with_counts(np.zeros(3), 5)
    assert repr(ABC) == "Labels(3, with text)"


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=5), st.integers(3, 10**6), st.floats(0, 2), st.floats(0.01, 5)
)
def test_propensity_is_the_published_formula(counts: list[int], points: int, A: float, B: float) -> None:
    C = (math.log(points) - 1) * (B + 1) ** A
    expected = [1 / (1 + C * math.exp(-A * math.log(n + B))) for n in counts]
    assert Propensity(A, B).of(np.array(counts), points) == pytest.approx(expected, rel=1e-9)


def test_propensity_at_the_edges() -> None:
    assert Propensity().of(np.array([0, 1, 2]), 2).tolist() == [1, 1, 1]  # the model says nothing of two points
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(ParameterError, match="propensity A must be a number of at least 0"):
            Propensity(A=bad)
    for bad in (-1.0, 0.0, math.nan):
        with pytest.raises(ParameterError, match="propensity B must be a number above 0"):
            Propensity(B=bad)


# Ranking

SCORES = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 0.5, 1.0, 3.3, 1e8])
Row = list[tuple[int, float]]


@st.composite
def score_rows(draw: st.DrawFn, stored: bool = True) -> tuple[int, list[dict[int, float]]]:
    """L, and for each of a few points the scores of some labels."""
    L = draw(st.integers(1, 8))
    rows = draw(st.lists(st.dictionaries(st.integers(0, L - 1), SCORES, max_size=L), min_size=1, max_size=6))
    return L, rows


def csr(rows: list[dict[int, Any]], L: int, kind: Any = np.float32) -> sp.csr_matrix:
    data = [value for row in rows for value in row.values()]
    columns = [j for row in rows for j in row]
    indptr = np.cumsum([0, *map(len, rows)])
    return sp.csr_matrix((np.array(data, kind), np.array(columns, np.int32), indptr), shape=(len(rows), L))


def best(row: dict[int, float], k: int) -> Row:
    return sorted(row.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


def content(ranking: Ranking) -> list[Row]:
    """(label, score) of each row; also checks the padding."""
    out = []
    for indices, scores in zip(ranking.indices.tolist(), ranking.scores.tolist(), strict=True):
        count = sum(i >= 0 for i in indices)
        assert all(i >= 0 for i in indices[:count]) and set(indices[count:]) <= {-1}  # padding comes last
        assert all(s == -math.inf for s in scores[count:])
        out.append(list(zip(indices[:count], scores[:count], strict=True)))
    assert ranking.indices.dtype == np.int32 and ranking.scores.dtype == np.float32
    return out


def f32(rows: list[Row]) -> list[Row]:
    return [[(i, float(np.float32(s))) for i, s in row] for row in rows]


@given(score_rows(), st.integers(1, 10), st.sets(st.integers(0, 7)))
def test_from_csr(case: tuple[int, list[dict[int, float]]], k: int, removed: set[int]) -> None:
    L, rows = case
    labels = Labels.of([f"l{i}" for i in range(L)]).remove([f"l{i}" for i in removed if i < L])
    ranking = Ranking.from_csr(csr(rows, L), k, labels)
    left = [{j: s for j, s in row.items() if j not in removed} for row in rows]
    assert content(ranking) == f32([best(row, k) for row in left])
    assert ranking.k == min(k, L) and len(ranking) == len(rows)


def ranked(case: tuple[int, list[dict[int, float]]], k: int = 8, **more: Any) -> tuple[Ranking, list[Row]]:
    L, rows = case
    labels = Labels.of([f"l{i}" for i in range(L)], [f"label {i}" for i in range(L)])
    return Ranking.from_csr(csr(rows, L), k, labels, **more), f32([best(row, k) for row in rows])


@given(score_rows(), st.integers(1, 10), st.sampled_from([-3.0, 0.0, 0.5, 0.6, 1e9]))
def test_cut_and_above(case: tuple[int, list[dict[int, float]]], k: int, threshold: float) -> None:
    ranking, rows = ranked(case)
    assert content(ranking.cut(k)) == [row[:k] for row in rows]
    assert content(ranking.above(threshold)) == [[(i, s) for i, s in row if s >= threshold] for row in rows]


@given(score_rows(), st.data(), st.none() | st.integers(1, 5))
def test_drop(case: tuple[int, list[dict[int, float]]], data: st.DataObject, k: int | None) -> None:
    ranking, rows = ranked(case)
    L = case[0]
    pairs = [data.draw(st.dictionaries(st.integers(0, L - 1), st.booleans(), max_size=L)) for _ in rows]
    dropped = ranking.drop(csr(pairs, L, bool), k)  # what is stored counts, even a stored False
    expected = [[(i, s) for i, s in row if i not in skip] for row, skip in zip(rows, pairs, strict=True)]
    assert content(dropped) == [row if k is None else row[:k] for row in expected]
    with pytest.raises(DataError, match="do not fit"):
        ranking.drop(sp.csr_matrix((len(rows), L + 1)))


@given(score_rows(), st.integers(1, 8), st.data())
def test_fill(case: tuple[int, list[dict[int, float]]], k: int, data: st.DataObject) -> None:
    ranking, rows = ranked(case, k)
    L = case[0]
    order = data.draw(st.permutations(range(L)))[: data.draw(st.integers(0, L))]
    scores = sorted((data.draw(SCORES) for _ in order), reverse=True)
    filled = content(ranking.fill(np.array(order, np.int32), np.array(scores, np.float32)))
    for before, after in zip(rows, filled, strict=True):
        held = [i for i, _ in before]
        assert after[: len(before)] == before
        assert [i for i, _ in after] == [*held, *(i for i in order if i not in held)][: ranking.k]
        values = [s for _, s in after]
        assert values == sorted(values, reverse=True)


@given(score_rows(), st.integers(1, 8))
def test_keys_records_json_and_csr(case: tuple[int, list[dict[int, float]]], k: int) -> None:
    ranking, rows = ranked(case, k, kind="probability")
    assert ranking.keys() == [[f"l{i}" for i, _ in row] for row in rows]
    records = [[{"label": f"l{i}", "text": f"label {i}", "probability": round(s, 6)} for i, s in row] for row in rows]
    assert list(ranking.records()) == records
    assert [orjson.loads(line) for line in ranking.json_lines()] == [{"labels": row} for row in records]
    back = ranking.to_csr()
    assert back.has_sorted_indices and back.shape == (len(rows), case[0])
    assert content(Ranking.from_csr(back, k, ranking.labels)) == rows


def test_rows() -> None:
    ranking, rows = ranked((3, [{0: 1.0}, {1: 0.5, 2: 0.75}, {}]))
    assert content(ranking[1]) == [rows[1]] and content(ranking[-1]) == [rows[2]]
    assert content(ranking[1:]) == rows[1:] and content(ranking[np.array([2, 0])]) == [rows[2], rows[0]]
    assert content(ranking[np.array([True, False, True])]) == [rows[0], rows[2]]
    assert [content(row)[0] for row in ranking] == rows  # iterating ends
    for row in (3, -4):
        with pytest.raises(IndexError):
            ranking[row]


def test_records_without_texts() -> None:
    ranking = Ranking.from_csr(sp.csr_matrix([[0, 0.123456789]]), 1, Labels(Texts.of(["x", "é"])))
    assert list(ranking.records()) == [[{"label": "é", "score": 0.123457}]]


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "3", None])
def test_bad_k(k: Any) -> None:
    with pytest.raises(ParameterError, match="k must be a whole number of at least 1"):
        Ranking.from_csr(sp.eye(3).tocsr(), k, ABC)
    with pytest.raises(ParameterError, match="k must be"):
        Ranking.from_csr(sp.eye(3).tocsr(), 1, ABC).cut(k)


def test_bad_scores() -> None:
    with pytest.raises(DataError, match="scores for 2 labels given for a space of 3"):
        Ranking.from_csr(sp.eye(2).tocsr(), 1, ABC)
    with pytest.raises(DataError, match="NaN"):
        Ranking.from_csr(sp.csr_matrix([[np.nan, 1, 0]]), 1, ABC)
    with pytest.raises(DataError, match="of one shape"):
        Ranking(np.zeros((2, 3), np.int32), np.zeros((2, 2), np.float32), ABC)
