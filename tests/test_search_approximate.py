"""The approximate index: it finds most of the exact result, and never what it must not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.core.errors import MissingExtraError, StoreError
from longtail.search.approximate import Approximate
from longtail.search.exact import Exact
from longtail.search.index import SearchSettings, load_index
from longtail.search.mining import nearest_negatives

pytest.importorskip("faiss", reason="needs the extra ann")
SETTINGS = SearchSettings(index="approximate", lists=40, probes=10)
L, D, K = 4000, 24, 10


def drawn(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    rows = np.random.default_rng(0).normal(size=(30, D))[rng.integers(0, 30, n)] + 0.5 * rng.normal(size=(n, D))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


VECTORS, QUERIES = drawn(L, 1), drawn(80, 2)


@pytest.fixture(scope="module")
def index() -> Approximate:
    made = SETTINGS.build(VECTORS)
    assert isinstance(made, Approximate) and len(made.lists)
    return made


def recall(found: Any, wanted: Any) -> float:
    pairs = zip(found.tolist(), wanted.tolist(), strict=True)
    return float(np.mean([len({*a} & {*b}) / len({*b}) for a, b in pairs]))  # −1 counts as one that both have


def test_recall_and_scores(index: Approximate) -> None:
    numbers, scores = index.search(QUERIES, K)
    assert recall(numbers, Exact(VECTORS).search(QUERIES, K)[0]) > 0.95
    assert np.array_equal(scores, Exact(VECTORS).products(QUERIES, numbers))
    assert (np.diff(scores, axis=1) <= 0).all()
    few = Approximate(index.exact, index.lists, 1).search(QUERIES, K)[0]
    assert recall(few, numbers) < 0.9  # so lists are really used


@pytest.mark.parametrize("share", [0.3, 0.9, 0.995])
def test_what_must_not_be_found(index: Approximate, share: float) -> None:
    rng = np.random.default_rng(3)
    without = rng.random(L) < share
    among = np.flatnonzero(rng.random(L) < 0.9)
    for options in ({"without": without}, {"among": np.flatnonzero(~without)}, {"without": without, "among": among}):
        numbers = index.search(QUERIES, K, **options)[0]
        wanted = Exact(VECTORS).search(QUERIES, K, **options)[0]
        assert ((numbers < 0).sum(1) == (wanted < 0).sum(1)).all()  # k results if there are k
        assert not without[numbers[numbers >= 0]].any()
        assert recall(numbers, wanted) > 0.93


@pytest.mark.parametrize("share", [0.01, 0.5, 0.999])
def test_excluded_pairs(index: Approximate, share: float) -> None:
    pairs = np.random.default_rng(4).random((80, L)) < share
    pairs[np.arange(80)[:, None], Exact(VECTORS).search(QUERIES, 40)[0]] = True
    excluded = sp.csr_matrix(pairs)
    numbers = index.search(QUERIES, K, excluded=excluded)[0]
    wanted = Exact(VECTORS).search(QUERIES, K, excluded=excluded)[0]
    assert ((numbers < 0) == (wanted < 0)).all()
    assert not (np.take_along_axis(pairs, numbers, 1) & (numbers >= 0)).any()
    assert recall(numbers, wanted) > 0.8


def test_adding(index: Approximate) -> None:
    grown = index.add(QUERIES)
    assert len(grown) == L + 80 and len(index) == L
    assert (grown.search(QUERIES, 1)[0].ravel() == L + np.arange(80)).mean() > 0.95


def test_saved_and_loaded(index: Approximate, tmp_path: Path) -> None:
    arrays, meta = index.state()
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=False)
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays}
    loaded = load_index(mapped, json.loads(json.dumps(meta)))
    for one, other in zip(loaded.search(QUERIES, K), index.search(QUERIES, K), strict=True):
        assert np.array_equal(one, other)
    assert len(loaded.add(QUERIES)) == L + 80
    for bad in (mapped["lists"][:1000], np.zeros(100, np.uint8)):
        with pytest.raises(StoreError, match="damaged"):
            load_index(mapped | {"lists": bad}, meta).search(QUERIES, K)
    with pytest.raises(StoreError, match="lists hold vectors of shape"):
        load_index(mapped | {"vectors": mapped["vectors"][1:]}, meta).search(QUERIES, K)


def test_few_vectors_have_no_lists() -> None:
    small = SETTINGS.build(VECTORS[:100])
    assert isinstance(small, Approximate) and not len(small.lists)
    assert np.array_equal(small.search(QUERIES, K)[0], Exact(VECTORS[:100]).search(QUERIES, K)[0])
    assert len(small.add(QUERIES)) == 180
    assert SETTINGS.build(VECTORS[:0]).search(QUERIES, 2)[0].tolist() == [[-1, -1]] * 80


@pytest.mark.parametrize("storage", ["float16", "int8"])
def test_other_storage(storage: str) -> None:
    made = SearchSettings(index="approximate", storage=storage, lists=40, probes=20).build(VECTORS)
    assert recall(made.search(QUERIES, K)[0], Exact(VECTORS).search(QUERIES, K)[0]) > 0.95


def test_mining(index: Approximate) -> None:
    Y = sp.csr_matrix(
        (np.ones(80 * K, np.float32), Exact(VECTORS).search(QUERIES, K)[0].ravel(), K * np.arange(81)), (80, L)
    )
    found = nearest_negatives(QUERIES, index, 6, Y)
    assert recall(found, nearest_negatives(QUERIES, VECTORS, 6, Y)) > 0.9
    assert not (Y.toarray()[np.arange(80)[:, None], found] > 0).any()


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"longtail\[ann\]"):
        SETTINGS.build(VECTORS)
