"""What a recipe learns, from which data, and that it learns the same again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from longtail.contract.check import check
from longtail.contract.corpora import UNSEEN, feature_corpus, topic_corpus
from longtail.contract.require import refused, require, require_same, same
from longtail.contract.subject import BASELINE, Subject
from longtail.core.errors import DataError, ParameterError, UnsupportedError
from longtail.core.model import Model
from longtail.core.recipe import recipe as make_recipe
from longtail.core.recipe import recipes
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.metrics import evaluate
from longtail.recipes.astec import Astec


@check()
def it_says_what_it_is(subject: Subject) -> None:
    """The class has the name it is registered under, a title and a docstring."""
    recipe = recipes[subject.name]
    require(recipe.name == subject.name, f"it is registered as {subject.name!r}, but its name is {recipe.name!r}")
    require(recipe.title, "its title is empty")
    doc = recipe.__doc__ or ""
    written = doc and not doc.startswith(f"{recipe.__name__}(")  # a dataclass without one gets its signature
    require(written, "the class has no docstring; say what the system computes")


@check()
def it_learns(subject: Subject) -> None:
    """It is at least as good as the most frequent labels, and at least 90 % of its first labels are true."""
    corpus, test = subject.corpus, subject.test
    found = evaluate(subject.model.predict(test.x, 5), test.Y)["P@1"]
    floor = evaluate(make_recipe(BASELINE).fit(corpus).predict(test.x, 5), test.Y)["P@1"]
    require(found >= floor, f"P@1 is {found:.1f}, below the {floor:.1f} of the most frequent labels")
    require(subject.baseline or found >= 90, f"P@1 on the tiny corpus must be at least 90, but is {found:.1f}")


@check()
def same_seed_same_model(subject: Subject) -> None:
    """Two trainings with one seed predict the same, to the last bit."""
    texts = subject.corpus.train.x
    again = subject.made().fit(subject.corpus, Run(seed=1))
    require_same(again.predict(texts, 5), subject.model.predict(texts, 5), "two trainings with one seed")


@check()
def ignored_pairs_are_no_positives(subject: Subject) -> None:
    """What is learnt does not depend on whether Y contains an ignored pair."""
    with_pairs = topic_corpus(ignore=True)
    train = with_pairs.train
    without_pairs = replace(with_pairs, train=replace(train, Y=train.truth()))
    require(without_pairs.train.Y.nnz < train.Y.nnz, "the corpus of this check has no ignored pairs in Y")
    a = subject.briefly().fit(with_pairs).predict(train.x, 5)
    b = subject.briefly().fit(without_pairs).predict(train.x, 5)
    require_same(a, b, "trainings with and without ignored pairs in Y (train on `data.truth()`)")


@check()
def ignored_pairs_are_no_negatives(subject: Subject) -> None:
    """A text that is a label's own text (item to item) does not count against that label if the pair is ignored."""
    corpus = topic_corpus(points=200)
    texts = cast(Texts, corpus.labels.texts)
    L = len(corpus.labels)
    true = sp.csr_matrix((L, L), dtype=np.float32)
    if subject.retrieves:  # losses over a pool have nothing to say of a point without any true label
        true = sp.csr_matrix(np.roll(np.identity(L, np.float32), 1, axis=1))
    own = Dataset(texts, true, sp.identity(L, dtype=bool, format="csr"))
    labels = replace(corpus.labels, points=0)
    items = Corpus("items", corpus.train + own, labels)
    against = Corpus("items", corpus.train + replace(own, ignore=None), labels)
    by_classifiers: dict[str, Any] = {}
    if subject.retrieves:
        if not getattr(subject.recipe, "classifies", False):
            a, b = (subject.briefly().fit(data).predict(corpus.train.x, L) for data in (items, against))
            # what is learnt of a label from other texts than its own
            require(not same(a, b), "ignored pairs change nothing of what is learnt: they count as negatives")
            return
        by_classifiers = {"share": 1.0}
    rank = {}
    for case, data in (("ignored", items), ("negative", against)):
        scores = subject.made(**by_classifiers).fit(data).predict(texts, L).to_csr().toarray()
        # Astec's scores are relative to the best of a row: there a label stands against its row
        relative = issubclass(subject.recipe, Astec)
        rank[case] = np.diag(scores).sum() - (scores.mean() if relative else 0)
    require(
        rank["ignored"] > rank["negative"],
        f"ignored pairs must score more than negative ones; their sums are {rank['ignored']:.6g} and "
        f"{rank['negative']:.6g} (leave the pairs of `data.ignore` out of what counts against a label)",
    )


