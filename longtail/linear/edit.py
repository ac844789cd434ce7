"""A trained model over an edited label space: new labels get a place in every tree and weights, without training data.

The training points are not available, but the label texts are. A new label's classifier is therefore trained on texts:
its own is the only positive, those of its new siblings are the negatives. A share of the classifiers of labels with a
similar text is added. docs/edit-labels.md has measurements of the alternatives.
"""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail._native.linear import PackedLevel, Problem, Weights, pack_level, unpack_level
from longtail.core.editing import about_edit, check_edit
from longtail.core.errors import UnsupportedError
from longtail.core.labels import Labels
from longtail.data.sparse import csr
from longtail.labels.tree import LabelTree
from longtail.linear.features import Features
from longtail.linear.parameters import LinearParameters
from longtail.linear.place import Newcomers, places
from longtail.linear.ranker import BIAS, Ranker
from longtail.linear.solve import solve_in_parts

if TYPE_CHECKING:
    from longtail.linear.model import LinearModel

log = logging.getLogger("longtail")
POSITIVE = 8.0  # cost of an error on the label's own text, where one on a sibling's costs 1
EPS = 0.01  # the problems are small: solve them well
SIBLINGS = 1000  # negative texts of a new label, at most; only flat trees have more
TOGETHER = 256  # new labels of one cluster that are solved against each other
ALIKE, ALIKE_FROM = 5, 0.5  # labels of similar text whose classifiers are mixed in: how many, from which similarity
SHARE = 0.2  # of the weights that come from these
CROWDED = 2  # times the recipe's `leaf_size`: clusters larger than this are warned about
NAMED = 5  # labels named in a warning


def edit_labels(model: LinearModel, labels: Labels) -> LinearModel:
    """The model over `labels`: an edit of its own, in which labels may be renamed, removed and appended."""
    check_edit(model.labels, labels)
    rankers = model.rankers
    if len(labels) > len(model.labels):
        rankers = added(model, labels)
    about = about_edit(model.about, model.labels, labels)
    edited = type(model)(model.recipe, labels, model.blocks, rankers, about, model.own_search)
    edited.decision = model.decision
    return edited


def added(model: LinearModel, labels: Labels) -> list[Ranker]:
    """The rankers with the labels that `labels` has beyond the model's own."""
    L, recipe = len(model.labels), model.recipe
    if any(block.reads != "text" for block in model.blocks):
        raise UnsupportedError(
            f"this {recipe.name!r} model was trained on a feature matrix and cannot read the text of a new label; "
            "train again with the label"
        )
    if all(block.dense for block in model.blocks):
        raise UnsupportedError(
            f"this {recipe.name!r} model reads no words, only {', '.join(b.kind for b in model.blocks)}, and a new "
            "label is placed by its words: train again with the label"
        )
    if labels.texts is None:
        raise UnsupportedError(
            f"the labels of this {recipe.name!r} model have no texts, and a new one has only its text to be placed by; "
            "train on a corpus whose label list has texts"
        )
    settings = settings_of(model)
    new = Newcomers.of(labels.texts, L, labels.removed, model.blocks)
    if new.silent.any():
        warn_silent(labels, L + np.flatnonzero(new.silent))
    rankers = [with_labels(ranker, new, settings, labels.removed) for ranker in model.rankers]
    warn_crowded(rankers, getattr(recipe, "leaf_size", None))
    return rankers


def settings_of(model: LinearModel) -> LinearParameters:
    """The settings that the classifiers of the labels were trained with."""
    recipe: Any = model.recipe
    if hasattr(recipe, "ranker"):  # the last stage of a network
        last: LinearParameters = recipe.ranker.settings()[1]
        return last
    names = (field.name for field in fields(LinearParameters))
    return LinearParameters(**{name: getattr(recipe, name) for name in names if hasattr(recipe, name)})


def with_labels(
    ranker: Ranker, new: Newcomers, settings: LinearParameters, removed: NDArray[np.bool_] | None
) -> Ranker:
    """A ranker with new labels in it; the indices, places and weights of the others stay as they are."""
    weights = unpack_level(ranker.levels[-1])
    clusters = places(ranker, new, "sigmoid" if settings.post == "sigmoid" else "l3-hinge")
    by_node = csr(weights.ptr, weights.features, weights.values, (len(ranker.tree), ranker.width + 1))
    solved = text_weights(ranker.tree, new, clusters, settings, removed)
    mixed = pruned(with_alike(solved, by_node[np.argsort(ranker.tree.order)], new), settings)
    mixed = with_lowest_bias(mixed, by_node, new.silent)
    return grown(ranker, weights, clusters, mixed, settings)


