"""The validation split: sizes, groups, seeds, and independence of the order of rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.split import held_out_rows

DIGITS = str.maketrans("0123456789", "abcdefghij")


def dataset(texts: list[str], groups: list[str] | None = None) -> Dataset:
    Y = sp.csr_matrix(np.ones((len(texts), 1), np.float32))
    return Dataset(Texts.of(texts), Y, groups=None if groups is None else Texts.of(groups))


def distinct(n: int) -> list[str]:
    """Texts that differ in letters: digits would be removed by folding."""
    return [f"text {i}".translate(DIGITS) for i in range(n)]


@pytest.mark.parametrize(
    ("n", "held"),
    [(2, 1), (3, 1), (4, 2), (10, 5), (399, 199), (400, 200), (1000, 200), (2000, 200), (2001, 200), (5000, 500)],
)
def test_sizes(n: int, held: int) -> None:
    rows = held_out_rows(dataset(distinct(n)), seed=0)
    assert len(rows) == held
    assert np.array_equal(rows, np.unique(rows)) and rows.min() >= 0 and rows.max() < n


def test_at_most_ten_thousand() -> None:
    assert len(held_out_rows(dataset(distinct(120_000)), seed=3)) == 10_000


def test_groups_do_not_take_it_above_ten_thousand() -> None:
    groups = np.repeat([f"g{i}" for i in range(22)], 9000)
    data = dataset(["same text for all"] * len(groups), groups.tolist())
    for seed in range(3):
        rows = held_out_rows(data, seed)
        assert len(rows) == 9000 and len(set(groups[rows])) == 1
    large = np.repeat([f"g{i}" for i in range(5)], 12_000)  # all are larger: one of them alone
    assert len(held_out_rows(dataset(["same"] * len(large), large.tolist()), seed=0)) == 12_000


def test_points_with_an_empty_key_are_in_no_group() -> None:
    texts = distinct(3000)
    alone = held_out_rows(dataset(texts, [""] * 3000), seed=2)
    assert np.array_equal(alone, held_out_rows(dataset(texts), seed=2))
    mixed = held_out_rows(dataset(texts, [""] * 2000 + [f"g{i // 100}" for i in range(1000)]), seed=2)
    held = mixed[mixed >= 2000]
    assert len(held) % 100 == 0 and len(np.unique(held // 100)) * 100 == len(held)  # groups are whole
    assert 0 < len(mixed[mixed < 2000]) <= 300


@pytest.mark.parametrize("n", [0, 1])
def test_too_few(n: int) -> None:
    with pytest.raises(DataError, match="too few to split off a validation part"):
        held_out_rows(dataset(distinct(n)), seed=0)


def test_seed_and_order() -> None:
    texts = distinct(3000)
    data = dataset(texts)
    first = held_out_rows(data, seed=0)
    assert np.array_equal(first, held_out_rows(data, seed=0))
    other = held_out_rows(data, seed=1)
    assert 0 < len(np.intersect1d(first, other)) < 100  # about a tenth in common, not all
    order = np.random.default_rng(0).permutation(3000)
    shuffled = held_out_rows(data.take(order), seed=0)
    assert {texts[i] for i in first} == {texts[i] for i in order[shuffled]}


def test_new_points_move_few_of_the_old() -> None:
    texts = distinct(6000)
    before = {texts[i] for i in held_out_rows(dataset(texts[:5000]), seed=0)}
    after = {texts[i] for i in held_out_rows(dataset(texts), seed=0)}
    assert len(before & after) > 0.9 * len(before)


def test_near_duplicates_stay_together() -> None:
    texts = [f"{word} {number}." for word in distinct(1000) for number in (1, 22, 333)]
    rows = held_out_rows(dataset(texts), seed=5)
    assert 300 <= len(rows) < 303
    words = [texts[i].rsplit(" ", 1)[0] for i in rows]
    assert len(set(words)) * 3 == len(words)


@given(st.lists(st.integers(1, 40), min_size=2, max_size=60), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_groups_are_whole_and_sizes_hold(sizes: list[int], seed: int, shuffle: int) -> None:
    groups = np.repeat([f"g{i}" for i in range(len(sizes))], sizes)
    groups = np.random.default_rng(shuffle).permutation(groups).tolist()
    n = len(groups)
    data = dataset(["same text for all"] * n, groups)
    wanted = min(max(n // 10, 200), 10_000, n // 2)
    if min(sizes) > n // 2:
        with pytest.raises(DataError, match="cannot split off a validation part"):
            held_out_rows(data, seed)
        return
    rows = held_out_rows(data, seed)
    held = {groups[i] for i in rows}
    assert len(rows) == sum(size for i, size in enumerate(sizes) if f"g{i}" in held)  # whole groups
    assert 0 < len(rows) <= n // 2
    # enough, or no further group that is not too large would have fitted in
    left = [size for i, size in enumerate(sizes) if f"g{i}" not in held and size <= wanted]
    assert len(rows) >= wanted or all(len(rows) + size > n // 2 for size in left)


def test_a_giant_group_stays_in_train() -> None:
    groups = ["giant"] * 3000 + [f"g{i}" for i in range(1000)]
    for seed in range(5):
        rows = held_out_rows(dataset(distinct(4000), groups), seed)
        assert len(rows) == 400 and rows.min() >= 3000


def test_a_group_of_nearly_half_does_not_starve_the_part() -> None:
    groups = ["large"] * 480 + [f"g{i}" for i in range(520)]
    for seed in range(10):
        rows = held_out_rows(dataset(distinct(1000), groups), seed)
        assert len(rows) == 200 and rows.min() >= 480


def test_few_large_groups_give_one() -> None:
    groups = [f"g{i % 3}" for i in range(3000)]
    rows = held_out_rows(dataset(distinct(3000), groups), seed=0)
    assert len(rows) == 1000 and len({groups[i] for i in rows}) == 1


def test_one_group_or_one_text_is_refused() -> None:
    with pytest.raises(DataError, match="another group field"):
        held_out_rows(dataset(distinct(500), ["g"] * 500), seed=0)
    with pytest.raises(DataError, match="one repeated text"):
        held_out_rows(dataset(["Version 1", "version 2", "VERSION: 3"]), seed=0)


def features(rows: list[list[float]]) -> Dataset:
    return Dataset(sp.csr_matrix(np.array(rows, np.float32)), sp.csr_matrix(np.ones((len(rows), 1), np.float32)))


def test_feature_rows_go_by_their_content() -> None:
    rng = np.random.default_rng(0)
    base = (rng.random((1000, 8)) < 0.5) * rng.random((1000, 8))
    data = features([*base.tolist(), *base.tolist()])  # every row twice
    rows = held_out_rows(data, seed=0)
    assert 200 <= len(rows) < 204
    assert set(rows[rows < 1000]) == set(rows[rows >= 1000] - 1000)
    order = rng.permutation(2000)
    assert set(order[held_out_rows(data.take(order), seed=0)]) == set(rows)
    wide = Dataset(data.features.astype(np.float64), data.Y)  # the same numbers in another layout
    wide.features.indices = wide.features.indices.astype(np.int64)
    assert np.array_equal(held_out_rows(wide, seed=0), rows)
    with pytest.raises(DataError, match="cannot split off a validation part"):
        held_out_rows(features([[0, 0], [0, 0], [0, 0]]), seed=0)


def test_with_validation_keeps_counts_and_parts() -> None:
    corpus = Corpus("x", dataset(distinct(1000)), Labels.of(["only"]))
    cut = corpus.with_validation(seed=0)
    assert cut.dev is not None and len(cut.dev) == 200 and len(cut.train) == 800
    assert sorted([*cut.train.texts, *cut.dev.texts]) == sorted(corpus.train.texts)
    assert cut.labels.counts.tolist() == [1000] and cut.labels.points == 1000  # of the original train
    assert cut.with_validation(seed=1) is cut
