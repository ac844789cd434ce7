"""The parts of the cascade engine, each compared with its own formula, written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

torch = pytest.importorskip("torch")

from cascade_literal import label_weights, residual, stirred  # noqa: E402

from longtail.encoders.bag import Bags, bag_vectors  # noqa: E402
from longtail.encoders.residual import Residual  # noqa: E402
from longtail.encoders.served import BagFeatures  # noqa: E402
from longtail.encoders.table import Table  # noqa: E402
from longtail.labels.tree import LabelTree  # noqa: E402
from longtail.scoring import level as level_module  # noqa: E402
from longtail.scoring.candidates import Below, Family, Scored, Shortlist, children_of, with_truth  # noqa: E402
from longtail.scoring.level import Dot  # noqa: E402
from longtail.scoring.losses import BCE, Loss  # noqa: E402
from longtail.scoring.targets import Targets, Truth  # noqa: E402
from longtail.scoring.weights import Blended, Free, FromGraph, FromText, Gated, LabelWeights  # noqa: E402

seeds = st.integers(0, 2**32 - 1)


def drawn(rng: np.random.Generator, N: int, K: int, density: float = 0.3) -> sp.csr_matrix:
    """Soft targets; some rows may be empty."""
    return sp.csr_matrix(rng.uniform(0.1, 1, (N, K)) * (rng.random((N, K)) < density), dtype=np.float32)


def truth_of(Y: np.ndarray) -> Truth:
    return Targets(sp.csr_matrix(Y)).of(torch.arange(len(Y)))


def cluster(Z: sp.csr_matrix, clusters: int, seed: int) -> LabelTree:
    return LabelTree.in_clusters(Z, [clusters], seed)


def below_parents(logits: torch.Tensor, above: Truth, truth: Truth, tree: LabelTree, k: int) -> Shortlist:
    """Candidates on level 1 of a tree, below the best of level 0, all of whose nodes were scored."""
    return Below(tree, 1, k)(torch.arange(len(logits)), truth, Scored(None, logits, above))


# --- targets


@given(seed=seeds, N=st.integers(1, 6), K=st.integers(1, 7), B=st.integers(1, 8), C=st.integers(1, 5))
def test_targets_of_a_batch(seed: int, N: int, K: int, B: int, C: int) -> None:
    rng = np.random.default_rng(seed)
    Y = drawn(rng, N, K)
    dense, points = Y.toarray(), rng.integers(0, N, B)
    truth = Targets(Y).of(torch.from_numpy(points))
    np.testing.assert_array_equal(truth.dense().numpy(), dense[points])
    candidates = rng.integers(-1, K, (B, C))
    expected = [[dense[points[b], c] if c >= 0 else 0 for c in candidates[b]] for b in range(B)]
    np.testing.assert_array_equal(truth.at(torch.from_numpy(candidates)).numpy(), np.float32(expected))
    padded = truth.padded().numpy()
    for b, row in enumerate(padded):
        labels = np.flatnonzero(dense[points[b]])
        assert row[: len(labels)].tolist() == labels.tolist()
        assert (row[len(labels) :] == -1).all()
    assert padded.shape == (B, max(np.count_nonzero(dense[points], axis=1)))


@given(seed=seeds, B=st.integers(1, 6), K=st.integers(1, 6))
def test_sums_of_targets(seed: int, B: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (drawn(rng, B, K).toarray() for _ in range(2))
    share, shares = float(rng.random()), rng.random(B).astype(np.float32)
    total = truth_of(one).scaled(torch.from_numpy(shares)).plus(truth_of(other).scaled(share))
    np.testing.assert_allclose(total.dense().numpy(), shares[:, None] * one + share * other, rtol=1e-6)
    assert (np.diff(total.keys.numpy()) > 0).all(), "pairs rise, which `at` relies on"
    all_labels = torch.arange(K).expand(B, K)
    np.testing.assert_allclose(total.at(all_labels).numpy(), total.dense().numpy())


# --- who is below whom


@given(seed=seeds, L=st.integers(1, 40), clusters=st.integers(1, 12))
def test_children_of_clusters(seed: int, L: int, clusters: int) -> None:
    Z = sp.csr_matrix(np.random.default_rng(seed).random((L, 5)), dtype=np.float32)
    tree = cluster(Z, clusters, seed % 1000)
    assert len(tree.levels) == 2
    nodes = tree.nodes(0)
    children, family = children_of(tree, 1), Family.of(tree, 1)
    assert np.array_equal(family.children.numpy(), children)
    assert np.array_equal(family.parent.numpy(), nodes)
    assert len(children) == min(clusters, L)
    assert np.ptp((children >= 0).sum(1)) <= 1
    for k, row in enumerate(children):
        assert sorted(row[row >= 0]) == np.flatnonzero(nodes == k).tolist()


def test_children_of_a_level_in_between() -> None:
    """Nodes have different numbers there."""
    tree = LabelTree(np.array([3, 0, 2, 1, 4], np.int32), (np.array([0, 3, 5]), np.array([0, 2, 3, 5]), np.arange(6)))
    assert children_of(tree, 1).tolist() == [[0, 1], [2, -1]]
    assert children_of(tree, 2).tolist() == [[3, 0], [2, -1], [1, 4]]
    assert Family.of(tree, 1).parent.tolist() == [0, 0, 1]
    assert Family.of(tree, 2).parent.tolist() == [0, 2, 1, 0, 2]


# --- candidates


@given(seed=seeds, B=st.integers(1, 5), L=st.integers(2, 14), clusters=st.integers(1, 6), k=st.integers(1, 7))
def test_candidates_below_parents(seed: int, B: int, L: int, clusters: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    tree = cluster(sp.csr_matrix(rng.random((L, 4)), dtype=np.float32), clusters, 0)
    nodes, K = tree.nodes(0), len(tree.levels[0]) - 1
    Y = drawn(rng, B, L, 0.4)
    above = tree.targets(Y, 0)
    logits = rng.normal(size=(B, K)).astype(np.float32)
    truth = truth_of(Y.toarray())
    found = below_parents(torch.from_numpy(logits), truth_of(above.toarray()), truth, tree, k)
    hits = []
    for b in range(B):
        true = {int(nodes[label]) for label in Y[b].indices}
        targets = above.toarray()[b]
        span = np.ptp(logits) + 1  # targets weigh more than logits, and what is true comes first in any case
        order = sorted(range(K), key=lambda node: (node not in true, -logits[b, node] - span * targets[node]))
        chosen = set(order[:k])
        expected = sorted(np.flatnonzero(np.isin(nodes, list(chosen))).tolist())
        row = found.nodes[b].numpy()
        assert sorted(row[row >= 0].tolist()) == expected
        assert found.counted[b].tolist() == (row >= 0).astype(float).tolist()
        by_score = set(sorted(range(K), key=lambda node: -logits[b, node])[:k])
        hits += [float(nodes[label] in by_score) for label in Y[b].indices]
    assert float(found.recall) == pytest.approx(np.mean(hits) if hits else 1.0)


def test_true_parents_come_first_even_before_certain_ones() -> None:
    """In a trained network, σ is exactly 1 or 0 in float32 for some clusters."""
    tree = LabelTree(np.arange(6, dtype=np.int32), (np.array([0, 2, 4, 6]), np.arange(7)))
    Y = np.zeros((1, 6), np.float32)
    Y[0, 5] = 0.2
    logits = torch.tensor([[50.0, 60.0, -200.0]])
    truth = truth_of(Y)
    found = below_parents(logits, truth_of(tree.targets(sp.csr_matrix(Y), 0).toarray()), truth, tree, 1)
    assert found.nodes.tolist() == [[4, 5]]
    assert float(found.recall) == 0


def test_of_too_many_true_parents_the_truest_stay() -> None:
    """Clusters are chosen by their targets first, then by the network's scores."""
    tree = LabelTree(np.arange(3, dtype=np.int32), (np.arange(4), np.arange(4)))
    truth = truth_of(np.array([[0.1, 1.0, 0.0]], np.float32))
    found = below_parents(torch.tensor([[3.0, -3.0, 9.0]]), truth, truth, tree, 1)
    assert found.nodes.tolist() == [[1]]


