"""The layout of a level (src/level.h) in all its forms, against a search that is spelled out number by number.

Weights and values are small multiples of ½, so that every sum is exact and equal scores are really equal.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail
from longtail import _native
from longtail._native.linear import BeamSearch, PackedLevel, WeightKind, Weights, pack_level, unpack_level
from longtail.core.errors import StoreError

KINDS: list[WeightKind] = ["float32", "float16", "int8"]
POSTS = ["none", "l3-hinge", "sigmoid"]


@dataclass
class Tree:
    """Levels of random weights: for each the first child of every parent, and the weights (K, width + 1)."""

    width: int
    child_ptr: list[np.ndarray]
    weights: list[sp.csr_matrix]

    def packed(self, kind: WeightKind) -> list[PackedLevel]:
        made = zip(self.child_ptr, self.weights, strict=True)
        return [pack_level(ptr, as_weights(W), self.width + 1, kind) for ptr, W in made]


def as_weights(W: sp.csr_matrix) -> Weights:
    return Weights(W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data.astype(np.float32))


def random_weights(rng: np.random.Generator, nodes: int, width: int, features: int, density: float) -> sp.csr_matrix:
    """Rows over at most `features` columns of width + 1, the last among them; each column as dense as it likes."""
    columns = np.unique(np.append(rng.integers(0, width, features), width)) if width else np.array([0])
    share = np.minimum(1, density * rng.exponential(size=len(columns)))
    dense = rng.integers(-4, 5, (nodes, len(columns))) / 2 * (rng.random((nodes, len(columns))) < share)
    dense[rng.random(nodes) < 0.1] = 0
    at, which = np.nonzero(dense)
    matrix = sp.csr_matrix((dense[at, which].astype(np.float32), (at, columns[which])), shape=(nodes, width + 1))
    matrix.sort_indices()
    return matrix


def random_tree(rng: np.random.Generator, width: int, fanouts: list[int], features: int, density: float) -> Tree:
    """As many levels as `fanouts`; a parent has up to so many children, one of them exactly."""
    tree, parents = Tree(width, [], []), 1
    for fanout in fanouts:
        sizes = rng.integers(1, fanout + 1, parents)
        sizes[rng.integers(parents)] = fanout
        tree.child_ptr.append(np.append(0, np.cumsum(sizes)).astype(np.int64))
        parents = int(sizes.sum())
        W = random_weights(rng, parents, width, features, density)
        bare = np.repeat(rng.random(len(sizes)) < 0.1, sizes)  # parents without any weight
        tree.weights.append(sp.csr_matrix(sp.diags((~bare).astype(np.float32)) @ W, dtype=np.float32))
        tree.weights[-1].eliminate_zeros()
        tree.weights[-1].sort_indices()
    return tree


def random_queries(rng: np.random.Generator, n: int, tree: Tree) -> sp.csr_matrix:
    """Features that some node uses and features that none does; the first query is empty."""
    used = np.unique(np.concatenate([W.indices for W in tree.weights]))
    pool = np.append(used[used < tree.width], rng.integers(0, tree.width, 4) if tree.width else [])
    rows = [rng.permutation(np.unique(pool))[: rng.integers(0, 30)] for _ in range(n)]
    rows[0] = rows[0][:0]
    indptr = np.append(0, np.cumsum([len(row) for row in rows]))
    indices = np.concatenate(rows).astype(np.int32)  # in any order within a row
    return sp.csr_matrix((rng.integers(-2, 3, len(indices)).astype(np.float32), indices, indptr), (n, tree.width))


def margins(W: sp.csr_matrix, X: sp.csr_matrix, kind: WeightKind) -> np.ndarray:
    """X W + bias for all nodes, in float32; int8 weights are q·|q| of the largest, 127²-th by 127²-th."""
    with_bias = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    if kind != "int8":
        return (with_bias @ W.T).toarray().astype(np.float32)
    largest = abs(W).max(axis=1).toarray().ravel().astype(np.float32)
    scale = largest / np.float32(127 * 127)
    roots = W.copy()
    with np.errstate(divide="ignore"):
        roots.data = np.rint(np.sqrt(abs(W.data) / np.repeat(scale, np.diff(W.indptr))))
    roots.data = np.sign(W.data) * roots.data**2
    return (with_bias @ roots.T).toarray().astype(np.float32) * scale


def step(post: str, parent: np.ndarray, margin: np.ndarray) -> np.ndarray:
    if post == "none":
        return margin
    if post == "l3-hinge":
        gap = np.maximum(np.float32(1) - margin, np.float32(0))
        return parent - gap * gap * gap
    return parent - np.log1p(np.exp(-margin))


def spelled_out(
    tree: Tree, X: sp.csr_matrix, kind: WeightKind, beam: int, k: int, post: str, names: np.ndarray, usable: np.ndarray
) -> list[list[tuple[int, float]]]:
    """For each query the k best (name, score), ties by lower name; log scores unless post is none."""
    by_level = [margins(W, X, kind) for W in tree.weights]
    found = []
    for q in range(X.shape[0]):
        kept = [(0, np.float32(0))]
        for t, ptr in enumerate(tree.child_ptr):
            reached: list[tuple[int, np.float32]] = []
            for node, score in kept:
                own = np.arange(ptr[node], ptr[node + 1])
                reached += zip(own.tolist(), step(post, score, by_level[t][q, own]), strict=True)
            bottom = t == len(tree.child_ptr) - 1
            if bottom:
                reached = [(int(names[node]), score) for node, score in reached if usable[node]]
            kept = sorted(reached, key=lambda pair: (-pair[1], pair[0]))[: k if bottom else beam]
        found.append([(name, float(score)) for name, score in kept])
    return found


def check_search(tree: Tree, X: sp.csr_matrix, kind: WeightKind, beam: int, k: int, post: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = int(tree.child_ptr[-1][-1])
    names, usable = rng.permutation(nodes).astype(np.int32), rng.random(nodes) < 0.8
    levels = tree.packed(kind)
    for level in levels:  # as a loaded model has them
        for array in level:
            array.flags.writeable = False
    search = BeamSearch(tree.width, levels)
    asked = {"bias": 1.0, "beam": beam, "k": k, "post": post, "names": names, "usable": usable}
    found, scores = search.search(X, **asked)
    expected = spelled_out(tree, X, kind, beam, k, post, names, usable)
    for q, best in enumerate(expected):
        assert (found[q, len(best) :] == -1).all() and (scores[q, len(best) :] == -np.inf).all()
        named = np.array([score for _, score in best], np.float32)
        named = named if post == "none" else np.exp(named)
        assert np.allclose(scores[q, : len(best)], named, rtol=1e-5, atol=1e-30)
        if post != "sigmoid":  # whose scores are not exact
            assert found[q, : len(best)].tolist() == [name for name, _ in best]
    for q in range(X.shape[0]):  # one at a time
        alone = search.search(X[[q]], **asked)
        assert np.array_equal(alone[0][0], found[q]) and np.array_equal(alone[1][0], scores[q])
    before = _native.get_threads()
    _native.set_threads(3)
    again = search.search(X, **asked)
    _native.set_threads(before)
    assert np.array_equal(again[0], found) and np.array_equal(again[1], scores)


def check_round_trip(tree: Tree, kind: WeightKind) -> None:
    for level, W in zip(tree.packed(kind), tree.weights, strict=True):
        back = unpack_level(level)
        assert np.array_equal(back.ptr, W.indptr) and np.array_equal(back.features, W.indices)
        assert np.allclose(back.values, W.data, rtol=0.02, atol=0)
        assert kind == "int8" or np.array_equal(back.values, W.data)
        parent = len(level.child_ptr) // 2 - 1 if len(level.child_ptr) > 2 else 0
        own = W[level.child_ptr[parent] : level.child_ptr[parent + 1]]
        one = unpack_level(level, parent)
        assert np.array_equal(one.ptr, own.indptr) and np.array_equal(one.features, own.indices)
        some = np.unique(own.indices)[::-2].astype(np.int32)
        few = unpack_level(level, parent, some)
        assert np.array_equal(few.features, own.indices[np.isin(own.indices, some)])


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    post=st.sampled_from(POSTS),
    width=st.sampled_from([0, 1, 2, 3, 30, 700, 70_000, (1 << 20) - 1, 1 << 20, 3_000_000]),
    fanouts=st.lists(st.sampled_from([1, 2, 7, 8, 9, 31, 40]), min_size=1, max_size=3),
    features=st.sampled_from([0, 1, 5, 60, 400]),
    density=st.sampled_from([0.02, 0.2, 0.6, 3.0]),
    beam=st.sampled_from([1, 2, 5, 100_000]),
    k=st.sampled_from([1, 3, 50, 5000]),
    n=st.sampled_from([1, 3, 20]),
)
def test_search_is_as_spelled_out(
    seed: int,
    kind: WeightKind,
    post: str,
    width: int,
    fanouts: list[int],
    features: int,
    density: float,
    beam: int,
    k: int,
    n: int,
) -> None:
    rng = np.random.default_rng(seed)
    fanouts = fanouts if np.prod(fanouts) < 3000 else fanouts[:2]
    tree = random_tree(rng, width, fanouts, features, density)
    check_round_trip(tree, kind)
    check_search(tree, random_queries(rng, n, tree), kind, beam, k, post, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("children", "bytes_of_child"), [(256, 1), (257, 2), (65_536, 2), (65_537, 4)])
def test_numbers_of_children_in_one_two_and_four_bytes(children: int, bytes_of_child: int, kind: WeightKind) -> None:
    rng = np.random.default_rng(children)
    # of every feature: how many children use it, from one to all, so that pairs, bits and rows are all there
    counts = [1, 2, children // 40, children // 9, children // 3, children - 1, children]
    columns = [np.sort(rng.permutation(children)[:count]) for count in counts]
    columns[0][:] = children - 1
    at, which = np.concatenate(columns), np.repeat(np.arange(len(counts)) * 11, counts)
    values = rng.choice([-1.5, -1, 0.5, 2], len(at)).astype(np.float32)
    W = sp.csr_matrix((values, (at, which)), shape=(children, 90))
    W.sort_indices()
    tree = Tree(89, [np.array([0, children])], [W])
    assert tree.packed(kind)[0].form[0] == bytes_of_child
    check_round_trip(tree, kind)
    X = sp.csr_matrix(rng.integers(-2, 3, (70, 89)).astype(np.float32))  # more visits than are made as they come
    search, most = BeamSearch(89, tree.packed(kind)), min(children, 1000)
    found, scores = search.search(X, bias=1.0, beam=1, k=most, post="none")
    expected = margins(W, X[:3], kind)
    for q in range(3):
        best = np.lexsort((np.arange(children), -expected[q]))[:most]
        assert np.array_equal(found[q], best) and np.array_equal(scores[q], expected[q][best])
        alone = search.search(X[[q]], bias=1.0, beam=1, k=most, post="none")
        assert np.array_equal(alone[0][0], found[q]) and np.array_equal(alone[1][0], scores[q])


def test_int8_weights_near_nothing_keep_their_sign() -> None:
    values = np.array([3.1e-41, -1e-41, -2e-41], np.float32)
    level = pack_level(np.array([0, 2]), Weights(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), values), 3, "int8")
    back = unpack_level(level)
    assert (np.sign(back.values) == np.sign(values)).all() and (np.abs(back.values) <= np.abs(values)).all()


def test_a_beam_beyond_all_measure() -> None:
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 30, [5, 5], 20, 0.5)
    check_search(tree, random_queries(rng, 4, tree), "float32", 1 << 50, 3, "l3-hinge", 5)


def test_what_does_not_belong_together_is_refused() -> None:
    tree = random_tree(np.random.default_rng(7), 30, [5, 5], 20, 0.5)
    levels, X = tree.packed("int8"), sp.csr_matrix((2, 30), dtype=np.float32)
    asked: dict[str, Any] = {"bias": 1.0, "beam": 3, "k": 3, "post": "none"}
    search, nodes = BeamSearch(30, levels), int(levels[-1].child_ptr[-1])
    with pytest.raises(ValueError, match="names must be as many"):
        search.search(X, **asked, names=np.arange(nodes - 1, dtype=np.int32))
    with pytest.raises(ValueError, match="usable must be as many"):
        search.search(X, **asked, usable=np.ones(nodes + 1, bool))
    with pytest.raises(ValueError, match="more or fewer parents"):
        BeamSearch(30, levels[::-1])
    with pytest.raises(ValueError, match="5-bit feature numbers does not fit 32 features"):
        BeamSearch(32, levels)
    with pytest.raises(ValueError, match="needs a level"):
        BeamSearch(30, []).search(X, **asked)


@pytest.fixture(scope="module")
def trained() -> longtail.Model:
    return longtail.recipe("xr-linear", leaf_size=2, branching=2, weights="int8").fit(topic_corpus())


def moved(array: np.ndarray, at: int, by: int) -> np.ndarray:
    array = array.copy()
    array[at] += by
    return array


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("level1.data", lambda a: a[:-1], "more or fewer bytes"),
        ("level1.data", lambda a: a[:0], "more or fewer bytes"),
        ("level1.buckets", lambda a: a[: len(a) // 2], "more or fewer buckets"),
        ("level1.bucket_ptr", lambda a: a[:-1], "differ in their parents"),
        ("level1.bucket_ptr", lambda a: moved(a, 1, 1), "wrong number of buckets"),
        ("level1.bucket_ptr", lambda a: moved(a, 1, -(2**60)), "wrong number of buckets"),
        ("level1.data_ptr", lambda a: moved(a, 0, 4), "does not begin at 0"),
        ("level1.data_ptr", lambda a: moved(a, 1, 2), "do not end where they should"),
        ("level1.data_ptr", lambda a: moved(a, -1, 2**40), "more or fewer bytes"),
        ("level1.scales", lambda a: a[1:], "more or fewer scales"),
        ("level1.scales", lambda a: np.full_like(a, np.inf), "not a finite number"),
        ("level1.buckets", lambda a: np.full_like(a, 2**31), "begins beyond its end"),
        ("level1.buckets", lambda a: np.full_like(a, a.max()), "overlap|wrong bucket|does not have"),
        ("level1.data", lambda a: np.full_like(a, 255), "more slots than bytes"),
        ("level1.form", lambda a: a[:1], "its parts do not fit together"),
        ("level1.form", lambda a: moved(a, 0, 2), "1, 2 or 4 bytes"),
        ("level1.form", lambda a: moved(a, 2, 1), "does not fit"),
        ("level1.child_ptr", lambda a: moved(a, 1, 1), "do not belong to its tree"),
        ("ends0", lambda a: moved(a, 1, 1), "do not belong to its tree"),
        ("order", lambda a: a[:-1], "each label once"),
        ("order", lambda a: moved(a, 2, 10**6), "each label once"),
    ],
)
def test_arrays_of_a_damaged_model_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Any, name: str, damage: Any, told: str
) -> None:
    arrays, meta = trained.state()
    arrays[f"tree0.{name}"] = damage(arrays[f"tree0.{name}"])
    monkeypatch.setattr(trained, "state", lambda: (arrays, meta))
    trained.save(tmp_path / "model")
    with pytest.raises(StoreError, match=told) as caught:
        longtail.load(tmp_path / "model", verify=False)
    assert str(tmp_path / "model") in str(caught.value)
