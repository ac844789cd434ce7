"""The formulas of the cascades in plain NumPy and loops, for tests to compare with."""

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import erf, expit

from longtail.encoders.bag import Bags
from longtail.encoders.residual import Residual
from longtail.scoring.weights import Blended, Free, FromText, Gated, LabelWeights


def doubles(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + erf(x / np.sqrt(2))) / 2


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def residual(block: Residual, v: np.ndarray) -> np.ndarray:
    """Each paper's block; W is bounded by the norm that the block's own power iteration has found."""
    W = doubles(block.linear.weight)
    bias = 0 if block.linear.bias is None else doubles(block.linear.bias)
    change, keep = doubles(block.change), doubles(block.keep)
    if block.form == "astec":
        return np.maximum(v @ W.T + bias, 0) + v
    if block.form == "decaf":
        return expit(change) * (np.maximum(v, 0) @ W.T) + expit(keep) * v
    if block.form == "eclare":
        return change * (np.maximum(v, 0) @ W.T + bias) + v
    return change * (gelu(v) @ W.T) + keep * v


def label_weights(weights: LabelWeights, E: np.ndarray, texts: dict[str, np.ndarray]) -> np.ndarray:
    """The classifiers of all labels; `texts` are their TF-IDF rows (L, V), under "graph" those of their neighbours."""
    if isinstance(weights, Free):
        return doubles(weights.table.weight)
    if isinstance(weights, FromText):
        return residual(weights.residual, texts["text"] @ E)
    if isinstance(weights, Gated):
        alpha, beta = expit(doubles(weights.alpha)), expit(doubles(weights.beta))
        return alpha * label_weights(weights.text, E, texts) + beta * label_weights(weights.free, E, texts)
    assert isinstance(weights, Blended)
    parts = [label_weights(part, E, {"text": texts.get(name)}) for name, part in weights.parts.items()]  # type: ignore[dict-item, arg-type]
    P, T, bias = (doubles(p) for p in (weights.project.weight, weights.attend.weight, weights.attend.bias))
    rows = np.empty_like(parts[0])
    for label in range(len(rows)):
        scores = T @ np.concatenate([P @ part[label] for part in parts]) + bias
        share = np.exp(scores) / np.exp(scores).sum()
        rows[label] = sum(a * part[label] for a, part in zip(share, parts, strict=True))
    return rows


def dense(bags: Bags) -> np.ndarray:
    shape = (len(bags), bags.vocabulary)
    return sp.csr_matrix((bags.weights, bags.words, bags.ptr), shape=shape).toarray().astype(np.float64)


def cross_entropy(logit: float, target: float) -> float:
    return float(-(target * np.log(expit(logit)) + (1 - target) * np.log(expit(-logit))))


def top(scores: np.ndarray, k: int) -> np.ndarray:
    """Keep the k largest values of a vector; the others become 0."""
    kept = np.zeros_like(scores)
    best = np.argsort(-scores, kind="stable")[:k]
    kept[best] = scores[best]
    return kept


def stirred(module: torch.nn.Module, seed: int = 0, by: float = 0.5) -> None:
    """Parameters different from their initial values, so that each one has a visible effect."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * by)
