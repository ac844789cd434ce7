"""Are probabilities honest? Of the labels predicted with 0.7, are seven in ten true?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.defaults import K
from longtail.core.how_many import check_ks
from longtail.core.ranking import Ranking
from longtail.metrics.evaluate import KS
from longtail.metrics.pairs import Pairs

BINS = 15  # of equal width, as in Guo et al. 2017


@dataclass(frozen=True)
class ReliabilityBin:
    """The suggestions with a probability of at least `low` and below `high`.

    `probability` is their mean, `rate` the share of them that is true (the mean of y for soft targets); both are None
    in an empty bin. `count` is the number of suggestions.
    """

    low: float
    high: float
    probability: float | None
    rate: float | None
    count: int


def reliability(
    ranking: Ranking, Y: sp.csr_matrix, k: int = K, *, ignore: sp.csr_matrix | None = None, bins: int = BINS
) -> tuple[ReliabilityBin, ...]:
    """Sort the k best labels of all points into `bins` bins of probability; scores are clipped to 0…1."""
    pairs = Pairs.of(ranking, Y, ignore, k)
    counts, given, true = binned(pairs, k, bins)
    edges = np.linspace(0, 1, bins + 1)
    return tuple(
        ReliabilityBin(low, high, p / n if n else None, t / n if n else None, n)
        for low, high, n, p, t in zip(
            edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), given.tolist(), true.tolist(), strict=True
        )
    )


def ece(
    ranking: Ranking, Y: sp.csr_matrix, ks: Iterable[int] = KS, *, ignore: sp.csr_matrix | None = None
) -> dict[str, float]:
    """Return the expected calibration error of the k best labels, in percent: {"ECE@1": …, …}.

    Σ_b n_b/n · |mean probability − share that is true| over 15 bins of equal width. Scores that are not probabilities
    are treated as if they were, clipped to 0…1.
    """
    cuts = check_ks(ks)
    pairs = Pairs.of(ranking, Y, ignore, cuts[-1])
    return {f"ECE@{k}": _error(*binned(pairs, k)) for k in cuts}


def binned(
    pairs: Pairs, k: int, bins: int = BINS
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return for each bin: how many of the k best labels fall in it, the sum of their probabilities, and of their y."""
    real = pairs.real[:, :k]
    given = np.clip(pairs.scores[:, :k][real].astype(np.float64), 0, 1)
    at = np.minimum((given * bins).astype(np.int64), bins - 1)  # 1 belongs to the last bin
    sums = [np.bincount(at, values, bins).astype(np.float64) for values in (given, pairs.hits[:, :k][real])]
    return np.bincount(at, minlength=bins).astype(np.int64), sums[0], sums[1]


def _error(counts: NDArray[np.int64], given: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    return 100 * float(np.abs(given - true).sum()) / max(int(counts.sum()), 1)