def test_parents_scores_are_constants() -> None:
    logits = torch.zeros(1, 2, requires_grad=True)
    tree = LabelTree(np.arange(4, dtype=np.int32), (np.array([0, 2, 4]), np.arange(5)))
    truth = truth_of(np.eye(1, 4, dtype=np.float32))
    found = below_parents(logits, truth_of(np.eye(1, 2, dtype=np.float32)), truth, tree, 1)
    assert not found.recall.requires_grad and not found.counted.requires_grad


@given(seed=seeds, B=st.integers(1, 5), L=st.integers(1, 9), S=st.integers(1, 6))
def test_a_shortlist_and_the_truth(seed: int, B: int, L: int, S: int) -> None:
    rng = np.random.default_rng(seed)
    Y = drawn(rng, B, L).toarray()
    shortlist = np.full((B, S), -1)
    for b in range(B):
        own = rng.permutation(L)[: rng.integers(0, S + 1)]
        shortlist[b, : len(own)] = own
    found = with_truth(torch.from_numpy(shortlist), truth_of(Y))
    there = 0
    for b in range(B):
        true, listed = set(np.flatnonzero(Y[b])), set(shortlist[b][shortlist[b] >= 0].tolist())
        there += len(true & listed)
        counted = found.nodes[b][found.counted[b] > 0].tolist()
        assert sorted(counted) == sorted(true | listed), "each once"
    assert float(found.recall) == pytest.approx(there / max(np.count_nonzero(Y), 1))


