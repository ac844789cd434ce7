"""How good are labels that are added by their texts, compared with the model without them and with retraining?

    python bench/edit_labels.py                      # debian-related, both kinds of labels, three draws of 2,000
    python bench/edit_labels.py --alternatives       # other ways to place and weight them, scored on dev
    python bench/edit_labels.py --time 10000         # only measure the seconds to add this many at once

Some labels are removed from a corpus (their columns and texts; the points stay), a model is trained on the rest, and
the labels are added again. `seen` labels have training examples, which only the retrained model can use; `unseen`
labels have none, so adding and retraining have the same information. All figures are percentages, means over draws.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

import longtail
from longtail._native.linear import unpack_level
from longtail.core.labels import Labels
from longtail.core.ranking import Ranking
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.data.sparse import csr
from longtail.linear import edit
from longtail.linear.model import LinearModel
from longtail.linear.place import Newcomers, places
from longtail.metrics import depth, evaluate
from longtail.train.fit import train_on
from longtail.train.recipe import TrainedRecipe

SHOWN = ("P@1", "P@5", "PSP@1", "PSP@5")
OWN = ("R@1", "R@5", "right@5", "own text@5")
DEEP = 60


@dataclass(frozen=True)
class Case:
    """A corpus with some labels at the end of its label space, from `first` on; the model is trained without them."""

    train: Dataset
    test: Dataset
    labels: Labels
    first: int

    def without(self) -> tuple[Dataset, Labels]:
        """The training set of the model that is edited."""
        kept = np.arange(self.first)
        return columns(self.train, kept), taken(self.labels, kept)


def cases(corpus: Any, kind: str, size: int, draws: int) -> Iterator[Case]:
    """Draw labels to remove: with training examples (seen), or without but true somewhere in test (unseen)."""
    L = len(corpus.labels)
    in_train = np.bincount(corpus.train.truth().indices, minlength=L) > 0
    in_test = np.bincount(corpus.test.truth().indices, minlength=L) > 0
    pool = np.flatnonzero(in_train if kind == "seen" else in_test & ~in_train)
    for seed in range(draws):
        chosen = np.sort(np.random.default_rng(seed).choice(pool, min(size, len(pool) // 2), replace=False))
        order = np.concatenate([np.setdiff1d(np.arange(L), chosen), chosen])
        parts = (columns(part, order) for part in (corpus.train, corpus.test))
        yield Case(*parts, taken(corpus.labels, order), L - len(chosen))


def columns(data: Dataset, order: np.ndarray) -> Dataset:
    return replace(
        data, Y=data.Y[:, order].tocsr(), ignore=None if data.ignore is None else data.ignore[:, order].tocsr()
    )


def taken(labels: Labels, order: np.ndarray) -> Labels:
    texts = None if labels.texts is None else labels.texts.take(order)
    return replace(labels, keys=labels.keys.take(order), texts=texts, counts=labels.counts[order])


def trained(data: Dataset, labels: Labels, args: argparse.Namespace, augment: str, seed: int) -> LinearModel:
    recipe = cast(TrainedRecipe, longtail.recipe(args.recipe, augment=augment))
    return cast(LinearModel, train_on(recipe, data, labels, Run(seed=seed)))


def added(model: LinearModel, case: Case) -> LinearModel:
    new = np.arange(case.first, len(case.labels))
    assert case.labels.texts is not None
    return model.edit_labels(model.labels.add(case.labels.keys.take(new), case.labels.texts.take(new)))


def scores(model: LinearModel, case: Case) -> dict[str, float]:
    """Return scores of the whole ranking, and of the added labels only."""
    ranking = model.predict(case.test.x, depth((DEEP,), case.test.ignore))
    ranking = Ranking(ranking.indices, ranking.scores, case.labels)
    report = evaluate(ranking, case.test.Y, case.labels, ignore=case.test.ignore)
    if case.test.ignore is not None:
        ranking = ranking.drop(case.test.ignore)
    truth = case.test.truth()
    truth.data[:] = 1
    wanted = truth[:, case.first :].nnz
    found = {}
    for k in (1, 5):
        suggested = ranking.cut(k).to_csr()[:, case.first :]
        suggested.data[:] = 1
        hits = suggested.multiply(truth[:, case.first :]).nnz
        found[k] = 100 * hits / wanted, 100 * hits / max(suggested.nnz, 1)
    new = np.arange(case.first, len(case.labels))
    assert case.labels.texts is not None
    own = (model.predict(case.labels.texts.take(new), 5).indices == new[:, None]).any(1).mean()
    figures = (found[1][0], found[5][0], found[5][1], 100 * own)
    return {name: report[name] for name in SHOWN} | dict(zip(OWN, figures, strict=True))


def alternatives() -> dict[str, Callable[[LinearModel, Case], LinearModel]]:
    """Other methods: where a label is placed, and which weights it gets there."""

    def text(ranker: Any, new: Newcomers, clusters: np.ndarray, settings: Any) -> sp.csr_matrix:
        """Weights of twice the text, minus 1: a text equal to it has margin 1."""
        bias = sp.csr_matrix(np.full((new.own.shape[0], 1), -1, np.float32))
        return sp.hstack([2 * new.own, bias], format="csr").astype(np.float32)

    def siblings(ranker: Any, new: Newcomers, clusters: np.ndarray, settings: Any) -> sp.csr_matrix:
        return edit.pruned(edit.text_weights(ranker.tree, new, clusters, settings, None), settings)

    def alike(ranker: Any, new: Newcomers, clusters: np.ndarray, settings: Any) -> sp.csr_matrix:
        """The mean of the classifiers of labels with similar texts."""
        w = unpack_level(ranker.levels[-1])
        by_node = csr(w.ptr, w.features, w.values, (len(ranker.tree), ranker.width + 1))
        by_label = by_node[np.argsort(ranker.tree.order)]
        solved = edit.text_weights(ranker.tree, new, clusters, settings, None)
        both = edit.with_alike(solved, by_label, new)
        has = np.diff(_alike(new).indptr) > 0
        alone = (both - sp.diags(np.where(has, 1 - edit.SHARE, 0).astype(np.float32)) @ solved) / edit.SHARE
        kept = sp.diags(has.astype(np.float32))
        rest = sp.diags((~has).astype(np.float32))
        return edit.pruned((kept @ alone + rest @ solved).tocsr().astype(np.float32), settings)

    def best(ranker: Any, new: Newcomers, settings: Any) -> np.ndarray:
        return places(ranker, new, settings.post)

    def alone(ranker: Any, new: Newcomers, settings: Any) -> np.ndarray:
        """Place by the label's own text only."""
        nobody = sp.csr_matrix(new.near.shape, dtype=np.float32)
        return places(ranker, replace(new, near=nobody), settings.post)

    def nearest(ranker: Any, new: Newcomers, settings: Any) -> np.ndarray:
        """Place beside the label with the nearest text."""
        first = np.asarray(new.near.argmax(1)).ravel()
        return ranker.tree.nodes(len(ranker.tree.levels) - 2)[first]

    def way(place: Callable[..., np.ndarray], weights: Callable[..., sp.csr_matrix]) -> Any:
        def do(model: LinearModel, case: Case) -> LinearModel:
            assert case.labels.texts is not None
            settings = edit.settings_of(model)
            new = Newcomers.of(case.labels.texts, case.first, None, model.blocks[0])
            rankers = []
            for ranker in model.rankers:
                clusters = place(ranker, new, settings)
                rows = weights(ranker, new, clusters, settings)
                rankers.append(edit.grown(ranker, unpack_level(ranker.levels[-1]), clusters, rows, settings))
            return LinearModel(model.recipe, case.labels, model.blocks, rankers)

        return do

    return {
        "place by the nearest label, against siblings": way(nearest, siblings),
        "place by its own text, against siblings": way(alone, siblings),
        "place by both, twice the text": way(best, text),
        "place by both, mean of similar labels": way(best, alike),
        "place by both, against siblings": way(best, siblings),
        "the same with a share of similar labels (what `add` does)": added,
    }


