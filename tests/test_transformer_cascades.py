"""XR-Transformer, X-Transformer, CascadeXML and LightXML: each part against a literal reference."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus
from encoders import LAYERS, WIDTH, make_encoder, tiny_encoder
from training import fit

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import longtail  # noqa: E402
from longtail.cascade.coarse import coarse_points  # noqa: E402
from longtail.core.errors import ParameterError, StoreError  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.core.texts import Texts  # noqa: E402
from longtail.encoders.sequence import Sequences  # noqa: E402
from longtail.encoders.taps import Tap, Tapped  # noqa: E402
from longtail.encoders.taps_served import TappedFeatures  # noqa: E402
from longtail.encoders.transformer import TransformerEncoder  # noqa: E402
from longtail.encoders.windows import Windows  # noqa: E402
from longtail.labels.represent import pifa_of_blocks  # noqa: E402
from longtail.labels.tree import LabelTree  # noqa: E402
from longtail.linear.features import Features  # noqa: E402
from longtail.linear.parameters import LinearParameters  # noqa: E402
from longtail.linear.solve import as_matches, dense_weights, solve_level  # noqa: E402
from longtail.linear.train import Training, train_ranker  # noqa: E402
from longtail.scoring.losses import SquaredHinge  # noqa: E402
from longtail.scoring.points import Points  # noqa: E402

SEEDS = range(5)


def random_targets(rng: np.random.Generator, N: int, L: int) -> sp.csr_matrix:
    Y = sp.random(N, L, 0.3, format="csr", dtype=np.float32, random_state=rng)
    Y.data[:] = 1
    return Y


def random_tree(rng: np.random.Generator, L: int, sizes: list[int]) -> LabelTree:
    return LabelTree.in_clusters(rng.normal(size=(L, 4)).astype(np.float32), sizes, 0)


# --- trees of clusters


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_cut_off_at_a_level_has_its_nodes_as_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree, Y = random_tree(rng, 13, [2, 4]), random_targets(rng, 9, 13)
    for t in range(3):
        cut = tree.down_to(t)
        cut.check(Y.shape[1] if t == 2 else len(tree.levels[t]) - 1)
        coarse = Y if t == 2 else tree.targets(Y, t)
        for s in range(t + 1):
            assert (cut.targets(coarse, s) != tree.targets(Y, s)).nnz == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cluster_is_ignored_where_all_its_labels_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree, ignored = random_tree(rng, 7, [4]), random_targets(rng, 30, 7)
    expected = np.zeros((30, 4))
    for i in range(30):
        for c in range(4):
            members = tree.order[tree.levels[0][c] : tree.levels[0][c + 1]]
            expected[i, c] = all(ignored[i, label] for label in members)
    assert 0 < expected.sum() < expected.size
    assert np.array_equal(tree.all_of(ignored, 0).toarray(), expected)


@pytest.mark.parametrize("normalised", [False, True])
def test_relevance_counts_labels_below_a_node(normalised: bool) -> None:
    rng = np.random.default_rng(1)
    tree, Y = random_tree(rng, 11, [3]), random_targets(rng, 20, 11)
    R = np.zeros((20, 3))
    for i, label in zip(*Y.nonzero(), strict=True):
        R[i, tree.nodes(0)[label]] += 1
    if normalised:
        R /= np.maximum(R.sum(1, keepdims=True), 1)
    assert np.allclose((tree.shares if normalised else tree.counts)(Y, 0).toarray(), R)


def test_points_over_clusters_keep_their_texts() -> None:
    rng = np.random.default_rng(0)
    tree, Y = random_tree(rng, 10, [3]), random_targets(rng, 5, 10)
    points: Any = Points(None, None, sp.csr_matrix((5, 2)), Y, random_targets(rng, 5, 10))  # type: ignore[arg-type]
    coarse = coarse_points(points, tree, 0)
    assert coarse.rows is points.rows and coarse.Y.shape == (5, 3)
    assert coarse.ignore is not None and coarse.ignore.shape == (5, 3)
    assert coarse_points(points, tree, 1) is points


# --- candidates


def test_lists_as_a_matrix() -> None:
    lists = np.array([[2, -1], [0, 1], [-1, -1]], np.int32)
    assert as_matches(lists, 3).toarray().tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 0]]


# --- losses and costs


def test_squared_hinge_against_the_formula() -> None:
    rng = np.random.default_rng(0)
    x, y, c = rng.normal(size=(3, 4)), rng.random((3, 4)), rng.random((3, 4))
    total = 0.0
    for i in range(3):
        for j in range(4):
            plus, minus = max(0.0, 1 - x[i, j]) ** 2, max(0.0, 1 + x[i, j]) ** 2
            total += c[i, j] * (y[i, j] * plus + 0.5 * (1 - y[i, j]) * minus)
    found = SquaredHinge(negative=0.5)(*(torch.tensor(a) for a in (x, y, c)))
    assert float(found) == pytest.approx(total / max(c.sum(), 1))


@cache
def trained(name: str, **settings: Any) -> Any:
    """The network of a recipe, untrained, over the topics, with what its phases build."""
    recipe: Any = longtail.recipe(name, encoder=tiny_encoder(), length=16, batch=8, warmup=0, **settings)
    corpus = topic_corpus(60, ignore=True)
    read = recipe.read(corpus.train, corpus.labels, Run(threads=1))
    torch.manual_seed(0)
    return recipe, read, recipe.network(read, 0)


def xr(**settings: Any) -> Any:
    return trained("xr-transformer", branching=2, leaf_size=2, **settings)


@pytest.mark.parametrize("costs", ["counts", "shares"])
def test_a_true_node_costs_by_the_labels_below_it(costs: str) -> None:
    _, read, net = xr(costs=costs, bootstrap=False, negative=0.7)
    tree, Y = net.memo["labels"]
    assert (Y != read.Y).nnz == 0
    net.eval()
    phase = net.phases[0]
    phase.build(net, phase.prepare(net))
    points = torch.arange(20)
    loss, _ = net(points, phase, 0.0)
    logits = net.level(0).logits(net.encoder(net.tokens.value.take(points))).detach().numpy()
    R = np.zeros((20, logits.shape[1]))
    for i in range(20):
        for label in read.Y[i].indices:
            R[i, tree.nodes(0)[label]] += 1
    all_ignored = tree.all_of(read.ignore, 0).toarray()[:20] > 0
    total = weight = 0.0
    for i in range(20):
        for node in range(R.shape[1]):
            if all_ignored[i, node]:
                continue
            true = R[i, node] > 0
            cost = (R[i, node] / (R[i].sum() if costs == "shares" else 1)) if true else 1.0
            x = logits[i, node]
            total += cost * (max(0, 1 - x) ** 2 if true else 0.7 * max(0, 1 + x) ** 2)
            weight += cost
    assert loss.item() == pytest.approx(total / weight, rel=1e-5)


def test_each_level_begins_where_the_solver_ends() -> None:
    """Bootstrapping: W of eq. 11 on the embeddings as they are, each node against the points that list its parent."""
    _, read, net = xr(costs="equal")
    assert [phase.levels for phase in net.phases] == [(0,), (1,), (2,)]
    for t, phase in enumerate(net.phases):
        structure = phase.prepare(net)
        phase.build(net, structure)
        E = net.features("unit")
        assert np.allclose(np.linalg.norm(E, axis=1), 1, atol=1e-5)
        level, tree = net.level(t), net.known_tree()
        W = level.weights.all_rows(level.K).numpy()
        bias = level.bias.weight.numpy()[:, 0]
        Y = net.targets_of(t).toarray()
        ignored = None if read.ignore is None else read.ignore.toarray() > 0
        for node in range(level.K):
            place = int(tree.nodes(t)[node]) if t == net.depth - 1 else node
            if t == 0:
                rows = np.arange(60)
            else:
                parent = int(np.searchsorted(tree.child_ptr(t), place, side="right")) - 1
                true = net.targets_of(t - 1).toarray()[:, parent] > 0
                rows = np.flatnonzero((structure["matched"] == parent).any(1) | true)
            if t == net.depth - 1 and ignored is not None:
                rows = rows[~ignored[rows, node]]
            elif ignored is not None:
                members = tree.order[tree.levels[t][node] : tree.levels[t][node + 1]]
                rows = rows[~ignored[np.ix_(rows, members)].all(1)]
            settings = LinearParameters(prune=0.0, eps=1e-4)
            alone = solve_level(Features.of([E[rows]]), sp.csr_matrix(Y[rows][:, [node]]), settings=settings)
            expected = dense_weights(alone, E.shape[1])[0]
            assert np.allclose(np.append(W[node], bias[node]), expected, atol=0.12), (t, node)
        own = [float(np.sign(y - 0.5) @ (E @ W.T + bias)[:, k]) for k, y in enumerate(Y.T)]
        assert np.mean(own) > 0  # it tells true points from others before the first step


@pytest.mark.parametrize("t", [1, 2])
def test_candidates_are_children_of_listed_parents_and_true_nodes(t: int) -> None:
    _, _, net = xr(costs="equal")
    structure = net.phases[t].prepare(net)
    net.phases[t].build(net, structure)
    points, tree = torch.arange(30), net.known_tree()
    listed = net.level(t).candidates(points, net.targets(t).of(points), None)
    called = tree.order if t == 2 else np.arange(net.size(t))
    for i in range(30):
        expected = set(net.targets_of(t)[i].indices.tolist())
        true = net.targets_of(t - 1)[i].indices
        for parent in {*structure["matched"][i].tolist(), *true.tolist()}:
            if parent >= 0:
                expected |= {int(called[child]) for child in range(*tree.child_ptr(t)[[parent, parent + 1]])}
        assert {int(n) for n in listed.nodes[i][listed.counted[i] > 0]} == expected


def test_fine_tuning_stops_at_most_clusters() -> None:
    recipe, read, net = xr(most_clusters=4)
    assert net.depth == 2 and net.data.labels == 4 and read.labels == 6
    assert recipe.last_level(100_000) == 1  # levels of 2, 4, 8, … nodes
    everything, *_ = xr()
    assert everything.last_level(6) == 2
    corpus = topic_corpus(60)
    model = fit("xr-transformer", corpus, Run(threads=1), most_clusters=4)
    assert len(model.labels) == 6 and model.predict(["pawn knight"], 1).keys() == [["chess"]]


# --- Φ_cat


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_are_pooled_by_their_tokens(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.zeros((6, 10), np.int32)
    for i, length in enumerate(rng.integers(0, 11, 6)):
        rows[i, :length] = rng.integers(2, 9, length)
    windows = Windows.of(rows, 4)
    vectors = rng.normal(size=(len(windows.rows), 3)).astype(np.float32)
    at = 0
    for i in range(6):
        length = int((rows[i] > 0).sum())
        parts = [rows[i, start : min(start + 4, length)] for start in range(0, max(length, 1), 4)]
        shares = [max(len(part), 1) for part in parts]
        for k, part in enumerate(parts):
            assert (
                windows.rows[at + k][: len(part)].tolist() == part.tolist()
                and not windows.rows[at + k][len(part) :].any()
            )
        expected = sum(n * vectors[at + k] for k, n in enumerate(shares)) / sum(shares)
        assert np.allclose(windows.pooled(vectors)[i], expected, atol=1e-5)
        at += len(parts)
    assert at == len(windows.rows)


def test_pifa_over_blocks_is_that_of_one_matrix() -> None:
    rng = np.random.default_rng(0)
    X = sp.random(20, 6, 0.4, format="csr", dtype=np.float32, random_state=rng)
    E, Y = rng.normal(size=(20, 3)).astype(np.float32), random_targets(rng, 20, 5)
    Z = Y.T.toarray() @ np.hstack([X.toarray(), E])
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
    assert np.allclose(pifa_of_blocks(X, E, Y).toarray(), Z, atol=1e-5)


@pytest.mark.parametrize("pooling", ["truncate", "chunks"])
def test_prediction_reads_the_features_that_rankers_were_trained_on(pooling: str) -> None:
    settings = {"length": 6, "windows": 2} if pooling == "chunks" else {"length": 6}
    model = fit("xr-transformer", topic_corpus(60), Run(threads=1), pooling=pooling, epochs=1, **settings)
    text = "pawn knight castle guitar chord melody soil seed"
    block = model.blocks[1]
    found = model.features(Texts.of([text, "zzz"]))
    assert np.linalg.norm(found.dense[0]) == pytest.approx(1, abs=1e-5) and not found.dense[1].any()
    tokens = block.reader.read(Texts.of([text]))
    pieces = (tokens > 0).sum()
    assert pieces == (8 if pooling == "chunks" else 4)  # of a window's 6 places two are special tokens
    starts = range(0, pieces, 4)
    mean = np.mean([block.encoder.features(tokens[:, start : start + 4])["unit"][0] for start in starts], axis=0)
    assert np.allclose(found.dense[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_margins_come_from_words_and_embedding() -> None:
    model = fit("xr-transformer", topic_corpus(60), Run(threads=1), epochs=1)
    why = model.explain("pawn knight castle")
    terms = [term.term for term in why.reasons[0].own.terms]
    assert any("embedding" in term for term in terms) and any("pawn" in term for term in terms)
    own = why.reasons[0].own
    assert own.margin == pytest.approx(own.bias + sum(term.contribution for term in own.terms), abs=1e-4)
    assert why.reasons[0].score == pytest.approx(own.margin, abs=1e-2)  # the last level's margin alone


def test_rankers_without_words() -> None:
    model = fit("xr-transformer", topic_corpus(60), Run(threads=1), epochs=1, **{"ranker.features": "embedding"})
    assert [block.kind for block in model.blocks] == ["embedding"]


# --- levels with settings of their own, and levels that are given


def test_the_last_level_can_have_settings_of_its_own() -> None:
    rng = np.random.default_rng(0)
    X = sp.random(80, 12, 0.4, format="csr", dtype=np.float32, random_state=rng)
    data, tree = Training(Features.of([X]), random_targets(rng, 80, 9)), random_tree(rng, 9, [3])
    plain, dear = LinearParameters(prune=0.0), LinearParameters(prune=0.0, C=4.0, weights="float32")
    run = Run(threads=1)
    mixed = train_ranker(data, tree, plain, run, last=dear)
    one, other = (train_ranker(data, tree, settings, run) for settings in (plain, dear))
    assert all(np.array_equal(a, b) for a, b in zip(mixed.levels[0], one.levels[0], strict=True) if a is not None)
    features = data.features
    for post in ("l3-hinge", "l3-hinge+none"):
        assert not np.array_equal(mixed.search(features, 9, 3, post)[1], one.search(features, 9, 3, post)[1])
    margins = {
        (i, label): score
        for i, (names, scores) in enumerate(zip(*mixed.search(features, 9, 3, "l3-hinge+none"), strict=True))
        for label, score in zip(names.tolist(), scores.tolist(), strict=True)
    }
    bare = other.search(features, 9, 3, "none")  # the last levels solve the same problems, apart from their order
    close = [
        abs(margins[i, n] - s) for i in range(80) for n, s in zip(bare[0][i].tolist(), bare[1][i].tolist(), strict=True)
    ]
    assert np.median(close) < 0.05


def test_the_matcher_of_x_transformer_is_its_network() -> None:
    recipe, read, net = trained("x-transformer", labels_per_cluster=2.0)
    net.phases[0].build(net, {})
    block = recipe.embedding_block(net)
    data = recipe.concatenated(net, read, block)
    [weights] = recipe.given_levels(net, data)
    W = dense_weights(weights, data.features.width)  # (K, V + d + 1)
    X = np.hstack([read.rows.toarray(), data.features.dense, np.ones((60, 1), np.float32)])
    net.eval()
    with torch.no_grad():
        logits = net.level(0).logits(net.encoder(net.tokens.value.take(torch.arange(60)))).numpy()
    known = read.reader.known(net.tokens.value.words.numpy())
    assert np.allclose((X @ W.T)[known], logits[known], atol=1e-4)


# --- taps


@pytest.fixture(scope="module")
def encoder() -> Any:
    return TransformerEncoder.load(tiny_encoder(), features=("cls1", "cls2", "cls4", "text"))


def test_taps_are_made_of_features_side_by_side(encoder: Any) -> None:
    taps = {
        "pair": Tap(("cls1", "cls2"), 0.0, 5),
        "both": Tap(("pair", "cls4")),
        "unit": Tap(("text",), unit=True),
    }
    tapped = Tapped(encoder, taps, ("pair", "both", "unit")).eval()
    tokens = Sequences(torch.tensor([[3, 4, 5, 0], [6, 0, 0, 0]]))
    plain, found = encoder(tokens), tapped(tokens)
    layer = tapped.layers["pair"]
    pair = torch.cat([plain["cls1"], plain["cls2"]], 1) @ layer.weight.T + layer.bias
    assert torch.allclose(found["pair"], pair, atol=1e-5)
    assert torch.equal(found["both"], torch.cat([found["pair"], plain["cls4"]], 1))
    assert torch.allclose(found["unit"], plain["text"] / plain["text"].norm(dim=1, keepdim=True), atol=1e-6)
    assert tapped.widths == {"pair": 5, "both": 5 + WIDTH, "unit": WIDTH} and set(found) == set(tapped.widths)
    served = TappedFeatures.from_arrays(*tapped.export())
    for name, feature in served.features(tokens.words.numpy().astype(np.int32)).items():
        assert np.allclose(feature, found[name].detach().numpy(), atol=1e-4), name


def test_taps_drop_out_in_training_only(encoder: Any) -> None:
    tapped = Tapped(encoder, {"x": Tap(("text",), 0.5)}, ("x",))
    tokens = Sequences(torch.tensor([[3, 4, 5, 0]]))
    plain = encoder.eval()(tokens)["text"]
    tapped.train()
    encoder.eval()
    x = tapped(tokens)["x"]
    kept = x != 0
    assert 0 < int(kept.sum()) < x.numel() and torch.allclose(x[kept], 2 * plain[kept], atol=1e-5)
    assert torch.equal(tapped.eval()(tokens)["x"], plain)


# --- settings that do not fit


def test_an_encoder_with_fewer_layers_than_taps_is_refused(tmp_path: Any) -> None:
    make_encoder(tmp_path, layers=2)
    corpus = topic_corpus(30)
    with pytest.raises(ParameterError, match="3 levels read 4 layers of the transformer, but it has 2"):
        longtail.recipe("cascadexml", encoder=str(tmp_path), resolutions="2:4", beams="1:2", length=16).fit(corpus)
    with pytest.raises(ParameterError, match="tapped=5 layers are read, but the transformer has 2; set tapped=2"):
        longtail.recipe("lightxml", encoder=str(tmp_path), length=16).fit(corpus)
    with pytest.raises(ParameterError, match="layer 7.*layers 1 to 4"):
        longtail.recipe("cascadexml", encoder=tiny_encoder(), taps="1:7", resolutions="3", length=16).fit(corpus)


def test_texts_longer_than_the_encoder_s_positions_are_refused() -> None:
    for name in ("cascadexml", "lightxml", "xr-transformer", "x-transformer"):
        extra = {"tapped": 3} if name == "lightxml" else {}
        with pytest.raises(ParameterError, match="length must be 3 to 64"):
            longtail.recipe(name, encoder=tiny_encoder(), length=65, **extra).fit(topic_corpus(30))


def test_levels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="must rise from coarse to fine"):
        longtail.recipe("cascadexml", resolutions="4:2")
    with pytest.raises(ParameterError, match="3 levels need 2 numbers in beams, but there are 1"):
        longtail.recipe("cascadexml", encoder=tiny_encoder(), resolutions="2:4", beams="1", length=16).fit(
            topic_corpus(30)
        )
    with pytest.raises(ParameterError, match="one network, but trees=2"):
        longtail.recipe("cascadexml", ranker="dismec", trees=2)
    with pytest.raises(ParameterError, match="leave ranker=none out|one of"):
        longtail.recipe("xr-transformer", ranker="none")
    with pytest.raises(ParameterError, match="no scores to watch"):
        longtail.recipe("xr-transformer", patience=2)


def test_taps_follow_the_depth_of_the_encoder() -> None:
    layers = longtail.recipe("cascadexml").layers_read  # type: ignore[attr-defined]
    assert layers(4, 12) == [(5, 6), (8,), (10,), (12,)]  # Table 9, Amazon-670K
    assert layers(3, 6) == [(3, 4), (5,), (6,)]
    assert layers(3, LAYERS) == [(1, 2), (3,), (4,)]


def test_cascadexml_with_rankers_is_loaded_as_what_it_is(tmp_path: Any) -> None:
    model = fit("cascadexml", topic_corpus(60), Run(threads=1), ranker="dismec")
    model.save(tmp_path / "m")
    again = longtail.load(tmp_path / "m")
    texts = ["pawn knight castle", "soil seed"]
    assert type(again).__name__ == "LinearModel" and [block.kind for block in again.blocks] == ["tfidf", "embedding"]
    assert again.predict(texts, 3).keys() == model.predict(texts, 3).keys()
    assert model.predict(texts, 1).keys() == [["chess"], ["gardening"]]


def test_an_unknown_block_is_named() -> None:
    with pytest.raises(StoreError, match="feature block of kind 'hologram'"):
        from longtail.linear.blocks import blocks_from_state

        blocks_from_state({}, {"blocks": [{"kind": "hologram", "state": {}}]})


# --- shortlist recall by level


def test_recall_of_each_level_counts_ancestors() -> None:
    corpus = topic_corpus(60)
    model = fit("cascadexml", corpus, Run(threads=1), beams="1:2", epochs=1)
    found = model.recall_by_level(corpus.test)
    network = model.networks[0]
    features = network.encoder.features(model.reader.read(corpus.test.texts))
    steps = list(network.join.steps(network.levels, features))
    Y = corpus.test.Y.toarray()
    for t in (1, 2):
        hits = total = 0
        for i, label in zip(*Y.nonzero(), strict=True):
            node = int(label)
            for level in reversed(network.levels[t + 1 :]):
                node = int(np.nonzero((level.children == node).any(1))[0][0])
            hits += node in steps[t].nodes[i]
            total += 1
        assert found[t - 1] == pytest.approx(hits / total)
    assert found[-1] == pytest.approx(model.shortlist_recall(corpus.test)["all"])
    assert 0 < found[1] <= found[0] <= 1


def test_margins_of_the_last_level_do_not_change_what_is_trained() -> None:
    """Matcher-aware negatives are found by the scores above, whatever the last level's score is."""
    rng = np.random.default_rng(0)
    X = sp.random(80, 12, 0.4, format="csr", dtype=np.float32, random_state=rng)
    data, tree = Training(Features.of([X]), random_targets(rng, 80, 16)), random_tree(rng, 16, [4, 8])
    plain, run = LinearParameters(prune=0.0, negatives="tfn+man", beam=2), Run(threads=1)
    one, other = (
        train_ranker(data, tree, plain, run, last=replace(plain, post=post)) for post in ("l3-hinge", "l3-hinge+none")
    )
    for a, b in zip(one.levels, other.levels, strict=True):
        assert np.array_equal(a.data, b.data)


def test_labels_learn_from_the_points_that_the_search_will_show_them() -> None:
    last = longtail.recipe("xr-transformer", **{"ranker.beam": 33}).ranker.settings()[1]  # type: ignore[attr-defined]
    assert (last.beam, last.negatives) == (33, "tfn+man")


def test_levels_and_steps_of_xr_transformer() -> None:
    recipe: Any = longtail.recipe("xr-transformer")
    assert recipe.clusters(4271) == [32, 512]  # and not 2 above them
    assert recipe.clusters(12) == [] and recipe.last_level(4271) == 2 and recipe.last_level(10**6) == 2
    steps = [phase.steps for phase in recipe.phases(3, 3200)]
    assert steps == [150, 150, 300]
