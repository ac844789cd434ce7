"""What a dual encoder makes of labels and points that it was not trained with, against training with them.

    python bench/new_labels.py [--corpus debian-related] [--only labels | memory] [--threads 2] [--steps N] [--seed 0]

All models are `unidec --preset small`, and share one validation part, which is cut off train before anything is hidden.

- labels: a tenth of the labels that have training examples is hidden: taken from the label space and from the targets;
  points that are left without labels are dropped. The labels are then added by their texts, as `longtail labels add`
  does. Recall@10 of the hidden labels, over the test points that have any: among all labels, and among hidden labels
  alone. P@1 and P@5 are those of all labels over the whole test part. `in the ten` is the share of the ten best labels
  of all test points that hidden ones take. Compare it with their share of the true pairs, which is printed above: where
  it is far larger, hidden labels crowd out the others, and their recall among all says little.
- memory: a fifth of the training points is held back, and then added to the memory, as `longtail memory add` does.
  λ, the share of labels beside the memory, stays as training chose it; is set to 0.8; or is chosen again, with τ and b,
  on the validation part. `gap` is how much of the way to the model of all points is gone, in the mean of the four; left
  out if that way is shorter than half a point, which is less than two trainings differ by.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

import longtail
from longtail.core.labels import Labels
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.dual.model import DualModel
from longtail.dual.recipe import best_lookup
from longtail.metrics import depth, evaluate

HIDDEN, HELD_BACK, K, LEAST_GAP = 0.1, 0.2, 10, 0.5
SHOWN = ("P@1", "P@5", "PSP@1", "PSP@5")


def trained(corpus: Corpus, args: argparse.Namespace, **settings: Any) -> DualModel:
    """The small preset of UniDEC on a corpus; it reads nothing of test."""
    base: Any = longtail.recipe("unidec")
    given = base.presets["small"] | settings | ({} if args.steps is None else {"steps": args.steps})
    model: Any = longtail.recipe("unidec", **given).fit(corpus, Run(threads=args.threads, seed=args.seed))
    return model


# --- labels ----------------------------------------------------------------------------------------------------------


def hidden_last(corpus: Corpus, seed: int) -> tuple[Corpus, int]:
    """The corpus with the labels to hide at the end of its label space, and the number of the first of these."""
    seen = np.flatnonzero(corpus.train.label_counts())
    hidden = np.sort(np.random.default_rng(seed).choice(seen, round(HIDDEN * len(seen)), replace=False))
    L, first = len(corpus.labels), len(corpus.labels) - len(hidden)
    order = np.concatenate([np.setdiff1d(np.arange(L), hidden), hidden])
    places = np.empty(L, np.int64)
    places[order] = np.arange(L)
    parts = {name: data.with_labels(places, L) for name, data in corpus.parts()}
    return replace(corpus, labels=taken(corpus.labels, order), **parts), first


def taken(labels: Labels, numbers: Any) -> Labels:
    """Some labels, in this order."""
    texts = None if labels.texts is None else labels.texts.take(numbers)
    return replace(labels, keys=labels.keys.take(numbers), texts=texts, counts=labels.counts[numbers])


def without_hidden(corpus: Corpus, first: int) -> Corpus:
    """The corpus as one that never had these labels."""
    places = np.where(np.arange(len(corpus.labels)) < first, np.arange(len(corpus.labels)), -1)

    def kept(data: Dataset | None) -> Dataset | None:
        if data is None:
            return None
        data = data.with_labels(places, first)
        return data.take(np.flatnonzero(np.diff(data.truth().indptr)))

    train = kept(corpus.train)
    assert train is not None
    labels = taken(corpus.labels, np.arange(first)).with_counts(train.label_counts(), len(train))
    return replace(corpus, train=train, dev=kept(corpus.dev), test=None, labels=labels)


def with_added(model: DualModel, labels: Labels, first: int) -> DualModel:
    """The model with the hidden labels added by their texts."""
    new = np.arange(first, len(labels))
    assert labels.texts is not None
    return model.edit_labels(model.labels.add(labels.keys.take(new), labels.texts.take(new)))


def scores_of_labels(model: DualModel, corpus: Corpus, first: int, share: float) -> list[float]:
    """Recall@10 of hidden labels among all and among themselves, their share of the ten best, P@1 and P@5 of all."""
    test, L = corpus.test, len(corpus.labels)
    assert test is not None
    only = test.with_labels(np.where(np.arange(L) < first, -1, np.arange(L)), L)
    having = np.flatnonzero(np.diff(only.truth().indptr))
    only = replace(only, ignore=test.ignore).take(having)
    alone = model.edit_labels(model.labels.remove(list(model.labels.keys.take(np.arange(first)))))
    found = []
    for system in (model, alone):
        ranking = system.ranked(system.reader.read(only.texts), depth((K,), only.ignore), share)
        found.append(evaluate(ranking, only.Y, ks=(K,), ignore=only.ignore)[f"R@{K}"])
    ranking = model.ranked(model.reader.read(test.texts), depth((K,), test.ignore), share)
    report = evaluate(ranking, test.Y, ignore=test.ignore)
    taken_up = 100 * float((ranking.indices[:, :K] >= first).mean())
    return [*found, taken_up, report["P@1"], report["P@5"]]


def labels(corpus: Corpus, args: argparse.Namespace) -> None:
    """Print the table of hidden labels."""
    whole, first = hidden_last(corpus, args.seed)
    models = {
        "added by text": with_added(trained(without_hidden(whole, first), args), whole.labels, first),
        "trained with them": trained(whole, args),
    }
    assert whole.test is not None
    true = 100 * float((whole.test.truth().indices >= first).mean())
    print(
        f"\n{corpus.name}: {len(whole.labels) - first:,} of {len(whole.labels):,} labels hidden, seed {args.seed};",
        end="",
    )
    print(f" they are {true:.1f} % of the true pairs of test\n")
    print(f"| hidden labels | share | R@{K} among all | R@{K} among hidden | in the ten, % | P@1 | P@5 |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name, model in models.items():
        for share, told in ((model.share, f"{model.share:g}, chosen"), (0.0, "0")):
            figures = scores_of_labels(model, whole, first, share)
            print(f"| {name} | {told} | " + " | ".join(f"{figure:.1f}" for figure in figures) + " |", flush=True)


# --- memory ----------------------------------------------------------------------------------------------------------


def memory(corpus: Corpus, args: argparse.Namespace) -> None:
    """Print the table of points that were held back."""
    N = len(corpus.train)
    held = np.sort(np.random.default_rng(args.seed).choice(N, round(HELD_BACK * N), replace=False))
    points = corpus.train.take(held)
    # the labels keep the counts of all of train: propensities are the same for all models
    before = trained(replace(corpus, train=corpus.train.take(np.setdiff1d(np.arange(N), held))), args, memory=True)
    after = before.remember(points.texts, points.truth())
    models = {
        "trained without them": before,
        "added to its memory": after,
        "added, λ = 0.8": after.changed_to(after.memory, after.lookup._replace(share=0.8)),
    }
    if corpus.dev is not None:
        open_: Any = longtail.recipe("unidec", memory=True)
        models["added, λ, τ, b chosen again"] = after.changed_to(
            after.memory, best_lookup(after, corpus.dev, open_.lookups())
        )
    models["trained on all"] = trained(corpus, args, memory=True)
    scores = {name: scores_of(model, corpus) for name, model in models.items()}
    means = {name: float(np.mean(own)) for name, own in scores.items()}
    print(f"\n{corpus.name}: {len(held):,} of {N:,} training points held back, seed {args.seed}\n")
    print(f"| points held back | λ, τ, b | {' | '.join(SHOWN)} | mean | gap |\n| --- | --- |" + " ---: |" * 6)
    low, high = means["trained without them"], means["trained on all"]
    for name, model in models.items():
        told = ", ".join(f"{value:g}" for value in model.lookup)
        gap = f"{(means[name] - low) / (high - low):.0%}" if high - low >= LEAST_GAP else ""
        figures = " | ".join(f"{score:.1f}" for score in [*scores[name], means[name]])
        print(f"| {name} | {told} | {figures} | {gap} |")


def scores_of(model: DualModel, corpus: Corpus) -> list[float]:
    """P@1, P@5, PSP@1 and PSP@5 on the test part."""
    test = corpus.test
    assert test is not None
    ranking = model.predict(test.texts, depth(ignore=test.ignore))
    report = evaluate(ranking, test.Y, corpus.labels, ignore=test.ignore)
    return [report[name] for name in SHOWN]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="debian-related", help="name or folder (default debian-related)")
    parser.add_argument("--only", choices=("labels", "memory"), help="one of the two")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--steps", type=int, help="of each training (default: as the preset says)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw, of the validation part and of training")
    args = parser.parse_args()
    corpus = longtail.read(args.corpus)
    if corpus.test is None:
        parser.error(f"{args.corpus} has no test part")
    split = corpus.with_validation(args.seed)
    if args.only in (None, "labels"):
        labels(split, args)
    if args.only in (None, "memory"):
        memory(split, args)


if __name__ == "__main__":
    main()