def _alike(new: Newcomers) -> sp.csr_matrix:
    near = new.near.copy()
    near.data[near.data <= edit.ALIKE_FROM] = 0
    near.eliminate_zeros()
    return near


def table(corpus: Any, args: argparse.Namespace) -> None:
    print(f"| augment | labels | model | {' | '.join((*SHOWN, *OWN))} |")
    print("| --- " * (len(SHOWN) + len(OWN) + 3) + "|")
    for augment in args.augment.split(","):
        for kind in args.kinds.split(","):
            rows: dict[str, list[dict[str, float]]] = defaultdict(list)
            for seed, case in enumerate(cases(corpus, kind, args.labels, args.draws)):
                without = trained(*case.without(), args, augment, seed)
                rows["without them"].append(scores(without, case))
                for name, way in (alternatives() if args.alternatives else {"added by text": added}).items():
                    rows[name].append(scores(way(without, case), case))
                rows["trained again"].append(scores(trained(case.train, case.labels, args, augment, seed), case))
            for name, found in rows.items():
                means = (f"{np.mean([row[figure] for row in found]):.1f}" for figure in (*SHOWN, *OWN))
                print(f"| {augment} | {kind} | {name} | {' | '.join(means)} |", flush=True)


def timing(corpus: Any, args: argparse.Namespace) -> None:
    case = next(cases(corpus, "seen", args.time, 1))
    for trees in (1, 3):
        recipe = cast(TrainedRecipe, longtail.recipe(args.recipe, trees=trees))
        model = cast(LinearModel, recipe.train(*case.without(), Run()))
        began = time.perf_counter()
        new = added(model, case)
        seconds = time.perf_counter() - began
        sizes = np.diff(new.rankers[0].tree.levels[-2])
        print(
            f"{len(case.labels) - case.first:,} labels into {trees} tree(s) of {case.first:,}: {seconds:.1f} s; "
            f"the largest cluster has {sizes.max()} labels"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", default="debian-related")
    parser.add_argument("--recipe", default="xr-linear")
    parser.add_argument("--labels", type=int, default=2000, help="how many labels to remove")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--augment", default="none,self")
    parser.add_argument("--kinds", default="seen,unseen")
    parser.add_argument("--alternatives", action="store_true", help="compare all methods, on the validation part")
    parser.add_argument("--time", type=int, metavar="N", help="only measure the seconds to add N labels")
    args = parser.parse_args()
    corpus = longtail.read(args.corpus)
    if args.alternatives:  # methods are chosen without looking at test
        split = corpus.with_validation(0)
        corpus = replace(split, test=split.dev, dev=None)
    if args.time:
        timing(corpus, args)
    else:
        table(corpus, args)


if __name__ == "__main__":
    main()
