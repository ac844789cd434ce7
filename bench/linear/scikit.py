"""scikit-learn on a slice of the labels, and its TF-IDF. See `peerside.measure` for what the methods mean.

Imports only numpy, scipy and the driver's base class besides scikit-learn: it runs in the environment of scikit-learn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from peerside.driver import TOP, Driver, OnMatrices, best_of, lines


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

    def batch(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        scores = points @ self.W + self.b  # one product, much faster than 200 classifiers one after the other
        return best_of(scores, k)

    def one(self, x: sp.csr_matrix) -> Any:
        return self.batch(x, TOP)


class SklearnTfidf(Driver):
    """TfidfVectorizer with the settings of the matrices."""

    def load(self, folder: Path) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.texts = lines(folder, "train.texts")
        self.encoder = TfidfVectorizer(sublinear_tf=True, min_df=self.settings["min_texts"], dtype=np.float32)

    def train(self) -> None:
        self.encoder.fit_transform(self.texts)
