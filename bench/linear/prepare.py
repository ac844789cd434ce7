"""Writes the files that every system reads: matrices, and text files for systems that train on files or words."""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail
from linear.systems import SLICE
from longtail.data.sparse import normalise_rows
from longtail.encoders.tfidf import Tfidf, TfidfParameters
from longtail.metrics import depth

WORD = re.compile(r"\w\w+")
MIN_TEXTS = 2
KS = (1, 3, 5)


def prepare(name: str, corpus: longtail.Corpus, folder: Path, drivers: Iterable[str]) -> None:
    """Write matrices and texts; the two slow files only for the drivers that read them."""
    X, X_test = features(corpus, folder)
    Y = corpus.train.truth()
    matrices = {"X": X, "Y": Y, "X_test": X_test}
    for key, matrix in matrices.items():
        sp.save_npz(folder / f"{key}.npz", sp.csr_matrix(matrix, dtype=np.float32), compressed=False)
    frequent = np.argsort(-corpus.train.label_counts(), kind="stable")[:SLICE]
    np.save(folder / "slice.npy", np.sort(frequent))
    k = max(10, depth(KS, corpus.test.ignore))  # enough to remove the filter pairs
    (folder / "about.json").write_text(json.dumps({"corpus": name, "k": k, "min_texts": MIN_TEXTS}))
    if "Omikuji" in drivers:
        repository_file(X, Y, folder / "train.txt")


def features(corpus: longtail.Corpus, folder: Path) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return TF-IDF of words in at least two texts, or the features of the corpus; also the texts and their words."""
    if not corpus.train.has_text:
        return normalise_rows(corpus.train.features), normalise_rows(corpus.test.features)
    encoder, counts = Tfidf.fit(corpus.train.texts, TfidfParameters(min_texts=MIN_TEXTS))
    known = set(encoder.terms)
    for part in ("train", "test"):
        data = getattr(corpus, part)
        (folder / f"{part}.json").write_text(json.dumps(list(data.texts)))
        lines = (words(text, known) for text in data.texts)
        if part == "train":
            Y = data.truth()
            marks = (" ".join(f"__label__{label}" for label in Y.indices[a:b]) for a, b in itertools.pairwise(Y.indptr))
            lines = (f"{mark} {line}" for mark, line in zip(marks, lines, strict=True))
        (folder / f"{part}.words").write_text("".join(f"{line}\n" for line in lines))
    return encoder.weigh(counts), encoder.encode(corpus.test.texts)


def words(text: str, known: set[str]) -> str:
    """Return the words of a text that are columns of the matrices, in their original order, for fastText."""
    return " ".join(w for w in WORD.findall(unicodedata.normalize("NFKC", text).lower()) if w in known)


def repository_file(X: sp.csr_matrix, Y: sp.csr_matrix, path: Path) -> None:
    """Write the format of the Extreme Classification Repository, which omikuji trains from.

    Rows without labels or without features are left out: its loader refuses them.
    """
    rows = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
    with path.open("w") as file:
        file.write(f"{len(rows)} {X.shape[1]} {Y.shape[1]}\n")
        for i in rows:
            labels = ",".join(map(str, row_of(Y.indices, Y, i)))
            pairs = zip(row_of(X.indices, X, i), row_of(X.data, X, i), strict=True)
            file.write(f"{labels} {' '.join(f'{j}:{value:.7g}' for j, value in pairs)}\n")


def row_of(array: np.ndarray, matrix: sp.csr_matrix, i: int) -> list[Any]:
    """Return row i of one of the arrays of a CSR matrix."""
    return array[matrix.indptr[i] : matrix.indptr[i + 1]].tolist()
