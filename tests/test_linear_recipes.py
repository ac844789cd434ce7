"""The linear recipes: their settings, the trees they build, and what they do with bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus

import longtail
from longtail._native.linear import Problem, solve_problem
from longtail.cli.main import main
from longtail.core.errors import DataError, LongtailError, ParameterError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.data.from_lists import corpus_from_lists
from longtail.labels.hierarchy import read_hierarchy
from longtail.labels.represent import combined, largest, pifa, with_neighbours
from longtail.labels.tree import LabelTree
from longtail.linear.features import Features
from longtail.linear.parameters import LinearParameters
from longtail.linear.solve import problem_parts
from longtail.linear.train import Training, level_problem, train_ranker

RECIPES = ("xr-linear", "parabel", "bonsai", "dismec")


def features(N: int = 120, L: int = 30, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    Y = sp.csr_matrix((rng.random((N, L)) < 0.08).astype(np.float32))
    X = Y @ sp.csr_matrix(rng.random((L, 40)) * (rng.random((L, 40)) < 0.2))
    return Dataset(sp.csr_matrix(X, dtype=np.float32), Y)


def fit(data: Dataset, recipe: str = "xr-linear", **settings: object) -> longtail.Model:
    labels = Labels.of([f"l{i}" for i in range(data.Y.shape[1])]).with_counts(data.label_counts(), len(data))
    return longtail.recipe(recipe, **settings).train(data, labels, Run())  # type: ignore[attr-defined]


def test_pifa_is_the_sum_of_a_labels_points() -> None:
    data = features()
    Z = pifa(data.features, data.Y).toarray()
    sums = data.Y.toarray().T @ data.features.toarray()
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    assert np.allclose(Z, sums / np.where(lengths > 0, lengths, 1), atol=1e-6)


def test_label_vectors_of_points_and_texts_and_neighbours() -> None:
    Z = sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]], np.float32))
    texts = sp.csr_matrix(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 1]], np.float32))
    half = np.sqrt(0.5)
    assert np.allclose(combined(Z, texts).toarray(), [[half, 0, half], [0, 1, 0], [0, 0, 1]])
    Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0]], np.float32))  # 0 stands with 1 once, alone once; 2 never
    joined = with_neighbours(Z, Y).toarray()
    expected = np.array([[2, 1, 0], [1, 1, 0], [0, 0, 0]], float)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(joined, expected / np.where(lengths > 0, lengths, 1), atol=1e-6)


def test_the_largest_features_are_kept() -> None:
    rows = sp.csr_matrix(np.array([[3, 1, 2, 4], [0, 5, 0, 0]], np.float32))
    assert largest(rows, 2).toarray().tolist() == [[3, 0, 0, 4], [0, 5, 0, 0]]


@pytest.mark.parametrize("represent", ["pifa", "text", "pifa+text"])
def test_trees_from_texts_of_labels(represent: str) -> None:
    texts = [f"word{i} topic{i // 4} common" for i in range(16) for _ in range(3)]
    labels = [[f"label{i:02d}"] for i in range(16) for _ in range(3)]
    named = {f"label{i:02d}": f"topic{i // 4}" for i in range(16)}
    corpus = corpus_from_lists(texts, labels, label_texts=named)
    model = longtail.recipe("xr-linear", represent=represent, leaf_size=4, branching=2).fit(corpus)
    clusters = model.rankers[0].tree.nodes(1)  # type: ignore[attr-defined]
    assert all(len(set(clusters[4 * t : 4 * t + 4])) == 1 for t in range(4))


def test_texts_are_needed_where_trees_come_from_them() -> None:
    corpus = corpus_from_lists(["a boat", "a pawn"], [["sailing"], ["chess"]])
    with pytest.raises(UnsupportedError, match="the labels have none"):
        longtail.recipe("xr-linear", represent="text").fit(corpus)


def test_costs_by_counts_are_shares_of_a_points_labels() -> None:
    data = features()
    tree = LabelTree.balanced(pifa(data.features, data.Y), 2, 4, 0)
    problem = level_problem(Training(Features.of([data.features]), data.Y), tree, 1, LinearParameters(costs="counts"))
    assert problem.costs is not None
    costs = sp.csc_matrix((problem.costs, problem.targets.indices, problem.targets.indptr), problem.targets.shape)
    R = np.stack([data.Y.toarray()[:, tree.nodes(1) == node].sum(1) for node in range(costs.shape[1])], axis=1)
    totals = R.sum(1, keepdims=True)
    assert np.allclose(costs.toarray(), R / np.where(totals > 0, totals, 1), atol=1e-6)
    equal, by_counts = (
        fit(data, costs=costs, weights="float32").predict(data.features, 3) for costs in ("equal", "counts")
    )
    assert not np.array_equal(equal.scores, by_counts.scores)


@pytest.mark.parametrize("negatives", ["tfn", "tfn+man"])
def test_parts_of_a_training_make_the_same_model(negatives: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from longtail.linear import solve

    data = features(L=150)
    whole = fit(data, negatives=negatives, leaf_size=5, branching=3).state()[0]  # type: ignore[attr-defined]
    monkeypatch.setattr(solve, "PART", 500.0)
    parts = fit(data, negatives=negatives, leaf_size=5, branching=3).state()[0]  # type: ignore[attr-defined]
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)
    problem = level_problem(Training(Features.of([data.features]), data.Y), LabelTree.flat(150), 0, LinearParameters())
    assert [part.targets.shape[1] for _, part in problem_parts(Features.of([data.features]), problem)] == [
        64,
        64,
        22,
    ]


def test_a_dense_block_is_trained_and_searched() -> None:
    data = features()
    dense = data.features.toarray()[:, 20:].copy()
    settings = LinearParameters(eps=1e-4, prune=0.0, weights="float32")
    tree = LabelTree.balanced(pifa(data.features, data.Y), 4, 4, 0)
    whole = Training(Features.of([data.features]), data.Y)
    split = Training(Features.of([data.features[:, :20].tocsr(), dense]), data.Y)
    one, other = (train_ranker(d, tree, settings, Run()) for d in (whole, split))
    assert other.width == 40
    found = [r.search(d.features, 5, 10, "l3-hinge")[1] for r, d in ((one, whole), (other, split))]
    assert np.allclose(*found, atol=2e-3)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_kinds_of_weights_differ_in_size_and_hardly_in_scores(kind: str) -> None:
    data = features(400, 60)
    exact, kept = fit(data, weights="float32"), fit(data, weights=kind)
    scores = [model.predict(data.features, 5).scores for model in (exact, kept)]
    assert np.abs(scores[0] - scores[1]).max() < {"float32": 1e-6, "float16": 5e-3, "int8": 0.1}[kind]
    levels = [model.rankers[0].levels for model in (exact, kept)]  # type: ignore[attr-defined]
    assert {level.kind for level in levels[1]} == {kind}
    sizes = [sum(level.data.nbytes for level in of) for of in levels]
    assert kind == "float32" or sizes[1] < sizes[0]


def test_several_trees_are_averaged() -> None:
    data = features(300, 60)
    model = fit(data, trees=3, leaf_size=4, branching=2)
    alone = []
    for ranker in model.rankers:  # type: ignore[attr-defined]
        indices, scores = ranker.search(model.features(data.features), 60, 60, "l3-hinge")  # type: ignore[attr-defined]
        dense = np.zeros((300, 60))
        np.put_along_axis(dense, indices.astype(int), scores, 1)
        alone.append(dense)
    assert not np.array_equal(alone[0], alone[1])
    model.recipe = longtail.recipe("xr-linear", trees=3, beam=60, leaf_size=4, branching=2)
    ranking = model.predict(data.features, 60)
    mean = np.mean(alone, axis=0)
    real = ranking.indices >= 0
    at = np.take_along_axis(mean, np.maximum(ranking.indices, 0).astype(int), 1)
    assert np.allclose(at[real], ranking.scores[real], atol=1e-5)
    assert np.allclose(ranking.scores[:, 0], mean.max(1), atol=1e-5)


def test_trees_of_margins_cannot_be_averaged() -> None:
    with pytest.raises(ParameterError, match="post=none"):
        longtail.recipe("parabel", post="none")


def test_logistic_loss_needs_newton() -> None:
    with pytest.raises(ParameterError, match="needs solver=newton"):
        longtail.recipe("xr-linear", loss="logistic")
    model = longtail.recipe("xr-linear", loss="logistic", solver="newton", post="sigmoid").fit(topic_corpus())
    assert model.about["validation"]["scores"]["P@1"] > 80


@pytest.mark.parametrize("recipe", RECIPES)
def test_nan_features_are_refused(recipe: str) -> None:
    data = features()
    X = data.features.copy()
    X.data[3] = np.nan
    with pytest.raises(DataError, match=r"NaN|finite"):
        fit(Dataset(X, data.Y), recipe)
    with pytest.raises(DataError, match="NaN"):
        fit(data, recipe).predict(X, 3)


@pytest.mark.parametrize("recipe", RECIPES)
def test_empty_rows_and_labels_without_positives(recipe: str) -> None:
    data = features()
    X, Y = data.features.tolil(), data.Y.tolil()
    X[5] = 0  # a point without features
    Y[:, 7] = 0  # a label without examples
    Y[9] = 0  # a point without labels
    model = fit(Dataset(X.tocsr(), Y.tocsr()), recipe)
    ranking = model.predict(sp.vstack([sp.csr_matrix((1, 40), dtype=np.float32), data.features]).tocsr(), 30)
    assert (ranking.indices[0] >= 0).sum() >= 10  # the ranking of the biases
    first = model.predict(data.features, 1).indices[:, 0]
    assert 7 not in first and (first >= 0).all()


@pytest.mark.parametrize("recipe", RECIPES)
def test_nothing_to_learn_from(recipe: str) -> None:
    none = Dataset(sp.csr_matrix((5, 3), dtype=np.float32), sp.csr_matrix(np.eye(5, dtype=np.float32)))
    with pytest.raises(DataError, match="no training point has a feature"):
        fit(none, recipe)
    data = features()
    with pytest.raises(DataError, match="no training point has a label"):
        fit(Dataset(data.features, sp.csr_matrix(data.Y.shape, dtype=np.float32)), recipe)
    with pytest.raises(LongtailError):
        longtail.fit([], [], recipe)


def test_beams_larger_than_the_tree_are_the_whole_of_it() -> None:
    data = features()
    scores = [fit(data, beam=beam, leaf_size=3, branching=2).predict(data.features, 30).scores for beam in (30, 10_000)]
    assert np.array_equal(*scores)


def test_solving_no_rows_and_no_children() -> None:
    X = sp.csr_matrix((0, 4), dtype=np.float32)
    options = {"bias": 1.0, "cost_positive": 1.0, "cost_negative": 1.0, "eps": 0.1, "max_passes": 9}
    options |= {"threshold": 0.0, "weights_per_label": None, "seed": 0}
    for K in (0, 3):
        empty = Problem(np.array([0, 0]), np.empty(0, np.int32), np.array([0, K]), sp.csc_matrix((0, K)))
        for solver in ("dcd", "newton"):
            weights = solve_problem(X, empty, **options, solver=solver)  # type: ignore[arg-type]
            assert weights.ptr.tolist() == [0] * (K + 1) and not len(weights.values)


HIERARCHY = {"sailing": "sport", "chess": "sport", "music": "arts", "cooking": "home", "gardening": "home",
             "astronomy": "science", "sport": "leisure", "arts": "leisure"}  # fmt: skip


def write_hierarchy(path: Path, parents: dict[str, str]) -> Path:
    path.write_text("".join(f"{child}\t{parent}\n" for child, parent in parents.items()))
    return path


def test_a_hierarchy_of_the_users_own(tmp_path: Path) -> None:
    corpus = topic_corpus()
    assert set(corpus.labels.keys) == {"sailing", "chess", "music", "cooking", "gardening", "astronomy"}
    path = write_hierarchy(tmp_path / "tree.tsv", HIERARCHY)
    tree = read_hierarchy(path, corpus.labels)
    tree.check(6)
    keys = list(corpus.labels.keys)
    clusters = [{frozenset(np.array(keys)[tree.nodes(t) == n]) for n in set(tree.nodes(t))} for t in range(2)]
    assert frozenset({"sailing", "chess", "music"}) in clusters[0]
    assert frozenset({"sailing", "chess"}) in clusters[1] and frozenset({"music"}) in clusters[1]
    assert frozenset({"cooking", "gardening"}) in clusters[0]
    model = longtail.recipe("xr-linear", hierarchy=str(path)).fit(corpus)
    assert model.about["validation"]["scores"]["P@1"] > 80


def test_labels_may_have_children(tmp_path: Path) -> None:
    labels = Labels.of(["animal", "dog", "plant"])
    tree = read_hierarchy(
        write_hierarchy(tmp_path / "t", {"dog": "animal", "plant": "thing", "animal": "thing"}), labels
    )
    tree.check(3)
    level = [t for t in range(len(tree.levels)) if tree.nodes(t)[0] == tree.nodes(t)[1] != tree.nodes(t)[2]]
    assert level, "animal stands among its children"


def test_a_tree_goes_out_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = longtail.recipe("xr-linear", leaf_size=2, branching=2).fit(topic_corpus())
    model.save(tmp_path / "model")
    assert main(["tree", str(tmp_path / "model"), "--out", str(tmp_path / "tree.jsonl")]) == 0
    tree, back = model.rankers[0].tree, read_hierarchy(tmp_path / "tree.jsonl", model.labels)  # type: ignore[attr-defined]
    for t in range(len(tree.levels) - 1):
        groups = [{frozenset(np.flatnonzero(one.nodes(t) == n)) for n in set(one.nodes(t))} for one in (tree, back)]
        assert groups[0] == groups[1]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ({k: v for k, v in HIERARCHY.items() if k != "chess"}, "does not hold 1 of 6 labels.*chess"),
        (HIERARCHY | {"leisure": "sport"}, "goes in a circle"),
    ],
)
def test_a_hierarchy_that_does_not_fit_is_refused(lines: dict[str, str], message: str, tmp_path: Path) -> None:
    path = write_hierarchy(tmp_path / "tree.tsv", lines)
    with pytest.raises(DataError, match=message):
        longtail.recipe("xr-linear", hierarchy=str(path)).fit(topic_corpus())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chess\tsport\nchess\tarts\n", "two parents"),
        ("chess\n", "does not name a child and its parent"),
        ('{"label": "chess"}\n', "does not name a child and its parent"),
        ("{oops\n", "not valid JSON"),
    ],
)
def test_bad_lines_of_a_hierarchy(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tree"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read_hierarchy(path, Labels.of(["chess"]))
    assert "line" in str(error.value) or str(path) in str(error.value)


def test_a_hierarchy_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        longtail.recipe("xr-linear", hierarchy=str(tmp_path / "none")).fit(topic_corpus())


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_explains_itself(recipe: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    longtail.recipe(recipe).fit(topic_corpus()).save(tmp_path / "model")
    assert main(["explain", str(tmp_path / "model"), "boat wind harbour", "-k", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reasons"][0]["label"] == "sailing" if "reasons" in found else "sailing" in json.dumps(found)


def test_a_loaded_model_is_mapped_not_copied(tmp_path: Path) -> None:
    fit(features(400, 60)).save(tmp_path / "model")
    model = longtail.load(tmp_path / "model")
    for array in model.rankers[0].levels[0]:  # type: ignore[attr-defined]
        while len(array) and not isinstance(array, np.memmap):
            assert isinstance(array.base, np.ndarray), "a copy: every server process would hold its own"
            array = array.base
    assert (model.predict(features(400, 60).features, 3).indices >= 0).all()


def test_trees_of_the_largest_seed() -> None:
    data = features()
    labels = Labels.of([f"l{i}" for i in range(30)]).with_counts(data.label_counts(), len(data))
    model = longtail.recipe("xr-linear", trees=2, leaf_size=4).train(data, labels, Run(seed=2**63 - 1))  # type: ignore[attr-defined]
    orders = [ranker.tree.order for ranker in model.rankers]
    assert not np.array_equal(*orders)
