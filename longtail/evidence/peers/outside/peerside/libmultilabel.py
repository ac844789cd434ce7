"""LibMultiLabel: its linear label trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from peerside.driver import TOP, OnMatrices, best_of

BLOCK = 256  # rows whose scores are computed at once: the library returns them dense, (rows, L) in float64


class Tree(OnMatrices):
    """`linear.train_tree`: a Bonsai-like tree, LIBLINEAR on every node, beam search."""

    def load(self, folder: Path) -> None:
        super().load(folder)
        from libmultilabel import linear

        self.linear = linear
        self.X, self.Y = self.X.astype(np.float64), self.Y.astype(np.float64)

    def train(self) -> None:
        np.random.seed(self.seed)  # the tree draws from it
        options = f"{self.settings['options']} -m {self.threads}"
        self.model = self.linear.train_tree(self.Y, self.X, options, verbose=False)

    def save(self, folder: Path) -> None:
        self.linear.save_pipeline(str(folder), None, self.model)

    def batch(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        starts = range(0, points.shape[0], BLOCK)
        return np.concatenate([self._best(points[start : start + BLOCK], k) for start in starts])

    def _best(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        return best_of(self.model.predict_values(points.astype(np.float64), self.settings["beam"]), k)

    def one(self, x: sp.csr_matrix) -> Any:
        return self._best(x, TOP)
