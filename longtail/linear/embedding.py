"""The embedding of a text by a trained encoder, as a feature block: Φ_cat of XR-Transformer (paper 003, eq. 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.texts import Texts
from longtail.encoders.export import Exported, arrays_under, served
from longtail.encoders.reader import SequenceReader, reader_from_state
from longtail.encoders.served import ServedEncoder, served_encoders
from longtail.encoders.windows import Windows
from longtail.linear.blocks import Arrays, FeatureBlock
from longtail.search.dense import unit

Floats = NDArray[np.float32]
KEPT = 2  # sets of texts whose embeddings are remembered: a validation part is scored several times
SMALL = 64  # smaller sets are not remembered


class EmbeddingBlock(FeatureBlock):
    """Tokens of texts → one feature of an encoder, of length `scale`; a text without known tokens has a row of 0.

    A text may be longer than the encoder reads at a time: `window` tokens each are then encoded on their own and their
    vectors averaged. `scale` weighs the block against the others: twice the length is a quarter of the cost of its
    weights.
    """

    kind = "embedding"
    dense = True

    def __init__(
        self, reader: SequenceReader, exported: Exported, feature: str, width: int, window: int, scale: float = 1.0
    ):
        self.reader, self.exported, self.feature, self._width = reader, exported, feature, width
        self.window, self.scale = window, scale
        self.encoder: ServedEncoder = served(served_encoders, exported.arrays, exported.meta)
        self._known: dict[str, Floats] = {}  # by the digest of texts

    @property
    def width(self) -> int:
        """The dimensions of the feature."""
        return self._width

    def encode(self, x: Texts) -> Floats:
        """Embeddings (N, d)."""
        digest = x.digest() if len(x) >= SMALL else ""
        if digest in self._known:
            return self._known[digest]
        rows = self.reader.read(x)
        windows = Windows.of(rows, self.window)
        found = self.placed(windows.pooled(self.encoder.features(windows.rows)[self.feature]), rows)
        if digest:
            self._known = dict([*self._known.items(), (digest, found)][-KEPT:])
        return found

    def placed(self, vectors: Floats, rows: NDArray[np.int32]) -> Floats:
        """Vectors of texts (N, d) as this block has them, however they were computed; `rows` are their tokens."""
        return np.asarray(self.scale * unit(vectors) * self.reader.known(rows)[:, None], np.float32)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Reader and encoder."""
        arrays, reader = self.reader.state()
        arrays = {f"reader.{name}": array for name, array in arrays.items()}
        arrays |= {name: np.ascontiguousarray(array) for name, array in self.exported.under("encoder").items()}
        own = {"feature": self.feature, "width": self._width, "window": self.window, "scale": self.scale}
        return arrays, own | {"reader": reader, "encoder": self.exported.meta}

    @classmethod
    def from_state(cls, arrays: Arrays, meta: Mapping[str, Any]) -> EmbeddingBlock:
        """The block that `state` described."""
        reader = reader_from_state(arrays_under("reader", arrays), meta["reader"])
        if not isinstance(reader, SequenceReader):
            raise TypeError(f"an embedding needs sequences, but the reader is a {type(reader).__name__}")
        exported = Exported(arrays_under("encoder", arrays), meta["encoder"])
        return cls(reader, exported, meta["feature"], meta["width"], meta["window"], meta["scale"])
