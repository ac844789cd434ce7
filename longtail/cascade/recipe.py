"""What the recipes of cascades share: how texts are read, and how a model is made.

Importing this file needs no torch: recipes are listed and saved models opened without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.encoders.tfidf import TfidfParameters
from longtail.scoring.recipe import TextNetworkRecipe, WordVectorRecipe

if TYPE_CHECKING:
    from longtail.cascade.cascade import Cascade
    from longtail.cascade.mixing import Mixing
    from longtail.encoders.reader import Reader
    from longtail.scoring.points import Points
    from longtail.train.phase import Structure

LEAST_CLUSTERS = 64  # unless there are fewer labels, or `clusters` is given


@dataclass(frozen=True)
class CascadeRecipe(TextNetworkRecipe):
    """A network with levels from few clusters to all labels. A subclass implements `reader_of` and `network`."""

    @classmethod
    def model_class(cls) -> type[Model]:
        """Networks are saved as, and opened by, CascadeModel."""
        from longtail.cascade.model import CascadeModel

        return CascadeModel

    def mixing(self) -> Mixing | None:
        """How points are mixed in training, if `augment` asks for it."""
        method = self.augment.method
        if method not in ("mixup", "label-mixup"):
            return None
        from longtail.cascade.mixing import Mixing

        return Mixing(method, self.augment.mix)

    def model(self, read: Points, labels: Labels, learners: list[Cascade]) -> Model:  # type: ignore[override]
        """The trained networks as arrays."""
        from longtail.cascade.model import CascadeModel
        from longtail.cascade.served import Network

        networks = [Network(*learner.export()) for learner in learners]
        return CascadeModel(self, labels, read.reader, networks, dict(learners[0].about))


@dataclass(frozen=True)
class WithBreadth:
    """The setting of systems that search clusters of labels in prediction."""

    breadth: float = param(1.0, "clusters that prediction searches, as a multiple of those in training", above=0.0)

    def settings_after_training(self) -> frozenset[str]:
        """How many clusters prediction looks into, unless scores on the validation part are looked at."""
        return frozenset() if self.looks_at_scores else frozenset({"breadth"})  # type: ignore[attr-defined]


@dataclass(frozen=True)
class WithClusters(WithBreadth):
    """The settings of systems whose first level is clusters of labels, all through training."""

    clusters: int | None = param(None, "clusters of labels (none: by labels_per_cluster)", at_least=1)
    labels_per_cluster: float = param(4.0, "labels in a cluster, about", at_least=1.0)

    def clustered(self, net: Cascade, Z: Any) -> Structure:
        """Balanced clusters of labels with vectors Z (L, d), as the structure of a phase."""
        from longtail.cascade.cascade import tree_structure
        from longtail.labels.tree import LabelTree

        L = net.data.labels
        # with few labels each is its own cluster: two or three clusters would not help
        count = self.clusters or max(min(L, LEAST_CLUSTERS), round(L / self.labels_per_cluster))
        return tree_structure(LabelTree.in_clusters(Z, [count], net.seed))


@dataclass(frozen=True)
class BagRecipe(CascadeRecipe, WordVectorRecipe):
    """A cascade over bags of words: TF-IDF rows times a table of word vectors."""

    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """TF-IDF of words, or of sub-words."""
        from longtail.encoders.reader import BagReader
        from longtail.encoders.tfidf import Tfidf

        if self.reader == "subwords":
            return BagReader("subwords", self.subwords(texts, run))
        return BagReader("tfidf", Tfidf.fit(texts, TfidfParameters(min_texts=self.min_texts, limit=self.limit))[0])


@dataclass(frozen=True)
class SequenceRecipe(CascadeRecipe, WordVectorRecipe):
    """A cascade over sequences of words."""

    length: int = param(32, "words of a text that are read", at_least=1)  # InceptionXML: 32 for titles
    min_texts: int = param(1, "a word must occur in at least this many texts", at_least=1)

    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """The numbers of the first `length` words, or sub-words."""
        from longtail.encoders.reader import SequenceReader
        from longtail.encoders.words import Words

        if self.reader == "subwords":
            return SequenceReader("subwords", self.subwords(texts, run), self.length)
        words = Words.fit(texts, min_texts=self.min_texts, limit=self.limit, progress=run.progress)
        return SequenceReader("words", words, self.length)
