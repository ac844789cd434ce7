"""Reading the exchange folder, and putting predictions into an array."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

TOP = 10  # labels that a single query asks for


def matrix(folder: Path, name: str) -> sp.csr_matrix:
    """Return a matrix of the exchange folder: X (N, D), Y (N, L) or X_test (M, D)."""
    return sp.load_npz(folder / f"{name}.npz").tocsr()


def lines(folder: Path, name: str) -> list[str]:
    """Return the lines of a text file of the exchange folder; only a line feed ends a line."""
    return (folder / name).read_text(encoding="utf-8").split("\n")[:-1]


def rows_of(Y: sp.csr_matrix) -> list[list[int]]:
    """Return the labels of every row."""
    return [part.tolist() for part in np.split(Y.indices, Y.indptr[1:-1])]


def padded(rows: Sequence[Any], k: int) -> np.ndarray:
    """Return lists of labels, best first, as (N, k), padded with −1."""
    found = np.full((len(rows), k), -1, np.int32)
    for i, best in enumerate(rows):
        found[i, : min(k, len(best))] = best[:k]
    return found


def best_of(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the columns of the k highest scores of every row (N, k), best first, ties by lower column."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)


class Driver:
    """What all drivers have: the settings of their system, and steps that most need not do."""

    seed = 0
    place: Path  # a folder for files of its own

    def __init__(self, threads: int, **settings: Any):
        self.threads, self.settings = threads, settings

    def ready(self) -> None:
        """Nothing to prepare."""

    def single(self) -> None:
        """Nothing to change."""


class OnMatrices(Driver):
    """Code shared by drivers whose system takes CSR matrices."""

    def load(self, folder: Path) -> None:
        self.X, self.Y = matrix(folder, "X"), matrix(folder, "Y")

    def points(self, folder: Path) -> sp.csr_matrix:
        return matrix(folder, "X_test")
