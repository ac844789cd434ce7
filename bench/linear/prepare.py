"""Writes the files that every system reads: the exchange folder of `longtail peers`, and what only this bench needs."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import numpy as np

import longtail
from linear.systems import MIN_TEXTS, SLICE
from longtail.encoders.tfidf import TfidfParameters
from longtail.evidence.peers.exchange import Exchange, write_exchange

KS = (1, 3, 5)


def prepare(name: str, corpus: longtail.Corpus, folder: Path, reads: Collection[str]) -> Exchange:
    """Write the exchange folder with features of words in at least two texts; slow files only if a system reads them.

    For our own systems also texts, and beside them the labels of the slice and the name of the corpus.
    """
    reads = {*reads, "texts"} if corpus.train.has_text else set(reads)
    exchange = write_exchange(corpus, corpus.test, folder, reads, TfidfParameters(min_texts=MIN_TEXTS))
    frequent = np.argsort(-corpus.train.label_counts(), kind="stable")[:SLICE]
    np.save(folder / "slice.npy", np.sort(frequent))
    (folder / "about.json").write_text(json.dumps({"corpus": name, "min_texts": MIN_TEXTS}))
    return exchange
