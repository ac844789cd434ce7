"""One-vs-all classifiers for the nodes of one tree level (paper 003, eq. 7, 9 and 11)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.linear import Problem, Weights, solve_problem
from longtail.core.errors import DataError
from longtail.data.sparse import csr
from longtail.data.sparse import pairs as checked_pairs
from longtail.data.sparse import targets as checked_targets
from longtail.linear.features import Features
from longtail.linear.parameters import LinearParameters
from longtail.linear.ranker import BIAS

MAX_PASSES = 100
PART = 8e9  # non-zeros × labels solved at a time: about ten seconds of work, which a checkpoint can save

SolvePart = Callable[[int, Callable[[], Weights]], Weights]
"""Called with the number of a part and what solves it; returns its weights."""


class Groups(NamedTuple):
    """Which points each node learns from: M of eq. 7, where the nodes under one parent share a column.

    The nodes child_ptr[g] … child_ptr[g + 1] learn from the points rows[row_ptr[g]:row_ptr[g + 1]]: those in which
    they are true are positives, the others negatives.
    """

    row_ptr: NDArray[np.int64]
    rows: NDArray[np.int32]
    child_ptr: NDArray[np.int64]

    @classmethod
    def everything(cls, points: int, nodes: int) -> Groups:
        """Every node learns from every point."""
        return cls(np.array([0, points]), np.arange(points, dtype=np.int32), np.array([0, nodes]))

    @classmethod
    def matched(cls, matches: Any, child_ptr: NDArray[np.int64]) -> Groups:
        """From a sparse matrix (N, G): the nodes child_ptr[g] … child_ptr[g + 1] learn from the entries of column g."""
        columns = sp.csc_matrix(matches)
        if not columns.has_sorted_indices:
            columns = columns.sorted_indices()  # a copy: the arrays may be the caller's
        return cls(columns.indptr.astype(np.int64), columns.indices.astype(np.int32), child_ptr)


def as_matches(lists: NDArray[np.int32], G: int) -> sp.csr_matrix:
    """Lists of parents (N, S), padded by −1, as a matrix (N, G) for `Groups.matched`."""
    real = lists >= 0
    ptr = np.append(0, np.cumsum(real.sum(1)))
    return sp.csr_matrix((np.ones(int(ptr[-1]), bool), lists[real], ptr), (len(lists), G))


def solve_level(
    features: Features,
    targets: Any,
    costs: Any = None,
    rows: Groups | None = None,
    settings: LinearParameters | None = None,
    *,
    ignore: Any = None,
    seed: int = 0,
) -> Weights:
    """Solve min ½‖w_k‖² + Σ_i c_ik · ℓ(y_ik, w_k·x_i) for each of K nodes; the loss and C are those of `settings`.

    `features` are N points, `targets` (N, K) is sparse with y in (0, 1]. `costs` (N, K) is stored at the same pairs as
    `targets` and multiplies the loss of positives (None: 1 each). `rows` says which points take part (None: all),
    `ignore` (N, K) which pairs count neither as positive nor as negative. What is random follows from `seed`. The last
    feature of the weights, number `features.width`, is the bias.
    """
    settings = settings or LinearParameters()
    settings.check()
    Y = checked_targets(targets)
    N, K = Y.shape
    rows = Groups.everything(N, K) if rows is None else rows
    _check_level(features, rows, N, K)
    wanted = None if ignore is None else checked_pairs(ignore).astype(np.float32).tocsc()
    problem = Problem(*rows, Y.tocsc(), None if costs is None else _entries(costs, Y), wanted)
    return solve_in_parts(features, problem, settings, seed)


def _check_level(features: Features, rows: Groups, N: int, K: int) -> None:
    if features.points != N:
        raise DataError(f"there are {N:,} rows of targets, but features of {features.points:,} points")
    row_ptr, points, child_ptr = rows
    if len(row_ptr) != len(child_ptr) or child_ptr[0] != 0 or child_ptr[-1] != K or (np.diff(child_ptr) < 0).any():
        raise DataError(f"`rows` must have one group per parent, whose children are the nodes 0 … {K - 1:,}")
    if row_ptr[0] != 0 or row_ptr[-1] != len(points) or (np.diff(row_ptr) < 0).any():
        raise DataError(f"`row_ptr` must rise from 0 to the number of rows, {len(points):,}")
    if len(points) and not (points.min() >= 0 and points.max() < N):
        raise DataError(f"`rows` must number points from 0 to {N - 1:,}", found=(int(points.min()), int(points.max())))


def _entries(costs: Any, Y: sp.csr_matrix) -> NDArray[np.float32]:
    """The values of `costs` (N, K) beside the entries of Y in column order."""
    values = sp.csr_matrix(costs, dtype=np.float32).sorted_indices()
    if (
        values.shape != Y.shape
        or not np.array_equal(values.indptr, Y.indptr)
        or not np.array_equal(values.indices, Y.indices)
    ):
        raise DataError("`costs` must be stored at the same pairs as `targets`", found=(values.shape, values.nnz))
    if not (np.isfinite(values.data).all() and (values.data >= 0).all()):
        raise DataError("`costs` must be finite numbers of at least 0")
    return np.asarray(values.tocsc().data, np.float32)


def dense_weights(weights: Weights, width: int) -> NDArray[np.float32]:
    """Weights of K nodes over `width` features and the bias, as a full matrix (K, width + 1)."""
    K = len(weights.ptr) - 1
    return np.asarray(csr(weights.ptr, weights.features, weights.values, (K, width + 1)).toarray(), np.float32)


def solve_now(number: int, work: Callable[[], Weights]) -> Weights:
    """Solve a part without looking for a checkpoint."""
    return work()


def solve_in_parts(
    features: Features,
    problem: Problem,
    settings: LinearParameters,
    seed: int,
    first_parent: int = 0,
    solve_part: SolvePart = solve_now,
) -> Weights:
    """The weights of all children of a problem, solved in parts of about PART, each through `solve_part`.

    `first_parent` is the number of the problem's first parent, from which its random numbers follow.
    """
    solved: list[Weights] = []
    for first, part in problem_parts(features, problem):
        work = functools.partial(solve, features, part, first_parent + first, settings, seed)
        solved.append(solve_part(len(solved), work))
    return joined(solved)


def problem_parts(features: Features, problem: Problem) -> Iterator[tuple[int, Problem]]:
    """Parts of about PART, each with the number of its first parent; a single parent is cut by its children."""
    lengths = np.diff(features.arrays[0]) + 1 + features.dense_columns
    along = np.append(0, np.cumsum(lengths[problem.rows], dtype=np.float64))
    work = np.diff(along[problem.row_ptr]) * np.diff(problem.child_ptr)
    parents = len(work)
    if parents == 1:
        children = int(problem.child_ptr[1])
        size = max(64, int(children * PART / max(work[0], 1)) // 64 * 64)
        for first in range(0, children, size):
            yield 0, part_of(problem, 0, 1, first, min(first + size, children))
        return
    number = np.cumsum(work) // PART
    starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), parents], strict=True):
        yield begin, part_of(problem, begin, end, int(problem.child_ptr[begin]), int(problem.child_ptr[end]))


def part_of(problem: Problem, first: int, last: int, first_child: int, last_child: int) -> Problem:
    """The parents first … last of a problem, or of a single parent the children first_child … last_child."""
    begin, end = problem.row_ptr[first], problem.row_ptr[last]
    entries = slice(problem.targets.indptr[first_child], problem.targets.indptr[last_child])
    child_ptr = np.clip(problem.child_ptr[first : last + 1], first_child, last_child) - first_child
    return replace(
        problem,
        row_ptr=problem.row_ptr[first : last + 1] - begin,
        rows=problem.rows[begin:end],
        child_ptr=child_ptr,
        targets=problem.targets[:, first_child:last_child],
        costs=None if problem.costs is None else problem.costs[entries],
        ignore=None if problem.ignore is None else problem.ignore[:, first_child:last_child],
    )


def solve(features: Features, problem: Problem, first_parent: int, settings: LinearParameters, seed: int) -> Weights:
    """The weights of all children of a part."""
    return solve_problem(
        features.sparse,
        problem,
        dense=features.dense,
        bias=BIAS,
        cost_positive=settings.C,
        cost_negative=settings.C if settings.C_negative is None else settings.C_negative,
        eps=settings.eps,
        max_passes=MAX_PASSES,
        threshold=settings.prune,
        weights_per_label=settings.weights_per_label,
        seed=seed,
        first_parent=first_parent,
        loss=settings.loss,
        solver=settings.solver,
    )


def joined(parts: list[Weights]) -> Weights:
    """The weights of parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0, *(len(part.values) for part in parts)])
    ptr = [part.ptr[1:] + offset for part, offset in zip(parts, offsets, strict=False)]
    return Weights(
        np.concatenate([[0], *ptr]).astype(np.int64),
        np.concatenate([np.empty(0, np.int32), *(part.features for part in parts)]),
        np.concatenate([np.empty(0, np.float32), *(part.values for part in parts)]),
    )
