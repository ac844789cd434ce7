"""napkinXC: probabilistic label trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from peerside.driver import TOP, OnMatrices, padded, rows_of


class LabelTree(OnMatrices):
    """A probabilistic label tree with its defaults. It writes its weights to disk while it trains."""

    def load(self, folder: Path) -> None:
        super().load(folder)
        from napkinxc.models import PLT

        self.folder = self.place / "napkinxc"
        self.model = PLT(str(self.folder), threads=self.threads, seed=self.seed, **self.settings)
        self.labels = rows_of(self.Y)

    def train(self) -> None:
        self.model.fit(self.X, self.labels)

    def save(self, folder: Path) -> None:
        self.folder.rename(folder)
        self.model.set_params(output=str(folder))

    def ready(self) -> None:
        self.model.load()

    def batch(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        return padded(self.model.predict(points, top_k=k), k)

    def single(self) -> None:
        self.model.set_params(threads=1)

    def one(self, x: sp.csr_matrix) -> Any:
        return self.model.predict(x, top_k=TOP)
