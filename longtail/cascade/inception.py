"""Prediction with InceptionXML's encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from longtail.cascade.serving import Arrays, Floats
from longtail.encoders.inception import Inception, settled


class InceptionFeatures:
    """Sequences of words (B, T) to the features `meta` and `label`."""

    def __init__(self, arrays: Arrays, shape: dict[str, Any]):
        self.E = arrays["E"]  # (V, D), which may be mapped from a file: rows are copied, not the whole
        net = Inception(**shape)
        prefix = "inception."
        own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in own.items()})
        self.net = settled(net)

    @torch.inference_mode()
    def features(self, rows: NDArray[np.int32]) -> dict[str, Floats]:
        """Word vectors, then the network."""
        vectors, words = torch.from_numpy(self.E[rows]), torch.from_numpy(rows > 0)  # (B, T, D), (B, T)
        return {name: feature.numpy() for name, feature in self.net(vectors, words).items()}
