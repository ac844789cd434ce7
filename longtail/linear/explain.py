"""Why a linear model suggests a label: every margin on the path to it split exactly into its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.linear import PackedLevel, unpack_level
from longtail.core.errors import ParameterError, shorten
from longtail.core.explanation import Explanation, PathStep, Reason, Term, TreePath
from longtail.core.ranking import Kind
from longtail.core.texts import Texts
from longtail.labels.paths import Stop, way_to
from longtail.linear.blocks import FeatureBlock, in_column_order, text_columns
from longtail.linear.features import Features
from longtail.linear.ranker import BIAS, Ranker

if TYPE_CHECKING:
    from longtail.linear.model import LinearModel

NodeWeights = tuple[NDArray[np.int32], NDArray[np.float32]]  # features, rising, and their weights


def child_weights(level: PackedLevel, parent: int, child: int, among: NDArray[np.int32] | None = None) -> NodeWeights:
    """The weights of child number `child` of a node, by rising feature: all, or those of the features `among`."""
    weights = unpack_level(level, parent, among)
    own = slice(weights.ptr[child], weights.ptr[child + 1])
    return weights.features[own], weights.values[own]


def explain(model: LinearModel, x: Any, k: int | None = None, labels: Sequence[str] | None = None) -> Explanation:
    """Why each of the k best labels of a text (or of one row of features) was suggested.

    `labels` names labels by key instead: why these, or why not. Their score is that of the path to them, whether the
    search would have reached them or not. A dense feature block counts as one term.
    """
    points = model.check_inputs([x] if isinstance(x, str) else _one_row(x))
    row = Point(model, points)
    wanted: dict[int, float | None] = {}
    kind: Kind = "score"
    if labels is None:
        ranking = model.predict(points, k)
        best = zip(ranking.indices[0].tolist(), ranking.scores[0].tolist(), strict=True)
        wanted, kind = {label: score for label, score in best if label >= 0}, ranking.kind
    else:
        wanted = {model.labels.index(key): None for key in labels}
    reasons = tuple(reason(model, row, label, score) for label, score in wanted.items())
    terms = sorted(row.terms(), key=lambda term: -term[1])
    text = points[0] if isinstance(points, Texts) else None
    return Explanation(model.recipe.name, text, kind, tuple(terms), reasons)


class Point:
    """The features of one point, and which of them belong to which block."""

    def __init__(self, model: LinearModel, point: Any):
        features: Features = model.features(point)
        _, self.columns, self.values = features.arrays
        self.bias = features.width  # the number of the bias: the feature after the last
        self.placed = in_column_order(model.blocks)
        dense = np.empty(0, np.float32) if features.dense is None else features.dense[0]
        self.dense: list[tuple[str, int, NDArray[np.float32]]] = []  # of each dense block: title, first column, values
        for first, block in self.placed:
            if block.dense:
                at = first - features.columns
                self.dense.append((title(block), first, dense[at : at + block.width]))

    def terms(self) -> list[tuple[str, float]]:
        """The point's terms with their values; of a dense block the length of its row."""
        words = zip(names(self.placed, self.columns), map(float, self.values), strict=True)
        return [*words, *((name, float(np.linalg.norm(values))) for name, _, values in self.dense)]


def title(block: FeatureBlock) -> str:
    """A dense block in one line of an explanation."""
    return f"[{block.kind}: {block.width:,} dense features]"


def reason(model: LinearModel, row: Point, label: int, score: float | None = None) -> Reason:
    """The paths to a label for one point, and the score: that of the paths unless it is given."""
    text = None if model.labels.texts is None else model.labels.texts[label]
    key = model.labels.keys[label]
    words = np.array(text_columns(model.blocks, text or key), np.int32)
    paths = tuple(path(model, ranker, row, label, words) for ranker in model.rankers)
    reached = float(np.mean([path.score for path in paths])) if score is None else score
    return Reason(key, text, reached, paths)