# --- the loss


@given(seed=seeds, B=st.integers(1, 4), C=st.integers(1, 5))
def test_cross_entropy_of_what_is_counted(seed: int, B: int, C: int) -> None:
    rng = np.random.default_rng(seed)
    logits, targets = rng.normal(size=(B, C)), rng.random((B, C)) * (rng.random((B, C)) < 0.5)
    counted = (rng.random((B, C)) < 0.6).astype(float)
    each = -(targets * np.log(expit(logits)) + (1 - targets) * np.log(1 - expit(logits)))
    tensors = [torch.from_numpy(array) for array in (logits, targets, counted)]
    assert float(BCE()(*tensors)) == pytest.approx((each * counted).sum() / max(counted.sum(), 1))


@given(seed=seeds, B=st.integers(1, 4), K=st.integers(1, 5), ignore=st.booleans())
def test_cross_entropy_of_a_whole_level(seed: int, B: int, K: int, ignore: bool) -> None:
    """Value and gradient, with targets that stay sparse; ignored pairs count neither way."""
    rng = np.random.default_rng(seed)
    targets = (rng.random((B, K)) * (rng.random((B, K)) < 0.5)).astype(np.float32)
    logits = torch.from_numpy(rng.normal(size=(B, K), scale=4).astype(np.float32)).requires_grad_()
    counted = rng.random((B, K)) < 0.7 if ignore else np.ones((B, K), bool)
    found = BCE().of_all(logits, truth_of(targets), truth_of((~counted).astype(np.float32)) if ignore else None)
    (3 * found).backward()
    chances = expit(logits.detach().double().numpy())
    each = -(targets * np.log(chances) + (1 - targets) * np.log(1 - chances))
    count = max(counted.sum(), 1)
    assert float(found.detach()) == pytest.approx((each * counted).sum() / count, rel=1e-5, abs=1e-6)
    assert logits.grad is not None
    np.testing.assert_allclose(logits.grad.numpy(), 3 * counted * (chances - targets) / count, atol=1e-6)


@given(seed=seeds, B=st.integers(1, 4), K=st.integers(1, 5), ignore=st.booleans())
def test_a_loss_of_a_whole_level_is_that_of_all_its_candidates(seed: int, B: int, K: int, ignore: bool) -> None:
    """What any loss does without a form of its own; that of BCE must agree with it."""
    rng = np.random.default_rng(seed)
    targets, ignored = (drawn(rng, B, K).toarray() for _ in range(2))
    logits = torch.from_numpy(rng.normal(size=(B, K)).astype(np.float32))
    left_out = truth_of((ignored > 0).astype(np.float32)) if ignore else None
    plain = Loss.of_all(BCE(), logits, truth_of(targets), left_out)
    assert float(BCE().of_all(logits, truth_of(targets), left_out)) == pytest.approx(float(plain), rel=1e-5, abs=1e-6)


def test_logits_that_are_no_numbers_reach_the_loss() -> None:
    """The training loop reports a NaN loss; candidates must not fail before that."""
    tree = LabelTree(np.arange(4, dtype=np.int32), (np.array([0, 2, 4]), np.arange(5)))
    logits, truth = torch.full((1, 2), float("nan")), truth_of(np.eye(1, 4, dtype=np.float32))
    above = truth_of(np.eye(1, 2, dtype=np.float32))
    assert below_parents(logits, above, truth, tree, 1).nodes.shape == (1, 2)
    assert torch.isnan(BCE().of_all(logits, above))


# --- residual blocks and label weights


FORMS = ["astec", "decaf", "eclare", "frugal"]


