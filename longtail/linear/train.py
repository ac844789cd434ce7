"""Training down a label tree, level by level (XR-Linear; paper 003, eq. 7 – 9)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.linear import BeamSearch, Level, Problem, Weights, pack_level, solve_level
from longtail.core.errors import ParameterError
from longtail.core.parameters import Parameters, param
from longtail.core.run import Run
from longtail.labels.tree import LabelTree
from longtail.linear.checkpoint import Checkpoints
from longtail.linear.ranker import BIAS, Ranker

MAX_PASSES = 100
PART = 8e9  # non-zeros × labels solved at a time: some ten seconds of work, after which it can be taken up again


@dataclass(frozen=True)
class LinearParameters(Parameters):
    """What training and prediction with a tree of linear classifiers can be told; the defaults are XR-Linear's."""

    kind = "linear"
    negatives: Literal["tfn", "tfn+man"] = param("tfn", "tfn: teacher-forced; +man: also what the level above confuses")
    loss: Literal["squared-hinge", "logistic"] = param("squared-hinge", "what a wrong margin costs")
    solver: Literal["dcd", "newton"] = param("dcd", "dual coordinate descent, or Newton's method (logistic: newton)")
    C: float = param(1.0, "cost of errors against the size of weights", above=0.0)  # PECOS, XR-Transformer: 1
    C_negative: float | None = param(None, "that of errors on negatives (none: C)", above=0.0)  # PECOS Cn: C
    costs: Literal["equal", "counts"] = param("equal", "counts: a node costs by its share of the point's labels")
    eps: float = param(0.1, "how far from optimal the solver may stop", above=0.0)  # LIBLINEAR, PECOS: 0.1
    prune: float = param(0.1, "weights smaller than this are dropped", at_least=0.0)  # PECOS: 0.1
    budget: int | None = param(None, "keep at most this many weights per label", at_least=1)
    weights: Literal["float32", "float16", "int8"] = param(
        "int8", "how weights are kept: int8 is smallest, float32 exact"
    )
    beam: int = param(10, "nodes kept at each level of the search", at_least=1)  # PECOS: 10
    post: Literal["l3-hinge", "sigmoid", "none"] = param("l3-hinge", "how margins become scores down the path")

    def check(self) -> None:
        """Refuse what does not go together."""
        if self.loss == "logistic" and self.solver == "dcd":
            raise ParameterError("loss=logistic needs solver=newton: coordinate descent is for the squared hinge")


@dataclass(frozen=True)
class Training:
    """What is learnt from: X (N, d), a dense block (N, e) beside it if there is one, targets Y (N, L) in (0, 1].

    Pairs of `ignore` (N, L) take no part.
    """

    X: sp.csr_matrix
    Y: sp.csr_matrix
    ignore: sp.csr_matrix | None = None
    dense: NDArray[np.float32] | None = None

    def rows(self) -> sp.csr_matrix:
        """The features as search takes them (N, d + e): a dense block is spelled out, the sparse one stays sparse."""
        return self.X if self.dense is None else sp.hstack([self.X, sp.csr_matrix(self.dense)], format="csr")

    @property
    def width(self) -> int:
        """d + e."""
        return int(self.X.shape[1]) + (0 if self.dense is None else self.dense.shape[1])


def train_ranker(data: Training, tree: LabelTree, settings: LinearParameters, run: Run, number: int = 0) -> Ranker:
    """The classifiers of every level of a tree, the `number`-th of an ensemble.

    Each level, and each large part of one, is kept in the run's folder when it is done, and found there by a run that
    resumes.
    """
    settings.check()
    tree.check(data.Y.shape[1])
    kept = Checkpoints.of(data, tree, settings, run, number)
    last = len(tree.levels) - 1
    sizes = [len(ends) - 1 for ends in tree.levels]
    with run.progress.bar("training", total=sum(sizes), unit="nodes") as bar:

        def solved(problem: Problem, first_parent: int) -> Weights:
            parts: list[Weights] = []
            for first, part in problem_parts(data, problem):
                work = functools.partial(solve, data, part, first_parent + first, settings, run)
                parts.append(kept.part(first_parent, len(parts), work))
                bar.advance(len(parts[-1].ptr) - 1)
            return joined(parts)

        problems = (level_problem(data, tree, t, settings) for t in range(last + 1))
        if settings.negatives == "tfn":  # levels know nothing of each other: as one, no core waits at the end
            levels = cut_by_level(solved(one_problem(list(problems)), 0), sizes)
            packed = [packed_level(tree, t, level, data, settings) for t, level in enumerate(levels)]
        else:  # in float32 at first, since negatives come from a search in what is there so far
            packed, weights, parents = [], [], 0
            for t, problem in enumerate(problems):
                problem = with_matched(problem, data, packed, settings)
                weights.append(solved(problem, parents))
                parents += len(problem.row_ptr) - 1
                packed.append(pack_level(tree.child_ptr(t), weights[-1], data.width + 1))
            if settings.weights != "float32":
                packed = [packed_level(tree, t, level, data, settings) for t, level in enumerate(weights)]
    return Ranker(tree, packed, data.width)


