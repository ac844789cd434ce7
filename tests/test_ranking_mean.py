"""The mean of several rankings against its definition, label by label."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking, mean_scores

LABELS = Labels.of([f"label {i}" for i in range(12)])


def ranking(seed: int, N: int, k: int, labels: Labels = LABELS) -> Ranking:
    """Random scores with ties, zeros and short rows."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 6, size=(N, len(labels))) / 4
    keep = rng.random(scores.shape) < 0.7
    rows, columns = np.nonzero(keep)
    return Ranking.from_csr(sp.csr_matrix((scores[keep], (rows, columns)), shape=scores.shape), k, labels)


def literal(rankings: list[Ranking], weights: list[float], by: str) -> list[list[tuple[float, int]]]:
    """For each point (−mean, label) of every label that a ranking names, best first, ties by lower label."""
    room, found = max(r.k for r in rankings), []
    for point in range(len(rankings[0])):
        total: dict[int, float] = {}
        for weight, one in zip(weights, rankings, strict=True):
            named = [(int(i), float(s)) for i, s in zip(one.indices[point], one.scores[point], strict=True) if i >= 0]
            for place, (label, score) in enumerate(named):
                counts = score if by == "score" else (room - place) / room
                total[label] = total.get(label, 0.0) + weight * counts / sum(weights)
        found.append(sorted((-value, label) for label, value in total.items()))
    return found


@given(
    st.lists(
        st.tuples(st.integers(0, 1000), st.integers(1, 12), st.sampled_from([0.5, 1.0, 4.0])), min_size=1, max_size=4
    ),
    st.integers(1, 5),
    st.integers(1, 15),
    st.sampled_from(["score", "rank"]),
)
def test_mean_is_the_literal_mean(parts: list[tuple[int, int, float]], N: int, k: int, by: str) -> None:
    rankings = [ranking(seed, N, size) for seed, size, _ in parts]
    weights = [weight for _, _, weight in parts]
    mean = Ranking.mean(rankings, k, weights=weights, by=by)  # type: ignore[arg-type]
    assert mean.kind == "score" and mean.labels is LABELS and mean.indices.shape == (N, min(k, len(LABELS)))
    for point, expected in enumerate(literal(rankings, weights, by)):
        real = mean.indices[point] >= 0
        assert real.sum() == min(k, len(expected))
        best = [-value for value, _ in expected[:k]]
        assert mean.scores[point][real] == pytest.approx(best, abs=1e-6)
        exact = {label: -value for value, label in expected}
        assert [exact[int(i)] for i in mean.indices[point][real]] == pytest.approx(best, abs=1e-6)
    assert np.array_equal(mean.indices, Ranking.from_csr(mean.to_csr(), k, LABELS).indices)  # ties by lower index


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 12)), min_size=1, max_size=4), st.randoms())
def test_order_and_common_factors_of_weights_do_not_matter(parts: list[tuple[int, int]], random) -> None:
    rankings = [ranking(seed, 3, size) for seed, size in parts]
    shuffled = random.sample(rankings, len(rankings))
    one, other = Ranking.mean(rankings, 12), Ranking.mean(shuffled, 12, weights=[3.0] * len(rankings))
    assert np.array_equal(one.indices, other.indices) and np.array_equal(one.scores, other.scores)


@given(st.integers(0, 1000), st.integers(1, 12))
def test_the_mean_of_one_ranking_is_itself(seed: int, k: int) -> None:
    one = ranking(seed, 4, k)
    mean = Ranking.mean([one])
    assert np.array_equal(mean.indices, one.indices) and np.array_equal(mean.scores, one.scores)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=4), st.integers(1, 12))
def test_score_matrices_have_the_mean_of_their_rankings(seeds: list[int], k: int) -> None:
    rankings = [ranking(seed, 3, 12) for seed in seeds]
    weights = [1.0 + i for i in range(len(seeds))]
    scores = mean_scores((one.to_csr() for one in rankings), weights)
    both = Ranking.from_csr(scores, k, LABELS), Ranking.mean(rankings, k, weights=weights)
    assert scores.dtype == np.float32 and scores.has_canonical_format
    assert np.array_equal(both[0].indices, both[1].indices) and np.array_equal(both[0].scores, both[1].scores)


def test_a_label_whose_scores_add_up_to_0_stays() -> None:
    plus, minus = (Ranking(np.array([[2]], np.int32), np.array([[s]], np.float32), LABELS) for s in (0.5, -0.5))
    mean = Ranking.mean([plus, minus], 2)
    assert mean.indices.tolist() == [[2, -1]] and mean.scores[0, 0] == 0


def test_probabilities_stay_probabilities_and_removed_labels_stay_away() -> None:
    labels = LABELS.remove(["label 3"])
    parts = [
        Ranking(np.array([[3, 1]], np.int32), np.array([[0.9, p]], np.float32), labels, "probability")
        for p in (0.2, 0.4)
    ]
    mean = Ranking.mean(parts, 2)
    assert mean.kind == "probability" and mean.indices.tolist() == [[1, -1]]
    assert mean.scores[0, 0] == pytest.approx(0.3)
    assert Ranking.mean(parts, 2, by="rank").kind == "score"


def test_what_has_no_mean_is_refused() -> None:
    one = ranking(0, 3, 4)
    with pytest.raises(ParameterError, match="at least one ranking"):
        Ranking.mean([])
    with pytest.raises(DataError, match="same points"):
        Ranking.mean([one, ranking(1, 2, 4)])
    with pytest.raises(DataError, match="same labels"):
        Ranking.mean([one, ranking(1, 3, 4, Labels.of([f"other {i}" for i in range(12)]))])
    with pytest.raises(ParameterError, match="'score' or 'rank'"):
        Ranking.mean([one], by="place")  # type: ignore[arg-type]
    for weights in ([1.0], [0.0, 0.0], [1.0, -1.0], [1.0, float("nan")]):
        with pytest.raises(ParameterError, match="weights must be 2 numbers"):
            Ranking.mean([one, one], weights=weights)
    with pytest.raises(DataError, match="one shape"):
        mean_scores([one.to_csr(), one.to_csr()[:2]])