@check()
def the_test_part_is_never_read(subject: Subject) -> None:
    """A training is the same whatever the test part contains."""
    corpus, test = subject.corpus, subject.test
    nothing, other_texts = sp.csr_matrix(test.Y.shape, dtype=np.float32), Texts.of(["xyzzy"] * len(test))
    blank = replace(test, x=other_texts, Y=nothing)
    other = subject.made().fit(replace(corpus, test=blank), Run(seed=1))
    texts = corpus.train.x
    require_same(other.predict(texts, 5), subject.model.predict(texts, 5), "trainings with different test parts")


@check(points=[1, 2, 3])
def very_small_corpora(subject: Subject, points: int) -> None:
    """One, two or three texts are enough for a model that knows the first."""
    texts, labels = ["boat wind", "pawn knight", "boat tide"][:points], [["a"], ["c"], ["a"]][:points]
    described = {"a": "boat", "c": "pawn"} if "label text" in subject.recipe.needs else None
    found = subject.fit(texts, labels, label_texts=described).predict(["boat"], 1).keys()
    require(found == [["a"]], f"the first label of 'boat' must be 'a'; got {found}")


@check()
def labels_without_examples(subject: Subject) -> None:
    """A label without examples is never the first for a text of another topic; its own text finds it, if that is known.

    The first of 6 labels is looked at: a ranking of all 6 holds the label whatever was learnt. For networks the second
    half is in `label_texts_make_a_label_known_that_has_no_example`, which trains them with label texts; recipes that
    cannot be trained with label texts have no second half.
    """
    model, corpus = subject.model, subject.corpus
    misplaced(model, corpus)
    if subject.baseline:  # knows frequencies only
        last = model.predict(["telescope planet comet"], 6).keys()[0][-1]
        require(last == UNSEEN, f"the last label must be {UNSEEN!r}, which has no example; it is {last!r}")
    elif not subject.network and subject.why_not_augmented is None:
        taught = subject.made(augment="self").fit(corpus)
        found = taught.predict(["telescope planet comet", "comet"], 1).keys()
        require(found == [[UNSEEN]] * 2, f"with augment=self, words of {UNSEEN!r}'s text must find it; got {found}")
        misplaced(taught, corpus)


def misplaced(model: Model, corpus: Corpus) -> None:
    """Refuse a model that gives the label without examples to texts of other topics."""
    first = model.predict(corpus.train.x, 1).keys()
    wrong = sum(row == [UNSEEN] for row in first)
    require(not wrong, f"{UNSEEN!r}, which has no example, is the first label of {wrong} texts of other topics")


@check()
def it_remembers_where_it_comes_from(subject: Subject) -> None:
    """`model.about` holds the corpus's digest, the seed, and the scores on the validation part."""
    about = subject.model.about
    expected = {"corpus": subject.corpus.digest, "seed": 1, "validation points": 120}  # 10 % would be 24; at most half
    validation = about.get("validation", {})
    found = {"corpus": about.get("corpus", {}).get("digest"), "seed": about.get("seed")}
    found |= {"validation points": validation.get("points")}
    require(found == expected, f"model.about must hold {expected}; found {found} (a TrainedRecipe has this from `fit`)")
    score = validation["scores"]["P@1"]
    require(0 <= score <= 100, f"P@1 on the validation part must be from 0 to 100; it is {score}")


@check()
def features_are_taken_or_refused_by_name(subject: Subject) -> None:
    """Feature matrices are learnt from, or refused by the recipe's name; wrong and damaged ones are refused."""
    corpus = feature_corpus()
    test = cast(Dataset, corpus.test)
    try:
        model = subject.made().fit(corpus)
    except UnsupportedError as error:
        said = subject.name in str(error) and "text" in str(error)
        require(said, f"a refusal of features must name the recipe and ask for texts; the message was: {error}")
        return
    found, least = evaluate(model.predict(test.x, 5), test.Y)["P@1"], 10 if subject.baseline else 90
    require(found > least, f"P@1 on features must be more than {least}, but is {found:.1f}")
    with refused("a feature matrix of another width", ParameterError, match="features"):
        model.predict(sp.csr_matrix((1, 3), dtype=np.float32))
    with refused("a text, by a model of features", ParameterError, match="not on texts"):
        model.predict(["a text"])
    bad = sp.csr_matrix(np.full((1, corpus.train.features.shape[1]), np.nan, np.float32))
    with refused("a feature matrix with NaN", DataError, match="NaN"):
        model.predict(bad)
