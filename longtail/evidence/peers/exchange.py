"""The exchange folder: what peers are trained on and asked for, as files that need no longtail to be read.

| file | what it has | for |
| --- | --- | --- |
| `X.npz`, `X_test.npz` | features (N, D) and (M, D), float32 CSR, stored by scipy | "matrices"; X_test also "file" |
| `Y.npz` | labels (N, L), float32 CSR, without ignored pairs | "matrices", "texts" |
| `train.txt` | both in the repository's format; rows without labels or features are left out | "file" |
| `train.words`, `test.words` | the words of each text that are features; in train after `__label__NUMBER …` | "words" |
| `train.texts`, `test.texts`, `labels.texts` | a text per line, runs of white space as one blank | "texts" |

"both" is "matrices" and "texts". Predictions come back as labels (M, k), −1 at the end of shorter rows.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import _native
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.sparse import normalise_rows
from longtail.data.writers.files import write_lines
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.metrics import depth
from longtail.store import disk

WORD = re.compile(r"\w\w+")
LEAST = 10  # labels predicted for every point, also where the metrics need fewer
BLOCK = 65_536  # rows written at once


@dataclass(frozen=True)
class Exchange:
    """A folder that is written: `k` is how many labels must be predicted so that enough remain without ignored pairs.

    `seconds` is the time of computing the features of train and test, which are given to all peers.
    """

    folder: Path
    k: int
    seconds: float


def write_exchange(
    corpus: Corpus, test: Dataset, folder: Path, reads: Collection[str], settings: TfidfParameters | None = None
) -> Exchange:
    """Write what systems with these `reads` need; features are TF-IDF, or those of a corpus without texts."""
    disk.make_folders(folder)
    Y, seconds = corpus.train.truth(), 0.0
    save_csr(folder / "Y.npz", Y)
    reads = {*reads, "matrices", "texts"} if "both" in reads else set(reads)
    if {"matrices", "file", "words"} & reads:
        began = time.perf_counter()
        X, X_test, terms = features(corpus.train, test, settings or TfidfParameters())
        seconds = time.perf_counter() - began
        save_csr(folder / "X.npz", X)
        save_csr(folder / "X_test.npz", X_test)
        if "file" in reads:
            write_lines(folder / "train.txt", points_file(X, Y))
        if "words" in reads:
            write_lines(folder / "train.words", labelled(words_of(corpus.train.texts, terms), Y))
            write_lines(folder / "test.words", text_lines(words_of(test.texts, terms)))
    if "texts" in reads:
        write_lines(folder / "train.texts", text_lines(corpus.train.texts))
        write_lines(folder / "test.texts", text_lines(test.texts))
        if corpus.labels.texts is not None:
            write_lines(folder / "labels.texts", text_lines(corpus.labels.texts))
    return Exchange(folder, max(LEAST, depth(ignore=test.ignore)), seconds)


def features(train: Dataset, test: Dataset, settings: TfidfParameters) -> tuple[sp.csr_matrix, sp.csr_matrix, set[str]]:
    """TF-IDF of train and test as `xr-linear` computes it, and the terms; or the features that the corpus has."""
    if not train.has_text:
        return normalise_rows(train.features), normalise_rows(test.features), set()
    encoder, counts = Tfidf.fit(train.texts, settings)
    return encoder.weigh(counts), encoder.encode(test.texts), set(encoder.terms)


def save_csr(path: Path, matrix: sp.csr_matrix) -> None:
    """Write a matrix as scipy does; other projects read it with `scipy.sparse.load_npz`."""
    with disk.created(path) as file:
        sp.save_npz(file, sp.csr_matrix(matrix, dtype=np.float32), compressed=False)


def points_file(X: sp.csr_matrix, Y: sp.csr_matrix) -> Iterator[bytes]:
    """Lines "label,label feature:value …" after a header; the loader of omikuji refuses rows that lack either."""
    rows = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
    X, Y = X[rows], Y[rows]
    yield f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode("ascii")
    for first in range(0, X.shape[0], BLOCK):
        yield _native.sparse_lines(X, first, min(first + BLOCK, X.shape[0]), Y)


def words_of(texts: Texts, known: set[str]) -> Iterator[str]:
    """The words of every text that are features, in their original order."""
    for text in texts:
        yield " ".join(w for w in WORD.findall(unicodedata.normalize("NFKC", text).lower()) if w in known)


def labelled(lines: Iterator[str], Y: sp.csr_matrix) -> Iterator[bytes]:
    """Lines after the labels of their rows, in fastText's format."""
    for line, labels in zip(lines, np.split(Y.indices, Y.indptr[1:-1]), strict=True):
        yield "".join([*(f"__label__{label} " for label in labels.tolist()), line, "\n"]).encode()


def text_lines(texts: Any) -> Iterator[bytes]:
    """A text per line."""
    for text in texts:
        yield f"{' '.join(text.split())}\n".encode("utf-8", "surrogatepass")
