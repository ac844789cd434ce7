"""What the recipes of dual encoders share: their encoder, mining, and how a model is made and its heads weighed.

Importing this file needs no torch: recipes are listed and saved models opened without it.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from longtail.core.errors import ParameterError
from longtail.core.labels import Labels
from longtail.core.lazy import Lazy
from longtail.core.model import Model
from longtail.core.parameters import param, param_of
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.encoders.tfidf import smoothed_idf
from longtail.metrics import depth, evaluate
from longtail.scoring.recipe import WordVectorRecipe
from longtail.search.index import Index, SearchSettings, Storage
from longtail.search.memory import Lookup, Memory, keys_of
from longtail.train.validation import chosen_by

if TYPE_CHECKING:
    from longtail.dual import parts
    from longtail.dual.model import DualModel
    from longtail.encoders.encoder import Encoder
    from longtail.encoders.reader import Reader
else:
    parts = Lazy("longtail.dual.parts")

log = logging.getLogger("longtail")
BLOCK = 1024  # texts whose neighbours are held at a time
LAMBDAS, TAUS, NEIGHBOURS = (1.0, 0.95, 0.9, 0.8, 0.6), (0.05, 0.02, 0.1), (100, 20)  # of equal ones the first is taken
SHARES = (0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2, 0.9, 0.1, 1.0, 0.0)  # of values that do equally well the first is taken
# The small presets, for a laptop without a GPU
STATIC: dict[str, Any] = {"backbone": "static", "reader": "subwords", "vectors": "static", "schedule": "linear"}


@dataclass(frozen=True)
class DualRecipe(WordVectorRecipe):
    """Texts and label texts through one encoder. A subclass implements `network` and its phases."""

    needs: ClassVar[tuple[str, ...]] = ("text", "label text")
    mixes: ClassVar[bool] = False
    classifies: ClassVar[bool] = True  # whether there is a table of classifiers beside the label texts

    backbone: Literal["transformer", "static"] = param(
        "transformer", "what encodes texts; static: weighted sums of token vectors"
    )
    layers: int | None = param(None, "first layers of the transformer that are kept (none: all)", at_least=1)
    length: int = param(32, "tokens of a text that the transformer reads, special ones included", at_least=3)
    dimension: int = param(256, "dimensions of static token vectors", at_least=1)
    reader: Literal["words", "subwords"] = param("subwords", "what texts are cut to; a transformer has its sub-words")
    dropout: float = param(0.0, "dropout of a text's static vector", at_least=0.0, below=1.0)
    head_dropout: float = param(0.1, "dropout of the heads", at_least=0.0, below=1.0)  # paper: 0.1
    temperature: float = param(0.05, "scores are divided by this", above=0.0)  # DEXML: 0.05
    epochs: int = param(100, "passes over the training set", at_least=1)  # paper: 100 – 150
    lr: float = param(1e-4, "learning rate of the encoder; heads have twice this", above=0.0)  # paper: 1e-4, 2e-4
    chunk: int | None = param(None, "texts encoded at a time, to save memory (none: all of a step)", at_least=1)
    share: float | None = param(None, "weight of classifiers in a score (none: chosen)", at_least=0.0, at_most=1.0)

    index: Literal["exact", "approximate"] = param_of(SearchSettings, "index")
    storage: Storage = param(  # noqa: RUF009
        "int8", "label vectors in memory; int8 is faster for single texts, without loss; float16 saves memory"
    )
    probes: int = param_of(SearchSettings, "probes")

    memory: bool = param(False, "look up training points beside labels; more can be added later (longtail memory)")
    memory_share: float | None = param(None, "λ: share of labels beside the memory", at_least=0.0, at_most=1.0)
    memory_temperature: float | None = param(None, "τ of a lookup in the memory", above=0.0)
    memory_neighbours: int | None = param(None, "b: labels and points that a lookup reads", at_least=1)

    def settings_after_training(self) -> frozenset[str]:
        """How heads and memory are weighed, unless scores on the validation part are looked at."""
        if self.looks_at_scores:
            return frozenset()
        return frozenset({"share", "memory_share"} if self.memory else {"share"})

    @classmethod
    def model_class(cls) -> type[Model]:
        """Dual encoders are saved as, and opened by, DualModel."""
        from longtail.dual.model import DualModel

        return DualModel

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trees != 1:
            raise ParameterError(f"{self.kind} trains one network; leave trees={self.trees} out")
        if self.chunk is not None and self.accumulate > 1:
            raise ParameterError(
                f"{self.kind}: chunk={self.chunk} saves the memory of a step already; leave accumulate out"
            )
        if self.memory and self.augment.method == "synonyms":
            raise ParameterError(
                f"{self.kind}: memory=true does not go with augment=synonyms: when a point is removed from the memory, "
                "its copies would stay"
            )
        if self.backbone == "transformer" and (self.reader != "subwords" or self.vectors != "learnt"):
            raise ParameterError(
                f"{self.kind}: backbone=transformer has its own sub-words and vectors; leave those out, or "
                "take backbone=static"
            )

    # --- reading

    def read(self, data: Dataset, labels: Labels, run: Run) -> parts.Points:
        """Points and label texts; for a memory also the keys of points."""
        from longtail.dual.model import warn_of_unknown

        self.search_settings().check()  # now, rather than after the training
        points = super().read(data, labels, run)
        warn_of_unknown(labels, np.flatnonzero(~points.label_known()))
        return replace(points, keys=keys_of(data.texts)) if self.memory else points

    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """Sequences of sub-words for a transformer; damped counts of words or sub-words for static vectors."""
        from longtail.encoders.reader import CountReader, SequenceReader
        from longtail.encoders.words import Words

        if self.backbone == "transformer":
            subwords = self.subwords(texts, run)
            return SequenceReader("subwords", subwords, self.length - parts.Specials.of(subwords.file, None).around)
        if self.reader == "subwords":
            return CountReader("subwords", self.subwords(texts, run))
        words = Words.fit(texts, min_texts=self.min_texts, limit=self.limit, progress=run.progress)
        return CountReader("words", words)

    def text_encoder(self, read: parts.Points, about: dict[str, Any]) -> Encoder:
        """The encoder of texts and label texts; static token weights begin at their idf in both."""
        if self.backbone == "transformer":
            encoder = parts.TransformerEncoder.load(
                self.encoder, layers=self.layers, length=self.length, reader=read.reader.vocabulary
            )
            about["encoder"] = encoder.about
            return encoder
        texts_with = np.bincount(np.concatenate([read.rows.indices, read.texts.indices]), minlength=len(read.reader))
        idf = smoothed_idf(len(read) + read.labels, texts_with)
        return parts.StaticEncoder(self.word_vectors(read.reader, about), idf, self.dropout)

    # --- what phases are made of

    def encoder_groups(self, lr: float) -> tuple[parts.Group, ...]:
        """The encoder at this rate, token vectors at their share of it."""
        return self.group("encoder", lr), self.group("encoder.E", lr * self.word_rate)

    def step(self) -> Any:
        """Forward and backward of a batch, in `chunk` texts at a time if that is set."""
        return parts.Plain() if self.chunk is None else parts.GradCached(self.chunk)

    def build_table(self, net: parts.Dual, structure: parts.Structure) -> None:
        """Classifiers begin at the vectors of their labels' texts."""
        net.set_table(net.label_vectors(net.head(parts.CLF)))

    # --- afterwards

    def model(self, read: parts.Points, labels: Labels, learners: Sequence[parts.Dual]) -> Model:  # type: ignore[override]
        """The trained encoder and the vectors of all labels."""
        from longtail.dual.model import DualModel
        from longtail.dual.served import TextEncoder

        exported, vectors = learners[0].export()
        share = self.share if self.share is not None else (0.5 if self.classifies else 0.0)
        encoder, about = TextEncoder(*exported), dict(learners[0].about)
        memory = None
        if read.keys is not None:
            points = learners[0].text_vectors(learners[0].head(parts.DE))
            points[np.diff(read.rows.indptr) == 0] = 0  # a text without known tokens is near to no query
            memory = Memory(points, read.Y, read.keys, self.storage)
        model = DualModel(self, labels, read.reader, encoder, vectors, share, self.search_settings(), about=about)
        return model.changed_to(memory, self.lookups()[0])

    def lookups(self) -> list[Lookup]:
        """The ways to count a memory that are compared on the validation part; those given are not varied."""
        shares = [self.memory_share] if self.memory_share is not None else LAMBDAS
        temperatures = [self.memory_temperature] if self.memory_temperature is not None else TAUS
        counts = [self.memory_neighbours] if self.memory_neighbours is not None else NEIGHBOURS
        return [Lookup(*chosen) for chosen in itertools.product(shares, temperatures, counts)]

    def search_settings(self) -> SearchSettings:
        """How the labels nearest to a text are found."""
        return SearchSettings(index=self.index, storage=self.storage, probes=self.probes)

    def retrain(self, chosen: Model, data: Dataset, labels: Labels, run: Run) -> Model:
        """As for all networks; what the heads of `chosen` reached on the validation part is still told."""
        model = super().retrain(chosen, data, labels, run)
        if "heads" in chosen.about:
            model.about["heads"] = chosen.about["heads"]
        return model

    def finish(self, model: Model, validation: Dataset | None) -> Model:
        """Choose the share of classifiers on the validation part; the network stays as it is."""
        if self.classifies and validation is not None:
            share, model.about["heads"] = weighed_heads(model, validation, self.share)  # type: ignore[arg-type]
            model.share = share  # type: ignore[attr-defined]
            model.recipe = replace(model.recipe, share=share)  # type: ignore[call-arg]
        if self.memory and len(self.lookups()) > 1 and validation is not None:
            λ, τ, b = model.lookup = best_lookup(model, validation, self.lookups())  # type: ignore[arg-type, attr-defined]
            chosen = {"memory_share": λ, "memory_temperature": τ, "memory_neighbours": b}
            model.recipe = replace(model.recipe, **chosen)
        return model


