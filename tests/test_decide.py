"""Calibration and cut-offs: against scikit-learn, scipy and literal references."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from longtail.core.decision import Calibration, CutOff, Decision, Isotonic, Sigmoid
from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.decide.cutoff import Rule, choose, curve_of
from longtail.decide.fit import RANKS, cross_fit, fit_calibration, fit_pairs
from longtail.decide.isotonic import fit_isotonic
from longtail.decide.platt import fit_platt, smoothed
from longtail.metrics import ece, micro, reliability
from longtail.metrics.pairs import Pairs

SCORES = st.floats(-100, 100, width=32)
EIGHTHS = st.integers(-80, 80).map(lambda n: n / 8)
TRUTHS = st.sampled_from([0.0, 1.0]) | st.floats(0, 1, width=32)


def ranking_of(scores: NDArray[np.float32], indices: NDArray[np.int32] | None = None, L: int | None = None) -> Ranking:
    """Build a ranking from rows that are already sorted best first; −inf means padding."""
    scores = np.asarray(scores, np.float32)
    if indices is None:
        indices = np.where(np.isfinite(scores), np.arange(scores.shape[1]), -1).astype(np.int32)
    return Ranking(indices, scores, Labels.of([f"l{i}" for i in range(L or scores.shape[1])]))


def random_ranking(seed: int, N: int = 60, k: int = 12, L: int = 30) -> tuple[Ranking, sp.csr_matrix]:
    """A ranking whose score and rank are both informative, and its truth; some rows are short."""
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.random((N, k)).round(2), axis=1).astype(np.float32)
    indices = np.stack([rng.permutation(L)[:k] for _ in range(N)]).astype(np.int32)
    short = np.arange(k) >= rng.integers(1, k + 1, (N, 1))
    true = rng.random((N, k)) < scores / (1 + np.arange(k))
    true &= ~short
    scores[short], indices[short] = -np.inf, -1
    Y = sp.lil_matrix((N, L), dtype=np.float32)
    for i in range(N):
        Y[i, indices[i][true[i]]] = 1
        Y[i, rng.integers(L)] = 1  # often true and not suggested
    return ranking_of(scores, indices, L), Y.tocsr()


# --- isotonic and Platt ---------------------------------------------------------------------------------------------


# scikit-learn takes scores nearer than 1e-15 for one; these are not
@given(st.lists(st.tuples(EIGHTHS, TRUTHS), min_size=1, max_size=60), st.lists(EIGHTHS, min_size=1, max_size=20))
def test_isotonic_is_scikit_learns(pairs: list[tuple[float, float]], asked: list[float]) -> None:
    isotonic = pytest.importorskip("sklearn.isotonic")
    scores, truth = np.array(pairs, np.float64).T
    reference = isotonic.IsotonicRegression(out_of_bounds="clip").fit(scores, truth)
    made = fit_isotonic(scores, truth)
    at = np.concatenate([np.array(asked, np.float64), scores])
    assert np.allclose(made(at), reference.predict(at), atol=1e-6)


@given(st.lists(st.tuples(SCORES, TRUTHS), min_size=1, max_size=25))
def test_isotonic_is_the_minimax_of_means(pairs: list[tuple[float, float]]) -> None:
    """The textbook formula: at the i-th score, the largest over a ≤ i of the smallest over b ≥ i of mean(a…b)."""
    scores, truth = np.array(pairs, np.float64).T
    at = np.unique(scores)
    means = [
        max(min(truth[(scores >= lo) & (scores <= hi)].mean() for hi in at[i:]) for lo in at[: i + 1])
        for i in range(len(at))
    ]
    assert np.allclose(fit_isotonic(scores, truth)(at), means, atol=1e-9)


def test_isotonic_of_one_score_and_of_scores_that_say_the_contrary() -> None:
    assert fit_isotonic(np.array([0.5, 0.5]), np.array([1.0, 0.0]))(np.array([-9.0, 9.0])).tolist() == [0.5, 0.5]
    made = fit_isotonic(np.arange(10.0), (np.arange(10) < 4).astype(float))
    assert np.allclose(made(np.arange(10.0)), 0.4)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e4])
@pytest.mark.parametrize("soft", [False, True])
def test_platt_is_the_minimum(scale: float, soft: bool) -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(1, 2, 800)
    p = 1 / (1 + np.exp(-(1.3 * z - 2)))
    truth = p if soft else (rng.random(800) < p).astype(float)
    targets = smoothed(truth)

    def loss(w: NDArray[np.float64]) -> float:
        exponent = w[0] * z + w[1]
        return float((np.logaddexp(0, exponent) - (1 - targets) * exponent).sum())

    best = scipy.optimize.minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    made = fit_platt(scale * z + 5 * scale, truth)  # a shift and a scale change a and b, not the probabilities
    a, b = made.a * scale, made.b + made.a * 5 * scale
    assert np.allclose([a, b], best, rtol=1e-4, atol=1e-4)


def test_platts_targets() -> None:
    assert np.allclose(smoothed(np.array([1.0, 1.0, 0.0])), [3 / 4, 3 / 4, 1 / 3])


@pytest.mark.parametrize("truth", [np.zeros(6), np.ones(6), (np.arange(6) < 3).astype(float)])
def test_platt_where_scores_say_nothing(truth: NDArray[np.float64], caplog: pytest.LogCaptureFixture) -> None:
    """Nothing true, all true, or the opposite of the scores: the map is finite and never decreases."""
    made = fit_platt(np.arange(6.0), truth)
    p = made(np.array([-1e30, 0.0, 5.0, 1e30]))
    assert np.isfinite(p).all() and (np.diff(p) >= 0).all()
    constant = fit_platt(np.full(6, 2.0), truth)
    assert constant.a == 0 and np.allclose(constant(np.array([7.0])), smoothed(truth).mean())
    assert "higher scores do not mean more true labels" in caplog.text


# --- what a decision does to a ranking ------------------------------------------------------------------------------

MAPS = {
    "isotonic": Calibration(
        (1, 3), (Isotonic(np.array([0.0, 1.0]), np.array([0.2, 0.9])), Isotonic(np.zeros(1), np.full(1, 0.4)))
    ),
    "platt": Calibration((1, 2), (Sigmoid(-3.0, 1.0), Sigmoid(0.0, 0.5))),
}


@pytest.mark.parametrize("method", MAPS)
@given(st.lists(st.lists(SCORES, min_size=4, max_size=4), min_size=1, max_size=5), st.integers(0, 4))
def test_the_order_never_changes(method: str, rows: list[list[float]], pads: int) -> None:
    scores = -np.sort(-np.array(rows, np.float32), axis=1)
    scores[:, 4 - pads :] = -np.inf
    ranking = ranking_of(scores)
    decided = Decision(MAPS[method]).apply(ranking)
    assert decided.kind == "probability" and decided.scores.dtype == np.float32
    assert np.array_equal(decided.indices, ranking.indices)
    there = ranking.indices >= 0
    assert ((decided.scores >= 0) & (decided.scores <= 1))[there].all() and (decided.scores[~there] == -np.inf).all()
    assert all((np.diff(row[mask]) <= 0).all() for row, mask in zip(decided.scores, there, strict=True))
    for k in (1, 2, 3):  # later labels do not change the probability of a label
        assert np.array_equal(Decision(MAPS[method]).apply(ranking.cut(k)).scores, decided.scores[:, :k])


def test_a_cut_off_is_a_prefix_of_each_row() -> None:
    ranking = ranking_of(np.array([[0.9, 0.5, 0.2, 0.1], [0.4, 0.3, -np.inf, -np.inf]]))
    decision = Decision(cut_off=CutOff("f1", 0.5, 4))
    assert decision.apply(ranking).indices.tolist() == [[0, 1, -1, -1], [-1, -1, -1, -1]]
    assert decision.apply(ranking).kind == "score"
    assert decision.apply(ranking, cut_off=False).indices.tolist() == ranking.indices.tolist()
    assert Decision(cut_off=CutOff("labels=1", -1.0, 1)).apply(ranking).indices[:, 1:].max() == -1
    # with a calibration the threshold is on the probability: the first map gives 0.83, 0.55 and then 0.4
    both = Decision(MAPS["isotonic"], CutOff("f1", 0.5, 4)).apply(ranking)
    assert both.indices.tolist() == [[0, 1, -1, -1], [-1, -1, -1, -1]]
    assert np.allclose(both.scores[0, :2], [0.83, 0.55])


@pytest.mark.parametrize("cut_off", [None, CutOff("precision=0.8", 0.1 + 0.2, 7)])
@pytest.mark.parametrize("calibration", [None, *MAPS.values()])
def test_state_and_back(calibration: Calibration | None, cut_off: CutOff | None) -> None:
    made = Decision(calibration, cut_off)
    again = Decision.from_state(*made.state())
    assert again.cut_off == cut_off
    ranking = ranking_of(-np.sort(-np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32), axis=1))
    a, b = made.apply(ranking), again.apply(ranking)
    assert a.kind == b.kind and np.array_equal(a.indices, b.indices) and np.array_equal(a.scores, b.scores)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Isotonic(np.array([1.0, 1.0]), np.array([0.1, 0.2])),
        lambda: Isotonic(np.array([1.0, 2.0]), np.array([0.3, 0.2])),
        lambda: Isotonic(np.array([1.0, 2.0]), np.array([0.3, 1.2])),
        lambda: Isotonic(np.array([1.0]), np.array([np.nan])),
        lambda: Isotonic(np.empty(0), np.empty(0)),
        lambda: Sigmoid(1.0, 0.0),
        lambda: Sigmoid(float("nan"), 0.0),
        lambda: Calibration((2,), (Sigmoid(-1.0, 0.0),)),
        lambda: Calibration((1, 1), (Sigmoid(-1.0, 0.0),) * 2),
        lambda: Calibration((1, 2), (Sigmoid(-1.0, 0.0),)),
        lambda: CutOff("f1", float("nan"), 3),
        lambda: CutOff("f1", 0.5, 0),
    ],
)
def test_what_is_no_decision_is_refused(bad) -> None:
    with pytest.raises(DataError):
        bad()


# --- cut-offs -------------------------------------------------------------------------------------------------------


def every_threshold(ranking: Ranking, Y: sp.csr_matrix) -> list[tuple[float, float, float, float]]:
    """(threshold, precision, F1, labels per point), literally: cut the ranking at every score and count."""
    found = []
    for threshold in sorted(set(ranking.scores[ranking.indices >= 0].tolist())):
        cut = ranking.above(threshold)
        scores = micro(cut, Y)
        found.append((threshold, scores["microP"] / 100, scores["microF1"] / 100, (cut.indices >= 0).sum() / len(cut)))
    return found


@given(st.integers(0, 200))
def test_f1_is_the_best_of_all_thresholds(seed: int) -> None:
    ranking, Y = random_ranking(seed, N=12, k=5, L=9)
    table = every_threshold(ranking, Y)
    best = max(f1 for _, _, f1, _ in table)
    found = choose(Rule("f1"), curve_of(Pairs.of(ranking, Y)))
    assert found == max(t for t, _, f1, _ in table if f1 > best - 1e-12)


@given(st.integers(0, 200), st.sampled_from([0.05, 0.3, 0.5, 0.9, 1.0]))
def test_precision_is_the_lowest_threshold_that_has_it(seed: int, wanted: float) -> None:
    ranking, Y = random_ranking(seed, N=12, k=5, L=9)
    table = every_threshold(ranking, Y)
    reached = [t for t, precision, _, _ in table if precision >= wanted - 1e-12]
    best = max(precision for _, precision, _, _ in table)
    expected = min(reached) if reached else min(t for t, precision, _, _ in table if precision > best - 1e-12)
    assert choose(Rule("precision", wanted), curve_of(Pairs.of(ranking, Y))) == expected


@given(st.integers(0, 200), st.sampled_from([0.5, 1.0, 2.3, 50.0]))
def test_labels_is_the_lowest_threshold_within_the_budget(seed: int, wanted: float) -> None:
    ranking, Y = random_ranking(seed, N=12, k=5, L=9)
    table = every_threshold(ranking, Y)
    within = [t for t, _, _, labels in table if labels <= wanted + 1e-12]
    expected = min(within) if within else max(t for t, *_ in table)
    assert choose(Rule("labels", wanted), curve_of(Pairs.of(ranking, Y))) == expected


def test_what_cannot_be_had_is_said(caplog: pytest.LogCaptureFixture) -> None:
    ranking = ranking_of(np.array([[0.9, 0.5], [0.9, 0.5]]))
    Y = sp.csr_matrix(np.array([[1, 0], [0, 0]], np.float32))
    curve = curve_of(Pairs.of(ranking, Y))
    assert choose(Rule("precision", 0.8), curve) == np.float32(0.9)
    assert "no threshold has a precision of 0.8: using the best one, 0.500 with 1.00 labels per text" in caplog.text
    assert choose(Rule("labels", 0.5), curve) == np.float32(0.9)
    assert "no threshold keeps 0.5 labels per text or fewer" in caplog.text
    nothing = curve_of(Pairs.of(ranking, sp.csr_matrix((2, 2), dtype=np.float32)))
    assert choose(Rule("f1"), nothing) == np.float32(0.9)
    assert "no suggested label is true" in caplog.text
    with pytest.raises(DataError, match="no label was suggested"):
        curve_of(Pairs.of(ranking_of(np.full((2, 2), -np.inf)), Y))


def test_recall_counts_what_is_true_and_not_suggested() -> None:
    """Two points; the second label is right half of the time. If unsuggested labels did not count, one would win."""
    ranking = ranking_of(np.array([[0.9, 0.5], [0.9, 0.5]]), np.array([[0, 1], [0, 1]], np.int32), 12)
    few = sp.csr_matrix(np.array([[1, 1] + [0] * 10, [1] + [0] * 11], np.float32))
    many = sp.csr_matrix(np.array([[1, 1] + [1] * 10, [1] + [0] * 11], np.float32))
    assert curve_of(Pairs.of(ranking, few)).positives == 3
    assert curve_of(Pairs.of(ranking, many)).positives == 13
    ignore = sp.csr_matrix(np.array([[0, 1] + [1] * 10, [0] * 12], bool))
    curve = curve_of(Pairs.of(ranking, many, ignore))
    assert (curve.positives, curve.decisions.tolist(), curve.hits.tolist()) == (2, [2, 3], [2.0, 2.0])


def test_rules_as_they_are_typed() -> None:
    assert Rule.parse("none") is None
    for text in ("f1", "precision=0.8", "labels=5", "labels=2.5", "precision=1"):
        rule = Rule.parse(text)
        assert str(rule) == text and Rule.parse(str(rule)) == rule
    for text in (
        "",
        "F2",
        "f1=3",
        "none=1",
        "precision",
        "precision=",
        "precision=0",
        "precision=1.1",
        "precision=nan",
    ):
        with pytest.raises(ParameterError, match="cut_off must be none, f1, precision=P .* or labels=N .*; got "):
            Rule.parse(text)
    for text in ("labels=0", "labels=-1", "labels=inf", "labels=x", "labels=1=2"):
        with pytest.raises(ParameterError, match="here must be none"):
            Rule.parse(text, "here")


# --- pairs, and the error of calibration ----------------------------------------------------------------------------


def literal_ece(
    ranking: Ranking, Y: sp.csr_matrix, k: int, ignore: sp.csr_matrix | None = None, bins: int = 15
) -> float:
    dense, skip = Y.toarray(), np.zeros(Y.shape, bool) if ignore is None else ignore.toarray()
    cells: dict[int, list[tuple[float, float]]] = {}
    for i in range(len(ranking)):
        row = [(int(j), float(s)) for j, s in zip(ranking.indices[i], ranking.scores[i], strict=True) if j >= 0]
        for j, s in [(j, s) for j, s in row if not skip[i, j]][:k]:
            p = min(max(s, 0.0), 1.0)
            cells.setdefault(min(int(p * bins), bins - 1), []).append((p, float(dense[i, j])))
    n = sum(map(len, cells.values()))
    return 100 * sum(abs(sum(p - y for p, y in cell)) for cell in cells.values()) / max(n, 1)


@given(st.integers(0, 100), st.booleans())
def test_ece_by_hand(seed: int, filtered: bool) -> None:
    ranking, Y = random_ranking(seed, N=10, k=6, L=9)
    ignore = sp.random(10, 9, 0.3, format="csr", random_state=seed).astype(bool) if filtered else None
    found = ece(ranking, Y, (1, 3, 6, 20), ignore=ignore)
    for k in (1, 3, 6, 20):
        assert found[f"ECE@{k}"] == pytest.approx(literal_ece(ranking, Y, k, ignore))


def test_scores_outside_0_to_1_are_cut() -> None:
    ranking = ranking_of(np.array([[7.0, -3.0]]))
    assert ece(ranking, sp.csr_matrix(np.array([[1, 0]], np.float32)), 2) == {"ECE@2": 0.0}
    assert ece(ranking, sp.csr_matrix(np.array([[0, 1]], np.float32)), 2) == {"ECE@2": 100.0}


def test_the_bins_of_reliability() -> None:
    ranking = ranking_of(np.array([[1.0, 0.55, 0.51, 0.0], [1.0, 0.59, -np.inf, -np.inf]]))
    Y = sp.csr_matrix(np.array([[1, 1, 0, 0], [1, 0, 0, 0]], np.float32))
    rows = reliability(ranking, Y, 4, bins=10)
    assert [row.count for row in rows] == [1, 0, 0, 0, 0, 3, 0, 0, 0, 2]
    assert rows[5].probability == pytest.approx(0.55) and rows[5].rate == pytest.approx(1 / 3)
    assert (rows[1].probability, rows[1].rate, rows[1].low, rows[1].high) == (None, None, 0.1, 0.2)
    assert (rows[9].probability, rows[9].rate) == (1.0, 1.0)


def test_pads_in_the_middle_of_a_row_and_ignored_pairs() -> None:
    ranking = ranking_of(np.array([[0.9, -np.inf, 0.5, 0.4]]))
    Y = sp.csr_matrix(np.array([[1, 1, 0, 1]], np.float32))
    pairs = Pairs.of(ranking, Y, sp.csr_matrix(np.array([[1, 0, 0, 0]], bool)))
    scores, hits = pairs.flat()
    assert scores.tolist() == pytest.approx([0.5, 0.4]) and hits.tolist() == [0, 1] and pairs.positives.tolist() == [2]


# --- all of it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_calibration_goes_by_rank_and_score(method: str) -> None:
    """The truth here is score / rank: no map of the score alone could be right for both the first and the last rank."""
    ranking, Y = random_ranking(1, N=4000)
    other, Z = random_ranking(2, N=4000)
    made = Decision(fit_calibration(Pairs.of(ranking, Y), method))
    assert made.calibration is not None and made.calibration.ranks == tuple(RANKS)
    before, after = ece(other, Z, (1, 3, 5)), ece(made.apply(other), Z, (1, 3, 5))
    assert all(after[name] < 6 for name in after) and after["ECE@5"] < before["ECE@5"] / 4


def test_a_point_is_measured_by_the_folds_it_is_not_in() -> None:
    ranking, Y = random_ranking(5, N=40)
    pairs, fold = Pairs.of(ranking, Y), np.arange(40) // 15
    found = cross_fit(ranking, pairs, fold, "isotonic", Rule("f1"), 12)
    assert found is not None
    for rows in (fold == number for number in range(3)):
        other = fit_pairs(pairs[~rows], "isotonic", Rule("f1"), 12)
        for made, cut_off in zip(found, (False, True), strict=True):
            expected = other.apply(ranking[rows], cut_off)
            assert np.array_equal(made.indices[rows], expected.indices)
            assert np.array_equal(made.scores[rows], expected.scores)
    assert cross_fit(ranking, pairs, np.ones(40, int), "isotonic", None, 12) is None


def test_the_cut_off_of_a_calibrated_ranking_is_chosen_on_its_probabilities() -> None:
    ranking, Y = random_ranking(7, N=80)
    made = fit_pairs(Pairs.of(ranking, Y), "isotonic", Rule("labels", 2), 12)
    assert made.cut_off is not None
    probabilities = Decision(made.calibration).apply(ranking)
    assert np.array_equal(made.apply(ranking).indices, probabilities.above(made.cut_off.threshold).indices)
    assert (made.apply(ranking).indices >= 0).sum() <= 2 * 80
