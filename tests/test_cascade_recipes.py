"""Astec, DECAF, ECLARE, InceptionXML and InceptionXML-LF: losses and scores against their formulas written out."""

import copy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus
from scipy.special import expit

torch = pytest.importorskip("torch")

from cascade_literal import cross_entropy, doubles, label_weights, residual, stirred, top, unit  # noqa: E402

import longtail  # noqa: E402
from longtail.core.decision import CutOff, Decision  # noqa: E402
from longtail.core.errors import ParameterError, StoreError  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.data.corpus import Corpus  # noqa: E402
from longtail.store import Saved  # noqa: E402
from longtail.train.loop import Loop  # noqa: E402
from longtail.train.settings import LoopParameters  # noqa: E402

SETTINGS: dict[str, dict[str, Any]] = {
    "astec": {"clusters": 3, "neighbours": 5, "shortlist": 2, "dimension": 8},
    "decaf": {"clusters": 3, "beam": 1, "dimension": 8},
    "eclare": {"clusters": 3, "beam": 2, "dimension": 8},
    "inceptionxml": {"clusters": 3, "shortlist": 2, "dimension": 64, "length": 12},
    "inceptionxml-lf": {"clusters": 3, "shortlist": 2, "dimension": 64, "length": 12},
}
BAGS = ["astec", "decaf", "eclare"]
POINTS = np.array([0, 10, 3, 20, 7, 30, 41, 5])  # in `topic_corpus(ignore=True)` every tenth has an ignored pair


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return topic_corpus(60, ignore=True)


