"""Losses over a pool against literal formulas, pair by pair."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from longtail.scoring.contrast import Decoupled, Summed, SupCon, Triplet, log_sums  # noqa: E402
from longtail.scoring.losses import BCE  # noqa: E402
from longtail.scoring.targets import Truth  # noqa: E402


def pairs_of(matrix):
    """The entries of a dense matrix as `Truth`."""
    matrix = torch.as_tensor(matrix, dtype=torch.float32)
    rows, labels = matrix.nonzero(as_tuple=True)
    return Truth(rows, labels, matrix[rows, labels], tuple(matrix.shape))


@pytest.fixture(params=range(6))
def case(request):
    """Logits (B, P), true and ignored pairs; some rows have no true label, and an ignored pair may be true."""
    rng = np.random.default_rng(request.param)
    B, P = 5, 7
    logits = rng.normal(size=(B, P)).astype(np.float32) * 4
    Y = (rng.random((B, P)) < 0.3) * rng.choice([1.0, 0.5], size=(B, P))
    ignored = (rng.random((B, P)) < 0.15).astype(float)
    return logits, Y, ignored


def averaged(logits, Y, ignored, loss, normalised=True):
    """Σ_i (1/|P_i|) Σ_p ℓ(p | i), by loops; the mean over rows with true labels."""
    rows = []
    for i in range(len(Y)):
        true = [p for p in range(Y.shape[1]) if Y[i, p] > 0 and not ignored[i, p]]
        if true:
            total = sum(Y[i, p] * loss(i, p) for p in true)
            rows.append(total / sum(Y[i, p] for p in true) if normalised else total)
    return sum(rows) / max(len(rows), 1)


@pytest.mark.parametrize("normalised", [True, False])
def test_supcon_is_its_formula(case, normalised):
    logits, Y, ignored = case

    def loss(i, p):
        total = sum(math.exp(logits[i, n]) for n in range(Y.shape[1]) if not ignored[i, n])
        return -math.log(math.exp(logits[i, p]) / total)

    found = SupCon(normalised).of_all(torch.tensor(logits), pairs_of(Y), pairs_of(ignored))
    assert float(found) == pytest.approx(averaged(logits, Y, ignored, loss, normalised), rel=1e-5)


@pytest.mark.parametrize("normalised", [True, False])
def test_decoupled_softmax_is_its_formula(case, normalised):
    logits, Y, ignored = case

    def loss(i, p):
        others = sum(math.exp(logits[i, n]) for n in range(Y.shape[1]) if not ignored[i, n] and not Y[i, n])
        return -math.log(math.exp(logits[i, p]) / (math.exp(logits[i, p]) + others))

    found = Decoupled(normalised).of_all(torch.tensor(logits), pairs_of(Y), pairs_of(ignored))
    assert float(found) == pytest.approx(averaged(logits, Y, ignored, loss, normalised), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("temperature", "positives"), [(None, None), (0.5, None), (None, 1), (2.0, 2)])
def test_triplet_is_its_formula(case, temperature, positives):
    logits, Y, ignored = case
    margin, negatives = 0.3, 3
    rows = []
    for i in range(len(Y)):
        true = sorted((p for p in range(Y.shape[1]) if Y[i, p] and not ignored[i, p]), key=lambda p: logits[i, p])
        true = true[:positives]
        hard = sorted(-logits[i, n] for n in range(Y.shape[1]) if not Y[i, n] and not ignored[i, n])[:negatives]
        if not true:
            continue
        s = -np.array(hard)
        a = np.exp(s / temperature - (s / temperature).max()) if temperature and len(s) else np.ones(len(s))
        a = a / a.sum() if len(a) else a
        each = [Y[i, p] * sum(a * np.maximum(0, s - logits[i, p] + margin)) for p in true]
        rows.append(sum(each) / sum(Y[i, p] for p in true))
    loss = Triplet(margin, negatives, temperature, positives)
    found = loss.of_all(torch.tensor(logits), pairs_of(Y), pairs_of(ignored))
    assert float(found) == pytest.approx(sum(rows) / max(len(rows), 1), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("loss", [SupCon(), Decoupled(), Decoupled(normalised=False)])
def test_gradients_are_those_of_the_formula(case, loss):
    logits, Y, ignored = case
    x = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    masked = x.masked_fill(torch.tensor(ignored) > 0, -torch.inf)
    truth = torch.tensor(Y) * (torch.tensor(ignored) == 0)
    if isinstance(loss, SupCon):
        each = masked.logsumexp(1, keepdim=True) - x
    else:
        negative = masked.masked_fill(torch.tensor(Y) > 0, -torch.inf)
        each = torch.nn.functional.softplus(negative.logsumexp(1, keepdim=True) - x)
    share = truth / truth.sum(1, keepdim=True).clamp(min=1e-9) if loss.averaged.normalised else truth
    wanted = (share * each).sum() / (truth.sum(1) > 0).sum().clamp(min=1)
    (grad,) = torch.autograd.grad(wanted, x)
    y = torch.tensor(logits, requires_grad=True)
    (found,) = torch.autograd.grad(loss.of_all(y, pairs_of(Y), pairs_of(ignored)), y)
    assert torch.allclose(found.double(), grad, atol=1e-6)


def test_a_huge_positive_does_not_hide_the_negatives():
    """e^{s} of a label that is left out must not push the others below what float32 can hold."""
    logits = torch.tensor([[400.0, 1.0, 2.0], [0.0, 0.0, 0.0]], requires_grad=True)
    left_out = pairs_of([[1, 0, 0], [1, 1, 1]])
    sums = log_sums(logits, left_out)
    assert float(sums[0]) == pytest.approx(math.log(math.e + math.e**2), rel=1e-6)
    assert float(sums[1]) == -math.inf
    sums[0].backward()
    assert float(logits.grad[0, 0]) == 0 and float(logits.grad[0].sum()) == pytest.approx(1)


def test_turned_losses_compare_labels_with_queries(case):
    logits, Y, ignored = case
    there = Decoupled().of_all(torch.tensor(logits).T, pairs_of(Y).turned(), pairs_of(ignored).turned())
    back = Decoupled().of_all(torch.tensor(logits.T), pairs_of(Y.T), pairs_of(ignored.T))
    assert float(there) == pytest.approx(float(back), rel=1e-6)


@pytest.mark.parametrize("loss", [SupCon(), Decoupled(), Decoupled(normalised=False), Summed(Decoupled(), BCE(), 0.5)])
@pytest.mark.parametrize("forth", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scale", [1, 40])  # with 40, powers of rows and columns cannot be shared
def test_both_ways_is_one_way_and_the_other(case, loss, forth, scale):
    logits, Y, ignored = case
    x = torch.tensor(logits * scale, dtype=torch.float32, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    there = loss.of_all(x, pairs_of(Y), pairs_of(ignored))
    back = loss.of_all(x.T, pairs_of(Y.T), pairs_of(ignored.T))
    wanted, found = forth * there + (1 - forth) * back, loss.both_ways(y, pairs_of(Y), pairs_of(ignored), forth)
    assert float(found) == pytest.approx(float(wanted), rel=1e-5, abs=1e-6)
    (grad,), (own,) = torch.autograd.grad(wanted, x), torch.autograd.grad(found, y)
    assert torch.allclose(own, grad, atol=1e-5, rtol=1e-4)
