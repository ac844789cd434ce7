"""fastText."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from peerside.driver import TOP, Driver, lines, padded


class Supervised(Driver):
    """`train_supervised` on the words that are features; its file on disk contains these words too."""

    def load(self, folder: Path) -> None:
        import fasttext

        self.fasttext, self.file = fasttext, str(folder / "train.words")

    def train(self) -> None:
        # reads and splits the file again in each epoch: it cannot train from memory
        quiet = {"thread": self.threads, "seed": self.seed, "verbose": 0}
        self.model = self.fasttext.train_supervised(self.file, **quiet, **self.settings)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.model.save_model(str(folder / "model.bin"))

    def points(self, folder: Path) -> list[str]:
        return lines(folder, "test.words")

    def batch(self, points: list[str], k: int) -> np.ndarray:
        found, _ = self.model.predict(points, k=k)
        return padded([[int(label[len("__label__") :]) for label in row] for row in found], k)

    def one(self, x: str) -> Any:
        return self.model.predict(x, k=TOP)