class Stage:
    """A network in one of its phases, in eval mode, and the inputs of its formulas, in doubles."""

    def __init__(self, name: str, learner: Any, phase: Any, prepared: Any):
        self.name, self.learner, self.phase = name, learner, phase
        self.Y = prepared.Y.toarray()
        self.ignore = np.zeros_like(self.Y) if prepared.ignore is None else prepared.ignore.toarray()
        self.E = doubles(learner.encoder.E.weight)
        texts, graph = learner.data.label_rows, learner.memo.get("walks")
        self.texts = None if texts is None else texts.toarray().astype(np.float64)
        self.graph = None if graph is None else graph.toarray().astype(np.float64)
        self.recipe: Any = longtail.recipe(name, **SETTINGS[name])
        self.nodes = learner.tree.nodes(0)
        self.K = int(self.nodes.max()) + 1

    def features(self, points: np.ndarray) -> dict[str, np.ndarray]:
        tokens = self.learner.tokens.value.take(torch.from_numpy(points))
        return self.features_of(tokens)

    def features_of(self, tokens: Any) -> dict[str, np.ndarray]:
        if self.name in BAGS:
            X = sp.csr_matrix((tokens.weights, tokens.words, tokens.ptr), shape=(len(tokens), tokens.vocabulary))
            x, encoder = X.toarray().astype(np.float64), self.learner.encoder
            blocks = encoder.residuals.items()
            return {name: residual(block, x @ doubles(encoder.table(name).weight)) for name, block in blocks}
        with torch.no_grad():  # its own formulas: test_inception.py
            return {name: doubles(x) for name, x in self.learner.encoder(tokens).items()}

    def cluster_texts(self) -> dict[str, np.ndarray]:
        """Of a cluster the texts of its labels, added up; of the graph what clusters have of it."""
        assert self.texts is not None
        C = np.zeros((self.K, len(self.nodes)))
        C[self.nodes, np.arange(len(self.nodes))] = 1
        Z = unit(C @ self.texts)
        if self.graph is None:
            return {"text": Z}
        G = C @ self.graph @ C.T
        G = np.stack([top(row, 10) for row in G])  # of each cluster its ten strongest neighbours
        G = G / np.sqrt(np.outer(G.sum(1), G.sum(0)))  # D_r^{-1/2} G D_c^{-1/2}
        return {"text": Z, "graph": G @ Z, "G": G}

    def label_texts(self) -> dict[str, np.ndarray]:
        if self.texts is None:
            return {}
        return {"text": self.texts} | ({} if self.graph is None else {"graph": self.graph @ self.texts})

    def logits(self, t: int, features: dict[str, np.ndarray]) -> np.ndarray:
        level = self.learner.level(t)
        texts = self.label_texts() if t == 1 else self.cluster_texts() if self.name in ("decaf", "eclare") else {}
        E = doubles(self.learner.encoder.table("label").weight) if t == 1 and self.name in BAGS else self.E
        W = label_weights(level.weights, E, texts)
        bias = 0 if level.bias is None else doubles(level.bias.weight)[:, 0]
        name = {"astec": ("near", "text")}.get(self.name, ("meta", "label"))[t]
        return features[name] @ W.T + bias

    def cluster_loss(self, points: np.ndarray) -> float:
        logits, each = self.logits(0, self.features(points)), []
        for b, i in enumerate(points):
            counted = [k for k in range(self.K) if not self.ignore[i, self.nodes == k].all()]
            each += [cross_entropy(logits[b, k], self.Y[i, self.nodes == k].max()) for k in counted]
        return float(np.mean(each))

    def label_loss(self, points: np.ndarray) -> float:
        logits, each = self.logits(1, self.features(points)), []
        for b, i in enumerate(points):
            counted = [label for label in self.candidates(i) if not self.ignore[i, label]]
            each += [cross_entropy(logits[b, label], self.Y[i, label]) for label in counted]
        return float(np.mean(each))

    def candidates(self, i: int) -> set[int]:
        true = set(np.flatnonzero(self.Y[i]).tolist())
        if self.name == "astec":
            return true | self.near(i)
        scores = self.logits(0, self.features(np.array([i])))[0]
        if self.name in ("decaf", "eclare"):
            best = np.argsort(-scores, kind="stable")[: self.recipe.beam]
            return true | set(np.flatnonzero(np.isin(self.nodes, best)).tolist())
        first = {int(self.nodes[label]) for label in true}
        best = sorted(range(self.K), key=lambda k: (k not in first, -scores[k]))[: self.beam]
        return set(np.flatnonzero(np.isin(self.nodes, best)).tolist())

    @property
    def beam(self) -> int:
        """How many clusters have their labels scored."""
        below = self.learner.level(1).candidates
        return int(getattr(below, "below", below).beam) if self.name in ("decaf", "eclare") else int(below.beam)

    def near(self, i: int) -> set[int]:
        """Astec's shortlist of a training point, which is not its own neighbour."""
        similar = self.similarities(unit(self.features(np.arange(len(self.Y)))["near"])[i], own=i)
        best = np.argsort(-similar, kind="stable")[: self.recipe.shortlist]
        return set(best[similar[best] > 0].tolist())

    def similarities(self, x: np.ndarray, own: int | None = None) -> np.ndarray:
        """0.925 · cosine with the nearest centroids + 0.075 · votes of the nearest points, the largest vote being 1."""
        points = unit(self.features(np.arange(len(self.Y)))["near"])
        recipe, cosines = self.recipe, points @ x
        if own is not None:
            cosines[own] = -np.inf
        votes = np.zeros(self.Y.shape[1])
        for j in np.argsort(-cosines)[: recipe.neighbours]:
            votes += cosines[j] * self.Y[j]
        votes /= votes.max()
        to_centroids = unit(self.Y.T @ points) @ x
        found = np.isin(np.arange(len(votes)), np.argsort(-to_centroids, kind="stable")[: recipe.shortlist])
        # what the search for centroids has found stays, last, however unlike it is
        return np.maximum(0.925 * found * to_centroids + 0.075 * votes, 1e-12 * found)