@dataclass(frozen=True)
class MinedRecipe(DualRecipe):
    """A dual encoder whose batches are compared with a pool of sampled positives and mined negatives (algorithm 1)."""

    batch: int = param(1024, "points of a step", at_least=1)  # paper: 221 – 2,200
    positives: int = param(2, "true labels of a query that are drawn for the pool", at_least=1)  # β; paper: 1 – 4
    negatives: int = param(3, "mined negatives of a query that are drawn for it", at_least=0)  # η; paper: 3 – 6
    refresh: int = param(5, "epochs between two searches for hard negatives", at_least=1)  # τ; paper: 5
    cluster_size: int | None = param(None, "similar points that share a batch (none: shuffled)", at_least=1)

    def mined(self, net: parts.Dual) -> parts.Structure:
        """With the encoder as it is now: η·τ hard negatives of each point, and clusters of similar points."""
        texts = net.text_vectors(net.head(parts.DE))  # Φ_D(x) (N, d)
        found: parts.Structure = {}
        if self.negatives:
            labels = net.label_vectors(net.head(parts.DE))  # Φ_D(z) (L, d)
            count = self.negatives * self.refresh
            found["negatives"] = parts.nearest_negatives(
                texts,
                labels,
                count,
                net.data.Y,
                net.data.ignore,
                settings=SearchSettings(index=self.index, probes=self.probes),
            )
        if self.cluster_size is not None:
            found["clusters"] = parts.clusters_of(texts, self.cluster_size, net.seed)
        return found

    def take_up(self, net: parts.Dual, structure: parts.Structure) -> None:
        """Use what was mined, from the next step on."""
        net.set_negatives(structure.get("negatives"))
        if "clusters" in structure:
            net.clusters = structure["clusters"]

    def phase(
        self, name: str, groups: Sequence[parts.Group], levels: tuple[int, ...], build: Any, mined_once: bool = False
    ) -> parts.Phase:
        """A phase whose negatives and clusters are mined at its beginning and, unless `mined_once`, every `refresh`
        epochs."""
        plan: Any = parts.Shuffled() if self.cluster_size is None else parts.Clustered(lambda net: net.clusters)
        again = None if mined_once else parts.Refresh(self.refresh, self.mined, self.take_up)
        return parts.Phase(name, self.epochs, tuple(groups), levels, self.mined, build, again, plan, self.step())