def packed_level(tree: LabelTree, t: int, weights: Weights, data: Training, settings: LinearParameters) -> Level:
    """The weights of level t as search reads them."""
    return pack_level(tree.child_ptr(t), weights, data.width + 1, settings.weights)


def level_problem(data: Training, tree: LabelTree, t: int, settings: LinearParameters) -> Problem:
    """The one-vs-all problems of level t with teacher-forced negatives.

    The points that take part under a parent (M of eq. 7) are those for which it is true.
    """
    targets = tree.targets(data.Y, t)
    row_ptr, rows = np.array([0, targets.shape[0]]), np.arange(targets.shape[0], dtype=np.int32)
    if t > 0:
        above = tree.counts(data.Y, t - 1).tocsc()  # whose entries are those of the targets
        row_ptr, rows = above.indptr.astype(np.int64), above.indices.astype(np.int32)
    ignore = None
    if data.ignore is not None and t == len(tree.levels) - 1:  # of a label: it says nothing about the clusters above
        ignore = tree.targets(data.ignore.astype(np.float32), t).tocsc()
    costs = None
    if settings.costs == "counts":  # R̂^(t), eq. 9: rows of R^(t) add up to 1
        R = tree.counts(data.Y, t)
        R.data /= np.repeat(np.maximum(np.asarray(R.sum(1)).ravel(), 1), np.diff(R.indptr))
        costs = R.tocsc().data
    return Problem(row_ptr, rows, tree.child_ptr(t), targets.tocsc(), costs, ignore)


def with_matched(problem: Problem, data: Training, levels: list[Level], settings: LinearParameters) -> Problem:
    """Matcher-aware negatives too: points for which the levels above put the parent in their beam."""
    if not levels:
        return problem
    N, K = data.X.shape[0], len(problem.row_ptr) - 1
    search = BeamSearch(data.width, levels)
    found, _ = search.search(data.rows(), bias=BIAS, beam=settings.beam, k=min(settings.beam, K), post=settings.post)
    real = found >= 0
    matched = sp.csr_matrix((np.ones(real.sum(), bool), found[real], np.append(0, np.cumsum(real.sum(1)))), (N, K))
    forced = sp.csc_matrix((np.ones(len(problem.rows), bool), problem.rows, problem.row_ptr), (N, K))
    both = (matched.tocsc() + forced).tocsc()
    both.sort_indices()
    return replace(problem, row_ptr=both.indptr.astype(np.int64), rows=both.indices.astype(np.int32))


def one_problem(problems: list[Problem]) -> Problem:
    """The problems of several levels as one, parents and children of one level after those of the other."""
    if len(problems) == 1:
        return problems[0]
    rows = np.cumsum([0, *(len(problem.rows) for problem in problems)])
    children = np.cumsum([0, *(problem.targets.shape[1] for problem in problems)])
    ignored = any(problem.ignore is not None for problem in problems)
    none = [sp.csc_matrix(problem.targets.shape, dtype=np.float32) for problem in problems] if ignored else []
    ignore = [p.ignore if p.ignore is not None else empty for p, empty in zip(problems, none, strict=False)]
    return Problem(
        row_ptr=np.concatenate([[0], *(p.row_ptr[1:] + at for p, at in zip(problems, rows, strict=False))]),
        rows=np.concatenate([p.rows for p in problems]),
        child_ptr=np.concatenate([[0], *(p.child_ptr[1:] + at for p, at in zip(problems, children, strict=False))]),
        targets=sp.hstack([p.targets for p in problems], format="csc"),
        costs=None if problems[0].costs is None else np.concatenate([p.costs for p in problems]),
        ignore=sp.hstack(ignore, format="csc") if ignored else None,
    )


def cut_by_level(weights: Weights, sizes: list[int]) -> list[Weights]:
    """The weights of all nodes, level by level."""
    ends = np.cumsum([0, *sizes])
    levels = []
    for first, last in itertools.pairwise(ends.tolist()):
        own = slice(weights.ptr[first], weights.ptr[last])
        ptr = weights.ptr[first : last + 1] - weights.ptr[first]
        levels.append(Weights(ptr, weights.features[own], weights.values[own]))
    return levels


def problem_parts(data: Training, problem: Problem) -> Iterator[tuple[int, Problem]]:
    """A level in parts of about PART, each with the number of its first parent; a single parent is cut by children."""
    lengths = np.diff(data.X.indptr) + 1 + (0 if data.dense is None else data.dense.shape[1])
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


def solve(data: Training, problem: Problem, first_parent: int, settings: LinearParameters, run: Run) -> Weights:
    """The weights of all children of a part."""
    return solve_level(
        data.X,
        problem,
        dense=data.dense,
        bias=BIAS,
        cost_positive=settings.C,
        cost_negative=settings.C if settings.C_negative is None else settings.C_negative,
        eps=settings.eps,
        max_passes=MAX_PASSES,
        threshold=settings.prune,
        budget=settings.budget,
        seed=run.seed,
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
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.values for part in parts]),
    )