def stages(name: str, corpus: Corpus, **changed: Any) -> Iterator[Stage]:
    """One phase after the other, each starting from the result of the previous; what it trains is changed at random."""
    recipe: Any = longtail.recipe(name, **{**SETTINGS[name], "dropout": 0.0, **changed})
    prepared = recipe.read(corpus.train, corpus.labels, Run())
    torch.manual_seed(1)
    learner = recipe.network(prepared, 0)
    loop = Loop(learner, LoopParameters(batch=16), Run(device="cpu"))
    for number, phase in enumerate(learner.phases):
        loop.open(number)
        stirred(learner, by=0.1)
        for table in learner.tables().values():
            if table.trainable:
                table.weight.add_(torch.randn(table.weight.shape) * 0.3)
        loop.step(number, 0)  # a power iteration, among others
        learner.eval()
        yield Stage(name, learner, phase, prepared)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_loss_of_each_phase(name: str, corpus: Corpus) -> None:
    seen = []
    for stage in stages(name, corpus):
        loss, figures = stage.learner(torch.from_numpy(POINTS), stage.phase, 0.0)
        expected = 0.0
        if 0 in stage.phase.levels:
            expected += stage.cluster_loss(POINTS)
        if 1 in stage.phase.levels:
            expected += stage.label_loss(POINTS)
            assert 0 <= float(figures["shortlist recall"]) <= 1
        assert float(loss.detach()) == pytest.approx(expected, rel=1e-4), stage.phase.name
        seen.append((stage.phase.name, stage.phase.levels))
    assert (
        seen
        == {
            "astec": [("surrogate", (0,)), ("labels", (1,))],
            "decaf": [("surrogate", (0,)), ("clusters", (0,)), ("labels", (1,))],
            "eclare": [("surrogate", (0,)), ("clusters", (0,)), ("labels", (1,))],
            "inceptionxml": [("joint", (0, 1))],
            "inceptionxml-lf": [("texts", (0, 1)), ("joint", (0, 1))],
        }[name]
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_what_a_phase_trains(name: str, corpus: Corpus) -> None:
    """As in the papers: word vectors are trained in first phases, and in all phases of DECAF and InceptionXML."""
    moved = {}
    for stage in stages(name, corpus):
        before = {n: tensor.clone() for n, tensor in stage.learner.state_dict().items()}
        loop = Loop(stage.learner, LoopParameters(batch=16), Run(device="cpu"))
        number = stage.learner.phases.index(stage.phase)
        loop.structures[stage.phase.name] = {}  # it is built
        loop.open(number)
        loop.step(number, 1)
        after = stage.learner.state_dict()
        moved[stage.phase.name] = {n for n, tensor in after.items() if not torch.equal(tensor, before[n])}
    for phase, names in moved.items():
        words = "encoder.E.weight" in names
        assert words == (phase in ("surrogate", "texts", "joint") or (name, phase) == ("decaf", "clusters")), phase
        assert ("encoder.tables.label.weight" in names) == ((name, phase) == ("decaf", "labels"))
    if name in ("decaf", "eclare"):
        assert not any("free" in n for n in moved["surrogate"]) and any("free" in n for n in moved["clusters"])
        own = ("encoder.residuals.label.", "levels.1.", "encoder.tables.label.")
        assert all(n.startswith(own) for n in moved["labels"])
        own = ("encoder.residuals.meta.", "levels.0.", "encoder.E.")
        assert all(n.startswith(own) for n in moved["clusters"])
    if name == "astec":
        assert all(n.startswith(("encoder.residuals.text.", "levels.1.")) for n in moved["labels"])
    if name == "inceptionxml-lf":
        assert not any("free" in n for n in moved["texts"]) and any("free" in n for n in moved["joint"])


@pytest.mark.parametrize("name", SETTINGS)
def test_where_biases_begin(name: str, corpus: Corpus) -> None:
    recipe: Any = longtail.recipe(name, **SETTINGS[name], **({} if name in BAGS else {"bias": True}))
    prepared = recipe.read(corpus.train, corpus.labels, Run())
    learner = recipe.network(prepared, 0)
    for phase in learner.phases:
        phase.build(learner, phase.prepare(learner))
        if phase.levels[0] == 0:
            N, of_clusters = len(corpus.train), learner.tree.targets(prepared.Y, 0).toarray()
            shares = np.clip(of_clusters.sum(0) / N, 0.5 / N, 0.5)
            found = learner.level(0).bias.weight.numpy()[:, 0]
            np.testing.assert_allclose(found, np.log(shares / (1 - shares)), rtol=1e-5)
    bias = expit(learner.level(1).bias.weight.numpy())  # of candidates, the share that is true
    shortlist = {"astec": 2}.get(name, learner.level(1).candidates.width)
    np.testing.assert_allclose(bias, min(prepared.Y.sum() / len(corpus.train) / shortlist, 0.5), rtol=1e-4)


@pytest.mark.parametrize("name", ["decaf", "eclare", "inceptionxml-lf"])
def test_where_free_rows_begin(name: str, corpus: Corpus) -> None:
    recipe: Any = longtail.recipe(name, **SETTINGS[name])
    prepared = recipe.read(corpus.train, corpus.labels, Run())
    learner = recipe.network(prepared, 0)
    for phase in learner.phases:
        phase.build(learner, phase.prepare(learner))
    E, Z = doubles(learner.encoder.E.weight), learner.data.texts.toarray()
    weights = learner.level(1).weights
    found = doubles((weights.free if name == "decaf" else weights.parts["free"]).table.weight)
    Z = learner.memo["walks"].toarray() @ Z if name == "eclare" else Z  # E z; in ECLARE joined by the graph
    np.testing.assert_allclose(found, Z @ E, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SETTINGS)
def test_ignored_pairs_train_no_label(name: str, corpus: Corpus) -> None:
    more = {} if name in BAGS else {"shortlist": 4}  # so that some point has an ignored label among its candidates
    stage = list(stages(name, corpus, **more))[-1]
    found = [i for i in np.flatnonzero(stage.ignore.any(1)) if stage.ignore[i, list(stage.candidates(i))].any()]
    point = int(found[0])
    label = int(np.flatnonzero(stage.ignore[point])[0])
    stage.learner.zero_grad()
    for table in stage.learner.tables().values():
        table.gradient()
    stage.learner(torch.tensor([point]), stage.phase, 0.0)[0].backward()
    (table,) = [t for n, t in stage.learner.tables().items() if n.startswith("levels.1.") and n.endswith("table")]
    ids, gradient = table.gradient()
    whole = torch.zeros(len(table), table.width).index_add_(0, ids, gradient).abs().sum(1)
    assert whole[label] == 0
    counted = [other for other in stage.candidates(point) if other != label]
    assert counted and all(whole[other] > 0 for other in counted)


@pytest.mark.parametrize("name", SETTINGS)
def test_ignored_pairs_train_no_cluster_of_one_label(name: str, corpus: Corpus) -> None:
    """With as many clusters as labels, the cluster level is a label level too."""
    stage = next(stages(name, corpus, clusters=1000))
    assert stage.Y.shape[1] == stage.K
    point = int(np.flatnonzero(stage.ignore.any(1))[0])
    cluster = int(stage.nodes[np.flatnonzero(stage.ignore[point])[0]])
    levels = stage.learner.level(0)
    taken: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "logits", kept_logits(levels.logits, taken))
        stage.learner(torch.tensor([point]), stage.phase, 0.0)[0].backward()
    gradient = taken[0].grad[0]
    assert gradient[cluster] == 0
    assert (gradient != 0).sum() == stage.K - (stage.ignore[point] > 0).sum()


