"""The peers, each used in the way that is fastest for it. See `measure` for the meaning of the methods."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

TOP = 10


def padded(rows: Any, k: int) -> np.ndarray:
    """Return lists of labels as (N, k), padded with −1."""
    found = np.full((len(rows), k), -1, np.int32)
    for i, best in enumerate(rows):
        found[i, : len(best)] = best[:k]
    return found


class OnMatrices:
    """Code shared by systems that accept CSR matrices."""

    def __init__(self, threads: int, **settings: Any):
        self.threads, self.settings = threads, settings

    def load(self, folder: Path) -> None:
        self.X, self.Y = (sp.load_npz(folder / f"{name}.npz").tocsr() for name in ("X", "Y"))

    def points(self, folder: Path) -> sp.csr_matrix:
        return sp.load_npz(folder / "X_test.npz").tocsr()


class Pecos(OnMatrices):
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
        found = self._predict(points, k, self.threads)
        if (np.diff(found.indptr) == k).all():  # rows come best first
            return found.indices.reshape(-1, k)
        return padded(np.split(found.indices, found.indptr[1:-1]), k)

    def _predict(self, points: sp.csr_matrix, k: int, threads: int) -> sp.csr_matrix:
        return self.model.predict(points, beam_size=self.settings["beam"], only_topk=k, threads=threads)

    def single(self) -> None:
        pass

    def one(self, x: sp.csr_matrix) -> Any:
        return self._predict(x, TOP, 1)

    def core(self, x: sp.csr_matrix) -> Any:
        allocator, csr, clib = self.c
        chain, row, beam = self.model.model.model_chain, csr.init_from(x), self.settings["beam"]
        return lambda: clib.xlinear_predict(chain, row, beam, None, TOP, 1, allocator())


class Omikuji:
    """Three balanced trees (Parabel), its default, or other settings; trains from a file that it has loaded.

    It predicts a row at a time: a batch is spread over as many Python threads, which its compiled code runs side by
    side. Weights are made dense where that helps, as its own command does before testing.
    """

    def __init__(self, threads: int, beam: int, **settings: Any):
        self.threads, self.beam, self.given = threads, beam, settings

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
        return sp.load_npz(folder / "X_test.npz").tocsr()

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


class Napkin(OnMatrices):
    """A probabilistic label tree with its defaults. It writes its weights to disk while it trains."""

    def load(self, folder: Path) -> None:
        super().load(folder)
        from napkinxc.models import PLT

        self.folder = folder / "napkinxc"
        self.model = PLT(str(self.folder), threads=self.threads, **self.settings)
        self.labels = [self.Y.indices[a:b].tolist() for a, b in itertools.pairwise(self.Y.indptr)]

    def train(self) -> None:
        self.model.fit(self.X, self.labels)

    def save(self, folder: Path) -> None:
        folder.parent.mkdir(exist_ok=True)
        self.folder.rename(folder)  # so that the next run starts without it
        self.model.set_params(output=str(folder))

    def ready(self) -> None:
        self.model.load()

    def batch(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        return padded(self.model.predict(points, top_k=k), k)

    def single(self) -> None:
        self.model.set_params(threads=1)

    def one(self, x: sp.csr_matrix) -> Any:
        return self.model.predict(x, top_k=TOP)


class FastText:
    """Hierarchical softmax over the same words; its file on disk contains these words too."""

    def __init__(self, threads: int, **settings: Any):
        self.threads, self.settings = threads, settings

    def load(self, folder: Path) -> None:
        import fasttext

        self.fasttext, self.file = fasttext, str(folder / "train.words")

    def train(self) -> None:
        # reads and splits the file again in each epoch: it cannot train from memory
        self.model = self.fasttext.train_supervised(self.file, thread=self.threads, verbose=0, **self.settings)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.model.save_model(str(folder / "model.bin"))

    def ready(self) -> None:
        pass

    def points(self, folder: Path) -> list[str]:
        return (folder / "test.words").read_text().split("\n")[:-1]

    def batch(self, points: list[str], k: int) -> np.ndarray:
        found, _ = self.model.predict(points, k=k)
        return padded([[int(label[len("__label__") :]) for label in row] for row in found], k)

    def single(self) -> None:
        pass

    def one(self, x: str) -> Any:
        return self.model.predict(x, k=TOP)


class OneVsRest(OnMatrices):
    """scikit-learn's LinearSVC for each of a slice of the labels: LIBLINEAR's dual solver, the same C and eps."""

    def load(self, folder: Path) -> None:
        super().load(folder)
        import joblib
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        self.Y = self.Y[:, np.load(folder / "slice.npy")]
        self.workers = joblib.parallel_backend
        svm = LinearSVC(C=self.settings["C"], tol=self.settings["eps"], dual=True)
        self.model = OneVsRestClassifier(svm, n_jobs=self.threads)

    def train(self) -> None:
        with self.workers("threading", n_jobs=self.threads):  # LIBLINEAR releases the interpreter lock
            self.model.fit(self.X, self.Y)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._stack()
        np.savez(folder / "weights.npz", self.W, self.b)

    def _stack(self) -> None:
        self.W = np.concatenate([svm.coef_ for svm in self.model.estimators_]).astype(np.float32).T.copy()
        self.b = np.concatenate([svm.intercept_ for svm in self.model.estimators_]).astype(np.float32)

    def ready(self) -> None:
        pass

    def batch(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        scores = points @ self.W + self.b  # one product, much faster than 200 classifiers one after the other
        return np.argsort(-scores, 1, kind="stable")[:, :k]

    def single(self) -> None:
        pass

    def one(self, x: sp.csr_matrix) -> Any:
        return self.batch(x, TOP)


class SklearnTfidf:
    """TfidfVectorizer with the settings of the matrices."""

    def __init__(self, threads: int):
        self.threads = threads

    def load(self, folder: Path) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.texts = json.loads((folder / "train.json").read_text())
        least = json.loads((folder / "about.json").read_text())["min_texts"]
        self.encoder = TfidfVectorizer(sublinear_tf=True, min_df=least, dtype=np.float32)

    def train(self) -> None:
        self.encoder.fit_transform(self.texts)
