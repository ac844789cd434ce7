"""The static encoder against its formula, and what serves it, and heads, without torch."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

from longtail.dual.heads import Head  # noqa: E402
from longtail.dual.served import ServedHead  # noqa: E402
from longtail.encoders.bag import Bags  # noqa: E402
from longtail.encoders.export import served  # noqa: E402
from longtail.encoders.served import served_encoders  # noqa: E402
from longtail.encoders.static import StaticEncoder  # noqa: E402
from longtail.encoders.table import Table  # noqa: E402

V, D = 12, 5


@pytest.fixture
def encoder():
    """An encoder as after training: every weight is moved from where it begins."""
    rng = np.random.default_rng(0)
    made = StaticEncoder(Table.of(rng.normal(size=(V, D))), rng.uniform(1, 3, V).astype(np.float32))
    with torch.no_grad():
        made.linear.weight.normal_()
        made.linear.bias.normal_()
    return made.eval()


@pytest.fixture
def rows():
    """Damped counts of tokens of six texts, the last without any."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.5, size=(6, V)) * (np.arange(6) < 5)[:, None]
    assert (counts[:5].sum(1) > 0).all() and counts.max() > 1
    return sp.csr_matrix(np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0).astype(np.float32))


def gelu(x):
    return 0.5 * x * (1 + np.array([math.erf(value / math.sqrt(2)) for value in x.ravel()]).reshape(x.shape))


def test_a_text_is_the_formula_of_its_tokens(encoder, rows):
    """v = Σ_t c_t ω_t E_t of unit length, and v + W·GELU(v)."""
    E, omega = encoder.E.weight.numpy().astype(np.float64), encoder.omega.weight.numpy()[:, 0]
    W, b = (x.detach().numpy().astype(np.float64) for x in (encoder.linear.weight, encoder.linear.bias))
    wanted = []
    for c in rows.toarray():
        v = sum((c[t] * omega[t] * E[t] for t in range(V)), np.zeros(D))
        v = v / max(np.linalg.norm(v), 1e-12)
        wanted.append(v + W @ gelu(v) + b)
    found = encoder(Bags.of(rows).take(torch.arange(6)))["text"]
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_first_features_are_the_idf_weighted_sums(rows):
    E, idf = np.random.default_rng(2).normal(size=(V, D)).astype(np.float32), np.linspace(1, 2, V, dtype=np.float32)
    found = StaticEncoder(Table.of(E), idf).eval()(Bags.of(rows).take(torch.arange(6)))["text"].detach().numpy()
    sums = rows.toarray() @ (idf[:, None] * E)
    np.testing.assert_allclose(found[:5], sums[:5] / np.linalg.norm(sums[:5], axis=1, keepdims=True), rtol=1e-5)
    assert not found[5].any()


def test_numpy_serves_what_torch_trained(encoder, rows):
    exported = encoder.export()
    without_torch = served(served_encoders, exported.arrays, exported.meta)
    found = without_torch.features(rows)["text"]
    wanted = encoder(Bags.of(rows).take(torch.arange(6)))["text"].detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "form", [("tanh", True, True), ("none", True, True), ("none", False, True), ("none", True, False)]
)
def test_numpy_serves_heads(form):
    activation, unit, linear = form
    head = Head(D, 3 if linear else None, activation, 0.1, unit, linear).eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    x = torch.randn(4, D)
    x[3] = 0
    exported = head.export()
    found = ServedHead(exported.arrays, exported.meta)(x.numpy())
    np.testing.assert_allclose(found, head(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_a_dense_product(encoder, rows):
    found = encoder(Bags.of(rows).take(torch.arange(6)))["text"]
    (found * torch.arange(found.numel()).reshape(found.shape)).sum().backward()
    ids, grad = encoder.E.gradient()
    E = encoder.E.weight.clone().requires_grad_()
    sums = torch.from_numpy(rows.toarray()) @ (encoder.omega.weight * E)
    v = torch.nn.functional.normalize(sums, dim=1)
    text = v + encoder.linear(torch.nn.functional.gelu(v))
    (text * torch.arange(text.numel()).reshape(text.shape)).sum().backward()
    torch.testing.assert_close(grad, E.grad[ids], rtol=1e-4, atol=1e-5)
