"""Exact indexes against a full sort: what is found, what must not be, and what is saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from longtail import _native
from longtail._native.dense import Barred, best_of, offer_block, search_codes, widen
from longtail.core.errors import ParameterError, StoreError
from longtail.search import exact
from longtail.search.exact import Exact, coded
from longtail.search.index import SearchSettings, indexes, load_index

STORAGES = ["float32", "float16", "int8"]


def full_sort(queries: Any, vectors: Any, k: int, barred: Any = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numbers and products (B, k) by definition; `barred` (B, L) must not be found."""
    products = queries.astype(np.float64) @ vectors.astype(np.float64).T
    if barred is not None:
        products[barred] = -np.inf
    products = np.pad(products, ((0, 0), (0, k)), constant_values=-np.inf)
    order = np.argsort(-products, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(products, order, 1)
    return np.where(scores == -np.inf, -1, order), scores


def whole(rng: np.random.Generator, *shape: int) -> Any:
    """Small whole numbers, whose products are exact in every storage and often equal."""
    return rng.integers(-3, 4, shape).astype(np.float32)


def clustered(n: int, d: int, seed: int = 0, noise: float = 0.3) -> Any:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(20, d))[rng.integers(0, 20, n)] + noise * rng.normal(size=(n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(STORAGES), st.integers(0, 10_000))
def test_against_a_full_sort(data: st.DataObject, storage: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    B, L, d = data.draw(st.integers(0, 20)), data.draw(st.integers(0, 70)), data.draw(st.integers(1, 70))
    k = data.draw(st.integers(0, L + 3))
    queries, vectors = whole(rng, B, d), whole(rng, L, d)
    without = rng.random(L) < data.draw(st.sampled_from([0, 0.3, 0.95])) if data.draw(st.booleans()) else None
    among = rng.integers(0, L, data.draw(st.integers(0, 90))) if L and data.draw(st.booleans()) else None
    pairs = rng.random((B, L)) < data.draw(st.sampled_from([0, 0.3, 0.95]))
    excluded = sp.csr_matrix(pairs) if data.draw(st.booleans()) else None
    barred = np.zeros((B, L), bool)
    if without is not None:
        barred |= without
    if among is not None:
        barred |= ~np.isin(np.arange(L), among)
    if excluded is not None:
        barred |= pairs
    index = SearchSettings(storage=storage).build(vectors)
    numbers, scores = index.search(queries, k, without=without, among=among, excluded=excluded)
    want = full_sort(queries, vectors, k, barred)
    assert numbers.dtype == np.int32 and scores.dtype == np.float32
    assert np.array_equal(numbers, want[0])
    assert np.array_equal(scores, want[1])


@pytest.mark.parametrize("storage", STORAGES)
def test_blocks_of_queries_and_vectors(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "CELLS", 300)
    monkeypatch.setattr(exact, "QUERIES", 7)
    monkeypatch.setattr(exact, "FEW", 3)
    rng = np.random.default_rng(0)
    queries, vectors, pairs = whole(rng, 40, 9), whole(rng, 500, 9), rng.random((40, 500)) < 0.5
    index = SearchSettings(storage=storage).build(vectors)
    numbers, scores = index.search(queries, 30, excluded=sp.csr_matrix(pairs))
    want = full_sort(queries, vectors, 30, pairs)
    assert np.array_equal(numbers, want[0]) and np.array_equal(scores, want[1])


@pytest.mark.parametrize("noise", [0.02, 0.3])
@pytest.mark.parametrize("k", [1, 10, 100])
def test_codes_lose_nothing(noise: float, k: int) -> None:
    """In tight clusters, rounding to 8 bits changes the order of many vectors, but not what is returned."""
    vectors, queries = clustered(4000, 48, noise=noise), clustered(30, 48, 0, noise=noise)
    plain, index = Exact(vectors), SearchSettings(storage="int8").build(vectors)
    assert isinstance(index, Exact) and index.codes is not None
    scanned = search_codes(queries, vectors, index.codes, k, Barred())
    wanted = plain.search(queries, k)
    assert np.array_equal(scanned[0], wanted[0]) and np.array_equal(scanned[1], wanted[1])
    rounded = (index.codes.codes * index.codes.scales[:, None]).astype(np.float32)
    if k == 100:  # otherwise this test would show nothing
        assert not np.array_equal(Exact(rounded).search(queries, k)[0], wanted[0])


def test_codes_of_vectors_of_very_different_lengths() -> None:
    rng = np.random.default_rng(3)
    vectors = np.asarray(rng.normal(size=(900, 20)) * 10 ** rng.uniform(-4, 4, (900, 1)), np.float32)
    vectors[7] = 0
    queries = rng.normal(size=(5, 20)).astype(np.float32)
    queries[2] = 0
    found = SearchSettings(storage="int8").build(vectors).search(queries, 12)
    for one, other in zip(found, Exact(vectors).search(queries, 12), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("storage", STORAGES)
def test_one_query_gives_what_many_give(storage: str) -> None:
    vectors, queries = clustered(3000, 40), clustered(60, 40, 5)
    index = SearchSettings(storage=storage).build(vectors)
    numbers, scores = index.search(queries, 9)
    for i in range(0, 60, 7):
        one = index.search(queries[i : i + 1], 9)
        assert np.array_equal(one[0][0], numbers[i]) and np.array_equal(one[1][0], scores[i])


def test_halves_round_little() -> None:
    vectors, queries = clustered(2000, 64), clustered(50, 64, 5)
    found, scores = SearchSettings(storage="float16").build(vectors).search(queries, 10)
    wanted, products = full_sort(queries, vectors, 10)
    assert np.abs(scores - products).max() < 1e-3
    assert np.mean([len({*a} & {*b}) for a, b in zip(found.tolist(), wanted.tolist(), strict=True)]) > 9.5


@pytest.mark.parametrize("storage", STORAGES)
def test_adding_is_building_from_both(storage: str) -> None:
    first, second, queries = clustered(300, 12), clustered(40, 12, 1) * 3, clustered(20, 12, 2)
    how = SearchSettings(storage=storage)
    index = how.build(first)
    grown = index.add(second)
    for one, other in zip(
        grown.search(queries, 15), how.build(np.concatenate([first, second])).search(queries, 15), strict=True
    ):
        assert np.array_equal(one, other)
    assert len(index) == 300 and len(grown) == 340
    for few in (queries[:1], queries):
        assert (grown.search(few, 5)[0] >= 300).any()
    with pytest.raises(ParameterError, match=r"shape \(L, 12\), but have \(40, 11\)"):
        index.add(second[:, 1:])


@pytest.mark.parametrize("storage", STORAGES)
def test_saved_and_loaded(storage: str, tmp_path: Path) -> None:
    index, queries = SearchSettings(storage=storage).build(clustered(200, 16)), clustered(5, 16, 1)
    arrays, meta = index.state()
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=False)
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in arrays}
    loaded = load_index(mapped, json.loads(json.dumps(meta)))
    assert all(np.shares_memory(array, mapped[name]) for name, array in loaded.state()[0].items())
    for one, other in zip(loaded.search(queries, 5), index.search(queries, 5), strict=True):
        assert np.array_equal(one, other)


def test_damaged_arrays_are_refused() -> None:
    arrays, meta = SearchSettings(storage="int8").build(clustered(50, 8)).state()
    for name, bad in (
        ("vectors", arrays["vectors"].astype(np.float64)),
        ("vectors", arrays["vectors"][0]),
        ("vectors", arrays["vectors"][:49]),
        ("codes", arrays["codes"].astype(np.int16)),
        ("codes", arrays["codes"][:, :4].copy()),
        ("scales", arrays["scales"][:49]),
    ):
        with pytest.raises(StoreError, match="damaged"):
            load_index(arrays | {name: bad}, meta)
    with pytest.raises(StoreError, match="'vectors' is missing"):
        load_index({}, meta)
    with pytest.raises(StoreError, match="kind 'magic'.*install the version"):
        load_index(arrays, {"kind": "magic"})


def test_bad_input_is_refused() -> None:
    index = SearchSettings().build(clustered(50, 8))
    with pytest.raises(ParameterError, match=r"shape \(B, 8\), but have \(2, 7\)"):
        index.search(np.zeros((2, 7), np.float32), 1)
    with pytest.raises(ParameterError, match="k must be at least 0"):
        index.search(np.zeros((2, 8), np.float32), -1)
    with pytest.raises(ParameterError, match=r"`without` must have the shape \(50,\)"):
        index.search(np.zeros((2, 8), np.float32), 1, without=np.zeros(49, bool))
    with pytest.raises(ParameterError, match="numbers from 0 to 49, but holds 3 … 50"):
        index.search(np.zeros((2, 8), np.float32), 1, among=np.array([3, 50]))
    with pytest.raises(ParameterError, match=r"excluded pairs must have the shape \(2, 50\)"):
        index.search(np.zeros((2, 8), np.float32), 1, excluded=sp.csr_matrix((3, 50), dtype=bool))
    bad = clustered(50, 8)
    bad[31, 2] = np.nan
    with pytest.raises(ParameterError, match="vector 31 has infinite or missing values"):
        SearchSettings().build(bad)
    with pytest.raises(ParameterError, match="storage"):
        SearchSettings(storage="int4")  # type: ignore[arg-type]
    assert set(indexes) == {"exact", "approximate"}


def test_kernels_refuse_what_does_not_fit() -> None:
    vectors, codes = clustered(50, 8), coded(clustered(50, 8))
    query = vectors[:1].copy()
    with pytest.raises(ValueError, match="differ in width"):
        search_codes(query[:, :7].copy(), vectors, codes, 3, Barred())
    with pytest.raises(ValueError, match="differ in shape"):
        search_codes(query, vectors[:49], codes, 3, Barred())
    with pytest.raises(ValueError, match="mask"):
        search_codes(query, vectors, codes, 3, Barred(np.ones(49, np.uint8)))
    for ptr, columns, message in (
        ([0], [1], "differ in number"),
        ([0, 2], [1], "end where"),
        ([0, 1], [50], "no such excluded"),
        ([0, 1], [-1], "no such excluded"),
    ):
        barred = Barred(ptr=np.array(ptr, np.int64), columns=np.array(columns, np.int32))
        with pytest.raises(ValueError, match=message):
            search_codes(query, vectors, codes, 3, barred)
    found = np.full((1, 3), -1, np.int32), np.full((1, 3), -np.inf, np.float32)
    with pytest.raises(ValueError, match="outside"):
        offer_block(np.zeros((1, 9), np.float32), 42, *found, Barred(), 50)
    with pytest.raises(ValueError, match="row of results"):
        offer_block(np.zeros((2, 9), np.float32), 0, *found, Barred(), 50)


def test_every_half_is_widened() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits[(bits & 0x7C00) != 0x7C00].view(np.float16).reshape(-1, 62)  # without infinities and NaN
    assert np.array_equal(widen(halves).view(np.uint32), halves.astype(np.float32).view(np.uint32))


def test_best_of_pads_and_orders() -> None:
    numbers = np.array([[4, -1, 2, 9], [-1, -1, -1, 3]])
    scores = np.array([[1, 7, 1, 0], [0, 0, 0, -5]], np.float32)
    found, kept = best_of(numbers, scores, 3)
    assert found.tolist() == [[2, 4, 9], [3, -1, -1]]
    assert kept.tolist() == [[1, 1, 0], [-5, -np.inf, -np.inf]]
    assert best_of(np.empty((2, 0), np.int32), np.empty((2, 0), np.float32), 1)[0].tolist() == [[-1], [-1]]


SCRIPT = """
import hashlib, sys
import numpy as np
from longtail import _native
from longtail._native.dense import Barred, offer_block, search_codes, widen
from longtail.search.exact import coded
_native.set_threads(int(sys.argv[1]))
rng = np.random.default_rng(0)
x, v = (rng.normal(size=(n, 77)).astype(np.float32) for n in (40, 9000))
made = [*search_codes(x, v, coded(v), 30, Barred()), widen(v.astype(np.float16))]
made += [np.full((40, 30), -1, np.int32), np.full((40, 30), -np.inf, np.float32)]
offer_block(np.rint(x @ v.T), 0, *made[-2:], Barred(), 9000)
print(hashlib.sha256(b"".join(array.tobytes() for array in made)).hexdigest())
"""


def test_the_same_bits_for_any_threads_and_both_forms() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, threads],
            env=os.environ | {"LONGTAIL_SIMD": form},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads, form in (("1", ""), ("5", ""), ("2", "portable"))
    }
    assert len(found) == 1


def test_threads_change_nothing() -> None:
    vectors, queries, before = clustered(3000, 40), clustered(60, 40, 5), _native.get_threads()
    index = SearchSettings(storage="int8").build(vectors)
    try:
        found = []
        for threads in (1, 3):
            _native.set_threads(threads)
            found += [(*index.search(queries, 9), *index.search(queries[:2], 9))]
        assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    finally:
        _native.set_threads(before)
