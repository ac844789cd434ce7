"""Prediction without torch: a trained cascade as arrays.

Whatever label weights were made of in training, in the end they are one vector for each label; so all systems are
served alike, and those with a bag encoder need numpy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import top_k
from longtail._native.rows import dots
from longtail.cascade.nearby import Nearby
from longtail.store.parts import unpack_csr

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
LOWEST = np.float32(-80)  # e^80 is a float32, e^89 is not
WALKED = 200  # labels kept of a step over the graph


class Features(Protocol):
    """Encoded texts to named features (B, d)."""

    def features(self, rows: Any) -> dict[str, Floats]: ...


class BagFeatures:
    """The bag encoder of `encoders.bag` in numpy: TF-IDF rows (B, V) → residual blocks of Σ_w x_w E_w."""

    def __init__(self, arrays: Arrays, forms: Mapping[str, str]):
        self.E, self.arrays, self.forms = arrays["E"], arrays, forms

    def features(self, rows: sp.csr_matrix) -> dict[str, Floats]:
        """One for each residual block."""
        v = np.asarray(rows @ self.E, np.float32)  # (B, D)
        return {name: self._residual(v, name, form) for name, form in self.forms.items()}

    def _residual(self, v: Floats, name: str, form: str) -> Floats:
        """`encoders.residual`, form by form."""
        W, change, keep = (self.arrays[f"residual.{name}.{part}"] for part in ("weight", "change", "keep"))
        b = self.arrays.get(f"residual.{name}.bias", 0)
        if form == "astec":
            return np.asarray(np.maximum(v @ W.T + b, 0) + v, np.float32)
        if form == "decaf":
            return sigmoid(change) * (np.maximum(v, 0) @ W.T + b) + sigmoid(keep) * v
        return np.asarray(change * (np.maximum(v, 0) @ W.T + b) + v, np.float32)  # eclare


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^−x), without overflow; never 0, so that what is unlikely still has an order."""
    return np.asarray(1 / (1 + np.exp(-np.maximum(x, LOWEST))), np.float32)


def best(scores: Floats, k: int) -> NDArray[np.integer[Any]]:
    """The places of the k highest scores of each row; of equal ones, the first."""
    if k >= scores.shape[1]:
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return top_k(scores, k)[0]


def with_all(x: Floats, weights: Floats) -> Floats:
    """x·weightsᵀ (B, K). For one text BLAS would wake its threads, which takes longer than the product."""
    if len(x) == 1:
        return dots(x, weights, np.arange(len(weights))[None, :])
    return np.asarray(x @ weights.T, np.float32)


def two_levels(features: dict[str, Floats], arrays: Arrays, meta: Mapping[str, Any]) -> sp.csr_matrix:
    """σ(cluster)·σ(label) of the labels below the best clusters (B, L); with a graph, after a step over it of each."""
    L = len(arrays["label.weights"])
    chances = sigmoid(with_all(features[meta["meta"]], arrays["meta.weights"]) + arrays["meta.bias"])  # (B, K)
    graph = unpack_csr("graph.meta", arrays)
    if graph is not None:
        chances = walked(kept(chances, meta["parents"]), graph, meta["parents"]).toarray()
    parents = best(chances, meta["parents"])  # (B, k)
    candidates = arrays["children"][parents]  # (B, k, W)
    above = np.take_along_axis(chances, parents, 1)[:, :, None]  # (B, k, 1)
    logits = dots(features[meta["label"]], arrays["label.weights"], candidates.reshape(len(parents), -1))
    scores = above * sigmoid(logits.reshape(candidates.shape) + arrays["label.bias"][candidates])
    found = as_csr(candidates.reshape(len(parents), -1), scores.reshape(len(parents), -1), L)
    graph = unpack_csr("graph.label", arrays)
    return found if graph is None else walked(found, graph, WALKED)


class Sides(NamedTuple):
    """The two scores of a shortlist's labels, each relative to the largest of its row (Astec); pads have 0."""

    candidates: NDArray[np.int32]  # (B, S), padded by −1
    classified: Floats  # σ(classifier)
    near: Floats  # σ(similarity)

    def mixed(self, beta: float, L: int) -> sp.csr_matrix:
        """β·classified + (1 − β)·near (B, L)."""
        return as_csr(self.candidates, np.asarray(beta * self.classified + (1 - beta) * self.near, np.float32), L)


def sides_of(features: dict[str, Floats], nearby: Nearby, arrays: Arrays, meta: Mapping[str, Any]) -> Sides:
    """What the classifiers and what is near say of the labels of a shortlist."""
    candidates, alike = nearby.shortlist(features["near"])  # (B, S)
    logits = dots(features[meta["label"]], arrays["label.weights"], candidates) + arrays["label.bias"][candidates]
    parts = [np.where(candidates < 0, 0, sigmoid(part)) for part in (logits, alike)]
    return Sides(candidates, *(part / np.maximum(part.max(1, keepdims=True), 1e-12) for part in parts))


def walked(scores: sp.csr_matrix, graph: sp.csr_matrix, k: int) -> sp.csr_matrix:
    """½ s + ½ topk(s·Ĝ): one step over the graph (ECLARE)."""
    indices, values = top_k((scores @ graph).tocsr(), k)
    return (0.5 * scores + 0.5 * as_csr(indices, values, scores.shape[1])).tocsr()


def kept(scores: Floats, k: int) -> sp.csr_matrix:
    """The k highest of each row."""
    places = best(scores, min(k, scores.shape[1]))
    return as_csr(places, np.take_along_axis(scores, places, 1), scores.shape[1])


def as_csr(candidates: NDArray[np.integer[Any]], scores: Floats, L: int) -> sp.csr_matrix:
    """Scores of candidates (B, C) as a sparse matrix (B, L), in their order; pads leave it."""
    kept = candidates >= 0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(1))])
    return sp.csr_matrix((scores[kept], candidates[kept].astype(np.int32), indptr), shape=(len(scores), L))
