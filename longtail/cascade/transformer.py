"""What the recipes of cascades over a pretrained transformer share: the encoder, batches by length, label clusters.

Importing this file needs no torch: recipes are listed and saved models opened without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from longtail.cascade.recipe import CascadeRecipe
from longtail.core.errors import ParameterError
from longtail.core.labels import Labels
from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.core.recipe import Recipe
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset

if TYPE_CHECKING:
    from longtail.cascade import parts
    from longtail.encoders.reader import Reader
else:
    parts = Lazy("longtail.cascade.parts")

T = TypeVar("T", int, float)


@dataclass(frozen=True)
class TransformerRecipe(CascadeRecipe):
    """A cascade over a pretrained transformer. A subclass implements `network`.

    The transformer reads the first `length` tokens of a text; clusters of labels are made from all words of texts.
    """

    encoder: str | None = param(
        None, "the transformer: folder, hub name, or name in `longtail encoders` (none: the first there)"
    )
    layers: int | None = param(None, "first layers of the transformer that are kept (none: all)", at_least=1)
    length: int = param(128, "tokens of a text that are read, special ones included", at_least=3)  # papers: 128 – 512
    lr: float = param(1e-4, "learning rate of the transformer", above=0.0)
    table_lr: float = param(1e-3, "learning rate of classifiers", above=0.0)

    def read(self, data: Dataset, labels: Labels, run: Run) -> parts.Points:
        """Sequences of sub-words for the transformer, TF-IDF of whole texts for clusters."""
        return super().read(data, labels, run).with_whole_texts(data)

    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """The transformer's own sub-words; special tokens are added later."""
        from longtail.encoders.reader import SequenceReader

        subwords = self.subwords(texts, run)
        return SequenceReader("subwords", subwords, self.length - parts.Specials.of(subwords.file, None).around)

    def transformer(
        self, read: parts.Points, features: Sequence[str], about: dict[str, Any]
    ) -> parts.TransformerEncoder:
        """The pretrained encoder with these features; `about` receives where it comes from."""
        encoder = parts.TransformerEncoder.load(
            self.encoder, layers=self.layers, length=self.length, features=features, reader=read.reader.vocabulary
        )
        about["encoder"] = encoder.about
        return encoder

    def depth(self) -> int:
        """The number of the transformer's layers."""
        return parts.depth_of(self.encoder, self.layers)

    def by_length(self) -> parts.Sized:
        """Batches of texts of similar length: a transformer spends little time on pads then."""
        return parts.Sized(lambda net: net.tokens.value.lengths.cpu().numpy(), self.batch)

    def fine_tuned(self, decay: float = 0.0, table_decay: float = 0.0, layers: bool = False) -> tuple[parts.Group, ...]:
        """The groups of a phase that trains everything: the transformer at `lr`, classifiers at `table_lr`.

        `layers` says whether features pass through linear layers, which are trained like classifiers. Biases and layer
        norms do not decay.
        """
        groups = [
            ("encoder", self.lr, decay),
            ("encoder.*bias", self.lr, 0.0),
            ("encoder.*[Nn]orm*.weight", self.lr, 0.0),
            ("encoder.*E", self.lr * self.word_rate, decay),
            ("levels", self.table_lr, table_decay),
        ]
        if layers:
            groups += [("encoder.layers", self.table_lr, table_decay), ("encoder.layers.*bias", self.table_lr, 0.0)]
        groups.append(("levels.*.bias", self.table_lr, 0.0))
        return tuple(
            parts.Group(modules, rate, self.schedule, self.warmup, own_decay) for modules, rate, own_decay in groups
        )

    def label_clusters(self, net: parts.Cascade, sizes: Sequence[int]) -> parts.Structure:
        """Balanced clusters of labels on several levels, by graph-augmented PIFA (CascadeXML)."""
        Z = parts.with_neighbours(parts.pifa(net.data.rows, net.data.Y), net.data.Y)  # (L, V)
        return parts.tree_structure(parts.LabelTree.in_clusters(Z, sizes, net.seed))


def numbers_of(recipe: Recipe, name: str, kind: type[T], example: str) -> tuple[T, ...]:
    """The numbers of a setting such as "64:512"; they may also be separated by commas."""
    text = str(getattr(recipe, name))
    try:
        numbers = tuple(kind(part) for part in text.replace(",", ":").split(":"))
    except ValueError:
        raise ParameterError(f"{recipe.kind}: {name} must be numbers such as {example}, but is {text!r}") from None
    if min(numbers) < 0 or (kind is float and max(numbers) >= 1) or (kind is int and min(numbers) < 1):
        allowed = "at least 1" if kind is int else "at least 0 and below 1"
        raise ParameterError(f"{recipe.kind}: each number of {name} must be {allowed}, but it is {text!r}")
    return numbers