def kept_logits(plain: Any, taken: list[Any]) -> Any:
    def logits(*args: Any) -> Any:
        found = plain(*args)
        found.retain_grad()
        taken.append(found)
        return found

    return logits


def test_the_second_phase_of_inceptionxml_lf_goes_on_with_what_the_first_has_learnt(corpus: Corpus) -> None:
    """The clusters' classifiers restart; the encoders of label texts and of the graph do not (paper 000, A.4)."""
    found = []
    recipe: Any = longtail.recipe("inceptionxml-lf", **SETTINGS["inceptionxml-lf"])
    learner = recipe.network(recipe.read(corpus.train, corpus.labels, Run()), 0)
    for phase in learner.phases:
        phase.build(learner, phase.prepare(learner))
        parts = learner.level(1).weights.parts
        found.append([copy.deepcopy(parts[name].residual.state_dict()) for name in ("text", "graph")])
        if phase.name == "texts":
            stirred(learner)
            stirred_blocks = [copy.deepcopy(parts[name].residual.state_dict()) for name in ("text", "graph")]
    for before, after, moved in zip(*found, stirred_blocks, strict=True):
        assert all(torch.equal(tensor, after[name]) for name, tensor in moved.items())
        assert not torch.equal(before["change"], after["change"])


# --- prediction


def fitted(name: str, corpus: Corpus, **changed: Any) -> tuple[Any, Any, Any]:
    """The model, and the network it was built from."""
    recipe: Any = longtail.recipe(name, **{**SETTINGS[name], "min_steps": 12, "steps": 36, "batch": 32, **changed})
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        plain = type(recipe).network
        patch.setattr(
            type(recipe), "network", lambda self, p, seed: kept.append((plain(self, p, seed), p)) or kept[-1][0]
        )
        model = recipe.fit(corpus, Run(device="cpu", seed=3))
    return model, *kept[-1]


