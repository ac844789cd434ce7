"""`scoring.attended.Attended` in NumPy: label-wise attention over the tokens of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.encoders.export import Arrays
from longtail.encoders.served import Floats

HELD = 2**24  # numbers of one layer that are held at a time


class ServedAttended:
    """u · ReLU(… ReLU(U₁ m_j + b₁) …) + c, where m_j is the mean of the tokens, weighed by the attention of node j."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.weights, self.feature, self.mask = arrays["weights"], meta["feature"], meta["mask"]
        self.bias = arrays.get("bias")
        layers = [(arrays[f"layer{i}.weight"], arrays[f"layer{i}.bias"]) for i in range(meta["layers"])]
        self.layers, (self.out, self.c) = layers[:-1], layers[-1]
        self.K, self.beam = len(self.weights), int(meta.get("beam", 0))
        self.children = arrays.get("children", np.zeros((0, 0), np.int32))

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> ServedAttended:
        """From what `Attended.export` gave."""
        return cls(arrays, meta)

    def logits(self, features: dict[str, NDArray[Any]], nodes: NDArray[np.integer[Any]] | None = None) -> Floats:
        """The logits of candidates (B, C), where pads (−1) get an arbitrary one, or of all nodes (B, K)."""
        H, mask = features[self.feature], features[self.mask]  # (B, W, d), (B, W)
        C = self.K if nodes is None else nodes.shape[1]
        found = np.empty((len(H), C), np.float32)
        each = H.shape[1] + H.shape[2] + sum(len(b) for _, b in self.layers)  # for a candidate of a text
        texts = max(1, HELD // max(each * C, 1))
        step = max(1, HELD // each)  # candidates, if even those of one text are too many
        for first in range(0, len(H), texts):
            rows = slice(first, first + texts)
            tokens = H[rows] @ self.layers[0][0].T + self.layers[0][1]  # (b, W, m)
            for place in range(0, C, step):
                own = slice(place, place + step)
                w = self.weights[own] if nodes is None else self.weights[nodes[rows, own]]  # (c, d) or (b, c, d)
                found[rows, own] = self.shared(attention(H[rows], mask[rows], w) @ tokens)
        if self.bias is not None:
            found += self.bias if nodes is None else self.bias[nodes]
        return found

    def shared(self, x: Floats) -> Floats:
        """Logits (b, c) of Σ_i a_i (U₁ h_i + b₁), (b, c, m)."""
        x = np.maximum(x, 0)
        for W, b in self.layers[1:]:
            x = np.maximum(x @ W.T + b, 0)
        return np.asarray(x @ self.out[0] + self.c, np.float32)


def attention(H: Floats, mask: NDArray[np.bool_], w: Floats) -> Floats:
    """softmax over tokens of h_i · w_j, pads left out (b, c, W)."""
    scores = w @ H.transpose(0, 2, 1)  # (b, c, W)
    scores = np.where(mask[:, None], scores, np.float32(-np.inf))
    scores = np.exp(scores - scores.max(2, keepdims=True))
    return np.asarray(scores / scores.sum(2, keepdims=True), np.float32)
