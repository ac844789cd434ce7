"""What a ranking is, for any input."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.contract.check import check
from longtail.contract.require import refused, require
from longtail.contract.subject import Subject
from longtail.core.errors import ParameterError


@check()
def a_ranking_is_well_formed(subject: Subject) -> None:
    """Types, shapes, labels that exist, each once, and finite scores, best first."""
    model, corpus = subject.model, subject.corpus
    ranking = model.predict(corpus.train.x, 4)
    indices, scores, shape = ranking.indices, ranking.scores, (len(corpus.train), 4)
    require(indices.dtype == np.int32, f"indices must be int32; they are {indices.dtype}")
    require(scores.dtype == np.float32, f"scores must be float32; they are {scores.dtype}")
    shapes = f"{indices.shape} and {scores.shape}"
    require(indices.shape == scores.shape == shape, f"indices and scores must have the shape {shape}; got {shapes}")
    least, most, L = int(indices.min()), int(indices.max()), len(corpus.labels)
    require(least >= 0 and most < L, f"indices must be from 0 to {L - 1}; got {least} to {most}")
    require((np.diff(scores, axis=1) <= 0).all(), "the scores of a row must not rise")
    require(np.isfinite(scores).all(), "scores must be finite numbers")
    require(all(len(set(row)) == len(row) for row in indices.tolist()), "a row has a label twice")
    require(ranking.kind in ("score", "probability"), f"kind must be score or probability; got {ranking.kind!r}")
    require(ranking.labels is model.labels, "the labels of a ranking must be those of the model, `self.labels`")


@check(k=[1, 3, 6, 100])
def it_respects_k(subject: Subject, k: int) -> None:
    """A text gets k labels, or as many as there are; fewer are the first of more."""
    ranking = subject.model.predict(["boat wind harbour"], k)
    shape = (1, min(k, len(subject.corpus.labels)))
    require(ranking.indices.shape == shape, f"the shape for k={k} must be {shape}; got {ranking.indices.shape}")
    widest = subject.model.predict(["boat wind harbour"], 100).indices[:, : ranking.k]
    fewer = f"the labels for k={k} must be the first of those for k=100"
    require(np.array_equal(widest, ranking.indices), f"{fewer}; got {ranking.indices[0]} and {widest[0]}")


@check()
def one_point_at_a_time_or_all_at_once(subject: Subject) -> None:
    """The labels of a text do not depend on the texts beside it."""
    texts = list(subject.corpus.train.texts[:20])
    together = subject.model.predict(texts, 3)
    alone = [subject.model.predict([text], 3) for text in texts]
    indices, scores = (np.concatenate([getattr(one, what) for one in alone]) for what in ("indices", "scores"))
    differ = int((together.indices != indices).any(axis=1).sum())
    require(np.array_equal(together.indices, indices), f"{differ} of 20 texts get other labels when they are alone")
    row, column = np.unravel_index(np.isclose(together.scores, scores, rtol=1e-5).argmin(), scores.shape)
    differ_by = f"text {row} has the score {together.scores[row, column]:.9g}, alone {scores[row, column]:.9g}"
    require(np.allclose(together.scores, scores, rtol=1e-5), f"scores must not depend on other texts; {differ_by}")


@check()
def a_text_without_known_words(subject: Subject) -> None:
    """A text without known words gets the ranking of the biases: the same for all of them, and no error."""
    ranking = subject.model.predict(["xyzzy qwfp", "", "?!", "\x00"], 3)
    require((ranking.indices >= 0).all(), "a text without known words must get labels too")
    require(np.isfinite(ranking.scores).all(), "the scores of a text without known words must be finite")
    alike = (ranking.indices == ranking.indices[0]).all()
    require(alike, f"texts without known words must all get the same labels; got {ranking.indices.tolist()}")


@check()
def any_unicode(subject: Subject) -> None:
    """Any string is a text: other scripts, joined emoji, line separators, lone surrogates, very long words."""
    texts = ["日本語のテキスト", "नमस्ते", "👩‍👩‍👧‍👦 boat", "a\u2028b\x85c", "\ud800 wind", "é" * 10_000]
    count = len(subject.model.predict(texts, 2))
    require(count == len(texts), f"{len(texts)} texts must get as many rows; got {count}")


@check()
def bad_input_is_refused(subject: Subject) -> None:
    """One string instead of a list, items that are no text, a wrong k and a feature matrix; no texts get no rows."""
    model = subject.model
    with refused("one string", ParameterError, match="list of texts"):
        model.predict("one text")
    with refused("an item that is no text", ParameterError, match="item 1"):
        model.predict(["fine", None])
    for k in (0, -1, 2.5, True):
        with refused(f"k={k}", ParameterError, match="k must be"):
            model.predict(["fine"], k)  # type: ignore[arg-type]
    with refused("a feature matrix, by a model of texts", ParameterError, match="feature matrix"):
        model.predict(sp.csr_matrix((1, 3), dtype=np.float32))
    rows = len(model.predict([], 3))
    require(rows == 0, f"an empty list must get no rows; got {rows}")
