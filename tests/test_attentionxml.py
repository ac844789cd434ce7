"""AttentionXML: LSTM, label-wise attention, shortlists and search against their formulas, written out in loops."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import topic_corpus
from scipy.special import expit

torch = pytest.importorskip("torch")

from cascade_literal import doubles, stirred  # noqa: E402
from training import SETTINGS  # noqa: E402

import longtail  # noqa: E402
from longtail.cascade import attended_served  # noqa: E402
from longtail.cascade.attended_served import ServedAttended  # noqa: E402
from longtail.cascade.cascade import Cascade  # noqa: E402
from longtail.cascade.joins import PathJoin  # noqa: E402
from longtail.cascade.served import Network  # noqa: E402
from longtail.core.errors import ParameterError  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.encoders.lstm import BothWays, LSTMEncoder  # noqa: E402
from longtail.encoders.lstm_served import LSTMFeatures  # noqa: E402
from longtail.encoders.sequence import Sequences  # noqa: E402
from longtail.encoders.table import Table  # noqa: E402
from longtail.labels.tree import LabelTree  # noqa: E402
from longtail.scoring import attended  # noqa: E402
from longtail.scoring.attended import Attended, Shared  # noqa: E402
from longtail.scoring.candidates import Below, Static  # noqa: E402
from longtail.scoring.targets import Targets  # noqa: E402
from longtail.scoring.weights import Free  # noqa: E402
from longtail.train.loop import Loop  # noqa: E402
from longtail.train.settings import LoopParameters  # noqa: E402

# texts of 5, 1, 0, 3 and 7 words, padded; 1 stands for unknown words
WORDS = np.array(
    [
        [4, 9, 2, 2, 7, 0, 0, 0],
        [3, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 5, 0, 0, 0, 0, 0],
        [6, 8, 1, 3, 9, 2, 4, 0],
    ],
    np.int32,
)
LENGTHS = [6, 2, 1, 4, 8]  # with the end of the text, a token whose vector is zero


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def tokens_of(words: np.ndarray) -> Sequences:
    return Sequences.of(words).take(torch.arange(len(words)))


def encoder_of(names: tuple[str, ...] = ("tokens0",), D: int = 6, h: int = 3) -> LSTMEncoder:
    encoder = LSTMEncoder(Table.random(10, D, 1.0), names, h, 8)
    stirred(encoder.nets)
    return encoder.eval()


# --- the LSTM


def lstm(vectors: np.ndarray, net: torch.nn.LSTM) -> np.ndarray:
    """i, f, o = σ(…), g = tanh(…); c ← f·c + i·g, s = o·tanh(c); word by word."""
    own = {name: doubles(tensor) for name, tensor in net.state_dict().items()}
    h = own["weight_hh_l0"].shape[1]
    state, cell, found = np.zeros(h), np.zeros(h), []
    for x in vectors:
        gates = own["weight_ih_l0"] @ x + own["bias_ih_l0"] + own["weight_hh_l0"] @ state + own["bias_hh_l0"]
        i, f, g, o = gates[:h], gates[h : 2 * h], gates[2 * h : 3 * h], gates[3 * h :]
        cell = expit(f) * cell + expit(i) * np.tanh(g)
        state = expit(o) * np.tanh(cell)
        found.append(state)
    return np.array(found)


def states(encoder: LSTMEncoder, name: str, words: np.ndarray) -> list[np.ndarray]:
    """The states (length, 2h) of each text, one text at a time, without pads."""
    E, net, found = doubles(encoder.E.weight), encoder.nets[name], []
    assert isinstance(net, BothWays)
    for row in words:
        own = row[row > 0]
        vectors = np.concatenate([E[own], np.zeros((1, E.shape[1]))])
        found.append(np.concatenate([lstm(vectors, net.forth), lstm(vectors[::-1], net.back)[::-1]], 1))
    return found


@pytest.mark.parametrize("place", ["torch", "served"])
def test_states_are_those_of_texts_without_pads(place: str) -> None:
    encoder = encoder_of(("tokens0", "tokens1"))
    if place == "torch":
        with torch.no_grad():
            features: Any = encoder(tokens_of(WORDS))
            for name in encoder.widths:
                features[name]  # computed when it is read
        features = {name: x.numpy() for name, x in features.items()}
    else:
        features = LSTMFeatures.from_arrays(*encoder.export()).features(WORDS)
    np.testing.assert_array_equal(features["mask"].sum(1), LENGTHS)
    for name in encoder.widths:
        expected = states(encoder, name, WORDS)
        assert features[name].shape == (5, 8, 6)
        for b, own in enumerate(expected):
            np.testing.assert_allclose(features[name][b, : len(own)], own, rtol=1e-5, atol=1e-6)
    assert np.abs(features["tokens0"] - features["tokens1"]).max() > 0.1


def test_only_what_is_read_is_computed_and_trained() -> None:
    encoder = encoder_of(("tokens0", "tokens1"))
    encoder(tokens_of(WORDS))["tokens1"].sum().backward()
    assert {name.split(".")[1] for name, p in encoder.nets.named_parameters(prefix="nets") if p.grad is not None} == {
        "tokens1"
    }
    vectors, names = encoder.embed(tokens_of(WORDS)), [frozenset[str](), frozenset({"tokens0"})]
    assert [encoder.encode(vectors, detached)["tokens0"].requires_grad for detached in names] == [True, False]


def test_a_copied_lstm_is_another_one() -> None:
    encoder = encoder_of(("tokens0", "tokens1"))
    encoder.copy_net("tokens0", "tokens1")
    with torch.no_grad():
        features = encoder(tokens_of(WORDS))
        assert torch.equal(features["tokens0"], features["tokens1"])
        encoder.nets["tokens0"].forth.weight_hh_l0.zero_()  # type: ignore[union-attr]
        features = encoder(tokens_of(WORDS))
        assert not torch.equal(features["tokens0"], features["tokens1"])


# --- label-wise attention


def level_of(K: int, d: int, widths: tuple[int, ...], bias: bool = True, candidates: Any = None) -> Attended:
    level = Attended(
        K,
        "tokens",
        Free(Table.random(K, d, 1.0)),
        Shared(d, widths),
        Table.random(K, 1, 1.0) if bias else None,
        candidates,
    )
    stirred(level)
    return level


def attended_logit(H: np.ndarray, j: int, level: Attended) -> float:
    """One label, one text without pads: attention, the attended text, the layers."""
    assert isinstance(level.weights, Free)
    w = doubles(level.weights.table.weight)[j]
    scores = [float(np.dot(h, w)) for h in H]
    shares = [np.exp(score) / sum(np.exp(other) for other in scores) for score in scores]
    x = sum(share * h for share, h in zip(shares, H, strict=True))
    *layers, out = level.shared.linear()
    for layer in layers:
        x = np.maximum(doubles(layer.weight) @ x + doubles(layer.bias), 0)
    bias = 0.0 if level.bias is None else doubles(level.bias.weight)[j, 0]
    return float((doubles(out.weight) @ x + doubles(out.bias))[0] + bias)


@pytest.mark.parametrize("held", [None, 60])  # all candidates at once, or one after the other
@pytest.mark.parametrize("widths", [(4,), (5, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_attention_of_each_label(
    widths: tuple[int, ...], bias: bool, held: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if held is not None:
        monkeypatch.setattr(attended, "HELD", held)
        monkeypatch.setattr(attended_served, "HELD", held)
    rng = np.random.default_rng(0)
    K, d, lengths = 7, 6, [5, 1, 3]
    level = level_of(K, d, widths, bias)
    H = rng.normal(size=(3, 5, d)).astype(np.float32)
    mask = np.arange(5) < np.array(lengths)[:, None]
    nodes = np.array([[2, 6, 0, -1], [1, 1, 4, 3], [5, 0, -1, -1]])
    features = {"tokens": torch.from_numpy(H), "mask": torch.from_numpy(mask)}
    served = ServedAttended.from_arrays(*level.export())
    all_ = np.array([[attended_logit(H[b, :n], j, level) for j in range(K)] for b, n in enumerate(lengths)])
    with torch.no_grad():
        found = [level.logits(features).numpy(), level.logits(features, torch.from_numpy(nodes)).numpy()]
    numpy_features = {"tokens": H, "mask": mask}
    found += [served.logits(numpy_features), served.logits(numpy_features, nodes)]
    for of_all, of_nodes in (found[:2], found[2:]):
        np.testing.assert_allclose(of_all, all_, rtol=1e-5, atol=1e-5)
        expected = np.take_along_axis(all_, nodes, 1)
        np.testing.assert_allclose(of_nodes[nodes >= 0], expected[nodes >= 0], rtol=1e-5, atol=1e-5)
        assert np.isfinite(of_nodes).all(), "a pad has some logit"


@pytest.mark.parametrize("all_nodes", [True, False])
def test_in_parts_gradients_are_the_same(all_nodes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    level = level_of(9, 6, (5, 3))
    mask = torch.arange(5) < torch.tensor([5, 2, 3])[:, None]
    x = torch.randn(3, 5, 6)
    nodes = None if all_nodes else torch.tensor([[0, 4, 4, 8], [1, -1, 2, 3], [7, 0, 5, 6]])
    found = []
    for held in (attended.HELD, 50):
        monkeypatch.setattr(attended, "HELD", held)
        H = x.clone().requires_grad_()
        level.logits({"tokens": H, "mask": mask}, nodes).square().sum().backward()
        assert isinstance(level.weights, Free) and H.grad is not None
        gradient = level.weights.table.gradient()
        assert gradient is not None
        found.append([H.grad, *gradient, *(p.grad.clone() for p in level.parameters() if p.grad is not None)])
        level.zero_grad()
    assert H.grad[~mask].abs().max() == 0, "pads receive no gradient"  # type: ignore[index]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


# --- shortlists with true parents first, and the search that makes them


def test_true_parents_come_before_those_of_the_list() -> None:
    rng = np.random.default_rng(0)
    tree = LabelTree.in_clusters(sp.csr_matrix(rng.random((12, 5))), [6], 0)  # two labels in each cluster
    parent = tree.nodes(0)
    Y = rng.random((40, 12)) < 0.2
    lists = np.stack([rng.permutation(6)[:2] for _ in range(40)]).astype(np.int32)
    lists[::7, 1] = -1  # the search found one
    beam = 3
    truth = Targets(sp.csr_matrix(Y, dtype=np.float32)).of(torch.arange(40))
    listed = Static(lists, Below(tree, 1, beam), truth_first=True)(torch.arange(40), truth, None)
    assert listed.nodes is not None and listed.counted is not None and listed.recall is not None
    hits = []
    for b in range(40):
        true = np.flatnonzero(Y[b])
        parents = list(dict.fromkeys([*sorted(set(parent[true])), *(p for p in lists[b] if p >= 0)]))[:beam]
        expected = set(np.flatnonzero(np.isin(parent, parents))) | set(true)
        counted = listed.nodes[b][listed.counted[b] > 0].tolist()
        assert len(counted) == len(set(counted)) and set(counted) == expected
        hits += [parent[label] in lists[b] for label in true]
    assert float(listed.recall) == pytest.approx(np.mean(hits)), "without what was put into the list"


@pytest.fixture(scope="module")
def net() -> Cascade:
    """Three levels after all phases, of three steps each."""
    corpus = topic_corpus(60)
    recipe: Any = longtail.recipe("attentionxml", **SETTINGS["attentionxml"] | {"beam": 2})
    torch.manual_seed(0)
    net: Cascade = recipe.network(recipe.read(corpus.train, corpus.labels, Run()), 0)
    Loop(net, LoopParameters(batch=16, min_steps=1, steps=9), Run(device="cpu")).train()
    for level in net.levels.values():
        stirred(level, by=1.0)
    return net


def test_search_goes_down_the_tree(net: Cascade) -> None:
    """In loops: of each level the children of the two best nodes by the product of σ down the path."""
    tree = net.known_tree()
    with torch.no_grad():
        features = net.eval().encoder(net.tokens.value.take(torch.arange(60)))
        own = [expit(doubles(net.level(t).logits(features))) for t in range(3)]  # of all nodes
    for t, beam in ((1, 3), (2, 4)):
        found = net.best_nodes(t, beam)
        for b in range(60):
            reached = {node: own[0][b, node] for node in range(2)}
            for s in range(1, t + 1):
                kept = sorted(reached, key=lambda node: -reached[node])[:2]
                labels = tree.order if s == 2 else np.arange(4)
                ptr = tree.child_ptr(s)
                children = {int(labels[c]): node for node in kept for c in range(ptr[node], ptr[node + 1])}
                reached = {c: own[s][b, c] * reached[node] for c, node in children.items()}
            expected = sorted(reached, key=lambda node: -reached[node])[:beam]
            assert [node for node in found[b].tolist() if node >= 0] == expected


def test_served_scores_are_those_of_torch(net: Cascade) -> None:
    network = Network(*net.export())
    assert isinstance(network.join, PathJoin)
    scores = network.scores(net.tokens.value.words.numpy()).toarray()
    with torch.no_grad():
        nodes, logs = net.search(2, net.eval().encoder(net.tokens.value.take(torch.arange(60))))
    assert nodes is not None
    for b in range(60):
        kept = nodes[b] >= 0
        np.testing.assert_allclose(scores[b, nodes[b][kept]], logs[b][kept].exp(), rtol=1e-5)
        assert (scores[b] > 0).sum() == kept.sum()


def test_a_level_begins_where_the_one_above_is_and_leaves_it_alone() -> None:
    corpus = topic_corpus(60)
    recipe: Any = longtail.recipe("attentionxml", **SETTINGS["attentionxml"])
    net: Cascade = recipe.network(recipe.read(corpus.train, corpus.labels, Run()), 0)
    loop = Loop(net, LoopParameters(batch=16, min_steps=1, steps=9), Run(device="cpu"))
    loop._phase(0, 0)
    first = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    loop.open(1)
    for one, other in (("encoder.nets.tokens0", "encoder.nets.tokens1"), ("levels.0.shared", "levels.1.shared")):
        own = {n.removeprefix(one): x for n, x in net.state_dict().items() if n.startswith(one)}
        copied = {n.removeprefix(other): x for n, x in net.state_dict().items() if n.startswith(other)}
        assert own.keys() == copied.keys() and all(torch.equal(own[n], copied[n]) for n in own)
    loop._phase(1, 0)
    now = net.state_dict()
    assert all(
        torch.equal(now[name], tensor) for name, tensor in first.items() if "tokens1" not in name and name in now
    )
    assert not torch.equal(
        now["encoder.nets.tokens1.forth.weight_hh_l0"], now["encoder.nets.tokens0.forth.weight_hh_l0"]
    )


# --- the recipe


def test_levels_follow_from_the_number_of_labels() -> None:
    recipe: Any = longtail.recipe("attentionxml")
    assert recipe.sizes(4_000) == [] and recipe.widths(4_000) == (256,)
    assert recipe.sizes(670_091) == [2**10, 2**13, 2**16]
    assert recipe.sizes(2_812_281) == [2**11, 2**14, 2**17] and recipe.widths(2_812_281) == (512, 256)
    assert longtail.recipe("attentionxml", resolutions="64:512").sizes(4_000) == [64, 512]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resolutions": "64:100"}, "resolutions=64:100 must rise from coarse to fine, each a multiple"),
        ({"resolutions": "many"}, "resolutions must be numbers such as 64:512, but is 'many'"),
        ({"layers": "0"}, "each number of layers must be at least 1, but it is '0'"),
        ({"dropout": 1.0}, "dropout must be"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        longtail.recipe("attentionxml", **settings)


@pytest.mark.parametrize(
    ("settings", "trained"), [({}, True), ({"vectors": "glove"}, False), ({"vectors": "glove", "word_rate": 0.1}, True)]
)
def test_word_vectors_made_elsewhere_are_frozen(settings: dict[str, Any], trained: bool) -> None:
    recipe: Any = longtail.recipe("attentionxml", **settings)
    first, below = recipe.phases(2)
    assert (first.group_of("encoder.E") is not None) == trained
    assert below.group_of("encoder.E") is None, "levels share one table"


def test_several_networks_are_averaged() -> None:
    corpus = topic_corpus(60)
    model = longtail.recipe("attentionxml", **SETTINGS["attentionxml"], trees=2).fit(corpus, Run(device="cpu"))
    assert len(model.networks) == 2  # type: ignore[attr-defined]
    assert model.predict(["boat wind"], 3).indices.shape == (1, 3)
