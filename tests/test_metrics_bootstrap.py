"""The paired bootstrap: the kernel against NumPy, and the intervals it leads to."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import orjson
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import _native
from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.metrics import compare, evaluate, intervals

N, L = 400, 60


@pytest.fixture
def threads() -> Iterator[None]:
    before = _native.get_threads()
    yield
    _native.set_threads(before)


def system(quality: float, seed: int) -> Ranking:
    """A ranking whose first labels are right with probability `quality`."""
    rng = np.random.default_rng(seed)
    Y = truth()
    scores = rng.random((N, L), dtype=np.float32)
    scores[Y.toarray() > 0] += rng.random(Y.nnz) < quality
    return Ranking(*_native.top_k(scores, 5), labels())


def truth() -> sp.csr_matrix:
    rng = np.random.default_rng(0)
    Y = sp.random(N, L, 0.05, format="csr", rng=rng, dtype=np.float32)
    Y.data[:] = 1
    return Y


def labels() -> Labels:
    return Labels.of(map(str, range(L))).with_counts(np.arange(L) ** 2 // 50, 1000)


def splitmix(z: np.ndarray) -> np.ndarray:
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def drawn_rows(n: int, seed: int, r: int) -> np.ndarray:
    """The rows that resample r of the kernel draws, in NumPy."""
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        start = splitmix(splitmix(np.array([seed], np.uint64) + step) + np.uint64(r + 1) * step)
        numbers = splitmix(start + np.arange(1, n + 1, dtype=np.uint64) * step)
        return (numbers >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 700), st.integers(1, 11), st.integers(0, 9), st.integers(0, 2**64 - 1), st.integers(0, 5))
def test_kernel_equals_numpy(n: int, columns: int, resamples: int, seed: int, first: int) -> None:
    values = np.random.default_rng(n).integers(-8, 9, (n, columns)) / 4.0  # sums are exact in any order
    sums = _native.bootstrap_sums(values, resamples, seed, first)
    expected = [values[drawn_rows(n, seed, first + r)].sum(0) for r in range(resamples)]
    assert np.array_equal(sums, np.array(expected).reshape(resamples, columns))


def test_draws_are_uniform() -> None:
    n, resamples = 40, 5000
    drawn = _native.bootstrap_sums(np.eye(n), resamples, 1)  # how often each row was drawn
    assert (drawn.sum(1) == n).all()
    # each count is binomial(n, 1/n): mean 1, variance 1 − 1/n; four standard errors of each estimate
    assert drawn.mean(0) == pytest.approx(1, abs=4 / np.sqrt(resamples))
    assert drawn.var(0) == pytest.approx(1 - 1 / n, abs=4 * np.sqrt(3 / resamples))
    # counts of two rows are correlated as in a multinomial, −1 / (n − 1); resamples are not correlated at all
    pairs = np.corrcoef(drawn.T)[np.triu_indices(n, 1)]
    assert pairs.mean() == pytest.approx(-1 / (n - 1), abs=0.002)
    assert abs(np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]) < 0.01


def test_any_number_of_threads_gives_the_same_bits(threads: None) -> None:
    values = np.random.default_rng(5).normal(size=(1000, 7))
    found = []
    for count in (1, 2, 3, 8):
        _native.set_threads(count)
        found.append(_native.bootstrap_sums(values, 101, 3).tobytes())
    assert len(set(found)) == 1
    # and numbering from the middle is the same as starting there
    _native.set_threads(2)
    assert _native.bootstrap_sums(values, 50, 3, first=51).tobytes() == found[0][51 * 7 * 8 :]


def test_same_seed_same_comparison(threads: None) -> None:
    a, b = system(0.5, 1), system(0.6, 2)
    first = compare(a, b, truth(), resamples=300, seed=4)
    _native.set_threads(1)
    assert compare(a, b, truth(), resamples=300, seed=4) == first
    assert compare(a, b, truth(), resamples=300, seed=5) != first


def test_drawing_in_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = system(0.5, 1), system(0.6, 2)
    whole = compare(a, b, truth(), resamples=101)
    monkeypatch.setattr("longtail.metrics.bootstrap.CHUNK", 7)
    assert compare(a, b, truth(), resamples=101) == whole


def test_identical_systems_differ_by_exactly_nothing() -> None:
    a = system(0.5, 1)
    result = compare(a, a, truth(), resamples=200)
    assert len(result.rows) == 9 * 3
    for row in result.rows:
        assert (row.difference, row.low, row.high, row.verdict) == (0, 0, 0, "not separable")


def test_better_system_is_ahead_and_order_turns_the_sign() -> None:
    a, b = system(0.2, 1), system(0.8, 2)
    wanted = ("P", "nDCG", "R", "RP", "PSP", "PSnDCG", "macroF1", "macroR")  # both cover every label
    there, back = (compare(*pair, truth(), resamples=500, metrics=wanted) for pair in ((a, b), (b, a)))
    for one, other in zip(there.rows, back.rows, strict=True):
        assert one.verdict == "b ahead" and other.verdict == "a ahead"
        assert one.low < one.difference < one.high
        assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
        assert one.difference == one.b - one.a
    scores = evaluate(b, truth()).scores
    assert {row.metric: row.b for row in there.rows}.items() <= scores.items()


def test_interval_of_a_known_case() -> None:
    """P@1 of n points with share p right: the standard error is √(p(1−p)/n), the interval ±1.96 of it."""
    n, p = 900, 0.3
    Y = sp.csr_matrix(np.repeat([[1.0, 0.0]], n, 0).astype(np.float32))
    indices = np.where(np.arange(n) < p * n, 0, 1).astype(np.int32)[:, None]
    predicted = Ranking(indices, np.zeros((n, 1), np.float32), Labels.of(["x", "y"]))
    (row,) = intervals(predicted, Y, ks=1, metrics=["P@1"]).rows
    half = 100 * 1.96 * np.sqrt(p * (1 - p) / n)
    assert row.value == pytest.approx(100 * p)
    assert (row.low, row.high) == pytest.approx((100 * p - half, 100 * p + half), abs=0.15)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    n, p, trials = 200, 0.4, 200
    Y = sp.csr_matrix(np.repeat([[1.0, 0.0]], n, 0).astype(np.float32))
    covered = 0
    for seed in range(trials):
        indices = (rng.random((n, 1)) >= p).astype(np.int32)
        predicted = Ranking(indices, np.zeros((n, 1), np.float32), Labels.of(["x", "y"]))
        (row,) = intervals(predicted, Y, ks=1, metrics="P", resamples=400, seed=seed).rows
        covered += row.low <= 100 * p <= row.high
    assert 0.89 <= covered / trials <= 0.99


def resampled_by_hand(a: Ranking, b: Ranking, Y: sp.csr_matrix, name: str, resamples: int) -> tuple[float, float]:
    """The interval of b − a by evaluating the drawn points again, one resample at a time."""
    differences = []
    for r in range(resamples):
        rows = drawn_rows(N, 0, r).astype(np.int64)
        differences.append(evaluate(b[rows], Y[rows])[name] - evaluate(a[rows], Y[rows])[name])
    low, high = np.percentile(differences, (2.5, 97.5))
    return float(low), float(high)


@pytest.mark.parametrize("name", ["P@3", "nDCG@5", "PSP@3", "PSnDCG@5"])
def test_resampling_is_evaluating_the_drawn_points(name: str) -> None:
    """In particular PSP: the ratio of the drawn numerator and the drawn denominator."""
    a, b = system(0.4, 1), system(0.5, 2)
    (row,) = compare(a, b, truth(), resamples=40, metrics=[name]).rows
    assert (row.low, row.high) == pytest.approx(resampled_by_hand(a, b, truth(), name, 40))


def test_label_measures_draw_labels() -> None:
    """Coverage: the share of drawn labels that are covered, from a 0/1 value of each label."""
    a, b, Y = system(0.2, 1), system(0.4, 2), truth()

    def covered(ranking: Ranking) -> np.ndarray:
        hits = _native.pick(Y, ranking.indices[:, :1]).ravel() > 0
        return np.isin(np.flatnonzero(Y.getnnz(0)), ranking.indices[hits, 0]).astype(float)

    difference = covered(b) - covered(a)
    drawn = [100 * difference[drawn_rows(len(difference), 0, r)].mean() for r in range(60)]
    (row,) = compare(a, b, Y, resamples=60, metrics=["C@1"]).rows
    assert (row.low, row.high) == pytest.approx(tuple(np.percentile(drawn, (2.5, 97.5))))
    assert compare(a, b, Y, resamples=1).labels == len(difference)


def test_pooled_runs_are_averaged_before_drawing() -> None:
    a, b, Y = [system(0.4, s) for s in (1, 2, 3)], [system(0.5, s) for s in (4, 5)], truth()
    result = compare(a, b, Y, resamples=200, ks=(1, 5))
    by_name = {row.metric: row for row in result.rows}
    for name in ("P@5", "PSP@1", "C@5", "macroF1@1"):
        assert by_name[name].a == pytest.approx(np.mean([evaluate(run, Y, ks=(1, 5))[name] for run in a]))
        assert by_name[name].b == pytest.approx(np.mean([evaluate(run, Y, ks=(1, 5))[name] for run in b]))
    # runs that are all the same are one run
    one = compare(a[0], b[0], Y, resamples=200)
    same = compare([a[0]] * 2, [b[0]] * 4, Y, resamples=200)
    for left, right in zip(one.rows, same.rows, strict=True):
        assert (left.low, left.high) == pytest.approx((right.low, right.high))


def test_metrics_can_be_chosen_by_name_or_family() -> None:
    a, Y = system(0.4, 1), truth()
    names = [row.metric for row in intervals(a, Y, metrics=["PSP", "P@3", "C@1"], resamples=5).rows]
    assert names == ["P@3", "PSP@1", "PSP@3", "PSP@5", "C@1"]
    full = {row.metric: row for row in intervals(a, Y, resamples=50).rows}
    for row in intervals(a, Y, metrics=["PSnDCG@3", "R@1"], resamples=50).rows:
        assert row == full[row.metric]  # the draw does not depend on what is asked for
    with pytest.raises(ParameterError, match="Did you mean 'nDCG@1'"):
        compare(a, a, Y, ks=1, metrics=["ndcg@1"])
    with pytest.raises(ParameterError, match="PSP@1 needs the label counts"):
        compare(a.to_csr(), a.to_csr(), Y, ks=1, metrics=["PSP@1"])


def test_sparse_scores_and_ignored_pairs() -> None:
    a, b, Y = system(0.4, 1), system(0.5, 2), truth()
    ignore = sp.random(N, L, 0.02, format="csr", rng=np.random.default_rng(2)).astype(bool)
    result = compare(a.to_csr(), b, Y, ignore=ignore, resamples=20)
    assert {row.metric: row.a for row in result.rows} == pytest.approx(evaluate(a, Y, ignore=ignore).scores)


def test_json() -> None:
    result = compare(system(0.2, 1), system(0.8, 2), truth(), ks=1, resamples=50)
    back = orjson.loads(orjson.dumps(result.to_json()))
    assert back["rows"][0]["metric"] == "P@1" and back["rows"][0]["verdict"] == "b ahead"
    assert (back["points"], back["resamples"], back["seed"]) == (N, 50, 0)
    single = orjson.loads(orjson.dumps(intervals(system(0.2, 1), truth(), ks=1, resamples=50).to_json()))
    assert set(single["rows"][0]) == {"metric", "value", "low", "high"}


def test_bad_arguments_are_refused() -> None:
    a, Y = system(0.4, 1), truth()
    with pytest.raises(ParameterError, match="resamples"):
        compare(a, a, Y, resamples=0)
    with pytest.raises(ParameterError, match="seed"):
        compare(a, a, Y, seed=-1)
    with pytest.raises(ParameterError, match="at least one run"):
        compare([], a, Y)
    with pytest.raises(DataError, match=r"\(399, 60\).*\(400, 60\)"):
        compare(a, a[:399], Y)


SCRIPT = """
import hashlib, numpy as np, scipy.sparse as sp
from longtail import _native
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.metrics import compare, evaluate
rng = np.random.default_rng(0)
dense = rng.integers(0, 500, (60, 3000)).astype(np.float32)
labels = Labels.of(map(str, range(3000))).with_counts(np.arange(3000) % 7, 900)
Y = sp.random(60, 3000, 0.01, format="csr", rng=rng, dtype=np.float32)
a = Ranking(*_native.top_k(dense, 17), labels)
b = Ranking(*_native.top_k(sp.csr_matrix(dense), 17), labels)
picked = _native.pick(Y, a.indices)
results = [a.indices, a.scores, b.indices, picked, np.array(list(evaluate(a, Y).scores.values()))]
results.append(np.array([(row.low, row.high) for row in compare(a, b.cut(3), Y, resamples=99).rows]))
print(_native.simd_name(), hashlib.sha256(b"".join(r.tobytes() for r in results)).hexdigest())
"""


def test_both_kernel_paths_give_the_same_bits() -> None:
    found = {}
    for wish in ("portable", ""):
        environment = os.environ | {"LONGTAIL_SIMD": wish}
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found[wish] = done.stdout.split()
    assert found["portable"][0] == "portable"
    assert found["portable"][1] == found[""][1] and len(found[""][1]) == hashlib.sha256().digest_size * 2
