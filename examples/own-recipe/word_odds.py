"""A recipe in a package of its own: after `pip install .`, longtail knows it as `word-odds`."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.core.parameters import param
from longtail.core.ranking import Ranking
from longtail.encoders.tfidf import Tfidf
from longtail.search.sparse import SparseIndex
from longtail.store import StoredModel
from longtail.store.parts import pack_csr, unpack_csr
from longtail.train.recipe import TrainedRecipe


@dataclass(frozen=True)
class WordOdds(TrainedRecipe):
    """score(l | x) = Σ_w x_w · log P(w | l) / P(w | not l), over the words that speak for l; x is the text's TF-IDF."""

    name = "word-odds"
    title = "naive Bayes, of the words that speak for a label"
    needs = ("text",)
    smoothing: float = param(0.1, "added to every count of a word", above=0.0)

    @classmethod
    def model_class(cls):
        return WordOddsModel

    def train(self, data, labels, run, validation=None):
        encoder, counts = Tfidf.fit(data.texts)  # (N, V)
        ignored = sp.csr_matrix(data.Y.shape) if data.ignore is None else data.ignore.astype(np.float32)
        of = sp.csr_matrix(data.truth().T @ counts)  # (L, V): words in texts with the label …
        spared = sp.csr_matrix(ignored.T @ counts)  # … and in texts that may have it, which count neither way
        found = of.tocoo()
        rest = counts.sum(0).A1[found.col] - found.data - np.asarray(spared[found.row, found.col]).ravel()
        all_of, all_rest = of.sum(1).A1, counts.sum() - of.sum(1).A1 - spared.sum(1).A1
        share = (found.data + self.smoothing) / (all_of[found.row] + self.smoothing * len(encoder))
        others = (rest + self.smoothing) / (all_rest[found.row] + self.smoothing * len(encoder))
        odds = np.maximum(np.log(share / others), 0).astype(np.float32)
        words = sp.csr_matrix((odds, (found.row, found.col)), shape=of.shape)
        return WordOddsModel(self, labels, encoder, SparseIndex.of(words))


class WordOddsModel(StoredModel):
    """The odds of the words of each label, as inverted lists."""

    accepts = "text"

    def __init__(self, recipe, labels, encoder, words, about=None):
        super().__init__(recipe, labels, about)
        self.encoder, self.words = encoder, words

    def rank(self, x, k):
        removed = 0 if self.labels.removed is None else int(self.labels.removed.sum())
        found = self.words.nearest(self.encoder.encode(x), min(k + removed, len(self.labels)))
        ranking = Ranking.from_csr(Ranking(*found, self.labels).to_csr(), k, self.labels)  # without removed labels
        order, shares = self.labels.most_frequent(2 * k)  # for texts with few known words
        return ranking.fill(order[order >= 0], shares[order >= 0] * np.float32(1e-6))

    def state(self):
        arrays, meta = self.encoder.state()
        return arrays | pack_csr("words", self.words.lists), meta

    @classmethod
    def from_state(cls, saved):
        encoder = Tfidf.from_state(saved.arrays, saved.meta)
        return cls(saved.recipe, saved.labels, encoder, SparseIndex(unpack_csr("words", saved.arrays)), saved.about)
