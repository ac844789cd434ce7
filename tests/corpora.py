"""Small corpora that the tests share; the smallest are those of the contract."""

from pathlib import Path

import numpy as np
import orjson
import scipy.sparse as sp

from longtail.contract.corpora import TOPICS as TOPICS
from longtail.contract.corpora import UNSEEN as UNSEEN
from longtail.contract.corpora import feature_corpus as feature_corpus
from longtail.contract.corpora import topic_corpus as topic_corpus
from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset


def write_corpus(corpus: Corpus, folder: Path) -> Path:
    """Write a corpus of texts as a folder of JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, data in corpus.parts():
        lines = []
        for i, text in enumerate(data.texts):
            row = data.Y.indices[data.Y.indptr[i] : data.Y.indptr[i + 1]]
            lines.append(orjson.dumps({"text": text, "labels": [corpus.labels.keys[int(j)] for j in row]}))
        (folder / f"{part}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    texts = corpus.labels.texts or [""] * len(corpus.labels)
    labels = [orjson.dumps({"key": key, "text": text}) for key, text in zip(corpus.labels.keys, texts, strict=True)]
    (folder / "labels.jsonl").write_bytes(b"\n".join(labels) + b"\n")
    return folder


GROUPS, EACH = 8, 5  # of `grouped_corpus`: groups, and labels in each


def group(g: int) -> str:
    return f"group{chr(97 + g)}"


def word(label: int, j: int) -> str:
    return f"word{chr(97 + label // EACH)}{chr(97 + label % EACH)}{chr(97 + j)}"


def spare(i: int) -> str:
    return f"spare{chr(97 + i)}"


# labels that `grouped_corpus` does not have, one to a group: its word, and spare ones
NEW_KEYS = [f"new{g}" for g in range(GROUPS)]
NEW_TEXTS = [f"{group(g)} {spare(3 * g)} {spare(3 * g + 1)} {spare(3 * g + 2)}" for g in range(GROUPS)]


def grouped_corpus(seed: int = 0) -> Corpus:
    """Labels in groups: a point has words of its label, of its group, and extra words that belong to no label."""
    rng = np.random.default_rng(seed)
    L = GROUPS * EACH
    texts, rows = [], []
    for i in range(8 * L):
        label = i % L
        words = [word(label, j) for j in rng.choice(4, 3, replace=False)]
        texts.append(" ".join([*words, group(label // EACH), spare(rng.integers(3 * GROUPS))]))
        rows.append(label)
    Y = sp.csr_matrix((np.ones(len(rows), np.float32), (np.arange(len(rows)), rows)), shape=(len(rows), L))
    described = [f"{group(label // EACH)} {word(label, 0)} {word(label, 1)}" for label in range(L)]
    labels = Labels.of([f"label{label}" for label in range(L)], described)
    return Corpus("groups", Dataset(Texts.of(texts), Y), labels)
