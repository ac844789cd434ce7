"""Ways to fuse recipes, compared on the validation part of a corpus by cross-fitting.

    python bench/fusing.py debian-related --members xr-linear,neighbours --set xr-linear.augment=self
    python bench/fusing.py FOLDER --members xr-linear,neighbours,unidec:small --others

Members are trained once, without the validation part. Shown are the scores of each alone, of their mean by
probability and by rank, of the best weights and of stacked trees, and intervals of stack − weights by a paired
bootstrap. `--others` adds a logistic regression and boosted trees of scikit-learn over the same features.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import longtail
import longtail.recipes
from longtail.core.progress import Progress
from longtail.core.run import Run
from longtail.ensemble.choose import FuseSettings, Sums, fixed, stack, weights_of
from longtail.ensemble.course import train_members
from longtail.ensemble.heard import Heard
from longtail.ensemble.model import Part, candidates_of
from longtail.ensemble.stack import features
from longtail.metrics import compare

SHOWN = ("P@1", "P@5", "PSP@1", "PSP@5", "mean")


def main() -> None:
    """Train the members, fuse what they say, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a folder, a file, or the name of a bundled corpus")
    parser.add_argument("--members", default="xr-linear,neighbours")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings of the ensemble")
    parser.add_argument("--others", action="store_true", help="also logistic regression and trees of scikit-learn")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    settings = dict(setting.partition("=")[::2] for setting in args.set)
    recipe: Any = longtail.recipe("ensemble", members=args.members, **settings)
    corpus = longtail.read(args.data, test=False)
    split = corpus.with_validation(args.seed)
    assert split.dev is not None
    run = Run(seed=args.seed, progress=Progress(quiet=False))
    trained = train_members(recipe, recipe.trained_members(), corpus, split, run)
    parts = [Part(one.member.name, one.model) for one in trained]
    said = candidates_of(parts, split.dev.x, split.labels, recipe.depth)
    heard = Heard.of(said, split.dev, split.labels, args.seed, split.train)
    print(f"{corpus.name}: {len(split.dev):,} points, {len(said) / len(split.dev):.0f} candidates a point")
    for one in trained:
        show(one.member.name, one.scores)
    chosen = recipe.fuse_settings()
    for how in ("mean", "rank"):
        show(how, fixed(heard, FuseSettings(how, None, None, chosen.trees)).scores)
    sums = Sums.of(heard, chosen)
    summed, stacked = weights_of(heard, sums), stack(heard, chosen, sums)
    show(f"weights {sums.whole.weights}", summed.scores)
    if args.others:
        for name, fit in others().items():
            show(name, heard.scores(cross_fitted(heard, sums, fit)))
    show(f"stack, tail {stacked.fuser.told()['tail']}", stacked.scores)
    a, b = heard.ranking(summed.values), heard.ranking(stacked.values)
    found = compare(a, b, split.dev.Y, ignore=split.dev.ignore, metrics=list(SHOWN[:-1]))
    for row in found.rows:
        print(f"stack − weights, {row.metric}: {row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}]")


def show(what: str, scores: dict[str, float]) -> None:
    """One line of the table."""
    print(f"{what:40s}", *(f"{name} {scores[name]:6.2f}" for name in SHOWN), sep="  ", flush=True)


def others() -> dict[str, Callable[[], Any]]:
    """Models of scikit-learn that give probabilities."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer, StandardScaler

    def logistic() -> Any:
        splines = SplineTransformer(n_knots=5, degree=2, knots="quantile", extrapolation="constant")
        return make_pipeline(splines, StandardScaler(), LogisticRegression(max_iter=200))

    return {
        "logistic regression over splines": logistic,
        "trees of scikit-learn": lambda: HistGradientBoostingClassifier(
            max_iter=100, max_depth=5, early_stopping=False
        ),
    }


def cross_fitted(heard: Heard, sums: Sums, fit: Callable[[], Any]) -> Any:
    """p of each pair by models that have not seen the point."""
    values = np.zeros(len(heard.candidates))
    for points, first in zip(heard.parts(), sums.apart, strict=True):
        X = features(heard.candidates, heard.seen, first)
        own = heard.pairs_of(points)
        rest = ~own & heard.counted
        values[own] = fit().fit(X[rest], heard.truth[rest] > 0).predict_proba(X[own])[:, 1]
    return values


if __name__ == "__main__":
    main()
