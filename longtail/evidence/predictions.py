"""The predictions of runs, which paired intervals are drawn from. They are in the cache, not in the results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.data.corpus import Corpus
from longtail.evidence.score import ScoredModel
from longtail.metrics.evaluate import KS
from longtail.store.cache import cache_folder, find, keep

TOP = max(KS)


def keep_predictions(id: str, scored: ScoredModel) -> None:
    """Store the best labels of every test point under the id of the run, without ignored pairs."""
    ranking = scored.ranking
    if scored.data.ignore is not None:
        ranking = ranking.drop(scored.data.ignore)
    keep(cache_folder(), _key(id), {"indices": np.ascontiguousarray(ranking.cut(TOP).indices)})


def predictions(id: str, corpus: Corpus) -> Ranking | None:
    """The predictions of a run for the test part of its corpus; None if they are not on this machine."""
    found = find(cache_folder(), _key(id))
    if found is None:
        return None
    indices = found["indices"]
    if corpus.test is None or len(indices) != len(corpus.test):
        raise DataError(f"the predictions kept for run {id} are not of {corpus.name!r}", fix="clear the cache")
    return in_order(indices, corpus.labels)


def in_order(indices: NDArray[np.int32], labels: Labels) -> Ranking:
    """Labels (N, k), best first and −1 at the end of shorter rows, as a ranking: only their order matters."""
    falling = np.arange(indices.shape[1], 0, -1, dtype=np.float32)
    scores = np.where(indices >= 0, falling, np.float32(-np.inf))
    return Ranking(indices, np.asarray(scores, np.float32), labels)


def _key(id: str) -> str:
    return f"bench run {id}, top {TOP}"