def text_weights(
    tree: LabelTree,
    new: Newcomers,
    clusters: NDArray[np.int64],
    settings: LinearParameters,
    removed: NDArray[np.bool_] | None,
) -> sp.csr_matrix:
    """Weights (M, d + 1) that tell the text of each new label from those of its siblings, new ones among them."""
    L, M = len(tree), len(clusters)
    by_cluster = np.argsort(clusters, kind="stable")
    own = clusters[by_cluster]
    number = np.arange(M) - np.searchsorted(own, own)  # of a label among the new ones of its cluster
    begins = np.flatnonzero(number % TOGETHER == 0)
    group = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, M)))
    rows, groups = siblings(tree, own[begins], removed)
    members = sp.csr_matrix(
        (np.ones(len(rows) + M, bool), (np.append(groups, group), np.append(rows, L + by_cluster))),
        shape=(len(begins), L + M),
    )
    members.sort_indices()
    targets = sp.csc_matrix((np.ones(M, np.float32), (L + by_cluster, np.arange(M))), shape=(L + M, M))
    problem = Problem(
        members.indptr.astype(np.int64),
        members.indices.astype(np.int32),
        np.append(begins, M).astype(np.int64),
        targets,
    )
    C_negative = settings.C if settings.C_negative is None else settings.C_negative
    costly = replace(settings, C=POSITIVE * settings.C, C_negative=C_negative)
    unpruned = replace(costly, eps=EPS, prune=0.0, weights_per_label=None)
    solved = solve_in_parts(Features.of([sp.vstack([new.known, new.own], format="csr")]), problem, unpruned, seed=0)
    return csr(solved.ptr, solved.features, solved.values, (M, new.own.shape[1] + 1))[np.argsort(by_cluster)]


