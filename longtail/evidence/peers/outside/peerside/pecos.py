"""PECOS: XR-Linear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from peerside.driver import TOP, OnMatrices, padded


def labels_of(found: sp.csr_matrix, k: int) -> np.ndarray:
    """Return the labels of a prediction, whose rows come best first, as (N, k)."""
    if (np.diff(found.indptr) == k).all():
        return found.indices.reshape(-1, k)
    return padded(np.split(found.indices, found.indptr[1:-1]), k)


class XRLinear(OnMatrices):
    """libpecos' XLinearModel; predicts with its C++ form (`is_predict_only`), loaded from the saved model."""

    def load(self, folder: Path) -> None:
        super().load(folder)
        from pecos.core import ScipyCompressedSparseAllocator, ScipyCsrF32, clib
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        self.embed, self.index, self.linear = LabelEmbeddingFactory.create, Indexer.gen, XLinearModel
        self.c = ScipyCompressedSparseAllocator, ScipyCsrF32, clib

    def train(self) -> None:
        s = self.settings
        Z = self.embed(self.Y, self.X, method="pifa", threads=self.threads)
        tree = {"nr_splits": s["branching"], "max_leaf_size": s["leaf_size"], "threads": self.threads}
        chain = self.index(Z, indexer_type="hierarchicalkmeans", seed=self.seed, **tree)
        self.model = self.linear.train(
            self.X,
            self.Y,
            chain,
            Cp=s["C"],
            Cn=s["C"],
            eps=s["eps"],
            threshold=s["prune"],
            negative_sampling_scheme=s["negatives"],
            beam_size=s["beam"],  # without it, man would take the 20 best of each level instead
            threads=self.threads,
        )

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))
        self.folder = folder

    def ready(self) -> None:
        self.model = self.linear.load(str(self.folder), is_predict_only=True)

    def batch(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        return labels_of(self._predict(points, k, self.threads), k)

    def _predict(self, points: sp.csr_matrix, k: int, threads: int) -> sp.csr_matrix:
        return self.model.predict(points, beam_size=self.settings["beam"], only_topk=k, threads=threads)

    def one(self, x: sp.csr_matrix) -> Any:
        return self._predict(x, TOP, 1)

    def core(self, x: sp.csr_matrix) -> Any:
        allocator, csr, clib = self.c
        chain, row, beam = self.model.model.model_chain, csr.init_from(x), self.settings["beam"]
        return lambda: clib.xlinear_predict(chain, row, beam, None, TOP, 1, allocator())
