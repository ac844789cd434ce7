"""The (point, label) pairs that a ranking suggests: the score of each, and whether it is true."""

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
    """The k best labels of N points, ignored pairs dropped, in the order of the ranking.

    `scores` (N, k) float32 and `hits` (N, k) float64, the truth y of each, 0 for a miss; `real` (N, k) is false where a
    row has fewer labels. `positives` (N,) is how many labels of each point are true, suggested or not.
    """

    scores: NDArray[np.float32]
    hits: NDArray[np.float64]
    real: NDArray[np.bool_]
    positives: NDArray[np.int64]

    @classmethod
    def of(cls, ranking: Ranking, Y: sp.csr_matrix, ignore: sp.csr_matrix | None = None, k: int | None = None) -> Pairs:
        """The first k ranks of a ranking, all of them for None, beside their truth `Y` (N, L)."""
        left = ranking if ignore is None else ranking.drop(ignore)
        blocks = list(Judged.of(left, Y, None, ignore, k).blocks())  # which checks what it is given
        width = min(left.k, blocks[0].picks.shape[1])
        real = np.concatenate([block.picks[:, :width] >= 0 for block in blocks])
        hits = np.concatenate([block.hits[:, :width] for block in blocks])
        return cls(left.scores[:, :width], hits, real, np.concatenate([block.positives for block in blocks]))

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, rows: Any) -> Pairs:
        return Pairs(self.scores[rows], self.hits[rows], self.real[rows], self.positives[rows])

    def columns(self, start: int, stop: int | None) -> Pairs:
        """Only some ranks, counted from 0."""
        at = slice(start, stop)
        return Pairs(self.scores[:, at], self.hits[:, at], self.real[:, at], self.positives)

    def flat(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores and truths of all pairs there are, as two rows of numbers."""
        return self.scores[self.real].astype(np.float64), self.hits[self.real]