def path(model: LinearModel, ranker: Ranker, row: Point, label: int, words: NDArray[np.int32]) -> TreePath:
    """The steps to a label down one tree."""
    way = way_to(ranker.tree, label)
    splits = [split(level, stop, row, words) for level, stop in zip(ranker.levels, way, strict=True)]
    margins = [bias + sum(term.contribution for term in terms) for bias, terms in splits]
    scores = path_scores(model.search.post, margins)
    steps = tuple(
        PathStep(".".join(str(stop.child) for stop in way[: t + 1]), way[t].labels, margins[t], scores[t], bias, terms)
        for t, (bias, terms) in enumerate(splits)
    )
    return TreePath(scores[-1], steps)


def split(level: PackedLevel, stop: Stop, row: Point, words: NDArray[np.int32]) -> tuple[float, tuple[Term, ...]]:
    """The bias of a node and what each term of a point adds to its margin, largest first.

    A dense block is one term: its value is the length of its row, its weight the sum it adds divided by that.
    """
    dense = [np.arange(first, first + len(values), dtype=np.int32) for _, first, values in row.dense]
    among = np.concatenate([row.columns, *dense, [np.int32(row.bias)]])  # rises: sparse, dense, bias
    features, weights = child_weights(level, stop.parent, stop.child, among)
    all_values = np.concatenate([row.values, *(values for _, _, values in row.dense), [np.float32(BIAS)]])
    values = all_values[np.searchsorted(among, features)].astype(float)
    products = values * weights
    sparse = features < (row.dense[0][1] if row.dense else row.bias)
    numbers = (array[sparse].tolist() for array in (values, weights, products, np.isin(features, words)))
    terms = [Term(*entry) for entry in zip(names(row.placed, features[sparse]), *numbers, strict=True)]
    for name, first, block in row.dense:
        own = (features >= first) & (features < first + len(block))
        length, total = float(np.linalg.norm(block)), float(products[own].sum())
        terms.append(Term(name, length, total / length if length else 0.0, total))
    return float(products[features == row.bias].sum()), tuple(sorted(terms, key=lambda term: -term.contribution))


def path_scores(post: str, margins: Sequence[float]) -> list[float]:
    """The score of the path after each node, as the beam search combines margins (`combine` in beam.cpp)."""
    m = np.asarray(margins, float)
    if post == "l3-hinge":
        return [float(s) for s in np.exp(-np.cumsum(np.maximum(0, 1 - m) ** 3))]
    if post == "sigmoid":
        return [float(s) for s in np.exp(-np.cumsum(np.logaddexp(0, -m)))]
    if post == "l3-hinge+none":
        return [*path_scores("l3-hinge", margins[:-1]), float(m[-1])]
    return [float(s) for s in m]


def names(placed: Sequence[tuple[int, FeatureBlock]], columns: NDArray[Any]) -> list[str]:
    """The terms of some rising columns of the features, as their blocks call them."""
    found: list[str] = []
    for first, block in placed:
        own = (columns >= first) & (columns < first + block.width)
        found += block.names((columns[own] - first).tolist())
    return found


def node_words(model: LinearModel, ranker: Ranker, t: int, node: int, count: int) -> list[str]:
    """The words with the largest positive weights at a node of level t: what tells it from its siblings."""
    parent, child = 0, node
    if t > 0:
        ends, above = ranker.tree.levels[t], ranker.tree.levels[t - 1]
        parent = int(np.searchsorted(above, ends[node], side="right")) - 1
        child = node - int(np.searchsorted(ends, above[parent]))
    features, weights = child_weights(ranker.levels[t], parent, child)
    placed = in_column_order(model.blocks)
    words = sum(block.width for _, block in placed if not block.dense)  # then dense columns and the bias
    best = np.argsort(-weights, kind="stable")
    best = best[(weights[best] > 0) & (features[best] < words)][:count]
    return [name for feature in best for name in names(placed, features[[feature]])]


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
