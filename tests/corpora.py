"""Small corpora that the tests share."""

from pathlib import Path

import numpy as np
import orjson
import scipy.sparse as sp

from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset

TOPICS = {
    "cooking": "recipe oven butter flour sugar bake kitchen",
    "sailing": "boat wind harbour anchor mast rudder tide",
    "music": "guitar chord melody concert violin rhythm choir",
    "chess": "pawn knight castle checkmate opening endgame bishop",
    "gardening": "soil seed prune compost rose hedge lawn",
}
UNSEEN = "astronomy"  # a label without a training example


def topic_corpus(points: int = 240, *, label_text: bool = True, seed: int = 0, ignore: bool = False) -> Corpus:
    """Points whose words come from one or two topics; the last label has no example."""
    rng = np.random.default_rng(seed)
    names = list(TOPICS)
    keys = [*names, UNSEEN]
    texts, rows = [], []
    for _ in range(points + 40):
        topics = sorted(rng.choice(len(names), size=rng.integers(1, 3), replace=False).tolist())
        words = [w for t in topics for w in rng.choice(TOPICS[names[t]].split(), size=4, replace=False)]
        texts.append(" ".join(rng.permutation([*words, "the", "and"])))
        rows.append(topics)
    Y = sp.lil_matrix((len(rows), len(keys)), dtype=np.float32)
    for i, topics in enumerate(rows):
        Y[i, topics] = 1
    Y = Y.tocsr()
    described = [f"{key}: {TOPICS.get(key, 'telescope planet comet')}" for key in keys] if label_text else None
    pairs = None
    if ignore:  # every tenth point and its first label
        at = np.arange(0, len(rows), 10)
        pairs = sp.csr_matrix((np.ones(len(at), bool), (at, [rows[i][0] for i in at])), shape=Y.shape)
    everything = Dataset(Texts.of(texts), Y, pairs)
    train, test = everything.take(np.arange(points)), everything.take(np.arange(points, points + 40))
    return Corpus("topics", train, Labels.of(keys, described), test=test)


def feature_corpus(points: int = 240) -> Corpus:
    """The same corpus with a feature matrix instead of texts."""
    corpus = topic_corpus(points, label_text=False)
    words = sorted({w for topic in TOPICS.values() for w in topic.split()})

    def features(texts: Texts) -> sp.csr_matrix:
        return sp.csr_matrix([[float(w in text.split()) for w in words] for text in texts], dtype=np.float32)

    assert corpus.test is not None
    train = Dataset(features(corpus.train.texts), corpus.train.Y)
    test = Dataset(features(corpus.test.texts), corpus.test.Y)
    return Corpus("features", train, Labels.of(list(corpus.labels.keys)), test=test)


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
