"""Micro measures: for models that decide how many labels a point gets (calibrated, or cut at a threshold)."""

from __future__ import annotations

import scipy.sparse as sp

from longtail.core.ranking import Ranking
from longtail.metrics.judged import Judged, Predicted


def micro(decided: Predicted, Y: sp.csr_matrix, ignore: sp.csr_matrix | None = None) -> dict[str, float]:
    """Return micro precision, recall and F1 in percent; every label in the ranking (except padding) is a prediction."""
    right, decisions, positives = 0.0, 0, 0
    for block in Judged.of(decided, Y, None, ignore, None).blocks():
        right += float(block.hits.sum())
        decisions += int((block.picks >= 0).sum())
        positives += block.truth.nnz
    return {
        "microP": 100 * right / max(decisions, 1),
        "microR": 100 * right / max(positives, 1),
        "microF1": 200 * right / max(decisions + positives, 1),
    }


def cut_scores(decided: Ranking, Y: sp.csr_matrix, ignore: sp.csr_matrix | None = None) -> dict[str, float]:
    """Return `micro` of a ranking with a cut-off, plus the average number of labels per point."""
    given = int((decided.indices >= 0).sum())
    return micro(decided, Y, ignore) | {"labelsPerText": given / max(len(decided), 1)}


def micro_f1(decided: Predicted, Y: sp.csr_matrix, ignore: sp.csr_matrix | None = None) -> float:
    """Return micro F1 in percent: 2 · hits / (predicted + positives), over all points and labels at once."""
    return micro(decided, Y, ignore)["microF1"]
