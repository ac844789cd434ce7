"""Training down a label tree, level by level (XR-Linear; paper 003, eq. 7 – 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.linear import BeamSearch, Level, Problem, label_sums, pack_level, solve_level
from longtail.core.parameters import Parameters, param
from longtail.core.run import Run
from longtail.data.sparse import csr
from longtail.labels.tree import LabelTree

BIAS = 1.0  # the value of the feature that every point has
MAX_PASSES = 100


@dataclass(frozen=True)
class LinearParameters(Parameters):
    """What training and prediction with a tree of linear classifiers can be told; the defaults are XR-Linear's."""

    kind = "linear"
    negatives: Literal["tfn", "tfn+man"] = param("tfn", "tfn: teacher-forced; +man: also what the level above confuses")
    C: float = param(1.0, "cost of errors against the size of weights", above=0.0)  # PECOS, XR-Transformer: 1
    eps: float = param(0.1, "how far from optimal the solver may stop", above=0.0)  # LIBLINEAR, PECOS: 0.1
    prune: float = param(0.1, "weights smaller than this are dropped", at_least=0.0)  # PECOS: 0.1
    budget: int | None = param(None, "keep at most this many weights per label", at_least=1)
    beam: int = param(10, "nodes kept at each level of the search", at_least=1)
    post: Literal["l3-hinge", "sigmoid", "none"] = param("l3-hinge", "how margins become scores down the path")


def label_vectors(X: sp.csr_matrix, Y: sp.csr_matrix) -> sp.csr_matrix:
    """PIFA (eq. 4): Z_l = Σ_i y_il x_i, scaled to unit length (L, d)."""
    return csr(*label_sums(X, Y), (Y.shape[1], X.shape[1]), canonical=True)


def train_levels(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    ignore: sp.csr_matrix | None,
    tree: LabelTree,
    settings: LinearParameters,
    run: Run,
) -> list[Level]:
    """The classifiers of every level. Y (N, L) holds targets in (0, 1]; pairs of `ignore` take no part."""
    tree.check(Y.shape[1])
    levels: list[Level] = []
    above: sp.csr_matrix | None = None
    last = len(tree.levels) - 1
    for t in run.progress.track(range(last + 1), "training levels", unit="levels"):
        targets = tree.targets(Y, t)
        row_ptr, rows = training_rows(X, above, levels, settings)
        pairs = None
        if ignore is not None and t == last:  # an ignored label says nothing about the clusters above it
            pairs = tree.targets(ignore.astype(np.float32), t).tocsc()
        weights = solve_level(
            X,
            Problem(row_ptr, rows, tree.child_ptr(t), targets.tocsc(), ignore=pairs),
            bias=BIAS,
            cost_positive=settings.C,
            cost_negative=settings.C,
            eps=settings.eps,
            max_passes=MAX_PASSES,
            threshold=settings.prune,
            budget=settings.budget,
            seed=run.seed,
        )
        levels.append(pack_level(tree.child_ptr(t), weights, X.shape[1] + 1))
        above = targets
    return levels


def training_rows(
    X: sp.csr_matrix, above: sp.csr_matrix | None, levels: list[Level], settings: LinearParameters
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The points that take part under each parent: M of eq. 7.

    Those for which the parent is true (tfn), and with man those for which the levels above put it in their beam.
    """
    N = X.shape[0]
    if above is None:
        return np.array([0, N]), np.arange(N, dtype=np.int32)
    taking_part = above
    if settings.negatives == "tfn+man":
        K = above.shape[1]
        width = min(settings.beam, K)
        found, _ = BeamSearch(X.shape[1], levels).search(X, bias=BIAS, beam=settings.beam, k=width, post=settings.post)
        real = found >= 0
        indptr = np.append(0, np.cumsum(real.sum(1)))
        taking_part = above + sp.csr_matrix((np.ones(real.sum(), np.float32), found[real], indptr), shape=(N, K))
    by_parent = taking_part.tocsc()
    return by_parent.indptr.astype(np.int64), by_parent.indices.astype(np.int32)