def walked(scores: np.ndarray, graph: np.ndarray, k: int) -> np.ndarray:
    return np.stack([row / 2 + top(row @ graph, k) / 2 for row in scores])


def scores_of(stage: Stage, tokens: Any, beta: float) -> np.ndarray:
    """Scores of all labels (N, L), 0 for labels that are not candidates."""
    features = stage.features_of(tokens)
    labels = expit(stage.logits(1, features))
    found = np.zeros_like(labels)
    if stage.name == "astec":
        for b, x in enumerate(unit(features["near"])):
            similar = stage.similarities(x)
            best = [j for j in np.argsort(-similar, kind="stable")[: stage.recipe.shortlist] if similar[j] > 0]
            own, near = labels[b, best], expit(similar[best])
            found[b, best] = beta * own / own.max() + (1 - beta) * near / near.max()
        return found
    clusters = expit(stage.logits(0, features))
    if stage.name == "eclare":
        kept = np.stack([top(row, stage.beam) for row in clusters])
        clusters = walked(kept, stage.cluster_texts()["G"], stage.beam)
    for b, row in enumerate(clusters):
        for k in np.argsort(-row, kind="stable")[: stage.beam]:
            below = np.flatnonzero(stage.nodes == k)
            found[b, below] = row[k] * labels[b, below]
    return walked(found, stage.graph, 200) if stage.name == "eclare" else found


@pytest.fixture(scope="module", params=list(SETTINGS))
def trained(request: pytest.FixtureRequest, corpus: Corpus) -> tuple[Any, Any, Any]:
    return fitted(request.param, corpus)


def test_scores_of_the_saved_model(trained: tuple[Any, Any, Any], corpus: Corpus, tmp_path: Path) -> None:
    model, learner, prepared = trained
    model.save(tmp_path / "model")
    loaded: Any = longtail.load(tmp_path / "model")
    stage = Stage(model.recipe.name, learner.eval(), learner.phases[-1], prepared)
    assert corpus.test is not None
    rows = loaded.reader.read(corpus.test.texts)
    if model.recipe.name in BAGS:
        from longtail.encoders.bag import Bags

        tokens: Any = Bags.of(rows)
    else:
        from longtail.encoders.sequence import Sequences

        tokens = Sequences(torch.from_numpy(np.array(rows)).long())
    beta = model.recipe.beta if model.recipe.name == "astec" else 0.0
    expected = scores_of(stage, tokens, beta)
    found = loaded.predict(corpus.test.texts, len(corpus.labels))
    for b, (labels, scores) in enumerate(zip(found.indices, found.scores, strict=True)):
        named = labels[labels >= 0]
        np.testing.assert_allclose(scores[labels >= 0], expected[b, named], rtol=1e-3, atol=1e-5)
        assert set(np.flatnonzero(expected[b] > 1e-6).tolist()) <= set(named.tolist())
    assert np.array_equal(found.scores, model.predict(corpus.test.texts, len(corpus.labels)).scores)


def test_how_much_of_the_truth_is_scored(trained: tuple[Any, Any, Any], corpus: Corpus) -> None:
    model, _, _ = trained
    assert corpus.test is not None
    ranking = model.predict(corpus.test.texts, len(corpus.labels))
    true = corpus.test.truth().toarray() > 0  # ignored pairs count neither way
    scored = np.zeros_like(true)
    for b, labels in enumerate(ranking.indices):
        scored[b, labels[labels >= 0]] = True
    found, seen = model.shortlist_recall(corpus.test), corpus.labels.counts > 0
    assert found["all"] == pytest.approx((true & scored).sum() / true.sum())
    assert found["seen"] == pytest.approx((true & scored)[:, seen].sum() / true[:, seen].sum())


def test_a_text_without_known_words_changes_no_other(trained: tuple[Any, Any, Any], corpus: Corpus) -> None:
    model, L = trained[0], len(corpus.labels)
    assert corpus.test is not None
    texts = list(corpus.test.texts)[:5]
    alone, beside = model.predict(texts, L), model.predict([*texts, "zzzz qqqq"], L)
    assert np.array_equal(beside.indices[:5], alone.indices) and np.array_equal(beside.scores[:5], alone.scores)
    shares = model.labels.counts / model.labels.counts.sum()
    assert np.array_equal(beside.indices[5], np.argsort(-shares, kind="stable"))
    np.testing.assert_allclose(beside.scores[5], np.sort(shares)[::-1], rtol=1e-6)


