"""The (point, label) pairs that a ranking suggests: their scores, and whether they are true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.ranking import Ranking
from longtail.metrics.judged import Judged


@dataclass(frozen=True, eq=False)
class Pairs:
    """The k best labels of N points in ranking order, without ignored pairs.

    `scores` (N, k) float32; `hits` (N, k) float64: the truth y of each pair, 0 for a miss; `real` (N, k): False for
    padding in rows with fewer labels. `positives` (N,): the number of true labels of each point, suggested or not.
    """

    scores: NDArray[np.float32]
    hits: NDArray[np.float64]
    real: NDArray[np.bool_]
    positives: NDArray[np.int64]

    @classmethod
    def of(cls, ranking: Ranking, Y: sp.csr_matrix, ignore: sp.csr_matrix | None = None, k: int | None = None) -> Pairs:
        """Take the first k ranks of a ranking (all for None), with their truth `Y` (N, L)."""
        left = ranking if ignore is None else ranking.drop(ignore)
        blocks = list(Judged.of(left, Y, None, ignore, k).blocks())  # also checks the shapes
        width = min(left.k, blocks[0].picks.shape[1])
        real = np.concatenate([block.picks[:, :width] >= 0 for block in blocks])
        hits = np.concatenate([block.hits[:, :width] for block in blocks])
        return cls(left.scores[:, :width], hits, real, np.concatenate([block.positives for block in blocks]))

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, rows: Any) -> Pairs:
        return Pairs(self.scores[rows], self.hits[rows], self.real[rows], self.positives[rows])

    def columns(self, start: int, stop: int | None) -> Pairs:
        """Return only the ranks `start` to `stop` (exclusive), counted from 0."""
        at = slice(start, stop)
        return Pairs(self.scores[:, at], self.hits[:, at], self.real[:, at], self.positives)

    def flat(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores and truths of all real pairs, as two flat arrays."""
        return self.scores[self.real].astype(np.float64), self.hits[self.real]
