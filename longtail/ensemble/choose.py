"""Fits the ways to fuse, compares them by cross-fitting, and takes the best."""

from __future__ import annotations

import logging
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
TAILS = (0.0, 0.25, 0.5)
UNITS = 12  # that weights are shares of: each step of the search adds one
MAPPED, STACKED = 100_000, 300_000  # pairs that maps and trees are fitted on, at most; all true ones count
FEW = 50  # points, below which nothing is learnt about them


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
    M = heard.candidates.members
    if M == 1:
        tried = [single(heard)]
    elif settings.fuse == "auto":
        few = len(heard.data) < FEW or not heard.truth.any()
        tried = [weights_of(heard, settings)] + ([] if few else [stack(heard, settings)])
    elif settings.fuse == "stack":
        tried = [stack(heard, settings)]
    elif settings.fuse == "weights":
        tried = [weights_of(heard, settings)]
    else:
        tried = [fixed(heard, settings)]
    return max(tried, key=lambda one: one.scores["mean"]), tried


def single(heard: Heard) -> Fused:
    """The only member, with its own ranking."""
    values = heard.alone(0)
    return Fused("alone", Sum((1.0,)), values, heard.scores(values))


def fixed(heard: Heard, settings: FuseSettings) -> Fused:
    """The mean of comparable scores, or of ranks, with the weights given or equal ones."""
    M = heard.candidates.members
    weights = check_weights(settings.weights, M) or (1 / M,) * M
    fuser = Sum(weights, "rank") if settings.fuse == "rank" else Sum(weights, "score", maps_of(heard))
    values = fuser.values(heard.candidates, heard.labels)
    return Fused(settings.fuse, fuser, values, heard.scores(values))


def weights_of(heard: Heard, settings: FuseSettings) -> Fused:
    """A weighted sum of probabilities, with weights that are best on the points; or those given."""
    given = check_weights(settings.weights, heard.candidates.members)

    def fit(part: Heard) -> Sum:
        maps = maps_of(part)
        return Sum(given or best_weights(part, comparable(part.candidates, "score", maps)), "score", maps)

    values = np.zeros(len(heard.candidates))
    for points in heard.parts():
        if points.all():
            break
        own = heard.take(points)
        values[heard.pairs_of(points)] = fit(heard.take(~points)).values(own.candidates, heard.labels)
    else:
        return Fused("weights", fit(heard), values, heard.scores(values))
    fuser = fit(heard)
    values = fuser.values(heard.candidates, heard.labels)
    return Fused("weights", fuser, values, heard.scores(values))


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


def stack(heard: Heard, settings: FuseSettings) -> Fused:
    """Boosted trees over what all members say, and the tail that suits them."""
    X = features(heard.candidates, heard.labels)
    trees = grown(X, heard, np.ones(len(X), bool), settings.trees)
    parts = heard.parts()
    if len(parts) == 1:  # all points are of one group: nothing is left to compare on
        tail = settings.tail or 0.0
        values = tempered(trees(X), heard.candidates, heard.labels, tail)
        return Fused("stack", Stack(trees, tail), values, heard.scores(values))
    found = np.zeros(len(X))
    for points in parts:
        own = heard.pairs_of(points)
        found[own] = grown(X, heard, ~own, settings.trees)(X[own])
    by_tail = {tail: tempered(found, heard.candidates, heard.labels, tail) for tail in tails_of(settings)}
    values = np.zeros(len(X))
    for points in parts:  # the tail, too, is chosen without the points that it is scored on
        rest = heard.take(~points)
        own, others = heard.pairs_of(points), heard.pairs_of(~points)
        tail = max(by_tail, key=lambda tail: rest.mean(by_tail[tail][others]))
        values[own] = by_tail[tail][own]
    tail = max(by_tail, key=lambda tail: heard.mean(by_tail[tail]))
    return Fused("stack", Stack(trees, tail), values, heard.scores(values))


def tails_of(settings: FuseSettings) -> tuple[float, ...]:
    """The powers of the propensity to compare: the one given, or the usual ones."""
    return TAILS if settings.tail is None else (settings.tail,)


def grown(X: Any, heard: Heard, among: Any, settings: TreeSettings) -> Trees:
    """Trees fitted on the pairs `among` that count; of false pairs every nth, with weight n, if there are many."""
    at = np.flatnonzero(among & heard.counted)
    y = heard.truth[at]
    every = -(-len(at) // STACKED)
    kept = (y > 0) | (np.arange(len(at)) % every == 0)
    weights = np.where(y[kept] > 0, 1.0, every)
    return Trees.fit(X[at[kept]], y[kept], settings, weights)


def check_weights(weights: tuple[float, ...] | None, members: int) -> tuple[float, ...] | None:
    """Refuse weights that do not fit the members."""
    if weights is not None and len(weights) != members:
        raise ParameterError(f"weights: {members} members need {members} weights; got {len(weights)}")
    return weights
