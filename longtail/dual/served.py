"""A trained dual encoder without torch (if its encoder needs none): texts → query vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from longtail.encoders.export import Arrays, Exported, arrays_under, served
from longtail.encoders.served import Floats, ServedEncoder, served_encoders
from longtail.search.dense import unit

BLOCK = 4096  # texts encoded at a time


class ServedHead:
    """`dual.heads.Head` in NumPy."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.weight, self.bias = arrays.get("weight"), arrays.get("bias", np.zeros(1, np.float32))
        self.tanh, self.unit, self.width = meta["activation"] == "tanh", bool(meta["unit"]), int(meta["width"])

    def __call__(self, x: Floats) -> Floats:
        """Features (B, D) → (B, d)."""
        if self.weight is not None:
            x = np.asarray(x @ self.weight.T + self.bias, np.float32)
        x = np.tanh(x) if self.tanh else x
        return unit(x) if self.unit else x


class TextEncoder:
    """The encoder and its heads, made from what `Dual.export` gave."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.arrays, self.meta = dict(arrays), dict(meta)
        self.encoder: ServedEncoder = served(served_encoders, arrays_under("encoder", arrays), meta["encoder"])
        self.heads = [ServedHead(arrays_under(f"head{i}", arrays), own) for i, own in enumerate(meta["heads"])]

    @property
    def width(self) -> int:
        """d, the dimensions of a head."""
        return self.heads[0].width

    def vectors(self, rows: Any) -> Floats:
        """The vectors of all heads side by side (N, d · heads), of texts as a reader gives them."""
        blocks = [self._vectors(rows[first : first + BLOCK]) for first in range(0, rows.shape[0], BLOCK)]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.width * len(self.heads)), np.float32)

    def _vectors(self, rows: Any) -> Floats:
        text = self.encoder.features(rows)["text"]
        return np.concatenate([head(text) for head in self.heads], axis=1)

    def export(self) -> Exported:
        """The arrays and settings as they are saved."""
        return Exported(self.arrays, self.meta)
