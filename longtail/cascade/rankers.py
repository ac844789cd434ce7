"""What transformer cascades with a last stage of linear rankers share (paper 003, eq. 10; paper 002, A.3).

Importing this file needs no torch.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from longtail._native.linear import Weights
from longtail.cascade.transformer import TransformerRecipe
from longtail.core.errors import ParameterError
from longtail.core.labels import Labels
from longtail.core.lazy import Lazy
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.encoders.tfidf import Tfidf
from longtail.encoders.windows import Windows
from longtail.labels.tree import LabelTree
from longtail.linear.blocks import FeatureBlock, TfidfBlock
from longtail.linear.embedding import EmbeddingBlock
from longtail.linear.features import Features
from longtail.linear.model import LinearModel
from longtail.linear.rankers import Rankers
from longtail.linear.recipe import check_training
from longtail.linear.train import Training

if TYPE_CHECKING:
    from longtail.cascade import parts
    from longtail.encoders.reader import Reader
else:
    parts = Lazy("longtail.cascade.parts")

log = logging.getLogger("longtail")
UNIT = "unit"  # the embedding, scaled to length 1: as rankers read it


@dataclass(frozen=True)
class RankedRecipe(TransformerRecipe):
    """A cascade over a transformer, and linear classifiers on [TF-IDF ; its embedding] as a last stage.

    A subclass says by `embedding` which feature is the embedding of a text.
    """

    ranker: Rankers = param(Rankers(), "linear classifiers on TF-IDF and embedding")  # noqa: RUF009
    pooling: Literal["truncate", "chunks"] = param(
        "truncate", "what rankers see of a long text; chunks: the mean of several windows of `length` tokens"
    )
    windows: int = param(4, "windows of a text that pooling=chunks reads, at most", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ranks and self.trees != 1:
            raise ParameterError(
                f"{self.kind}: rankers read the embedding of one network, but trees={self.trees}; train several models "
                "with different seeds instead"
            )
        if self.pooling == "chunks" and not self.ranks:
            raise ParameterError(f"{self.kind}: pooling=chunks is for rankers; take ranker=xr-linear or ranker=dismec")

    @property
    def ranks(self) -> bool:
        """Whether rankers come after the network."""
        return self.ranker.method != "none"

    def settings_of_last_stage(self) -> frozenset[str]:
        """All of `ranker`: the network is trained without it."""
        return frozenset(name for name in self.names() if name.partition(".")[0] == "ranker")

    @abstractmethod
    def embedding(self, net: parts.Cascade) -> str:
        """The name of the feature that is the embedding of a text."""

    def class_of_model(self) -> type[Model]:
        """With rankers, these are the model; the cascade has only given the embedding."""
        return LinearModel if self.ranks else self.model_class()

    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """For pooling=chunks as many tokens as all windows have; the network reads those of the first."""
        reader: Any = super().reader_of(texts, run)
        if self.pooling == "chunks":
            reader.length *= self.windows
        return reader

    def last_stage(self, read: Any, labels: Labels, learners: list[Any], run: Run) -> Model:
        """Rankers on the features of all training points; or the networks' own model."""
        if not self.ranks:
            return self.model(read, labels, learners)
        net: parts.Cascade = learners[0]
        block = self.embedding_block(net)
        data = self.concatenated(net, read, block)
        check_training(data)
        columns, dense = data.features.columns, data.features.dense_columns
        log.info("training rankers on %d features of words and %d of the embedding", columns, dense)
        ranker, search = self.ranker.train(data, run, self.given_tree(net), self.given_levels(net, data))
        words: list[FeatureBlock] = [TfidfBlock(words_of(read))] if columns else []
        return LinearModel(self, labels, [*words, block], [ranker], dict(net.about), search)

    def embedding_block(self, net: parts.Cascade) -> EmbeddingBlock:
        """What embeds texts as `net` now does."""
        reader: Any = net.data.reader
        window = reader.length // self.windows if self.pooling == "chunks" else reader.length
        feature = self.embedding(net)
        exported, width = net.encoder.export(), net.encoder.widths[feature]
        return EmbeddingBlock(reader, exported, feature, width, window, self.ranker.scale)

    def concatenated(self, net: parts.Cascade, read: parts.Points, block: EmbeddingBlock) -> Training:
        """The training points in Φ_cat; embeddings are computed where the network is. `read` has the targets."""
        from longtail.encoders.sequence import Sequences

        rows = net.tokens.value.words.cpu().numpy()  # (N, W)
        windows = Windows.of(rows, block.window)
        vectors = net.features(block.feature, Sequences.of(windows.rows))  # (windows, d)
        E = block.placed(windows.pooled(vectors), rows)  # (N, d)
        both = self.ranker.features == "both"
        return Training(Features.of([read.rows, E] if both else [E]), read.Y, read.ignore)

    def given_tree(self, net: parts.Cascade) -> LabelTree | None:
        """The tree of the rankers; None, as by default: the refined tree."""
        return None

    def given_levels(self, net: parts.Cascade, data: Training) -> list[Weights]:
        """The first levels of that tree, if the network has trained them; by default none."""
        return []


@dataclass(frozen=True)
class UnitRecipe(RankedRecipe):
    """A recipe whose network is trained on clusters of labels, and whose model is the rankers.

    The embedding of a text has length 1, in fine-tuning as for rankers.
    """

    feature: Literal["cls", "text"] = param("cls", "embedding: the first token's, or the mean of all tokens")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ranks:
            raise ParameterError(f"{self.kind} ranks labels by linear rankers alone; leave ranker=none out")
        if self.watches:
            raise ParameterError(
                f"{self.kind} ranks labels by what is trained after the network: there are no scores to watch; leave "
                "patience and curve out"
            )

    def embedding(self, net: parts.Cascade) -> str:
        """The encoder's vector of a text, at length 1."""
        return UNIT

    def over_clusters(
        self, read: parts.Points, tree: LabelTree, last: int, phases: list[parts.Phase], seed: int
    ) -> parts.Cascade:
        """The transformer over levels 0 … `last` of a tree; `memo["labels"]` are the whole tree and all targets."""
        about: dict[str, Any] = {}
        taps = {UNIT: parts.Tap((self.feature,), unit=True)}
        encoder = parts.Tapped(self.transformer(read, [self.feature], about), taps, (UNIT,))
        coarse = parts.coarse_points(read, tree, last)
        net = parts.Cascade(coarse, encoder, phases, seed, self.mixing(), about)
        net.set_tree(parts.tree_structure(tree.down_to(last)))
        net.memo["labels"] = tree, read.Y
        return net


def words_of(read: parts.Points) -> Tfidf:
    """What made the TF-IDF rows of whole texts."""
    if read.tfidf is None:
        raise ValueError("rankers need the TF-IDF rows of whole texts")
    return read.tfidf
