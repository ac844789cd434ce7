"""InceptionXML's encoder as a saved model runs it. Unlike a bag of words it needs torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import MissingExtraError
from longtail.encoders.export import Arrays, arrays_under

try:
    import torch

    from longtail.encoders.inception import Inception, settled
except ImportError as error:
    raise MissingExtraError("a model with InceptionXML's encoder", "deep") from error


class InceptionFeatures:
    """Sequences of words (B, T) → the features "meta" and "label"."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.E = arrays["E"]  # (V, D); it may be mapped from a file: rows are copied, not the whole
        net = Inception(**{name: value for name, value in meta.items() if name != "kind"})
        own = arrays_under("inception", arrays)
        net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in own.items()})
        self.net = settled(net)

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> InceptionFeatures:
        """From what `SequenceEncoder.export` gave."""
        return cls(arrays, meta)

    @torch.inference_mode()
    def features(self, rows: NDArray[np.int32]) -> dict[str, NDArray[np.float32]]:
        """Word vectors, then the network: features (B, d) by name."""
        vectors, words = torch.from_numpy(self.E[rows]), torch.from_numpy(rows > 0)  # (B, T, D), (B, T)
        return {name: feature.numpy() for name, feature in self.net(vectors, words).items()}
