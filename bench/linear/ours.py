"""longtail, through its public calls. See `peerside.measure` for what the methods mean."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from peerside.driver import TOP, Driver, lines, matrix

import longtail
from longtail import _native
from longtail.core.labels import Labels
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.linear.blocks import TfidfBlock
from longtail.linear.ranker import BIAS


class Longtail(Driver):
    """xr-linear on the matrices. Its model folder contains tree, weights and label keys, but no words."""

    def __init__(self, threads: int, **settings: Any):
        super().__init__(threads, **settings)
        self.run = Run(threads=threads)
        _native.set_threads(threads)

    def load(self, folder: Path) -> None:
        X, Y = matrix(folder, "X"), matrix(folder, "Y")
        self.begin(X, Y)

    def begin(self, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        """Training starts from these matrices; the label keys are numbers, since no peer stores real keys."""
        self.data = Dataset(X, Y)
        labels = Labels.of(map(str, range(Y.shape[1])))
        self.labels = labels.with_counts(self.data.label_counts(), len(self.data))
        self.recipe = longtail.recipe(**{"name": "xr-linear"} | self.settings)

    def train(self) -> None:
        self.model = self.recipe.train(self.data, self.labels, replace(self.run, seed=self.seed))

    def save(self, folder: Path) -> None:
        self.model.save(folder)
        self.folder = folder

    def ready(self) -> None:
        self.model = longtail.load(self.folder)

    def points(self, folder: Path) -> sp.csr_matrix:
        return matrix(folder, "X_test")

    def batch(self, points: sp.csr_matrix, k: int) -> np.ndarray:
        return self.model.predict(points, k).indices

    def single(self) -> None:
        _native.set_threads(1)

    def one(self, x: sp.csr_matrix) -> Any:
        return self.model.predict(x, TOP)

    def core(self, x: sp.csr_matrix) -> Callable[[], Any]:
        search = self.model.rankers[0]._search.search
        options = {"bias": BIAS, "beam": self.recipe.beam, "k": TOP, "post": self.recipe.post}
        return lambda: search(x, **options)

    def from_texts(self, folder: Path, n: int) -> list[Callable[[], Any]]:
        """From a text to its labels: the same weights after an encoder."""
        about = json.loads((folder / "about.json").read_text())
        if not (folder / "train.texts").is_file():
            return []
        train, test = lines(folder, "train.texts"), lines(folder, "test.texts")
        encoder, _ = Tfidf.fit(Texts.of(train), TfidfParameters(min_texts=about["min_texts"]))
        self.model.blocks = [TfidfBlock(encoder)]
        return [lambda text=text: self.model.predict([text], TOP) for text in test[:n]]


class Flat(Longtail):
    """One-vs-rest without a tree on a slice of the labels, nothing pruned, as scikit-learn does."""

    def __init__(self, threads: int, **settings: Any):
        super().__init__(threads, **settings, prune=0.0, leaf_size=1000)

    def load(self, folder: Path) -> None:
        X, Y = matrix(folder, "X"), matrix(folder, "Y")
        self.begin(X, Y[:, np.load(folder / "slice.npy")])


class Chosen(Longtail):
    """The settings that are best on validation, trained again on all of train; label texts are not used.

    The settings are chosen once per corpus, in a separate process, and stored beside its matrices.
    """

    core = None  # the chosen settings may need more than one search
    grid = "matrices"

    def load(self, folder: Path) -> None:
        self.choose(folder)
        super().load(folder)

    def choose(self, folder: Path) -> None:
        kept, corpus = folder / f"chosen-{self.grid}.json", json.loads((folder / "about.json").read_text())["corpus"]
        if not kept.is_file():
            command = [sys.executable, "-m", "linear.choose", corpus, self.grid, str(kept)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.settings = json.loads(kept.read_text())["settings"]


class ChosenWords(Chosen):
    """The same with our own choice of words instead of the matrices; training time is again tree and solving."""

    grid = "words"

    def load(self, folder: Path) -> None:
        self.choose(folder)
        corpus = longtail.read(json.loads((folder / "about.json").read_text())["corpus"])
        words = {key: self.settings[key] for key in ("ngrams", "min_texts") if key in self.settings}
        self.encoder, counts = Tfidf.fit(corpus.train.texts, TfidfParameters(**words))
        self.test_texts = corpus.test.texts
        self.begin(self.encoder.weigh(counts), corpus.train.truth())

    def points(self, folder: Path) -> sp.csr_matrix:
        return self.encoder.encode(self.test_texts)

    def from_texts(self, folder: Path, n: int) -> list[Callable[[], Any]]:
        self.model.blocks = [TfidfBlock(self.encoder)]
        return [lambda text=text: self.model.predict([text], TOP) for text in self.test_texts[:n]]


class TfidfOnly(Driver):
    """Fit and transform of the training texts with the settings of the matrices."""

    def load(self, folder: Path) -> None:
        _native.set_threads(self.threads)
        self.train_texts = Texts.of(lines(folder, "train.texts"))

    def train(self) -> None:
        encoder, counts = Tfidf.fit(self.train_texts, TfidfParameters(**self.settings))
        encoder.weigh(counts)