def weighed_heads(
    model: DualModel, validation: Dataset, given: float | None
) -> tuple[float, dict[str, dict[str, float]]]:
    """The share of classifiers, and what DE, CLF and both together reach on the validation part.

    Unless it is `given`, the share is the one that does best there.
    """
    rows, k = model.reader.read(validation.texts), depth(ignore=validation.ignore)
    reports = {}
    indexes: dict[str, Index] = {}
    for share in SHARES if given is None else dict.fromkeys((given, 0.0, 1.0)):
        columns = str(model.columns(share))  # all shares between 0 and 1 search the same vectors
        index = indexes[columns] = indexes.get(columns) or model.search.build(model.vectors[:, model.columns(share)])
        ranking = model.ranked(rows, min(k, len(model.labels)), share, index)
        reports[share] = chosen_by(evaluate(ranking, validation.Y, model.labels, ignore=validation.ignore))
    means = {share: report["mean"] for share, report in reports.items()}
    best = max(means, key=lambda share: means[share]) if given is None else given
    shown = ", ".join(f"{share} {mean:.2f}" for share, mean in sorted(means.items()))
    log.info("share of classifiers and mean score on the validation part: %s; the share is %s", shown, best)
    return best, {"DE": reports[0.0], "CLF": reports[1.0], "both": reports[best]}


def best_lookup(model: DualModel, validation: Dataset, lookups: Sequence[Lookup]) -> Lookup:
    """The way to count the memory that does best on the validation part, none of whose points is in the memory."""
    rows, k = model.reader.read(validation.texts), min(depth(ignore=validation.ignore), len(model.labels))
    most = max(lookup.neighbours for lookup in lookups)
    found = [model.near(rows[first : first + BLOCK], k, most) for first in range(0, rows.shape[0], BLOCK)]
    scores: dict[Lookup, float] = {}
    for lookup in lookups:
        if lookup.share == 1 and (known := next((s for each, s in scores.items() if each.share == 1), None)):
            scores[lookup] = known  # τ and b make no difference then
            continue
        alone = lookup.share == 1
        ranking = model.ranked(rows, k, model.share, model.index) if alone else model.mixed(found, k, lookup)
        report = evaluate(ranking, validation.Y, model.labels, ignore=validation.ignore)
        scores[lookup] = chosen_by(report)["mean"]
    best = max(scores, key=lambda lookup: scores[lookup])
    without = next((score for lookup, score in scores.items() if lookup.share == 1), None)
    score = "not tried" if without is None else f"{without:.2f}"
    log.info("memory: with %s the mean score on the validation part is %.2f; without it %s", best, scores[best], score)
    return best
