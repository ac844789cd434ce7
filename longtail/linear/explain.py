"""Why a linear model suggests a label: every margin on the way to it taken apart, word by word, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.linear import Level, unpack_level
from longtail.core.errors import ParameterError, shorten
from longtail.core.explanation import Explanation, Path, Reason, Step, Term
from longtail.core.ranking import Kind
from longtail.core.texts import Texts
from longtail.labels.paths import Stop, way_to
from longtail.linear.ranker import BIAS, Ranker

if TYPE_CHECKING:
    from longtail.linear.model import LinearModel

Weights = tuple[NDArray[np.int32], NDArray[np.float32]]  # features, rising, and their weights


def child_weights(level: Level, parent: int, child: int, among: NDArray[np.int32] | None = None) -> Weights:
    """The weights of child number `child` of a node, by rising feature: all, or those of the features `among`."""
    weights = unpack_level(level, parent, among)
    own = slice(weights.ptr[child], weights.ptr[child + 1])
    return weights.features[own], weights.values[own]


def explain(model: LinearModel, x: Any, k: int | None = None, labels: Sequence[str] | None = None) -> Explanation:
    """Why each of the k best labels of a text (or of one row of features) was suggested.

    `labels` names labels by key instead: why these, or why not. They have the score of the path to them, whether the
    search would have reached them or not.
    """
    points = model.check_inputs([x] if isinstance(x, str) else _one_row(x))
    row = model.features(points)
    wanted: dict[int, float | None] = {}
    kind: Kind = "score"
    if labels is None:
        ranking = model.predict(points, k)
        best = zip(ranking.indices[0].tolist(), ranking.scores[0].tolist(), strict=True)
        wanted, kind = {label: score for label, score in best if label >= 0}, ranking.kind
    else:
        wanted = {model.labels.index(key): None for key in labels}
    reasons = tuple(reason(model, row, label, score) for label, score in wanted.items())
    terms = sorted(zip(feature_names(model, row.indices), map(float, row.data), strict=True), key=lambda t: -t[1])
    text = points[0] if isinstance(points, Texts) else None
    return Explanation(model.recipe.name, text, kind, tuple(terms), reasons)


def reason(model: LinearModel, row: sp.csr_matrix, label: int, score: float | None = None) -> Reason:
    """The paths to a label for one point (1, width), and the score: that of the paths unless it is given."""
    text = None if model.labels.texts is None else model.labels.texts[label]
    key = model.labels.keys[label]
    words = label_features(model, text or key)
    paths = tuple(path(model, ranker, row, label, words) for ranker in model.rankers)
    reached = float(np.mean([path.score for path in paths])) if score is None else score
    return Reason(key, text, reached, paths)


def path(model: LinearModel, ranker: Ranker, row: sp.csr_matrix, label: int, words: NDArray[np.int32]) -> Path:
    """The steps to a label down one tree."""
    way = way_to(ranker.tree, label)
    taken_apart = [apart(model, level, stop, row, words) for level, stop in zip(ranker.levels, way, strict=True)]
    margins = [bias + sum(term.contribution for term in terms) for bias, terms in taken_apart]
    scores = path_scores(getattr(model.recipe, "post", "none"), margins)
    steps = tuple(
        Step(".".join(str(stop.child) for stop in way[: t + 1]), way[t].labels, margins[t], scores[t], bias, terms)
        for t, (bias, terms) in enumerate(taken_apart)
    )
    return Path(scores[-1], steps)


def apart(
    model: LinearModel, level: Level, stop: Stop, row: sp.csr_matrix, words: NDArray[np.int32]
) -> tuple[float, tuple[Term, ...]]:
    """The bias of a node and what each term of a point adds to its margin, largest first."""
    among = np.append(row.indices, np.int32(model.width))  # the bias is the feature after the last
    features, weights = child_weights(level, stop.parent, stop.child, among)
    values = np.append(row.data, np.float32(BIAS))[np.searchsorted(among, features)].astype(float)
    products = values * weights
    is_bias = features == model.width
    names = feature_names(model, features[~is_bias])
    numbers = (array[~is_bias].tolist() for array in (values, weights, products, np.isin(features, words)))
    terms = [Term(*entry) for entry in zip(names, *numbers, strict=True)]
    return float(products[is_bias].sum()), tuple(sorted(terms, key=lambda term: -term.contribution))


def path_scores(post: str, margins: Sequence[float]) -> list[float]:
    """What the way down is worth after each node, as the beam search combines margins (`combine` in beam.cpp)."""
    m = np.asarray(margins, float)
    if post == "l3-hinge":
        return [float(s) for s in np.exp(-np.cumsum(np.maximum(0, 1 - m) ** 3))]
    if post == "sigmoid":
        return [float(s) for s in np.exp(-np.cumsum(np.logaddexp(0, -m)))]
    return [float(s) for s in m]


def feature_names(model: LinearModel, features: Iterable[int]) -> list[str]:
    """The terms of features; their numbers where there is no vocabulary."""
    columns = np.asarray(list(features), np.int64)
    if model.encoder is None:
        return [f"feature {column}" for column in columns]
    return model.encoder.names(columns)


def label_features(model: LinearModel, text: str) -> NDArray[np.int32]:
    """The known words of a label's text."""
    if model.encoder is None:
        return np.empty(0, np.int32)
    return model.encoder.count(Texts.of([text])).indices


def node_words(model: LinearModel, ranker: Ranker, t: int, node: int, count: int) -> list[str]:
    """The words with the largest positive weights at a node of level t: what tells it from its siblings."""
    parent, child = 0, node
    if t > 0:
        ends, above = ranker.tree.levels[t], ranker.tree.levels[t - 1]
        parent = int(np.searchsorted(above, ends[node], side="right")) - 1
        child = node - int(np.searchsorted(ends, above[parent]))
    features, weights = child_weights(ranker.levels[t], parent, child)
    best = np.argsort(-weights, kind="stable")
    best = best[(weights[best] > 0) & (features[best] != model.width)][:count]
    return feature_names(model, features[best])


def _one_row(x: Any) -> sp.csr_matrix:
    """One point's features as a matrix of one row, columns rising."""
    if not sp.issparse(x):
        values = np.atleast_2d(np.asarray(x))
        if values.dtype.kind not in "biuf":
            raise ParameterError(f"explain takes one text, or one row of features; got {shorten(x)}")
        x = values
    if x.shape[0] != 1:
        raise ParameterError(f"explain takes one point at a time; got a matrix of {x.shape[0]:,} rows")
    row = sp.csr_matrix(x, dtype=np.float32, copy=True)
    row.sum_duplicates()
    return row
