"""A cascade of three levels over a toy encoder, from public parts alone."""

from typing import Any

import numpy as np
import pytest
from corpora import topic_corpus

torch = pytest.importorskip("torch")
from longtail.cascade import parts  # noqa: E402
from longtail.cascade.served import Network  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.encoders.reader import BagReader  # noqa: E402
from longtail.encoders.tfidf import Tfidf  # noqa: E402
from longtail.train.loop import Loop  # noqa: E402
from longtail.train.settings import LoopParameters  # noqa: E402

NAMES = ("coarse", "fine", "label")


@pytest.mark.parametrize("join", [parts.PathJoin, parts.ParentJoin, parts.LastJoin])
def test_three_levels_learn(join: Any) -> None:
    corpus = topic_corpus(200)
    train, reader = corpus.train, BagReader("tfidf", Tfidf.fit(corpus.train.texts)[0])

    def prepare(net: parts.Cascade) -> parts.Structure:
        tree = parts.LabelTree.in_clusters(parts.pifa(net.data.rows, net.data.Y), [2, 4], seed=0)
        return parts.tree_structure(tree)

    def build(net: parts.Cascade, structure: parts.Structure) -> None:
        net.set_tree(structure)
        net.join = join()
        for t, name in enumerate(NAMES):
            rows = parts.Free(parts.Table.xavier(net.size(t), 16))
            net.set_level(t, parts.Dot(net.size(t), name, rows, candidates=net.below(t, 2) if t else None))

    phase = parts.Phase("all", 12, (parts.Group("", 0.05),), (0, 1, 2), prepare, build)
    encoder = parts.BagEncoder(parts.Table.random(len(reader), 16, 0.25), NAMES, "astec", 0.0)
    net = parts.Cascade(parts.Points.read(reader, train, corpus.labels), encoder, [phase])
    history = Loop(net, LoopParameters(batch=32), Run(device="cpu")).train()
    assert history[-1]["loss"] < history[0]["loss"] / 4
    assert {"shortlist recall", "shortlist recall of level 1"} <= history[-1].keys()
    scores = Network(*net.export()).scores(reader.read(train.texts)).toarray()
    assert (np.take_along_axis(train.Y.toarray(), scores.argmax(1)[:, None], 1) > 0).mean() > 0.95
