"""omikuji: Parabel, Bonsai and trees between them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from peerside.driver import TOP, Driver, matrix


class Trees(Driver):
    """Three balanced trees (Parabel), its default, or other settings; trains from a file that it has loaded.

    It predicts a row at a time: a batch is spread over as many Python threads, which its compiled code runs side by
    side. Weights are made dense where that helps, as its own command does before testing.
    """

    def __init__(self, threads: int, beam: int, **settings: Any):
        super().__init__(threads)
        self.beam, self.given = beam, settings

    def load(self, folder: Path) -> None:
        import omikuji
        from omikuji._libomikuji import ffi, lib

        self.omikuji, self.ffi, self.lib = omikuji, ffi, lib
        self.pool = omikuji._ThreadPoolHandle(self.threads)
        loaded = lib.load_omikuji_data_set(str(folder / "train.txt").encode(), self.pool.ptr)
        self.data = ffi.gc(loaded, lib.free_omikuji_data_set)
        self.hyper = omikuji.Model.default_hyper_param()
        for name, value in self.given.items():
            setattr(self.hyper, name, value)
        taken = ("n_trees", "cluster_k", "cluster_balanced", "max_depth", "linear_c", "linear_eps")
        self.settings = {name: getattr(self.hyper, name) for name in taken if hasattr(self.hyper, name)}
        self.settings["beam"] = self.beam

    def train(self) -> None:
        self.model = self.omikuji.Model(self.lib.train_omikuji_model(self.data, self.hyper, self.pool.ptr))

    def save(self, folder: Path) -> None:
        self.model.save(str(folder))

    def ready(self) -> None:
        self.model.init_prediction_thread_pool(self.threads)
        self.model.densify_weights(0.1)

    def points(self, folder: Path) -> sp.csr_matrix:
        return matrix(folder, "X_test")

    def batch(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        ends = np.linspace(0, points.shape[0], self.threads + 1).astype(int)
        found = np.full((points.shape[0], k), -1, np.int32)

        def part(start: int, end: int) -> None:
            labels, scores = self.ffi.new("uint32_t[]", k), self.ffi.new("float[]", k)
            for i in range(start, end):
                row = slice(points.indptr[i], points.indptr[i + 1])
                got = self._call(points.indices[row], points.data[row], k, labels, scores)
                found[i, :got] = self.ffi.unpack(labels, got)

        with ThreadPoolExecutor(self.threads) as workers:
            list(workers.map(part, ends[:-1], ends[1:]))
        return found

    def _call(self, indices: np.ndarray, values: np.ndarray, k: int, labels: Any, scores: Any) -> int:
        columns = self.ffi.from_buffer("uint32_t[]", indices.view(np.uint32))
        weights = self.ffi.from_buffer("float[]", values)
        model, pool = self.model._model_ptr, self.model._thread_pool.ptr
        return self.lib.omikuji_predict(model, self.beam, len(indices), columns, weights, k, labels, scores, pool)

    def single(self) -> None:
        self.model.init_prediction_thread_pool(1)

    def one(self, x: sp.csr_matrix) -> Any:
        pairs = zip(x.indices.tolist(), x.data.tolist(), strict=True)
        return self.model.predict(pairs, top_k=TOP, beam_size=self.beam)

    def core(self, x: sp.csr_matrix) -> Any:
        labels, scores = self.ffi.new("uint32_t[]", TOP), self.ffi.new("float[]", TOP)
        return lambda: self._call(x.indices, x.data, TOP, labels, scores)
