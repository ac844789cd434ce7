"""Our metrics against the formulas of the field, written out as loops over Python lists."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.metrics import evaluate, intervals, micro


@dataclass
class Case:
    """A test set as plain lists: for each point its ranked labels (None = pad), truth and ignored labels."""

    L: int
    ranked: list[list[int | None]]
    truth: list[dict[int, float]]
    ignore: list[set[int]]
    counts: list[int]
    train: int
    ks: list[int]

    @property
    def labels(self) -> Labels:
        keys = [f"label {i}" for i in range(self.L)]
        return Labels.of(keys).with_counts(np.array(self.counts), self.train)

    @property
    def ranking(self) -> Ranking:
        width = max((len(row) for row in self.ranked), default=0)
        indices = np.full((len(self.ranked), width), -1, np.int32)
        for i, row in enumerate(self.ranked):
            for j, label in enumerate(row):
                indices[i, j] = -1 if label is None else label
        scores = np.where(indices >= 0, -np.arange(width, dtype=np.float32), -np.inf)
        return Ranking(indices, scores.astype(np.float32), self.labels)

    @property
    def targets(self) -> sp.csr_matrix:
        Y = sp.lil_matrix((len(self.truth), self.L), dtype=np.float32)
        for i, row in enumerate(self.truth):
            for label, y in row.items():
                Y[i, label] = y
        return Y.tocsr()

    @property
    def ignored(self) -> sp.csr_matrix:
        pairs = sp.lil_matrix((len(self.ignore), self.L), dtype=bool)
        for i, row in enumerate(self.ignore):
            for label in row:
                pairs[i, label] = True
        return pairs.tocsr()


def after_filter(case: Case) -> tuple[list[list[int | None]], list[dict[int, float]]]:
    """Ignored pairs dropped from the ranking and from the truth."""
    ranked = [[x for x in row if x not in gone] for row, gone in zip(case.ranked, case.ignore, strict=True)]
    truth = [
        {label: y for label, y in row.items() if label not in gone and y > 0}
        for row, gone in zip(case.truth, case.ignore, strict=True)
    ]
    return ranked, truth


def propensity(case: Case, label: int, A: float = 0.55, B: float = 1.5) -> float:
    C = max((math.log(case.train) - 1) * (B + 1) ** A, 0)
    return 1 / (1 + C * math.exp(-A * math.log(case.counts[label] + B)))


def reference(case: Case) -> dict[str, float]:
    """Every metric of the specification, in percent."""
    ranked, truth = after_filter(case)
    N = len(truth)
    p = [propensity(case, label) for label in range(case.L)]
    scores: dict[str, float] = {}
    for k in case.ks:
        P = nDCG = R = RP = psp = psp_best = psdcg = psdcg_best = 0.0
        hit_sum, picked, true_points = [0.0] * case.L, [0] * case.L, [0] * case.L
        for row, true in zip(ranked, truth, strict=True):
            hits = dcg = 0.0
            for rank, label in enumerate(row[:k], 1):
                if label is None:
                    continue
                y = true.get(label, 0.0)
                hits += y
                dcg += y / math.log2(rank + 1)
                psp += y / p[label]
                psdcg += y / p[label] / math.log2(rank + 1)
                hit_sum[label] += y
                picked[label] += 1
            for label in true:
                true_points[label] += 1
            best = sorted(true.values(), reverse=True)[: min(k, len(true))]
            ideal = sum(y / math.log2(rank + 1) for rank, y in enumerate(best, 1))
            P += hits / k
            nDCG += dcg / ideal if ideal else 0
            R += hits / len(true) if true else 0
            RP += hits / min(k, len(true)) if true else 0
            weighted = sorted((y / p[label] for label, y in true.items()), reverse=True)[:k]
            psp_best += sum(weighted)
            psdcg_best += sum(w / math.log2(rank + 1) for rank, w in enumerate(weighted, 1))
        seen = [label for label in range(case.L) if true_points[label]]
        f1 = [2 * hit_sum[x] / (picked[x] + true_points[x]) for x in seen]
        recall = [hit_sum[x] / true_points[x] for x in seen]
        values = {
            "P": P / N,
            "nDCG": nDCG / N,
            "R": R / N,
            "RP": RP / N,
            "PSP": psp / psp_best if psp_best else 0,
            "PSnDCG": psdcg / psdcg_best if psdcg_best else 0,
            "C": sum(hit_sum[x] > 0 for x in seen) / max(len(seen), 1),
            "macroF1": sum(f1) / max(len(seen), 1),
            "macroR": sum(recall) / max(len(seen), 1),
        }
        scores |= {f"{name}@{k}": 100 * value for name, value in values.items()}
    return scores


def reference_bins(case: Case) -> list[tuple[int, float]]:
    """Number of labels and contribution of the five bins and of the labels without training examples."""
    ranked, truth = after_filter(case)
    k = 5 if 5 in case.ks else max(case.ks)
    gain = [0.0] * case.L
    for row, true in zip(ranked, truth, strict=True):
        for label in row[:k]:
            if label is not None:
                gain[label] += 100 * true.get(label, 0.0) / k / len(truth)
    volume, before = sum(case.counts), 0
    bins: list[list[int]] = [[] for _ in range(5)]
    for label in sorted(range(case.L), key=lambda x: (-case.counts[x], x)):
        # the bin b with b/5 of the volume at or before the label's first example
        b = 4 if case.counts[label] == 0 else max(b for b in range(5) if b * volume <= 5 * before)
        bins[b].append(label)
        before += case.counts[label]
    bins.append([label for label in range(case.L) if case.counts[label] == 0])
    return [(len(members), sum(gain[label] for label in members)) for members in bins]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    L, N = draw(st.integers(1, 8)), draw(st.integers(1, 7))
    label = st.integers(0, L - 1)
    value = draw(st.sampled_from([st.just(1.0), st.sampled_from([0.125, 0.3, 0.5, 0.75, 1.0])]))
    width = draw(st.integers(1, L))
    ranked: list[list[int | None]] = []
    for _ in range(N):
        order: list[int | None] = list(draw(st.permutations(range(L)))[:width])
        for hole in draw(st.sets(st.integers(0, width - 1), max_size=2)):
            order[hole] = None
        ranked.append(order)
    # the truth as the float32 it is stored as
    truth = [
        {x: float(np.float32(y)) for x, y in draw(st.dictionaries(label, value, max_size=L)).items()} for _ in range(N)
    ]
    ignore = [draw(st.sets(label, max_size=3)) for _ in range(N)]
    counts = draw(st.lists(st.sampled_from([0, 0, 1, 2, 7, 40]), min_size=L, max_size=L))
    ks = sorted(draw(st.sets(st.integers(1, 11), min_size=1, max_size=4)))
    return Case(L, ranked, truth, ignore, counts, draw(st.sampled_from([1, 2, 50, 1000])), ks)


def check(scores: dict[str, float], expected: dict[str, float]) -> None:
    assert set(scores) == set(expected)
    assert scores == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_rankings_match_the_literal_definitions(case: Case) -> None:
    report = evaluate(case.ranking, case.targets, ks=case.ks, ignore=case.ignored)
    check(report.scores, reference(case))
    bins = [(row.labels, row.contribution) for row in report.by_frequency]
    assert [n for n, _ in bins] == [n for n, _ in reference_bins(case)]
    assert [c for _, c in bins] == pytest.approx([c for _, c in reference_bins(case)], abs=1e-9)
    k = 5 if 5 in case.ks else max(case.ks)
    assert sum(c for _, c in bins[:5]) == pytest.approx(report[f"P@{k}"], rel=1e-12, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(1, 3))
def test_blocks_do_not_change_the_result(case: Case, rows: int) -> None:
    options = {"ks": case.ks, "ignore": case.ignored}
    whole = evaluate(case.ranking, case.targets, **options)
    limits = intervals(case.ranking, case.targets, resamples=9, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longtail.metrics.judged.MOST_ROWS", rows)
        cut = evaluate(case.ranking, case.targets, **options)
        kept = intervals(case.ranking, case.targets, resamples=9, **options)
    check(cut.scores, whole.scores)
    check({row.metric: row.value for row in kept.rows}, whole.scores)
    for one, other in zip(kept.rows, limits.rows, strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-9)
    assert cut.labels == whole.labels


@settings(max_examples=100, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_sparse_scores_match_the_literal_definitions(case: Case, random: np.random.RandomState) -> None:
    scores = [{x: random.choice([-1.0, 0.0, 0.5, 2.0]) for x in row if x is not None} for row in case.ranked]
    case.ranked = [sorted(row, key=lambda x, row=row: (-row[x], x)) for row in scores]  # best first, ties by index
    indptr = np.cumsum([0, *(len(row) for row in scores)])
    columns = [x for row in scores for x in row]  # as they come: unsorted, zeros stored
    data = [row[x] for row in scores for x in row]
    matrix = sp.csr_matrix((data, columns, indptr), shape=case.targets.shape)
    before = (matrix.data.copy(), matrix.indices.copy())
    report = evaluate(matrix, case.targets, case.labels, ks=case.ks, ignore=case.ignored)
    check(report.scores, reference(case))
    assert np.array_equal(matrix.data, before[0]) and np.array_equal(matrix.indices, before[1])


@settings(max_examples=100, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_truth_and_ignore_in_any_layout(case: Case, random: np.random.RandomState) -> None:
    pieces = []
    for i, row in enumerate(case.truth):
        for label, y in row.items():
            pieces += [(i, label, y / 2), (i, label, y / 2)]  # stored twice, adds up to y
    random.shuffle(pieces)
    pieces.sort(key=lambda entry: entry[0])
    indptr = np.searchsorted([i for i, _, _ in pieces], np.arange(len(case.truth) + 1))
    Y = sp.csr_matrix(([y for *_, y in pieces], [x for _, x, _ in pieces], indptr), shape=case.targets.shape)
    pairs = [(i, x) for i, gone in enumerate(case.ignore) for x in sorted(gone, reverse=True) for _ in range(2)]
    starts = np.searchsorted([i for i, _ in pairs], np.arange(len(case.truth) + 1))
    ignore = sp.csr_matrix((np.ones(len(pairs), bool), [x for _, x in pairs], starts), shape=Y.shape)
    before = Y.indices.copy(), Y.data.copy(), ignore.indices.copy()
    report = evaluate(case.ranking, Y, ks=case.ks, ignore=ignore)
    check(report.scores, reference(case))
    assert np.array_equal(Y.indices, before[0]) and np.array_equal(Y.data, before[1])
    assert np.array_equal(ignore.indices, before[2])


@settings(max_examples=100, deadline=None)
@given(cases())
def test_micro_measures_match_the_literal_definitions(case: Case) -> None:
    ranked, truth = after_filter(case)
    right = sum(true.get(x, 0.0) for row, true in zip(ranked, truth, strict=True) for x in row if x is not None)
    decided = sum(x is not None for row in ranked for x in row)
    positives = sum(len(true) for true in truth)
    expected = {
        "microP": 100 * right / decided if decided else 0,
        "microR": 100 * right / positives if positives else 0,
        "microF1": 200 * right / (decided + positives) if decided + positives else 0,
    }
    check(micro(case.ranking, case.targets, case.ignored), expected)
    check(micro(case.ranking.to_csr(), case.targets, case.ignored), expected)
