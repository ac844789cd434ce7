"""Fits the ways to fuse, compares them by cross-fitting, and takes the best."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from longtail.core.decision import Isotonic
from longtail.core.errors import ParameterError
from longtail.decide.isotonic import fit_isotonic
from longtail.ensemble.candidates import Floats
from longtail.ensemble.fuser import Fuser, Sum, comparable, weighted
from longtail.ensemble.heard import Heard
from longtail.ensemble.stack import Stack, features, tempered
from longtail.ensemble.trees import Trees, TreeSettings

log = logging.getLogger("longtail")
Fuse = Literal["auto", "stack", "weights", "mean", "rank"]
TAILS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
UNITS = 12  # that weights are shares of: each step of the search adds one
MAPPED, STACKED, HARD = 50_000, 200_000, 10  # pairs for maps and for trees; ranks of which trees get all
NOTHING = 0.05  # of the mean score: a member that adds no more than this is left out, if members may be
NOISE = 10.0  # a stack must be ahead of the sum by this over the square root of the number of points
FEW = 200  # points, below which a stack learns little and comparisons are noise


@dataclass(frozen=True)
class FuseSettings:
    """What a recipe says of fusing: the way, weights and tail if they are given, and how trees are grown."""

    fuse: Fuse
    weights: tuple[float, ...] | None
    tail: float | None
    trees: TreeSettings


@dataclass(frozen=True, eq=False)
class Fused:
    """A fuser fitted on all points; values (P,) for the same pairs by fuses fitted without the point; their scores."""

    what: str
    fuser: Fuser
    values: Floats
    scores: dict[str, float]


def fuse(heard: Heard, settings: FuseSettings) -> tuple[Fused, list[Fused]]:
    """The best of the ways to fuse that the settings allow, by cross-fitted scores, and all of them."""
    if heard.candidates.members == 1:
        tried = [single(heard)]
    elif settings.fuse in ("mean", "rank"):
        tried = [fixed(heard, settings)]
    else:
        tried = learnt(heard, settings)
    noise = NOISE / len(heard.data) ** 0.5  # a stack that is better by chance would only be slower
    return max(tried, key=lambda one: one.scores["mean"] - noise * (one.what == "stack")), tried


def thinned(heard: Heard, settings: FuseSettings, best: Fused) -> tuple[list[int], Fused]:
    """The members that are needed, and how they are fused: no member that adds nothing, one alone if it does as well.

    Only members without weight in the sum are tried to be left out: trying costs as much as fusing.
    """
    M = heard.candidates.members
    kept = list(range(M))
    weights = best.fuser.told().get("sum") or best.fuser.told().get("weights") or [1.0] * M
    for m in [m for m in range(M) if weights[m] == 0]:
        rest = [other for other in kept if other != m]
        if not rest:
            break
        tried, _ = fuse(heard.of_members(rest), settings)
        if tried.scores["mean"] >= best.scores["mean"] - NOTHING:
            kept, best = rest, tried
    alone = [single(heard.of_members([m])) for m in kept] if len(kept) > 1 else []
    means = [one.scores["mean"] for one in alone]
    if means and max(means) >= best.scores["mean"]:
        kept, best = [kept[int(np.argmax(means))]], alone[int(np.argmax(means))]
    return kept, best


def learnt(heard: Heard, settings: FuseSettings) -> list[Fused]:
    """The weighted sum, the stack, or both."""
    sums = Sums.of(heard, settings)
    few = len(heard.data) < FEW or not heard.truth.any()
    tried = [] if settings.fuse == "stack" else [weights_of(heard, sums)]
    stacks = settings.fuse == "stack" or (settings.fuse == "auto" and not few)
    return [*tried, stack(heard, settings, sums)] if stacks else tried


def single(heard: Heard) -> Fused:
    """The only member, with its own ranking."""
    values = heard.alone(0)
    return Fused("alone", Sum((1.0,)), values, heard.scores(values))


def fixed(heard: Heard, settings: FuseSettings) -> Fused:
    """The mean of comparable scores, or of ranks, with the weights given or equal ones."""
    M = heard.candidates.members
    weights = check_weights(settings.weights, M) or (1 / M,) * M
    fuser = Sum(weights, "rank") if settings.fuse == "rank" else Sum(weights, "score", maps_of(heard))
    values = fuser.values(heard.candidates, heard.seen)
    return Fused(settings.fuse, fuser, values, heard.scores(values))


@dataclass(frozen=True, eq=False)
class Sums:
    """The weighted sum that is best on all points, and for each fold the one that is best on the others."""

    whole: Sum
    apart: tuple[Sum, ...]

    @classmethod
    def of(cls, heard: Heard, settings: FuseSettings) -> Sums:
        """Fit them all; where all points are in one fold, its sum is that of all."""
        parts, whole = heard.parts(), fit_sum(heard, settings)
        if len(parts) == 1:
            return cls(whole, (whole,))
        return cls(whole, tuple(fit_sum(heard.take(~points), settings) for points in parts))


def weights_of(heard: Heard, sums: Sums) -> Fused:
    """A weighted sum of probabilities, with weights that are best on the points, or those given."""
    values = summed(heard, sums)
    return Fused("weights", sums.whole, values, heard.scores(values))


def summed(heard: Heard, sums: Sums) -> Floats:
    """The weighted sum of each pair (P,), by the weights that were fitted without the point."""
    values = np.zeros(len(heard.candidates))
    for points, apart in zip(heard.parts(), sums.apart, strict=True):
        values[heard.pairs_of(points)] = apart.values(heard.take(points).candidates, heard.seen)
    return values


def fit_sum(heard: Heard, settings: FuseSettings) -> Sum:
    """The weighted sum that is best on these points."""
    maps = maps_of(heard)
    given = check_weights(settings.weights, heard.candidates.members)
    return Sum(given or best_weights(heard, comparable(heard.candidates, "score", maps)), "score", maps)


def best_weights(heard: Heard, values: Floats) -> tuple[float, ...]:
    """Weights of the members, found by adding one unit at a time to the member that gains most (Caruana et al. 2004).

    What is best on the way is taken, so that one member may have all the weight.
    """
    M = values.shape[1]
    counts, best, best_counts = np.zeros(M), -np.inf, np.ones(M)
    for _ in range(UNITS):
        tried = [heard.mean(weighted(values, counts + np.eye(M)[m])) for m in range(M)]
        at = int(np.argmax(tried))
        counts[at] += 1
        if tried[at] > best + 1e-9:
            best, best_counts = tried[at], counts.copy()
    return tuple(round(float(weight), 4) for weight in best_counts / best_counts.sum())


def maps_of(heard: Heard) -> tuple[Isotonic, ...]:
    """For each member the probability that a label of some score is true, rising with the score."""
    return tuple(map_of(heard, m) for m in range(heard.candidates.members))


def map_of(heard: Heard, m: int) -> Isotonic:
    """The map of one member; scores themselves, if it names nothing for any point."""
    at = np.flatnonzero(heard.candidates.named[:, m] & heard.counted)
    at = at[:: max(1, len(at) // MAPPED)]
    if not len(at):
        return Isotonic(np.array([0.0]), np.array([0.0]))
    return fit_isotonic(heard.candidates.scores[at, m], heard.truth[at].astype(np.float64))


def stack(heard: Heard, settings: FuseSettings, sums: Sums) -> Fused:
    """Boosted trees over what all members say and over their weighted sum, and the tail that suits them."""
    X, parts = features(heard.candidates, heard.seen, sums.whole), heard.parts()
    trees = grown(X, heard, np.ones(len(X), bool), settings.trees)
    found = trees(X) if len(parts) == 1 else np.zeros(len(X))  # one group of points: nothing is left to compare on
    for points, first in zip(parts, sums.apart, strict=True):
        own = heard.pairs_of(points)
        if not own.all():
            X = features(heard.candidates, heard.seen, first)
            found[own] = grown(X, heard, ~own, settings.trees)(X[own])
    by_tail = {tail: tempered(found, heard.candidates, heard.seen, tail) for tail in tails_of(settings)}
    others = [summed(heard, sums), *(heard.alone(m) for m in range(heard.candidates.members))]
    best = best_tail(heard, by_tail, others)
    values = by_tail[best].copy()
    for points in parts if len(by_tail) > 1 and len(parts) > 1 else ():
        own, rest = heard.pairs_of(points), heard.pairs_of(~points)  # the tail, too, is chosen on other points
        apart = {tail: tempered_values[rest] for tail, tempered_values in by_tail.items()}
        values[own] = by_tail[best_tail(heard.take(~points), apart, [other[rest] for other in others])][own]
    return Fused("stack", Stack(sums.whole, trees, best), values, heard.scores(values))


def best_tail(heard: Heard, by_tail: dict[float, Floats], others: Sequence[Floats]) -> float:
    """The tail of the best mean score among those that cost no precision: no P@1 or P@5 below the others' best.

    Where every tail does, the smallest.
    """
    if len(by_tail) == 1:
        return next(iter(by_tail))
    floors = [heard.scores(values) for values in others]
    scores = {tail: heard.scores(values) for tail, values in by_tail.items()}
    able = [
        tail
        for tail, own in scores.items()
        if all(own[name] >= max(floor[name] for floor in floors) for name in ("P@1", "P@5"))
    ]
    return max(able, key=lambda tail: scores[tail]["mean"]) if able else min(by_tail)


def tails_of(settings: FuseSettings) -> tuple[float, ...]:
    """The powers of the propensity to compare: the one given, or the usual ones."""
    return TAILS if settings.tail is None else (settings.tail,)


def grown(X: Any, heard: Heard, among: Any, settings: TreeSettings) -> Trees:
    """Trees fitted on the pairs `among` that count.

    If there are many: all true ones, all that a member ranks high, and every nth of the others, with weight n.
    """
    at = np.flatnonzero(among & heard.counted)
    y = heard.truth[at]
    sure = (y > 0) | (heard.candidates.ranks[at].min(1) < HARD)
    room = max(STACKED - int(sure.sum()), STACKED // 4)
    every = max(1, -(-int((~sure).sum()) // room))
    kept = sure | (np.arange(len(at)) % every == 0)
    return Trees.fit(X[at[kept]], y[kept], settings, np.where(sure[kept], 1.0, every))


def check_weights(weights: tuple[float, ...] | None, members: int) -> tuple[float, ...] | None:
    """Refuse weights that do not fit the members."""
    if weights is not None and len(weights) != members:
        raise ParameterError(f"weights: {members} members need {members} weights; got {len(weights)}")
    return weights