def test_prediction_looks_into_more_clusters_than_training(
    trained: tuple[Any, Any, Any], corpus: Corpus, tmp_path: Path
) -> None:
    model, L = trained[0], len(corpus.labels)
    assert corpus.test is not None
    if model.recipe.name == "astec":  # it searches labels, not clusters
        with pytest.raises(longtail.LongtailError, match="breadth of recipe 'astec' needs a training"):
            model.with_settings(breadth=2.0)
        return
    decided = copy.copy(model)
    decided.decision = Decision(cut_off=CutOff("f1", 0.1, 3))
    assert decided.with_settings(breadth=2.0).decision is decided.with_settings().decision is decided.decision
    own, wide = model.predict(corpus.test.texts, L), model.with_settings(breadth=1e6)
    wide.save(tmp_path / "wide")
    found = longtail.load(tmp_path / "wide").predict(corpus.test.texts, L)
    assert (found.indices >= 0).all()  # all clusters: all labels
    assert wide.shortlist_recall(corpus.test)["all"] == 1
    assert model.recipe.name == "eclare" or (own.indices < 0).any()  # a walk reaches beyond the clusters
    narrow = wide.with_settings(breadth=1.0).predict(corpus.test.texts, L)
    assert np.array_equal(narrow.scores, own.scores)
    if model.recipe.name != "eclare":  # a walk spreads the scores of what was reached
        for b, (labels, scores) in enumerate(zip(own.indices, own.scores, strict=True)):
            known = dict(zip(found.indices[b].tolist(), found.scores[b].tolist(), strict=True))
            kept = labels >= 0
            np.testing.assert_allclose([known[label] for label in labels[kept].tolist()], scores[kept], rtol=1e-5)


def test_beta_mixes_two_sides_found_once(corpus: Corpus) -> None:
    model, _, _ = fitted("astec", corpus, beta=0.3)
    assert corpus.test is not None
    (network,), rows = model.networks, model.reader.read(corpus.test.texts)
    assert network.join.beta == 0.3
    (sides,) = network.each(rows, network.join.sides)
    for beta in (0.9, 0.0):
        network.join.beta = beta
        assert np.array_equal(sides.mixed(beta).toarray(), network.scores(rows).toarray())


def test_a_small_corpus_is_trained_on_whole(corpus: Corpus) -> None:
    _, learner, _ = fitted("decaf", corpus)
    assert learner.points == len(corpus.train)  # half of it was held out at first
    dev = corpus.with_validation(3)
    _, learner, _ = fitted("decaf", dev)
    assert learner.points == len(dev.train) < len(corpus.train)  # a dev part of one's own stays out


def test_a_text_without_known_words_gets_frequent_labels(trained: tuple[Any, Any, Any], corpus: Corpus) -> None:
    model = trained[0]
    found = model.predict(["zyzzyva", ""], 2)
    frequent = np.argsort(-model.labels.counts, kind="stable")[:2]
    assert sorted(model.labels.counts[found.indices[0]]) == sorted(model.labels.counts[frequent])
    assert np.array_equal(found.indices[0], found.indices[1])


def test_networks_of_several_trees_are_averaged(corpus: Corpus) -> None:
    model = fitted("decaf", corpus, trees=2)[0]
    assert corpus.test is not None
    rows = model.reader.read(corpus.test.texts)
    one, other = (network.scores(rows).toarray() for network in model.networks)
    assert not np.allclose(one, other)
    found = model.predict(corpus.test.texts, 6).to_csr().toarray()
    np.testing.assert_allclose(found, (one + other) / 2, rtol=1e-5, atol=1e-6)


def saved(model: Any) -> Saved:
    arrays, meta = model.state()
    return Saved(model.recipe, model.labels, arrays, meta, model.about)


