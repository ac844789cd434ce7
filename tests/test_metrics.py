"""Metrics: examples computed by hand, conventions in special cases, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import orjson
import pytest
import scipy.sparse as sp

from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.metrics import depth, evaluate, micro, micro_f1
from longtail.metrics.frequency import bins_of


def labels_with(counts: list[int], points: int) -> Labels:
    return Labels.of([f"label {i}" for i in range(len(counts))]).with_counts(np.array(counts), points)


def ranking(rows: list[list[int]], labels: Labels) -> Ranking:
    indices = np.array(rows, np.int32)
    scores = np.where(indices >= 0, -np.arange(indices.shape[1]), -np.inf).astype(np.float32)
    return Ranking(indices, scores, labels)


def matrix(rows: list[dict[int, float]], L: int) -> sp.csr_matrix:
    data = [y for row in rows for y in row.values()]
    columns = [x for row in rows for x in row]
    return sp.csr_matrix((np.float32(data), columns, np.cumsum([0, *map(len, rows)])), shape=(len(rows), L))


LABELS = labels_with([40, 10, 5, 0], 100)
TRUTH = matrix([{0: 1, 2: 1}, {1: 1}, {}], 4)
RANKING = ranking([[0, 1, 2], [3, 1, 0], [0, -1, -1]], LABELS)


def test_example_by_hand() -> None:
    """Three points; the last one has no true label and counts as a row of zeros."""
    report = evaluate(RANKING, TRUTH, ks=(1, 3))
    third = 100 / 3
    second = 1 / math.log2(3)  # discount of rank 2: 0.6309; of rank 3: 1 / log2(4) = 0.5
    expected = {
        "P@1": third * (1 + 0 + 0),
        "P@3": third * (2 / 3 + 1 / 3 + 0),
        "nDCG@1": third * (1 + 0 + 0),
        # point 0: hits at ranks 1 and 3, ideal ranks 1 and 2; point 1: hit at rank 2, ideal rank 1
        "nDCG@3": third * (1.5 / (1 + second) + second),
        "R@1": third * (1 / 2 + 0),
        "R@3": third * (2 / 2 + 1 / 1),
        "RP@1": third * (1 / 1 + 0),
        "RP@3": third * (2 / 2 + 1 / 1),
        # labels with a test positive: 0, 1, 2
        "C@1": third * 1,
        "C@3": 100,
        # label 0: picked twice at k = 1, right once, one positive: 2·1 / (2 + 1); labels 1 and 2 never picked
        "macroF1@1": third * (2 / 3),
        # label 0: picked 3 times, 2/4; label 1: picked twice, 2/3; label 2: picked once, 2/2
        "macroF1@3": third * (2 / 4 + 2 / 3 + 2 / 2),
        "macroR@1": third * 1,
        "macroR@3": 100,
    }
    assert {name: report[name] for name in expected} == pytest.approx(expected)
    assert (report.points, report.labels, report.k) == (3, 3, 3)


def test_propensities_by_hand() -> None:
    # C = (ln 100 − 1) · 2.5^0.55 = 3.60517 · 1.65526 = 5.96750
    # 1/p = 1 + C / (N_l + 1.5)^0.55:
    #   label 0: 41.5^0.55 = 7.76116 → 1.76889;  label 1: 11.5^0.55 = 3.83163 → 2.55743
    #   label 2:  6.5^0.55 = 2.79964 → 3.13152;  label 3:  1.5^0.55 = 1.24983 → 5.77466
    w0, w1, w2 = 1.76889, 2.55743, 3.13152
    assert 1 / LABELS.propensities == pytest.approx([w0, w1, w2, 5.77466], abs=1e-5)
    scores = evaluate(RANKING, TRUTH, ks=(1, 3)).scores
    second = 1 / math.log2(3)
    # k = 1: point 0 finds label 0, best was label 2; point 1 finds nothing, best was label 1
    assert scores["PSP@1"] == pytest.approx(100 * w0 / (w2 + w1), abs=1e-3)
    assert scores["PSnDCG@1"] == pytest.approx(scores["PSP@1"])
    # k = 3: everything is found, at ranks 1 and 3 instead of 2 and 1, and at rank 2 instead of 1
    assert scores["PSP@3"] == pytest.approx(100)
    reached, best = w0 + w2 / 2 + w1 * second, w2 + w0 * second + w1
    assert scores["PSnDCG@3"] == pytest.approx(100 * reached / best, abs=1e-3)


def test_soft_targets_by_hand() -> None:
    labels = labels_with([1, 1, 1], 10)
    Y = matrix([{0: 0.5, 1: 1.0, 2: 0.25}], 3)
    scores = evaluate(ranking([[0, 2]], labels), Y, ks=(1, 2)).scores
    assert scores["P@2"] == pytest.approx(100 * (0.5 + 0.25) / 2)
    second = 1 / math.log2(3)
    assert scores["nDCG@2"] == pytest.approx(100 * (0.5 + 0.25 * second) / (1 + 0.5 * second))
    assert scores["R@2"] == pytest.approx(100 * 0.75 / 3)  # |P| counts labels with y > 0, whatever their value
    assert scores["RP@2"] == pytest.approx(100 * 0.75 / 2)
    # all labels have one propensity, so it cancels
    assert scores["PSP@2"] == pytest.approx(100 * (0.5 + 0.25) / (1 + 0.5))
    assert scores["C@2"] == pytest.approx(100 * 2 / 3)
    assert scores["macroR@2"] == pytest.approx(100 * (0.5 + 0 + 0.25) / 3)
    assert scores["macroF1@2"] == pytest.approx(100 * (2 * 0.5 / 2 + 0 + 2 * 0.25 / 2) / 3)


def test_ignored_pairs_leave_both_sides() -> None:
    """Label 0 is the point itself: without it the truth is {2}, and 2 moves up to the second rank."""
    Y, ignore = matrix([{0: 1, 2: 1}], 4), matrix([{0: 1}], 4).astype(bool)
    predicted = ranking([[0, 1, 2]], LABELS)
    scores = evaluate(predicted, Y, ks=(1, 2), ignore=ignore).scores
    assert (scores["P@1"], scores["P@2"], scores["R@2"]) == (0, 50, 100)
    assert depth((1, 2), ignore) == 3 == predicted.k
    # a ranking that is too narrow loses a rank, which counts as a miss
    assert evaluate(predicted.cut(2), Y, ks=(1, 2), ignore=ignore)["P@2"] == 0
    assert depth(ks=(5, 3)) == 5


def test_many_ignored_pairs_of_a_wide_ranking() -> None:
    """Every second label is dropped; the rest keep their order: 1, 3, 5, … 199."""
    labels = labels_with([1] * 200, 9)
    ignore = matrix([{x: 1 for x in range(0, 200, 2)}], 200)
    predicted = ranking([list(range(200))], labels)
    for rank, label in enumerate(range(1, 200, 2), 1):
        scores = evaluate(predicted, matrix([{label: 1}], 200), ks=(100,), ignore=ignore).scores
        assert scores["nDCG@100"] == pytest.approx(100 / math.log2(rank + 1))


def test_order_of_names_and_json() -> None:
    report = evaluate(RANKING, TRUTH, ks=(3, 1, 3))
    families = ["P", "nDCG", "R", "RP", "PSP", "PSnDCG", "C", "macroF1", "macroR"]
    assert list(report.scores) == [f"{name}@{k}" for name in families for k in (1, 3)]
    assert all(type(value) is float for value in report.scores.values())
    back = orjson.loads(orjson.dumps(report.to_json()))
    assert back["scores"] == report.scores and back["points"] == 3
    assert [row["name"] for row in back["by_frequency"]] == [f"bin {b}" for b in range(1, 6)] + ["no training examples"]


def test_perfect_ranking_reaches_100() -> None:
    rng = np.random.default_rng(3)
    labels = labels_with(list(rng.integers(0, 50, 40)), 200)
    Y = sp.random(30, 40, 0.1, format="csr", rng=rng, dtype=np.float32)
    Y.data[:] = 1
    best = sp.csr_matrix((1 / labels.propensities[Y.indices], Y.indices, Y.indptr), shape=Y.shape)
    scores = evaluate(best, Y, labels).scores
    for k in (1, 3, 5):
        assert scores[f"PSP@{k}"] == pytest.approx(100, abs=1e-9)
        assert scores[f"PSnDCG@{k}"] == pytest.approx(100, abs=1e-9)


def test_without_training_counts_propensities_and_bins_are_left_out() -> None:
    report = evaluate(RANKING.to_csr(), TRUTH, ks=(1,))
    assert report.by_frequency == ()
    assert list(report.scores) == ["P@1", "nDCG@1", "R@1", "RP@1", "C@1", "macroF1@1", "macroR@1"]
    unknown = Ranking(RANKING.indices, RANKING.scores, Labels.of(LABELS.keys))
    assert evaluate(unknown, TRUTH, ks=(1,)) == report
    assert "PSP@1" in evaluate(unknown, TRUTH, LABELS, ks=(1,)).scores


def test_removed_labels_of_sparse_scores_are_not_predictions() -> None:
    scores = matrix([{0: 2, 1: 1}], 4)
    Y = matrix([{1: 1}], 4)
    assert evaluate(scores, Y, LABELS, ks=1)["P@1"] == 0
    assert evaluate(scores, Y, LABELS.remove(["label 0"]), ks=1)["P@1"] == 100


@pytest.mark.parametrize(
    ("counts", "bins"),
    [
        ([10, 10, 10, 10, 10], [0, 1, 2, 3, 4]),
        # volume 100, cuts at 20, 40, 60, 80; labels begin at 0, 50, 70, 90, 95
        ([50, 20, 20, 5, 5, 0], [0, 2, 3, 4, 4, 4]),
        # volume 10, cuts at 2, 4, 6, 8; ties by lower index: labels begin at 4, 0, 6, 8
        ([2, 4, 2, 2], [2, 0, 3, 4]),
        ([0, 0], [4, 4]),
        ([], []),
    ],
)
def test_bins_of_equal_volume(counts: list[int], bins: list[int]) -> None:
    assert bins_of(np.array(counts, np.int64)).tolist() == bins


def test_bins_by_hand() -> None:
    """Counts 40, 10, 5, 0: volume 55, cuts at 11, 22, 33, 44; labels start at 0, 40, 50 and nowhere."""
    rows = evaluate(RANKING, TRUTH, ks=(3,)).by_frequency
    assert [(r.labels, r.fewest, r.most) for r in rows] == [
        (1, 40, 40),
        (0, None, None),
        (0, None, None),
        (1, 10, 10),
        (2, 0, 5),
        (1, 0, 0),
    ]
    everything, nothing = (1, 100.0), (0, None)  # of one true pair, of none
    found = [everything, nothing, nothing, everything, everything, nothing]
    assert [(r.pairs, r.recall) for r in rows] == found
    assert [r.recall for r in evaluate(RANKING, TRUTH, ks=(1,)).by_frequency] == [100, None, None, 0, 0, None]
    one = 100 / 3 / 3  # one hit at k = 3 in one of three points
    assert [r.contribution for r in rows] == pytest.approx([one, 0, 0, one, one, 0])
    assert sum(r.contribution for r in rows[:5]) == pytest.approx(evaluate(RANKING, TRUTH, ks=(3,))["P@3"])


def test_contributions_are_for_5_where_it_is_asked_for() -> None:
    wide = ranking([[0, 1, 2, 3, 4, 5]], labels_with([1] * 6, 9))
    Y = matrix([{5: 1, 4: 1}], 6)
    at5, at6 = evaluate(wide, Y, ks=(5, 6)), evaluate(wide, Y, ks=(1, 6))
    assert (at5.k, sum(r.contribution for r in at5.by_frequency[:5])) == (5, pytest.approx(at5["P@5"]))
    assert (at6.k, sum(r.contribution for r in at6.by_frequency[:5])) == (6, pytest.approx(at6["P@6"]))


def test_micro_by_hand() -> None:
    decided = ranking([[0, 1, -1], [3, -1, -1], [-1, -1, -1]], LABELS)
    # 3 decisions, 1 right, 3 positives
    expected = {"microP": 100 / 3, "microR": 100 / 3, "microF1": 100 / 3}
    assert micro(decided, TRUTH) == pytest.approx(expected)
    none = ranking([[-1], [-1], [-1]], LABELS)
    assert micro(none, TRUTH) == {"microP": 0, "microR": 0, "microF1": 0}
    assert micro_f1(decided, TRUTH, ignore=matrix([{1: 1}, {}, {}], 4)) == pytest.approx(100 * 2 / (2 + 3))


def test_no_truth_at_all_is_zero_everywhere() -> None:
    report = evaluate(RANKING, matrix([{}, {}, {}], 4))
    assert set(report.scores.values()) == {0.0} and report.labels == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1], [2, 2], [0, 1]], "row 1 of the ranking contains a label twice; found 2"),
        ([[0, 1], [0, 1], [1, 4]], "row 2, rank 2 of the ranking is not the index of one of 4 labels; found 4"),
        ([[0, 1], [-2, 1], [1, 3]], "row 1, rank 1 of the ranking is not the index of one of 4 labels; found -2"),
    ],
)
def test_bad_rankings_are_refused(rows: list[list[int]], message: str) -> None:
    with pytest.raises(DataError) as error:
        evaluate(ranking(rows, LABELS), TRUTH)
    assert message in str(error.value)


def test_nan_scores_are_refused() -> None:
    scores = RANKING.scores.copy()
    scores[1, 0] = np.nan
    with pytest.raises(DataError, match="row 1 of the ranking has NaN"):
        evaluate(Ranking(RANKING.indices, scores, LABELS), TRUTH)
    with pytest.raises(DataError, match="NaN"):
        evaluate(matrix([{0: np.nan}, {}, {}], 4), TRUTH)


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(DataError, match=r"\(3, 4\).*\(2, 4\)"):
        evaluate(RANKING, TRUTH[:2])
    with pytest.raises(DataError, match=r"\(3, 4\).*\(3, 3\)"):
        evaluate(RANKING, TRUTH[:, :3])
    with pytest.raises(DataError, match=r"2 labels.*\(3, 4\)"):
        evaluate(RANKING.to_csr(), TRUTH, labels_with([1, 1], 5))
    with pytest.raises(DataError, match=r"\(3, 3\).*\(3, 4\)"):
        evaluate(RANKING, TRUTH, ignore=TRUTH[:, :3])
    with pytest.raises(DataError, match="no rows"):
        evaluate(RANKING[:0], TRUTH[:0])


@pytest.mark.parametrize("bad", [-0.5, 1.5, np.nan, np.inf])
def test_truth_outside_its_range_is_refused(bad: float) -> None:
    with pytest.raises(DataError, match="row 1 of the truth"):
        evaluate(RANKING, matrix([{0: 1}, {1: bad}, {}], 4))


def test_a_pair_stored_twice_counts_once() -> None:
    twice = sp.csr_matrix((np.ones(4, np.float32), [2, 0, 2, 1], [0, 3, 4, 4]), shape=(3, 4))
    assert evaluate(RANKING, twice) == evaluate(RANKING, TRUTH)


def test_stored_zeros_are_no_positives() -> None:
    zeros = matrix([{0: 1, 1: 0, 2: 1}, {1: 1, 2: 0}, {3: 0}], 4)
    assert evaluate(RANKING, zeros) == evaluate(RANKING, TRUTH)
    assert zeros.nnz == 6  # the caller's matrix is as it was


@pytest.mark.parametrize("ks", [(), (0,), (1, -3), (2.5,), ("1",)])
def test_bad_cut_offs_are_refused(ks: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError):
        evaluate(RANKING, TRUTH, ks=ks)


def test_other_types_are_refused() -> None:
    with pytest.raises(ParameterError, match="Ranking"):
        evaluate([[0, 1]], TRUTH)
    with pytest.raises(ParameterError, match="sparse"):
        evaluate(RANKING, TRUTH.toarray())
