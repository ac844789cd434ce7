"""Losses over all labels, chunk by chunk, against the whole matrix."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from longtail.scoring import chunked  # noqa: E402
from longtail.scoring.chunked import FullBCE, FullDecoupled  # noqa: E402
from longtail.scoring.targets import Truth  # noqa: E402

B, L, D = 5, 11, 4


def pairs_of(matrix):
    matrix = torch.as_tensor(matrix, dtype=torch.float32)
    rows, labels = matrix.nonzero(as_tuple=True)
    return Truth(rows, labels, matrix[rows, labels], tuple(matrix.shape))


@pytest.fixture(params=range(4))
def case(request, monkeypatch):
    """Queries, label vectors, true and ignored pairs; chunks of two labels."""
    monkeypatch.setattr(chunked, "CELLS", 2 * B)
    rng = np.random.default_rng(request.param)
    x, W = (torch.tensor(rng.normal(size=(n, D)), dtype=torch.float32, requires_grad=True) for n in (B, L))
    Y = torch.tensor((rng.random((B, L)) < 0.25) * rng.choice([1.0, 0.5], size=(B, L)), dtype=torch.float32)
    ignored = torch.tensor((rng.random((B, L)) < 0.15), dtype=torch.float32)
    return x, W, Y, ignored


def compared(loss, literal, case, temperature):
    x, W, Y, ignored = case
    found = loss.of_vectors(x, W, pairs_of(Y), pairs_of(ignored), temperature)
    wanted = literal(x @ W.T / temperature, Y, ignored)
    assert found.item() == pytest.approx(wanted.item(), rel=1e-5)
    for one, other in zip(torch.autograd.grad(3 * found, (x, W)), torch.autograd.grad(3 * wanted, (x, W)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_binary_cross_entropy_of_all_labels(case, temperature):
    def literal(logits, Y, ignored):
        return functional.binary_cross_entropy_with_logits(logits, Y, weight=1 - ignored, reduction="sum")

    compared(FullBCE(), literal, case, temperature)


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_decoupled_softmax_of_all_labels(case, temperature):
    def literal(logits, Y, ignored):
        left_out = (Y > 0) | (ignored > 0)
        negatives = logits.masked_fill(left_out, -torch.inf).logsumexp(1, keepdim=True)
        truth = Y * (1 - ignored)
        share = truth / truth.sum(1, keepdim=True).clamp(min=1e-9)
        return (share * functional.softplus(negatives - logits)).sum() / (truth.sum(1) > 0).sum().clamp(min=1)

    compared(FullDecoupled(), literal, case, temperature)
