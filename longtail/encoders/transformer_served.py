"""A transformer as a saved model runs it: by ONNX Runtime where that is installed, else by torch.

Neither is imported before a model needs it. Both give the same features; docs/decisions/serving-transformers.md says
why ONNX Runtime comes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longtail._native import get_threads
from longtail.core.errors import MissingExtraError
from longtail.encoders.export import Arrays, arrays_under
from longtail.encoders.specials import Specials, chunk_sizes
from longtail.encoders.transformer_onnx import OnnxLayers, can_run

Floats = NDArray[np.float32]
CHUNK = 1024  # places that run together


class Layers(Protocol):
    """What runs the layers of a transformer."""

    def __call__(self, vectors: Floats, mask: NDArray[np.bool_]) -> dict[str, Floats]:
        """Word vectors (b, T, D) of texts with tokens where `mask` (b, T) is true → features (b, d) by name."""
        ...


class TransformerFeatures:
    """Sequences of sub-words (B, W) → the features of `encoders.transformer.TransformerEncoder`."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any], layers: Layers):
        self.E = arrays["E"]  # (V, D); it may be mapped from a file: rows are copied, not the whole
        self.specials, self.length = Specials(**meta["specials"]), int(meta["length"])
        self.widths = dict.fromkeys(meta["features"], int(meta["width"]))
        self.layers = layers

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> TransformerFeatures:
        """From what `TransformerEncoder.export` gave."""
        runs = OnnxLayers if can_run(arrays, meta) else TorchLayers
        return cls(arrays, meta, runs(arrays, meta))

    def features(self, rows: NDArray[np.integer[Any]]) -> dict[str, Floats]:
        """Features (B, d) by name. Texts run from long to short in chunks, so that few places are pads."""
        ids, mask = self.specials.place(rows, self.length)  # (B, T) each
        lengths = mask.sum(1)
        order = np.argsort(-lengths, kind="stable")
        found = {name: np.zeros((len(ids), width), np.float32) for name, width in self.widths.items()}
        start = 0
        for size in chunk_sizes(lengths[order].tolist(), CHUNK):
            own, T = order[start : start + size], lengths[order[start]]
            for name, feature in self.layers(np.asarray(self.E[ids[own, :T]], np.float32), mask[own, :T]).items():
                found[name][own] = feature
            start += size
        return found


class TorchLayers:
    """The layers in torch."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        try:
            import torch

            from longtail.encoders.pretrained import blank
            from longtail.encoders.transformer import Transformer
        except ImportError as error:
            raise MissingExtraError("a model with a transformer", "deep") from error
        model = blank(meta["config"])
        state = arrays_under("net", arrays)
        model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in state.items()})
        self.net = Transformer(model, meta["features"], meta["pooling"]).eval().requires_grad_(False)

    def __call__(self, vectors: Floats, mask: NDArray[np.bool_]) -> dict[str, Floats]:
        """Word vectors (b, T, D) and mask (b, T) → features (b, d) by name."""
        import torch

        with torch.inference_mode(), torch_threads(get_threads()):
            found = self.net.run(torch.from_numpy(vectors), torch.from_numpy(mask))
        return {name: feature.numpy() for name, feature in found.items()}


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Within this context torch has this many threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
