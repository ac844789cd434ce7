"""Metrics that are averages over points: their value for each point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.metrics.judged import RowBlock


def point_values(block: RowBlock, ks: Sequence[int], inverse: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the values (columns, n) of a block, in the order of `point_measures`; `inverse` (L,) is 1 / p_l.

    P, nDCG, R and RP have one row per k (P is Σ y here: `percent` divides by k). PSP and PSnDCG have two rows per k:
    the value of the ranking, and the best value any ranking could reach. Constant factors (1/k, 1/Σ discounts)
    cancel, so they are left out.
    """
    cuts = np.asarray(ks)[:, None]  # (|ks|, 1)
    positives = np.maximum(block.positives, 1)  # a row without positives has no hits: 0 / 1
    reach = min(ks[-1], int(positives.max()))
    best = np.maximum(_native.top_k(block.truth, reach)[1], 0).astype(np.float64)  # padding is −inf
    reached = _at(block.hits, ks)  # (|ks|, n)
    dcg, ideal = _at(block.hits, ks, discounted=True), _at(best, ks, discounted=True)
    ndcg = np.divide(dcg, ideal, out=np.zeros_like(dcg), where=ideal > 0)
    values = [reached, ndcg, reached / positives, reached / np.minimum(cuts, positives)]
    if inverse is not None:
        hits = block.hits * inverse[block.picks]  # padding uses the last label's weight, times 0
        best = _best_weighted(block.truth, inverse, reach)
        for discounted in (False, True):
            values += [_at(hits, ks, discounted), _at(best, ks, discounted)]
    return np.concatenate(values)


def _at(gains: NDArray[np.float64], ks: Sequence[int], discounted: bool = False) -> NDArray[np.float64]:
    """Return the sum of the first k gains of each row, for each k: (|ks|, n). Discounts are 1 / log2(rank + 1)."""
    width = gains.shape[1]
    if discounted:
        gains = gains / np.log2(np.arange(2, width + 2))
    return np.ascontiguousarray(np.cumsum(gains, 1)[:, np.minimum(ks, width) - 1].T)


def _best_weighted(truth: sp.csr_matrix, inverse: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """Return the largest y_l / p_l of each row, best first, as (n, reach)."""
    weighted = (truth.data * inverse[truth.indices]).astype(np.float32)
    labels, _ = _native.top_k(sp.csr_matrix((weighted, truth.indices, truth.indptr), shape=truth.shape), reach)
    # selected in float32, but summed in float64: a perfect ranking must reach exactly the best possible value
    exact = _native.pick(truth, labels).astype(np.float64) * inverse[labels]
    return -np.sort(-exact, 1)
