"""`encoders.lstm.LSTMEncoder` in NumPy: one step for each place in a text, over all texts that are long enough.

Shapes: B texts, W tokens of the longest with its end, P tokens of all texts, D dimensions of a word vector, h of a
state in one direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from longtail.encoders.export import Arrays
from longtail.encoders.on_demand import OnDemand
from longtail.encoders.served import Floats

HELD = 2**24  # numbers of a feature that are held at a time


class LSTMFeatures:
    """Sequences of words (B, T) → states of tokens (B, W, 2h) by name, and "mask" (B, W)."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.E = arrays["E"]  # (V, D); it may be mapped from a file: rows are copied, not the whole
        self.nets = {name: BothWays(arrays, name) for name in meta["features"]}
        self.hidden = next(iter(self.nets.values())).hidden
        self.block = max(1, HELD // (2 * self.hidden * int(meta["length"])))  # texts at a time

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> LSTMFeatures:
        """From what `LSTMEncoder.export` gave."""
        return cls(arrays, meta)

    def features(self, rows: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
        """States of tokens are computed when a level reads them."""
        lengths = (rows > 0).sum(1) + 1  # (B,), with the end of the text
        rows = np.pad(rows, ((0, 0), (0, 1)))  # (B, T + 1)
        packed = Packed(rows, lengths)
        forth, back = rows[packed.texts, packed.places], rows[packed.texts, packed.from_end]  # (P,) each
        words = np.stack([forth, back])  # (2, P)
        vectors = self.E[words] * (words > 0)[:, :, None]  # (2, P, D), zero at the ends

        def states(name: str) -> Floats:
            forth, back = self.nets[name].states(vectors, packed.alive)  # (P, h) each
            found = np.zeros((len(rows), len(packed.alive), 2 * self.hidden), np.float32)  # (B, W, 2h)
            found[packed.texts, packed.places, : self.hidden] = forth
            found[packed.texts, packed.from_end, self.hidden :] = back
            return found

        return OnDemand(states, {"mask": np.arange(len(packed.alive)) < lengths[:, None]})


class Packed:
    """The words of all texts, first words first; of each place, those of longer texts come first.

    So the texts that go on to the next place are always the first ones, and pads are never touched.
    """

    def __init__(self, rows: NDArray[np.int32], lengths: NDArray[np.intp]):
        order = np.argsort(-lengths, kind="stable")  # (B,)
        self.alive = (lengths[:, None] > np.arange(lengths.max(initial=1))).sum(0)  # (W,): texts that reach each place
        self.places = np.repeat(np.arange(len(self.alive)), self.alive)  # (P,)
        ends = np.cumsum(self.alive)
        rank = np.arange(len(self.places)) - np.repeat(ends - self.alive, self.alive)
        self.texts = order[rank]  # (P,)
        self.from_end = lengths[self.texts] - 1 - self.places  # (P,): the place of a word when texts are read backwards


class BothWays:
    """A bidirectional LSTM. Both directions take their steps together."""

    def __init__(self, arrays: Arrays, name: str):
        self.hidden = h = arrays[f"{name}.state"].shape[2]
        parts = (arrays[f"{name}.{part}"] for part in ("input", "state", "bias"))  # torch's gates: i, f, g, o
        gates = np.r_[0 : 2 * h, 3 * h : 4 * h, 2 * h : 3 * h]  # here i, f, o, g: those with a sigmoid side by side
        U, W, b = (np.asarray(part, np.float32)[:, gates] for part in parts)
        self.input = np.ascontiguousarray(U.transpose(0, 2, 1))  # (2, D, 4h)
        self.state = np.ascontiguousarray(W.transpose(0, 2, 1))  # (2, h, 4h)
        self.bias = b[:, None]  # (2, 1, 4h)

    def states(self, vectors: Floats, alive: NDArray[np.intp]) -> Floats:
        """States (2, P, h) of word vectors (2, P, D), packed; `alive` (W,) texts take part in each step."""
        h = self.hidden
        inputs = vectors @ self.input + self.bias  # (2, P, 4h)
        found = np.empty((2, inputs.shape[1], h), np.float32)
        state, cell = np.zeros((2, 2, alive.max(initial=0), h), np.float32)
        first = 0
        for n in alive.tolist():
            gates = inputs[:, first : first + n] + state[:, :n] @ self.state  # (2, n, 4h)
            i, f, o = np.split(expit(gates[:, :, : 3 * h]), 3, axis=2)
            cell = f * cell[:, :n] + i * np.tanh(gates[:, :, 3 * h :])
            state = o * np.tanh(cell)  # (2, n, h)
            found[:, first : first + n] = state
            first += n
        return found
