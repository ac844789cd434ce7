"""Training down a label tree, level by level (XR-Linear; paper 003, eq. 7 – 9)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from longtail._native.linear import BeamSearch, PackedLevel, Problem, Weights, pack_level
from longtail.core.run import Run
from longtail.labels.tree import LabelTree
from longtail.linear.checkpoint import Checkpoints
from longtail.linear.features import Features
from longtail.linear.parameters import ABOVE, LinearParameters
from longtail.linear.ranker import BIAS, Ranker
from longtail.linear.solve import Groups, as_matches, solve_in_parts


@dataclass(frozen=True)
class Training:
    """The features of N points and their targets Y (N, L) in (0, 1].

    The pairs of `ignore` (N, L) count neither as positive nor as negative.
    """

    features: Features
    Y: sp.csr_matrix
    ignore: sp.csr_matrix | None = None


def train_ranker(
    data: Training,
    tree: LabelTree,
    settings: LinearParameters,
    run: Run,
    number: int = 0,
    last: LinearParameters | None = None,
    solved_before: Sequence[Weights] = (),
) -> Ranker:
    """The classifiers of every level of a tree, the `number`-th of an ensemble.

    `last` are the settings of the last level, where they differ. `solved_before` are the weights of the first levels,
    where something else has trained them: features, then the bias, as `solve_level` gives them. Each level, and each
    large part of one, is kept in the run's folder when it is done, and found there by a run that resumes.
    """
    sizes = [len(ends) - 1 for ends in tree.levels]
    by_level = [*[settings] * (len(sizes) - 1), last or settings]
    for own in by_level:
        own.check()
    tree.check(data.Y.shape[1])
    done = len(solved_before)
    kept = Checkpoints.of(data, tree, by_level, run, number, solved_before)
    width = data.features.width
    with run.progress.bar("training", total=sum(sizes), unit="nodes") as bar:

        def solved(problem: Problem, own: LinearParameters, first_parent: int) -> Weights:
            def solve_part(part: int, work: Callable[[], Weights]) -> Weights:
                weights = kept.part(first_parent, part, work)
                bar.advance(len(weights.ptr) - 1)
                return weights

            return solve_in_parts(data.features, problem, own, run.seed, first_parent, solve_part)

        problems = itertools.islice(level_problems(data, tree, by_level), done, None)
        weights = list(solved_before)
        packed: list[PackedLevel] = []  # the levels so far, as float32
        parents = 0
        for own, group in itertools.groupby(zip(by_level[done:], problems, strict=True), key=lambda pair: pair[0]):
            if own.negatives == "tfn":  # these do not depend on each other: solved as one, no core waits at the end
                found = [problem for _, problem in group]
                own_sizes = sizes[len(weights) : len(weights) + len(found)]
                weights += cut_by_level(solved(one_problem(found), own, parents), own_sizes)
                parents += sum(len(problem.row_ptr) - 1 for problem in found)
                continue
            for _, problem in group:  # negatives come from a search in the levels so far
                above = range(len(packed), len(weights))
                packed += [pack_level(tree.child_ptr(t), weights[t], width + 1) for t in above]
                weights.append(solved(with_matched(problem, data, packed, own), own, parents))
                parents += len(problem.row_ptr) - 1
        forms = zip(weights, by_level, strict=True)
        levels = [pack_level(tree.child_ptr(t), w, width + 1, own.weights) for t, (w, own) in enumerate(forms)]
    return Ranker(tree, levels, width)


def level_problems(data: Training, tree: LabelTree, by_level: Sequence[LinearParameters]) -> Iterator[Problem]:
    """The problems of all levels, from the root down, by the settings of each."""
    above: sp.csc_matrix | None = None
    for t, settings in enumerate(by_level):
        problem = level_problem(data, tree, t, settings, above)
        above = problem.targets
        yield problem


def level_problem(
    data: Training, tree: LabelTree, t: int, settings: LinearParameters, above: sp.csc_matrix | None = None
) -> Problem:
    """The one-vs-all problems of level t with teacher-forced negatives.

    The points that take part under a parent (M of eq. 7) are those for which it is true: `above`, the targets of the
    level before.
    """
    targets = tree.targets(data.Y, t)
    groups = Groups.everything(*targets.shape)
    if t > 0:
        groups = Groups.matched(tree.targets(data.Y, t - 1) if above is None else above, tree.child_ptr(t))
    ignore = None
    if data.ignore is not None and t == len(tree.levels) - 1:  # an ignored label says nothing about its cluster
        ignore = tree.targets(data.ignore.astype(np.float32), t).tocsc()
    costs = None
    if settings.costs == "counts":
        costs = tree.shares(data.Y, t).tocsc().data
    return Problem(*groups, targets.tocsc(), costs, ignore)


def with_matched(problem: Problem, data: Training, levels: list[PackedLevel], settings: LinearParameters) -> Problem:
    """With matcher-aware negatives added: points for which the levels above put the parent in their beam."""
    if not levels:
        return problem
    features, K, post = data.features, len(problem.row_ptr) - 1, ABOVE.get(settings.post, settings.post)
    found, _ = BeamSearch(features.width, levels).search(
        features.arrays, features.dense, bias=BIAS, beam=settings.beam, k=min(settings.beam, K), post=post
    )
    forced = sp.csc_matrix((np.ones(len(problem.rows), bool), problem.rows, problem.row_ptr), (features.points, K))
    groups = Groups.matched(as_matches(found, K).tocsc() + forced, problem.child_ptr)
    return replace(problem, row_ptr=groups.row_ptr, rows=groups.rows)


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
