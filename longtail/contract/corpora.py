"""The tiny corpora of the contract: words of five topics, and a label that has no example."""

import numpy as np
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
