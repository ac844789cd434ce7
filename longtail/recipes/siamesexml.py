"""SiameseXML (Dahiya et al., ICML 2021): a Siamese network over bags of words, then classifiers near the label texts.

longtail train DATA --recipe siamesexml --preset small --out MODEL
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from longtail.core.lazy import Lazy
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.dual.recipe import STATIC, MinedRecipe

if TYPE_CHECKING:
    from longtail.dual import parts
    from longtail.encoders.encoder import Encoder
    from longtail.encoders.reader import Reader
else:
    parts = Lazy("longtail.dual.parts")


@dataclass(frozen=True)
class SiameseXML(MinedRecipe):
    """Module I learns Φ with a logistic loss on texts and label texts; module II learns w_l = Φ(z_l) + η_l.

    Module I: binary cross-entropy of each query with the labels of its batch and its mined ones. Module II: the encoder
    is frozen, and a classifier w_l for each label begins at Φ(z_l), so that what it learns is η_l; negatives are the
    labels nearest to each text (the shortlist). `backbone=bag` is the paper's encoder, TF-IDF-weighted word vectors and
    a residual block; `static` weighs tokens by learnt weights.
    """

    name = "siamesexml"
    version = 5
    title = "a Siamese network over bags of words, then classifiers near label texts"
    paper = "SiameseXML, Dahiya et al. 2021"
    presets: ClassVar[dict[str, dict[str, Any]]] = {"small": {**STATIC, "epochs": 10, "lr": 2e-3, "table_lr": 4e-3}}

    backbone: Literal["bag", "static", "transformer"] = param(  # type: ignore[assignment]
        "bag", "what encodes texts; bag: TF-IDF-weighted word vectors"
    )  # paper: bag
    reader: Literal["words", "subwords"] = param("words", "what texts are cut to")  # paper: words
    dimension: int = param(300, "dimensions of token vectors", at_least=1)  # paper: 300
    positives: int = param(1, "true labels of a query that are drawn for the pool", at_least=1)
    negatives: int = param(3, "mined negatives of a query that are drawn for it", at_least=0)
    epochs: int = param(40, "epochs of each module", at_least=1)
    lr: float = param(0.01, "learning rate of module I", above=0.0)
    table_lr: float = param(0.01, "learning rate of module II", above=0.0)

    def reader_of(self, texts: Texts, run: Run) -> Reader:
        """TF-IDF rows for bags; damped counts for static vectors."""
        from longtail.encoders.reader import BagReader
        from longtail.encoders.tfidf import Tfidf, TfidfParameters

        if self.backbone != "bag":
            return super().reader_of(texts, run)
        if self.reader == "subwords":
            return BagReader("subwords", self.subwords(texts, run))
        return BagReader("tfidf", Tfidf.fit(texts, TfidfParameters(min_texts=self.min_texts, limit=self.limit))[0])

    def text_encoder(self, read: parts.Points, about: dict[str, Any]) -> Encoder:
        """Bags with Astec's residual block, or static vectors."""
        if self.backbone != "bag":
            return super().text_encoder(read, about)
        return parts.BagEncoder(self.word_vectors(read.reader, about), ("text",), "astec", self.dropout)

    def network(self, read: parts.Points, seed: int) -> parts.Dual:
        """Encoder and logistic losses of both modules."""
        about: dict[str, Any] = {}
        encoder = self.text_encoder(read, about)
        D = encoder.widths["text"]
        heads = parts.Head(D, linear=False), parts.Head(D, dropout=self.head_dropout)
        loss = parts.Contrast(parts.BCE(), 1.0, 1.0, self.temperature)
        draws = parts.Draws(self.positives, self.negatives)
        return parts.Dual(read, encoder, heads, (loss, loss), self.phases(), draws, seed, about)

    def phases(self) -> list[parts.Phase]:
        """Module I, then module II."""
        table = (self.group("heads.1", self.table_lr), self.group("table", self.table_lr))
        return [
            self.phase("siamese", self.encoder_groups(self.lr), (parts.DE,), self.take_up),
            self.phase("classifiers", table, (parts.CLF,), self.build, mined_once=True),  # with the encoder as it stays
        ]

    def build(self, net: parts.Dual, structure: parts.Structure) -> None:
        """w_l = Φ(z_l) to begin with."""
        self.take_up(net, structure)
        self.build_table(net, structure)
