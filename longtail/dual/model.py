"""A trained dual encoder as a model: labels are vectors, and the nearest ones to a text are its labels."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.defaults import HEADS
from longtail.core.editing import about_edit, check_edit
from longtail.core.errors import ParameterError, StoreError, nearest
from longtail.core.labels import Labels
from longtail.core.model import Inputs
from longtail.core.ranking import Ranking
from longtail.core.recipe import Recipe
from longtail.core.texts import Texts
from longtail.dual.served import TextEncoder
from longtail.encoders.export import arrays_under
from longtail.encoders.reader import Reader, reader_from_state
from longtail.encoders.served import Floats
from longtail.search.dense import unit
from longtail.search.index import Index, SearchSettings, load_index
from longtail.search.memory import Lookup, Memory, keys_of
from longtail.store import Saved, StoredModel

log = logging.getLogger("longtail")
BLOCK = 1024  # texts ranked at a time
FIRST_SHARE = 0.8  # λ of a model that had no memory: few points change only rankings of texts near to them
FITTED = 8192  # labels, at most, by which classifiers of new labels are fitted


class Retrieved(NamedTuple):
    """The nearest labels (B, m) and remembered points (B, n) of B texts, best first, padded by −1, with scores."""

    labels: NDArray[np.int32]
    scores: Floats
    points: NDArray[np.int32]
    alike: Floats


class DualModel(StoredModel):
    """A reader of texts, an encoder with its heads, and the vectors of all labels.

    `vectors` (L, d · heads) has for each label Φ_D(z_l), its text, and beside it (for systems with classifiers) its row
    of Ψ, most often both of unit length. A label's score is (1 − w)·⟨Φ_D(x), Φ_D(z)⟩ + w·⟨Φ_C(x), Ψ_l⟩ with
    w = `share`, the share of the classifiers: 0 is retrieval by label text alone, 1 classification alone. With a
    `memory`, remembered texts near by vote for their labels too, as `lookup` says.
    """

    def __init__(
        self,
        recipe: Recipe,
        labels: Labels,
        reader: Reader,
        encoder: TextEncoder,
        vectors: Floats,
        share: float,
        search: SearchSettings,
        index: Index | None = None,
        about: dict[str, Any] | None = None,
        memory: Memory | None = None,
        lookup: Lookup | None = None,
    ):
        super().__init__(recipe, labels, about)
        self.reader, self.encoder, self.vectors, self.share, self.search = reader, encoder, vectors, share, search
        self.memory, self.lookup = memory, lookup or Lookup()
        self.silent: dict[str, NDArray[np.bool_]] = {}  # labels without a vector, by the columns that are looked at
        if index is not None:
            self.index = index

    @functools.cached_property
    def index(self) -> Index:
        """Finds labels by the vectors that `share` needs."""
        return self.search.build(self.vectors[:, self.columns(self.share)])

    @property
    def accepts(self) -> str:
        """Dual encoders read texts, not feature matrices."""
        return "text"

    def rank(self, x: Inputs, k: int) -> Ranking:
        """The nearest labels of each text; those without known tokens get frequent ones."""
        if not isinstance(x, Texts):
            raise TypeError("x must be Texts")
        rows = self.reader.read(x)
        if self.memory is None or self.lookup.share == 1:
            return self.ranked(rows, k, self.share, self.index)
        return self.remembered(rows, k, self.lookup)

    def remembered(self, rows: Any, k: int, lookup: Lookup) -> Ranking:
        """The k best labels by label vectors and memory together."""
        blocks = (rows[first : first + BLOCK] for first in range(0, rows.shape[0], BLOCK))
        return self.mixed([self.near(block, k, lookup.neighbours) for block in blocks], k, lookup)

    def mixed(self, found: list[Retrieved], k: int, lookup: Lookup) -> Ranking:
        """The k best labels of texts whose nearest labels and points are found already, block by block."""
        if self.memory is None:
            raise RuntimeError("this model has no memory")
        b = lookup.neighbours
        m = max(k, b)  # more may have been found, for other lookups
        scores = [
            self.memory.scores(x.labels[:, :m], x.scores[:, :m], x.points[:, :b], x.alike[:, :b], lookup) for x in found
        ]
        return Ranking.from_csr(sp.vstack(scores, "csr"), k, self.labels)

    def near(self, rows: Any, k: int, neighbours: int) -> Retrieved:
        """The nearest labels and remembered points of B texts: what both sides of a lookup begin with."""
        if self.memory is None:
            raise RuntimeError("this model has no memory")
        labels, scores = self._ranked(rows, max(k, min(neighbours, len(self.labels))), self.share, self.index)
        points, alike = self.memory.nearest(self.encoder.vectors(rows)[:, : self.encoder.width], neighbours)
        points[~self.reader.known(rows)] = -1  # a text without known tokens is near to nothing
        return Retrieved(labels, scores, points, np.where(points < 0, -np.inf, alike).astype(np.float32))

    def ranked(self, rows: Any, k: int, share: float, index: Index | None = None) -> Ranking:
        """The k best labels of texts as the reader gives them, with this share of the classifiers."""
        index = index or self.search.build(self.vectors[:, self.columns(share)])
        blocks = [
            self._ranked(rows[first : first + BLOCK], k, share, index) for first in range(0, rows.shape[0], BLOCK)
        ]
        indices, scores = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return Ranking(indices, scores, self.labels)

    def _ranked(self, rows: Any, k: int, share: float, index: Index) -> tuple[NDArray[np.int32], Floats]:
        queries = self.queries(rows, share)
        found, scores = index.search(queries, k, without=self.barred(share))
        wordless = ~self.reader.known(rows)
        if wordless.any():
            found[wordless], scores[wordless] = self.labels.most_frequent(k)
        return found, scores

    def barred(self, share: float) -> NDArray[np.bool_]:
        """Labels (L,) that no text may find: removed ones, and those without a vector.

        The latter are labels whose text has no known token. Their score would be 0, more than that of most labels.
        """
        columns = self.columns(share)
        if str(columns) not in self.silent:
            self.silent[str(columns)] = np.asarray(~self.vectors[:, columns].any(axis=1), bool)
        silent, removed = self.silent[str(columns)], self.labels.removed
        return silent if removed is None else silent | removed

    def columns(self, share: float) -> slice:
        """The columns of `vectors` that scores with this share of the classifiers need."""
        d = self.encoder.width
        if share == 0 or len(self.encoder.heads) == 1:
            return slice(0, d)
        return slice(d, 2 * d) if share == 1 else slice(0, 2 * d)

    def queries(self, rows: Any, share: float) -> Floats:
        """Vectors of texts (B, ·) whose inner products with those of the labels are the scores."""
        vectors, columns = self.encoder.vectors(rows), self.columns(share)
        if columns == slice(0, 2 * self.encoder.width):
            vectors = vectors * np.repeat(np.array([1 - share, share], np.float32), self.encoder.width)
        return np.ascontiguousarray(vectors[:, columns])

    def embed(self, x: Any, head: str | None = None) -> Floats:
        """The vectors (N, ·) of texts. `x` is a list of N texts.

        By default these are the model's queries: Φ_D(x) scaled by 1 − w beside Φ_C(x) scaled by w = `share`, or one of
        the two alone where w is 0 or 1. The scaling makes their inner products with `label_embeddings()` the scores of
        the model (the votes of a memory, which `predict` adds, are not in them).

        `head` asks for vectors without scaling: "de" for Φ_D(x), "clf" for Φ_C(x), "both" for one beside the other
        (inner products with the labels' are then the sum of both scores). A text without known tokens has a vector too,
        but it says nothing: `predict` gives such a text frequent labels instead.
        """
        points, columns = self.check_inputs(x), self.head_columns(head)
        if not isinstance(points, Texts):
            raise TypeError("x must be Texts")
        rows = self.reader.read(points)
        if head is None:
            return self.queries(rows, self.share)
        return np.ascontiguousarray(self.encoder.vectors(rows)[:, columns])

    def label_embeddings(self, head: str | None = None) -> Floats:
        """The vectors (L, ·) of all labels, also of removed ones: Φ_D(z), Ψ, or both side by side, never scaled.

        `head` as in `embed`; by default the columns that the model's scores need. This is a read-only view: nothing is
        copied, and what a loaded model has on disk stays there until it is read.
        """
        vectors = self.vectors[:, self.head_columns(head)]
        vectors.flags.writeable = False
        return vectors

    def head_columns(self, head: str | None) -> slice:
        """The columns of `vectors` that a head has; refuses a head that is unknown or that this model lacks."""
        if head is None:
            return self.columns(self.share)
        if head not in HEADS:
            raise ParameterError(f"there is no head {head!r}.{nearest(str(head), HEADS)}")
        if head != "de" and len(self.encoder.heads) == 1:
            raise ParameterError(
                f"head {head!r} needs classifiers, which recipe {self.recipe.name!r} does not have; take 'de', or none"
            )
        d = self.encoder.width
        return {"de": slice(0, d), "clf": slice(d, 2 * d), "both": slice(0, 2 * d)}[head]

    def edit_labels(self, labels: Labels) -> DualModel:
        """Without training: a new label is its text, and its classifier is guessed from its text (`like_labels`)."""
        check_edit(self.labels, labels)
        vectors, index, L = self.vectors, self.index, len(self.labels)
        if len(labels) > L and labels.texts is not None:
            rows = self.reader.read(labels.texts[L:])
            new, unknown = self.like_labels(self.encoder.vectors(rows)), ~self.reader.known(rows)
            new[unknown] = 0  # a text without known tokens says nothing: its label is never found
            warn_of_unknown(labels, L + np.flatnonzero(unknown))
            vectors, index = np.concatenate([vectors, new]), index.add(new[:, self.columns(self.share)])
        edited = self.changed_to(memory=None if self.memory is None else self.memory.of_labels(len(labels)))
        edited.labels, edited.vectors, edited.index, edited.silent = labels, vectors, index, {}
        edited.about = about_edit(self.about, self.labels, labels)
        return edited

    def with_settings(self, **settings: Any) -> DualModel:
        """A copy with another `share` of the classifiers, or another share of labels beside the memory."""
        self.check_after_training(settings)
        model = copy.copy(self)
        model.recipe = replace(self.recipe, **settings)
        if "share" in settings:
            model.share = float(settings["share"])
            model.__dict__.pop("index", None)  # made for the vectors of the share before
        if "memory_share" in settings:
            model.lookup = self.lookup._replace(share=float(settings["memory_share"]))
        return model

    def changed_to(self, memory: Memory | None, lookup: Lookup | None = None) -> DualModel:
        """A copy of this model with another memory, or one that counts differently.

        Probabilities and a cut-off belong to the scores that they were fitted to: other scores lose them.
        """
        model = copy.copy(self)
        model.memory, model.lookup, model.about = memory, lookup or self.lookup, dict(self.about)
        if self.decision is not None and model.counted_memory != self.counted_memory:
            log.warning("probabilities and the cut-off were fitted to other scores; the edited model has neither")
            model.decision = None
        return model

    def with_lookup(self, lookup: Lookup) -> DualModel:
        """A copy of this model whose memory counts so."""
        return self.changed_to(self.memory, lookup)

    @property
    def counted_memory(self) -> Lookup | None:
        """How the memory counts; None where it does not."""
        return None if self.memory is None or self.lookup.share == 1 else self.lookup

    def remember(self, texts: Texts, Y: sp.csr_matrix, keys: Iterable[str] | None = None) -> DualModel:
        """A copy of this model that also remembers these texts with their targets (n, L).

        `keys` name the points, so that they can be replaced or forgotten; without them a text is its own key. A point
        with the key of an earlier one takes its place. A model that has no memory yet counts it with λ = FIRST_SHARE,
        unless it was told otherwise (`changed_to`).
        """
        rows = self.reader.read(texts)
        vectors = self.encoder.vectors(rows)[:, : self.encoder.width]
        vectors[~self.reader.known(rows)] = 0  # near to no query
        nothing = sp.csr_matrix((0, len(self.labels)), dtype=np.float32)
        memory = self.memory or Memory(vectors[:0], nothing, keys_of([]), self.search.storage)
        first = self.memory is None and self.lookup.share == 1
        lookup = self.lookup._replace(share=FIRST_SHARE) if first else self.lookup
        return self.changed_to(memory.with_points(vectors, Y, keys_of(texts if keys is None else keys)), lookup)

    def forget(self, keys: Iterable[str]) -> tuple[DualModel, int]:
        """A copy of this model without the points of these keys (or texts), and how many there were."""
        if self.memory is None:
            return self, 0
        memory, count = self.memory.without(keys_of(keys))
        return self.changed_to(memory), count

    def like_labels(self, new: Floats) -> Floats:
        """Vectors (n, d · heads) of new labels whose classifiers score as those of trained labels do on average.

        The text of a label, Φ_C(z), is nearer to a query than its trained classifier Ψ is, which has learnt where the
        label does not belong: new labels with their texts for classifiers would be suggested far too often. Ψ of a new
        label is m + a·(Φ_C(z) − t), the least-squares fit of Ψ by Φ_C(z) over labels with examples, where m and t are
        the means of both; it keeps expected scores right for queries of every kind.
        """
        d = self.encoder.width
        if len(self.encoder.heads) == 1 or self.labels.texts is None:
            return new
        known = np.flatnonzero(self.labels.counts > 0)
        if len(known) < 2:
            return new
        known = known[:: -(-len(known) // FITTED)]  # evenly through the label space
        texts = self.encoder.vectors(self.reader.read(self.labels.texts.take(known)))[:, d:]  # Φ_C(z)
        rows, own = np.asarray(self.vectors[known, d:]), new[:, d:]  # Ψ
        if not self.encoder.heads[1].unit:  # the length of a text says how many of its words are known, no more
            texts, own = unit(texts), unit(own)
        t, m = texts.mean(axis=0), rows.mean(axis=0)
        a = float(((texts - t) * (rows - m)).sum() / max(float(((texts - t) ** 2).sum()), 1e-12))
        return np.concatenate([new[:, :d], m + max(a, 0.0) * (own - t)], axis=1).astype(np.float32)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Reader, encoder, label vectors; and the index, unless it is quickly built from these."""
        arrays, reader = self.reader.state()
        exported = self.encoder.export()
        arrays |= {name: np.ascontiguousarray(array) for name, array in exported.under("text").items()}
        meta = {"reader": reader, "encoder": exported.meta, "share": self.share, "search": self.search.changed()}
        # an array, so that a model whose memory counts differently is another generation of its folder
        arrays["lookup"] = np.array(self.lookup, np.float64)
        if self.memory is not None:
            arrays |= {f"memory.{name}": array for name, array in self.memory.state().items()}
        if self.search.index != "exact":
            own, meta["index"] = self.index.state()
            arrays |= {f"index.{name}": array for name, array in own.items()}
        return arrays | {"vectors": self.vectors}, meta

    @classmethod
    def from_state(cls, saved: Saved) -> DualModel:
        """The model that `state` described."""
        meta, arrays = saved.meta, saved.arrays
        encoder = TextEncoder(arrays_under("text", arrays), meta["encoder"])
        reader, search = reader_from_state(arrays, meta["reader"]), SearchSettings.of(**meta["search"])
        index = load_index(arrays_under("index", arrays), meta["index"]) if "index" in meta else None
        share, vectors = float(meta["share"]), arrays["vectors"]
        λ, τ, b = arrays["lookup"].tolist() if "lookup" in arrays else Lookup()
        own, lookup = arrays_under("memory", arrays), Lookup(λ, τ, int(b))
        memory = Memory.from_state(own, search.storage) if own else None
        if memory is not None and memory.Y.shape[1] != len(saved.labels):
            raise StoreError("the memory of the model has another number of labels; it is damaged: train again")
        found = reader, encoder, vectors, share, search, index, saved.about, memory, lookup
        return cls(saved.recipe, saved.labels, *found)


def warn_of_unknown(labels: Labels, numbers: NDArray[np.intp]) -> None:
    """Say which labels have texts without a known token."""
    if len(numbers):
        keys = ", ".join(repr(labels.keys[int(number)]) for number in numbers[:3])
        log.warning(
            "%s label(s) have no known token in their text and cannot be found by it: %s%s",
            f"{len(numbers):,}",
            keys,
            ", …" if len(numbers) > 3 else "",
        )
