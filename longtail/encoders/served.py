"""Encoders as a saved model runs them, found by their registered kind. A bag of words needs NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import erf

from longtail.core.errors import StoreError
from longtail.core.registry import Registry
from longtail.encoders.export import Arrays
from longtail.search.dense import unit

Floats = NDArray[np.float32]
LOWEST = np.float32(-80)  # e^80 is a float32, e^89 is not


class ServedEncoder(Protocol):
    """Encoded texts → named features."""

    def features(self, rows: Any) -> dict[str, Floats]:
        """Rows of a reader (B texts) → features by name, (B, d) each, or (B, T, d) of tokens."""
        ...


served_encoders: Registry[type[ServedEncoder]] = Registry("encoder")
served_encoders.add("bag", "longtail.encoders.served:BagFeatures")
served_encoders.add("static", "longtail.encoders.served:StaticFeatures")
served_encoders.add("inception", "longtail.encoders.inception_served:InceptionFeatures")
served_encoders.add("lstm", "longtail.encoders.lstm_served:LSTMFeatures")
served_encoders.add("transformer", "longtail.encoders.transformer_served:TransformerFeatures")
served_encoders.add("tapped", "longtail.encoders.taps_served:TappedFeatures")


class BagFeatures:
    """`encoders.bag.BagEncoder` in NumPy: TF-IDF rows (B, V) → residual blocks of Σ_w x_w E_w."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.arrays, self.forms = arrays, meta["residuals"]
        self.tables = {name: f"E.{name}" if f"E.{name}" in arrays else "E" for name in self.forms}

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> BagFeatures:
        """From what `BagEncoder.export` gave."""
        return cls(arrays, meta)

    def features(self, rows: sp.csr_matrix) -> dict[str, Floats]:
        """One feature (B, D) for each residual block."""
        v = {E: np.asarray(rows @ self.arrays[E], np.float32) for E in set(self.tables.values())}  # (B, D) each
        return {name: self._residual(v[self.tables[name]], name, form) for name, form in self.forms.items()}

    def _residual(self, v: Floats, name: str, form: str) -> Floats:
        """The formulas of `encoders.residual`."""
        W, change, keep = (self.arrays[f"residual.{name}.{part}"] for part in ("weight", "change", "keep"))
        b = self.arrays.get(f"residual.{name}.bias", 0)
        if form == "astec":
            return np.asarray(np.maximum(v @ W.T + b, 0) + v, np.float32)
        if form == "decaf":
            return sigmoid(change) * (np.maximum(v, 0) @ W.T + b) + sigmoid(keep) * v
        if form == "eclare":
            return np.asarray(change * (np.maximum(v, 0) @ W.T + b) + v, np.float32)
        raise StoreError(f"the model has a residual block of form {form!r}, which cannot be served; train it again")


class StaticFeatures:
    """`encoders.static.StaticEncoder` in NumPy: damped counts (B, V) → {"text": (B, D)}."""

    def __init__(self, arrays: Arrays, meta: Mapping[str, Any]):
        self.E, self.W, self.b = arrays["E"], arrays["W"], arrays["b"]

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Mapping[str, Any]) -> StaticFeatures:
        """From what `StaticEncoder.export` gave."""
        return cls(arrays, meta)

    def features(self, rows: sp.csr_matrix) -> dict[str, Floats]:
        """v + W·GELU(v), v the sum of a text's weighted token vectors, scaled to length 1."""
        v = unit(np.asarray(rows @ self.E, np.float32))  # (B, D)
        gelu = 0.5 * v * (1 + erf(v * np.float32(0.5**0.5)))
        return {"text": np.asarray(v + gelu @ self.W.T + self.b, np.float32)}


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^−x) without overflow. It is never 0, so that unlikely labels still have an order."""
    return np.asarray(1 / (1 + np.exp(-np.maximum(x, LOWEST))), np.float32)