def siblings(
    tree: LabelTree, clusters: NDArray[np.int64], removed: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The labels of some clusters that are not removed, and for each the number of its cluster in the list.

    From a cluster of more than SIBLINGS labels, that many at even distances.
    """
    ends = cluster_ends(tree)
    sizes = ends[clusters + 1] - ends[clusters]
    counts = np.minimum(sizes, SIBLINGS)
    groups = np.repeat(np.arange(len(clusters)), counts)
    number = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = tree.order[ends[clusters][groups] + number * sizes[groups] // counts[groups]].astype(np.int64)
    if removed is None:
        return rows, groups
    kept = ~removed[rows]
    return rows[kept], groups[kept]


def with_alike(solved: sp.csr_matrix, by_label: sp.csr_matrix, new: Newcomers) -> sp.csr_matrix:
    """`solved` mixed with a SHARE of the weights of labels with similar texts; unchanged where there are none."""
    alike, similarity = _native.top_k(new.near, min(ALIKE, new.near.shape[1]))
    real = (alike >= 0) & (similarity > ALIKE_FROM)
    shares = np.where(real, similarity, 0).astype(np.float32) ** 2
    shares *= SHARE / np.maximum(shares.sum(1, keepdims=True), np.float32(1e-30))
    asked, columns = np.unique(alike[real], return_inverse=True)
    ptr = np.append(0, np.cumsum(real.sum(1)))
    mixture = csr(ptr, columns.astype(np.int32), shares[real], (len(alike), len(asked)))
    own = sp.diags(np.where(real.any(1), 1 - SHARE, 1).astype(np.float32))
    return (own @ solved + mixture @ by_label[asked]).tocsr().astype(np.float32)


def pruned(weights: sp.csr_matrix, settings: LinearParameters) -> sp.csr_matrix:
    """The weights that training would keep: those not below `prune`, at most `weights_per_label` of each label."""
    sizes = weights.copy()
    sizes.data = np.abs(sizes.data)
    sizes.data[sizes.data < settings.prune] = 0
    sizes.eliminate_zeros()
    most = settings.weights_per_label
    if most is not None and np.diff(sizes.indptr).max(initial=0) > most:
        kept, values = _native.top_k(sizes, most)
        real = kept >= 0
        sizes = csr(np.append(0, np.cumsum(real.sum(1))), kept[real], values[real], sizes.shape)
        sizes.sort_indices()
    sizes.data[:] = 1
    return sizes.multiply(weights).tocsr().astype(np.float32)


def with_lowest_bias(weights: sp.csr_matrix, by_node: sp.csr_matrix, silent: NDArray[np.bool_]) -> sp.csr_matrix:
    """Labels whose texts have no known word get the lowest bias of all labels, and no other weight."""
    if not silent.any():
        return weights
    bias = by_node.shape[1] - 1
    lowest = np.float32(by_node.data[by_node.indices == bias].min(initial=-BIAS))
    at = np.flatnonzero(silent)
    biases = sp.csr_matrix((np.full(len(at), lowest), (at, np.full(len(at), bias))), shape=weights.shape)
    return (sp.diags((~silent).astype(np.float32)) @ weights + biases).tocsr().astype(np.float32)


def grown(
    ranker: Ranker, weights: Weights, clusters: NDArray[np.int64], new: sp.csr_matrix, settings: LinearParameters
) -> Ranker:
    """The ranker with a label for each row of `new` (M, d + 1) at the end of its cluster.

    `weights` are the present weights of the last level.
    """
    tree, L = ranker.tree, len(ranker.tree)
    by_cluster = np.argsort(clusters, kind="stable")
    at = cluster_ends(tree)[clusters[by_cluster] + 1]  # the node before which each goes in
    order = np.insert(tree.order, at, (L + by_cluster).astype(np.int32))
    ends = (level + np.searchsorted(at, level, side="right") for level in tree.levels[:-1])
    taller = LabelTree(order, (*ends, np.arange(len(order) + 1)))
    rows = new[by_cluster]
    rows.sort_indices()
    counts = np.diff(rows.indptr)
    entries = np.repeat(weights.ptr[at], counts)
    all_weights = Weights(
        np.append(0, np.cumsum(np.insert(np.diff(weights.ptr), at, counts))).astype(np.int64),
        np.insert(weights.features, entries, rows.indices.astype(np.int32)),
        np.insert(weights.values, entries, rows.data.astype(np.float32)),
    )
    child_ptr = taller.child_ptr(len(taller.levels) - 1)
    packed = pack_level(child_ptr, all_weights, ranker.width + 1, settings.weights)
    return Ranker(taller, [*ranker.levels[:-1], same_scales(packed, ranker.levels[-1], order < L)], ranker.width)


def same_scales(packed: PackedLevel, before: PackedLevel, known: NDArray[np.bool_]) -> PackedLevel:
    """int8 weights with the scales that known labels had: packing them again may change the last bit."""
    if not len(packed.scales):
        return packed
    scales = packed.scales.copy()
    scales[known] = before.scales
    return packed._replace(scales=scales)


def cluster_ends(tree: LabelTree) -> NDArray[np.int64]:
    """Where the clusters that hold labels begin and end in the order; a flat tree has one cluster."""
    return np.array([0, len(tree)]) if len(tree.levels) == 1 else tree.levels[-2]


def warn_silent(labels: Labels, indices: NDArray[np.int64]) -> None:
    """Warn about labels whose texts have no known word, by name."""
    names = ", ".join(repr(labels.keys[int(i)]) for i in indices[:NAMED]) + (", …" if len(indices) > NAMED else "")
    log.warning(
        "%s new label(s) have a text without a word that the model knows; they get the lowest prior and will almost "
        "never be suggested: %s",
        f"{len(indices):,}",
        names,
    )


def warn_crowded(rankers: list[Ranker], leaf_size: int | None) -> None:
    """Warn when clusters have become much larger than the recipe's `leaf_size`."""
    sizes = np.concatenate([np.diff(cluster_ends(ranker.tree)) for ranker in rankers])
    if leaf_size is None or not (sizes > CROWDED * leaf_size).any():
        return
    log.warning(
        "%s cluster(s) of the label tree hold more than %s labels, the largest %s; the recipe's leaf_size is %s. "
        "Large clusters slow prediction down; train again when you can",
        f"{int((sizes > CROWDED * leaf_size).sum()):,}",
        f"{CROWDED * leaf_size:,}",
        f"{int(sizes.max()):,}",
        f"{leaf_size:,}",
    )
