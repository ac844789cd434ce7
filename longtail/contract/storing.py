"""Saving and loading, and models whose labels change."""

from __future__ import annotations

import numpy as np

from longtail.contract.check import check
from longtail.contract.corpora import TOPICS
from longtail.contract.require import refused, require, require_same
from longtail.contract.subject import Subject
from longtail.core.errors import UnsupportedError
from longtail.core.model import Model
from longtail.store import load


@check()
def it_reloads_to_identical_predictions(subject: Subject) -> None:
    """A saved model has the same class, recipe, labels and predictions; it can be saved over itself."""
    model, folder, texts = subject.model, subject.new_folder() / "model", subject.corpus.train.x
    model.save(folder)
    again = load(folder)
    require(type(again) is type(model), f"a saved {type(model).__name__} was loaded as {type(again).__name__}")
    require(again.recipe == model.recipe, f"the recipe was {model.recipe}; loaded: {again.recipe}")
    require(again.about == model.about, "`about` must hold what JSON can hold, and be passed on by `from_state`")
    require(again.labels.digest() == model.labels.digest(), "the loaded labels differ")
    counts = np.array_equal(again.labels.counts, subject.corpus.labels.counts)
    require(counts, "the loaded labels must have the counts of the corpus")
    require_same(again.predict(texts, 5), model.predict(texts, 5), "a model and the same one, saved and loaded")
    again.save(folder, overwrite=True)  # over itself, mapped from the very files
    require_same(load(folder).predict(texts, 5), model.predict(texts, 5), "a model and the same one, saved over itself")


@check()
def removed_labels_are_never_suggested(subject: Subject) -> None:
    """A label that is removed from `model.labels` is in no ranking (`Labels.best`, or a mask of your own)."""
    model, gone = subject.model, next(iter(TOPICS))
    labels = model.labels
    try:
        model.labels = labels.remove([gone])
        rows = model.predict(["recipe oven butter flour", "nothing known here"], 6).keys()
        require(all(gone not in row for row in rows), f"the removed label {gone!r} is suggested: {rows}")
    finally:
        model.labels = labels


@check()
def labels_are_edited_or_refused_by_name(subject: Subject) -> None:
    """`edit_labels` removes, renames, restores and adds labels in a copy; or it is refused by the recipe's name."""
    model, texts = subject.model, subject.corpus.train.x
    labels = model.labels
    gone, other = list(TOPICS)[:2]
    try:
        edited = model.edit_labels(labels.remove([gone]).rename({other: "renamed"}))
    except UnsupportedError as error:
        require(model.recipe.name in str(error), f"a refusal must name the recipe; the message was: {error}")
        return
    require(model.labels is labels, "`edit_labels` must leave the labels of the model alone, and return a copy")
    before = model.predict(texts, 4).keys()  # of 6 labels
    expected = [[{other: "renamed"}.get(key, key) for key in row if key != gone][:3] for row in before]
    seen = any(gone in row for row in before) and any("renamed" in row for row in expected)
    require(seen, f"{gone!r} and {other!r} are never among the first four labels of the training texts")
    require(edited.predict(texts, 3).keys() == expected, "edited labels: the others must be ranked as before")
    all_labels = edited.predict(texts, 6).keys()
    require(all(gone not in row for row in all_labels), f"edited labels: the removed label {gone!r} is suggested")
    back = edited.edit_labels(edited.labels.restore([gone]).rename({"renamed": other}))
    require_same(back.predict(texts, 5), model.predict(texts, 5), "a model, and the same one edited and edited back")
    check_added(subject, model.edit_labels(labels.add(["poetry"], ["sonnet verse harbour"])))


def check_added(subject: Subject, new: Model) -> None:
    """A label that was added by its text is found by it, and hardly by other texts."""
    texts = subject.corpus.train.x
    at = new.predict(["sonnet verse harbour"], 7).keys()[0].index("poetry")
    if subject.baseline:
        require(at == 6, f"a label without examples must be the last of 7; it is at rank {at + 1}")
    else:  # the first; where a transformer that began at random numbers chooses clusters, another may come before it
        most = int(subject.fine_tunes)
        require(at <= most, f"the text of an added label must find it at rank {most + 1}; it is at {at + 1}")
    first = new.predict(texts, 1).keys()
    others = sum("poetry" in row for row in first)
    # one word of it is in some texts; what is found by its text alone may be found there too
    allowed = 0.2 * len(texts) if subject.retrieves else 0
    require(others <= allowed, f"an added label must not be the first of other texts; it is, of {others}")


@check()
def what_it_cannot_do_it_refuses_by_name(subject: Subject) -> None:
    """`explain` and `edit_labels` are implemented, or refused by the recipe's name."""
    model = subject.model
    if type(model).explain is Model.explain:
        with refused("`explain`, which is not implemented,", UnsupportedError, match=model.recipe.name):
            model.explain("boat")
    else:
        (reason,) = model.explain("boat wind", 1).reasons
        terms = {term.term for term in reason.own.terms}
        right = reason.label == "sailing" and {"boat", "wind"} <= terms
        require(right, f"'boat wind' must be explained as 'sailing' by both words; got {reason.label!r} by {terms}")
    if type(model).edit_labels is Model.edit_labels:
        with refused("`edit_labels`, which is not implemented,", UnsupportedError, match=model.recipe.name):
            model.edit_labels(model.labels)