@pytest.mark.parametrize("form", FORMS)
def test_residual_blocks(form: str) -> None:
    torch.manual_seed(0)
    block = Residual(5, form)
    stirred(block)
    for _ in range(200):
        block(torch.randn(2, 5))  # power iterations
    block.eval()
    v = torch.randn(4, 5)
    np.testing.assert_allclose(block(v).detach().numpy(), residual(block, v.double().numpy()), rtol=1e-4, atol=1e-5)
    norm = float(np.linalg.norm(block.linear.weight.detach().numpy(), 2))
    assert norm != pytest.approx(1, abs=1e-3) if form == "decaf" else norm == pytest.approx(1, abs=1e-3)
    if form != "frugal":  # the one that serves bags
        arrays = {f"residual.text.{name}": array for name, array in block.arrays().items()}
        served = BagFeatures({"E": np.eye(5, dtype=np.float32)} | arrays, {"residuals": {"text": form}})
        rows = sp.csr_matrix(v.numpy())
        np.testing.assert_allclose(served.features(rows)["text"], block(v).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_begin_at_the_identity(form: str) -> None:
    """With a bias of 0, as the authors' code does."""
    block = Residual(4, form).eval()  # type: ignore[arg-type]
    v = torch.randn(3, 4)
    relu = torch.nn.functional.relu(v)
    expected = {"astec": relu + v, "decaf": (relu + v) / 2, "eclare": relu + v}
    found = expected.get(form, torch.nn.functional.gelu(v) + v)
    torch.testing.assert_close(block(v), found, rtol=1e-4, atol=1e-5)


WORDS, D, LABELS = 7, 4, 9


def texts(seed: int = 1) -> sp.csr_matrix:
    """Texts of nine labels; the fourth has none."""
    Z = drawn(np.random.default_rng(seed), LABELS, WORDS, 0.5).toarray()
    Z[3] = 0
    return sp.csr_matrix(Z)


def graph() -> sp.csr_matrix:
    """Neighbours of nine labels; the seventh has none."""
    G = drawn(np.random.default_rng(2), LABELS, LABELS, 0.4).toarray()
    G[6] = 0
    return sp.csr_matrix(G)


def kinds(E: Table) -> dict[str, LabelWeights]:
    torch.manual_seed(0)
    made: dict[str, LabelWeights] = {
        "free": Free(Table.random(LABELS, D, 1.0)),
        **{f"text {form}": FromText(E, Bags.of(texts()), form) for form in FORMS},
        "added": Gated(FromText(E, Bags.of(texts()), "decaf"), Free(Table.random(LABELS, D, 1.0))),
    }
    for name, form in (("attended", "eclare"), ("attended frugal", "frugal")):
        parts = {"text": FromText(E, Bags.of(texts()), form)}
        parts["graph"] = FromGraph(E, Bags.of(texts()), Bags.of(graph()), form)
        made[f"{name}, two"] = Blended(dict(parts))
        made[name] = Blended({**parts, "free": Free(Table.random(LABELS, D, 1.0))})
    for weights in made.values():
        stirred(weights)
        weights.train()
        with torch.no_grad():
            weights.rows(torch.arange(3))  # a power iteration
        weights.eval()
    return made


def written_out(weights: LabelWeights, E: np.ndarray) -> np.ndarray:
    return label_weights(weights, E, {"text": texts().toarray(), "graph": (graph() @ texts()).toarray()})


KINDS = list(kinds(Table.random(WORDS, D, 1.0)))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_label_weights(name: str, frozen: bool) -> None:
    E = Table(torch.randn(WORDS, D, generator=torch.Generator().manual_seed(5)))
    weights = kinds(E)[name]
    E.trainable = not frozen
    expected = written_out(weights, E.weight.double().numpy())
    labels = torch.tensor([8, 3, 0, 5])
    np.testing.assert_allclose(weights.rows(labels).detach().numpy(), expected[labels], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights.all_rows(LABELS, block=4).numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "free"])
def test_words_are_trained_through_label_texts(name: str) -> None:
    """The gradient of one entry of a word vector, against a finite difference."""
    E = Table(torch.randn(WORDS, D, generator=torch.Generator().manual_seed(5)))
    weights, labels = kinds(E)[name], torch.tensor([1, 3, 6])
    back = torch.randn(3, D, generator=torch.Generator().manual_seed(6))
    (weights.rows(labels) * back).sum().backward()
    found = E.gradient()
    assert found is not None
    dense = torch.zeros(WORDS, D).index_add_(0, *found).double().numpy()
    step, base = 1e-6, E.weight.double().numpy()
    for w in range(WORDS):
        for j in range(D):
            moved = [base.copy(), base.copy()]
            moved[0][w, j] += step
            moved[1][w, j] -= step
            high, low = ((written_out(weights, m)[labels] * back.numpy()).sum() for m in moved)
            assert dense[w, j] == pytest.approx((high - low) / (2 * step), rel=1e-2, abs=1e-3)


