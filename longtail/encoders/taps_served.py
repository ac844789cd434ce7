"""`encoders.taps.Tapped` in NumPy, over whatever serves the encoder inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from longtail.encoders.export import Arrays, arrays_under, served
from longtail.encoders.served import Floats, ServedEncoder, served_encoders
from longtail.search.dense import unit


class TappedFeatures:
    """Rows of a reader → the features of the encoder inside, and those made of them."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.inner: ServedEncoder = served(served_encoders, arrays_under("inner", arrays), meta["inner"])
        self.taps, self.listed = meta["taps"], meta["features"]
        layers = [tap["name"] for tap in self.taps if tap["layer"]]
        self.layers = {name: (arrays[f"{name}.weight"], arrays[f"{name}.bias"]) for name in layers}

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> TappedFeatures:
        """From what `Tapped.export` gave."""
        return cls(arrays, meta)

    def features(self, rows: Any) -> dict[str, Floats]:
        """Features (B, d) by name."""
        found = self.inner.features(rows)
        for tap in self.taps:
            x = np.concatenate([found[name] for name in tap["of"]], 1)  # (B, Σ d)
            if tap["layer"]:
                W, b = self.layers[tap["name"]]
                x = np.asarray(x @ W.T + b, np.float32)
            found[tap["name"]] = unit(x) if tap["unit"] else x
        return {name: found[name] for name in self.listed}
