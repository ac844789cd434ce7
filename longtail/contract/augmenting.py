"""Label texts as training points (docs/augment.md); for recipes that cannot use them, these checks do not apply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longtail.contract.check import check
from longtail.contract.corpora import UNSEEN, feature_corpus, topic_corpus
from longtail.contract.require import refused, require, require_same, same
from longtail.contract.subject import Subject
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.run import Run
from longtail.metrics import evaluate
from longtail.store import load


@check(method=["self", "gandalf", "gandalf-shrunk", "glas", "walk", "labels-only", "auto"])
def label_texts_make_a_label_known_that_has_no_example(subject: Subject, method: str) -> None:
    """With label texts as training points, the text of a label without examples finds it; others are found as before.

    Networks take their time: what they learn is asked for of the two methods most used, the others are gone through; of
    a transformer that begins at random numbers none, because it learns little from one text.
    """
    subject.needs_augment()
    corpus, test, folder = subject.corpus, subject.test, subject.new_folder() / "model"
    learnt = not subject.network or (method in ("self", "gandalf") and not subject.fine_tunes)
    recipe = subject.fully(augment=method) if learnt else subject.briefly(augment=method)
    model = recipe.fit(corpus, Run(seed=1))
    if learnt and method != "auto":  # which may find that nothing is best
        found = model.predict(["telescope planet comet"], 1).keys()
        require(found == [[UNSEEN]], f"the text of {UNSEEN!r} must find it; got {found[0]}")
    precision, least = evaluate(model.predict(test.x, 5), test.Y)["P@1"], 60 if method == "labels-only" else 90
    require(not learnt or precision >= least, f"P@1 must be at least {least}; it is {precision:.1f}")
    labels = model.labels
    kept = np.array_equal(labels.counts, corpus.labels.counts) and labels.points == corpus.labels.points
    require(kept, "the labels of the model must keep the counts of the original training data")
    model.save(folder)
    again = load(folder)
    require(again.recipe == model.recipe, f"the recipe was {model.recipe}; loaded: {again.recipe}")
    require_same(again.predict(test.x, 5), model.predict(test.x, 5), "a model and the same one, saved and loaded")


@check()
def the_same_seed_augments_alike(subject: Subject) -> None:
    """Points that are drawn follow from the seed."""
    subject.needs_augment()
    recipe, corpus = subject.briefly(augment="budgeted", **{"augment.share": 0.5}), subject.corpus
    a, b, c = (recipe.fit(corpus, Run(seed=seed)).predict(corpus.train.x, 5) for seed in (1, 1, 2))
    require_same(a, b, "two trainings with one seed")
    require(not same(a, c), "trainings with different seeds must draw different points")


@check()
def an_augmented_training_ignores_what_is_ignored(subject: Subject) -> None:
    """Points made from label texts ignore ignored pairs too: such a pair in Y makes no difference to them."""
    subject.needs_augment()
    corpus = topic_corpus(ignore=True)
    blank = replace(corpus, train=replace(corpus.train, Y=corpus.train.truth()))
    a, b = (subject.briefly(augment="gandalf").fit(data).predict(corpus.train.x, 5) for data in (corpus, blank))
    require_same(a, b, "trainings with and without ignored pairs in Y")


@check()
def texts_that_are_needed_for_more_points_are_asked_for(subject: Subject) -> None:
    """Without label texts or texts, the methods that need them are refused, and `auto` does without."""
    subject.needs_augment()
    cases = (
        (topic_corpus(label_text=False), "label text", "label texts", "needs labels with texts"),
        (feature_corpus(), "text", "needs texts", "needs texts"),
    )
    for corpus, need, missing, always in cases:
        needed = need in subject.recipe.needs  # then it is asked for whatever `augment` is
        for method in ("self", "gandalf"):
            message = always if needed else f"augment={method}.*{missing}"
            expected = f"recipe '{subject.name}'.*{message}"
            with refused(f"augment={method} without each {need}", UnsupportedError, match=expected):
                subject.made(augment=method).fit(corpus)
        if not needed:
            subject.briefly(augment="auto").fit(corpus)
    for delta in (1, -0.1, 2):
        with refused(f"augment.delta={delta}", ParameterError, match="delta must be"):
            subject.made(augment="gandalf", **{"augment.delta": delta})


@check()
def labels_that_never_stand_together(subject: Subject) -> None:
    """The label graph is empty: every label text then has only its own label."""
    subject.needs_augment()
    texts = {"a": "boat wind", "b": "pawn knight", "c": "telescope comet"}
    words = [["boat", "wind"], ["pawn", "knight"]]
    points = [f"{w[i % 2]} {w[(i + 1) % 2]} word{i}" for i in range(20) for w in words]
    model = subject.fit(points, [["a"], ["b"]] * 20, label_texts=texts, augment="gandalf")
    # a word seen once, with another beside it, is not known by itself to an LSTM, or a transformer begun at random
    third = "telescope comet" if subject.attends or subject.fine_tunes else "comet"
    found = model.predict(["wind boat", "knight", third], 1).keys()
    require(found == [["a"], ["b"], ["c"]], f"each label must be found by words of its text; got {found}")