def test_words_frozen_after_they_moved_are_read_anew() -> None:
    E = Table(torch.ones(WORDS, D))
    weights = FromText(E, Bags.of(texts()), "decaf")
    E.trainable = False
    before = weights.rows(torch.arange(LABELS)).detach()
    E.trainable = True
    weights.rows(torch.arange(2))  # a phase that trains words
    E.weight.mul_(2)
    E.trainable = False
    after = weights.rows(torch.arange(LABELS)).detach()
    torch.testing.assert_close(after, before * 2)


def test_bags_of_no_words_are_zero() -> None:
    E = Table(torch.ones(WORDS, D))
    found = bag_vectors(E, Bags.of(texts()))
    assert (found[3] == 0).all()
    np.testing.assert_allclose(found.detach().numpy(), texts().toarray() @ np.ones((WORDS, D)), rtol=1e-5)


# --- levels


@pytest.mark.parametrize("biased", [False, True])
@given(seed=seeds, B=st.integers(1, 4), K=st.integers(1, 12), C=st.integers(1, 5))
def test_both_ways_to_logits(biased: bool, seed: int, B: int, K: int, C: int) -> None:
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(K, 3)).astype(np.float32), rng.normal(size=(K, 1)).astype(np.float32) * biased
    x, candidates = rng.normal(size=(B, 3)).astype(np.float32), rng.integers(-1, K, (B, C))
    back = torch.from_numpy(rng.normal(size=(B, C)).astype(np.float32)) * torch.from_numpy(candidates >= 0)
    expected = x @ W.T + b[:, 0]
    gradients = []
    for in_common in (0, 100):
        table, bias = Table(torch.from_numpy(W.copy())), Table(torch.from_numpy(b.copy()))
        level = Dot(K, "text", Free(table), bias if biased else None)
        features = {"text": torch.from_numpy(x).requires_grad_(), "other": torch.zeros(0)}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(level_module, "IN_COMMON", in_common)
            logits = level.logits(features, torch.from_numpy(candidates))
        for row, (own, found) in enumerate(zip(candidates, logits.detach().numpy(), strict=True)):
            np.testing.assert_allclose(found[own >= 0], expected[row, own[own >= 0]], rtol=1e-4, atol=1e-5)
        (logits * back).sum().backward()
        ids, grad = table.gradient()  # type: ignore[misc]
        dense = torch.zeros(K, 3).index_add_(0, ids, grad)
        of_bias = torch.zeros(K, 1)
        if biased:
            of_bias.index_add_(0, *bias.gradient())  # type: ignore[misc]
        gradients.append((features["text"].grad, dense, of_bias))
        np.testing.assert_allclose(level.logits(features).detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


# --- candidates below candidates


@given(seed=seeds, B=st.integers(1, 4), k=st.integers(1, 7))
def test_candidates_below_candidates(seed: int, B: int, k: int) -> None:
    """A level whose parents are themselves candidates, some of them pads: true ones first, then the best."""
    rng = np.random.default_rng(seed)
    L, C = 16, 5
    tree = LabelTree.in_clusters(sp.csr_matrix(rng.random((L, 4)), dtype=np.float32), [2, 8], 0)
    above = np.full((B, C), -1)
    for b in range(B):
        own = rng.permutation(8)[: rng.integers(1, C + 1)]
        above[b, : len(own)] = own
    Y = drawn(rng, B, L, 0.2)
    truth_above, logits = tree.targets(Y, 1).toarray(), rng.normal(size=(B, C)).astype(np.float32)
    scored = Scored(torch.from_numpy(above), torch.from_numpy(logits), truth_of(truth_above))
    found = Below(tree, 2, k)(torch.arange(B), truth_of(Y.toarray()), scored)
    nodes, hits = tree.nodes(1), []
    for b in range(B):
        known = [c for c in range(C) if above[b, c] >= 0]
        target = {c: truth_above[b, above[b, c]] for c in known}
        span = np.ptp(logits) + 1
        order = sorted(known, key=lambda c: (target[c] == 0, -logits[b, c] - span * target[c]))
        chosen = above[b, order[:k]]
        row = found.nodes[b].numpy()
        assert sorted(row[row >= 0].tolist()) == np.flatnonzero(np.isin(nodes, chosen)).tolist()
        by_score = above[b, sorted(known, key=lambda c: -logits[b, c])[:k]]
        hits += [float(nodes[label] in by_score) for label in Y[b].indices]
    assert float(found.recall) == pytest.approx(np.mean(hits) if hits else 1.0)