def test_networks_of_an_earlier_format_are_refused(trained: tuple[Any, Any, Any]) -> None:
    """Before there were any number of levels, `state` had no format."""
    found = saved(trained[0])
    assert type(trained[0]).from_state(found).networks
    old = replace(found, meta={name: value for name, value in found.meta.items() if name != "format"})
    with pytest.raises(StoreError, match=r"saved in format 1, and this version .* reads format 2; train it again"):
        type(trained[0]).from_state(old)


@pytest.mark.parametrize("part", ["encoder", "level", "join", "vocabulary"])
def test_parts_of_an_unknown_kind_are_refused(part: str, trained: tuple[Any, Any, Any]) -> None:
    """None of them is taken for another."""
    found = saved(trained[0])
    meta = copy.deepcopy(found.meta)
    if part == "vocabulary":
        meta["reader"]["vocabulary"] = "runes"
    else:
        network = meta["networks"][0]
        (network["levels"][0] if part == "level" else network[part])["kind"] = "runes"
    with pytest.raises(StoreError, match=rf"{part} of kind 'runes', which this version of longtail does not know"):
        type(trained[0]).from_state(replace(found, meta=meta))


WITHOUT_TORCH = """
import sys
for name in ("torch", "accelerate", "transformers", "safetensors"):
    sys.modules[name] = None
import numpy as np
import longtail
model = longtail.load(sys.argv[1])
np.save(sys.argv[2], model.predict(["boat wind flour", "pawn rose"], 5).scores)
"""


def test_bags_predict_without_torch(trained: tuple[Any, Any, Any], tmp_path: Path) -> None:
    model = trained[0]
    model.save(tmp_path / "model")
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "model"), str(tmp_path / "scores.npy")]
    done = subprocess.run(command, capture_output=True, text=True)
    if model.recipe.name not in BAGS:
        assert done.returncode and "MissingExtraError" in done.stderr and "deep" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    expected = model.predict(["boat wind flour", "pawn rose"], 5).scores
    assert np.array_equal(np.load(tmp_path / "scores.npy"), expected)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_papers_settings_run(name: str, corpus: Corpus) -> None:
    model = longtail.recipe(name, steps=50).fit(corpus, Run(device="cpu"))
    history = model.about["training"]
    assert all(np.isfinite(row["loss"]) for row in history)
    assert corpus.test is not None
    scores = model.predict(corpus.test.texts, 5).scores
    assert np.isfinite(scores).all() and (scores >= 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reader": "subwords", "min_texts": 2}, "leave min_texts and limit out"),
        ({"reader": "subwords", "limit": 5}, "leave min_texts and limit out"),
        ({"reader": "subwords", "vectors": "glove"}, "vectors=glove are of words"),
        ({"encoder": "folder"}, "has no use without reader=subwords or vectors=static"),
    ],
)
def test_settings_of_readers_that_do_not_go_together(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        longtail.recipe("decaf", **settings)


def tiny_encoder(path: Path) -> Path:
    """A random BERT of one layer whose word pieces are letters."""
    import tokenizers
    from transformers import BertConfig, BertModel

    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(numbers, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = (
        tokenizers.normalizers.Lowercase(),
        tokenizers.pre_tokenizers.BertPreTokenizer(),
    )
    made.add_special_tokens(pieces[:4])
    path.mkdir()
    made.save(str(path / "tokenizer.json"))
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 1}
    BertModel(BertConfig(vocab_size=len(pieces), initializer_range=1.0, **sizes)).save_pretrained(path)
    return path


def test_subwords_and_static_vectors_of_an_encoder(tmp_path: Path) -> None:
    """With a very small encoder of one's own: the model records where its vectors come from, and reads without it."""
    pytest.importorskip("transformers")
    folder, corpus = tiny_encoder(tmp_path / "encoder"), topic_corpus(60)
    settings = {**SETTINGS["decaf"], "reader": "subwords", "vectors": "static", "encoder": str(folder)}
    model = longtail.recipe("decaf", **settings, min_steps=20).fit(corpus, Run(device="cpu"))
    assert model.about["vectors"]["source"] == "encoder" and model.about["vectors"]["dimensions"] == 8
    model.save(tmp_path / "model")
    expected = model.predict(corpus.train.texts, 3)
    shutil.rmtree(folder)
    again = longtail.load(tmp_path / "model").predict(corpus.train.texts, 3)
    assert np.array_equal(again.scores, expected.scores)
