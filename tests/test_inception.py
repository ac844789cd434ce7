"""InceptionXML's encoder against its formulas written out, and what training needs from it."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import longtail  # noqa: E402
from longtail.core.errors import ParameterError  # noqa: E402
from longtail.encoders.dropout import Dropout  # noqa: E402
from longtail.encoders.inception import Concatenation, EmbeddingEnhancement, Inception, Mixture, settled  # noqa: E402

EXPERTS = ((4, 0), (8, 2), (16, 6))


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    """One thread: two threads that wait for each other in such small sums are slow on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def numbers(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def stirred(module: torch.nn.Module) -> torch.nn.Module:
    """In eval mode, with no parameter at 0 or 1, where a mistake would not be visible."""
    for parameter in module.parameters():
        if parameter.ndim < 2:
            torch.nn.init.normal_(parameter, 0.5, 0.3)
    for name, buffer in module.named_buffers():
        if name.endswith("running_mean"):
            torch.nn.init.normal_(buffer)
        if name.endswith("running_var"):
            torch.nn.init.uniform_(buffer, 0.5, 2)
    return module.eval()


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def enhanced(x: np.ndarray, module: EmbeddingEnhancement) -> np.ndarray:
    """h = x + γ₁(x xᵀ)(W₁x), h′ = hᵀ + γ₂(hᵀx)(W₂hᵀ), text by text."""
    W1, W2 = numbers(module.W1.weight)[:, :, 0], numbers(module.W2.weight)
    gamma1, gamma2 = numbers(module.gamma1), numbers(module.gamma2)
    found = []
    for one in x:
        h = one + gamma1 * (one @ one.T) @ (W1 @ one)
        found.append((h.T + gamma2 * (h.T @ one) @ (W2 @ h.T)).T)
    return np.array(found)


def convolved(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int, padding: int = 0) -> np.ndarray:
    """A convolution of (B, C, D) with circular padding, place by place."""
    B, _, D = x.shape
    width = weight.shape[2]
    places = (D + 2 * padding - width) // stride + 1
    found = np.empty((B, len(weight), places))
    for place in range(places):
        under = [(place * stride - padding + k) % D for k in range(width)]
        found[:, :, place] = np.einsum("bck,ock->bo", x[:, :, under], weight) + bias
    return found


def normed(x: np.ndarray, norm: torch.nn.BatchNorm1d) -> np.ndarray:
    mean, variance, weight, bias = (
        numbers(part)[:, None] for part in (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    )
    return (x - mean) / np.sqrt(variance + norm.eps) * weight + bias


def parallel(x: np.ndarray, module: Concatenation) -> list[np.ndarray]:
    bias = numbers(module.bias).reshape(3, -1)
    return [
        convolved(x, numbers(weight), bias[e], 4, padding)
        for e, (weight, (_, padding)) in enumerate(zip(module.weights, EXPERTS, strict=True))
    ]


def mixture(x: np.ndarray, module: Mixture) -> np.ndarray:
    route = 1 / (1 + np.exp(-(x.mean(2) @ numbers(module.route.weight).T + numbers(module.route.bias))))  # (B, 3)
    S = x.shape[2] // 4
    pooled = x[:, :, : 4 * S].reshape(*x.shape[:2], S, 4).mean(3)
    return sum(route[:, e, None, None] * maps for e, maps in enumerate(parallel(x, module))) + pooled


def literal(x: np.ndarray, mask: np.ndarray, module: Inception) -> dict[str, np.ndarray]:
    """The whole encoder in eval mode, in the order of the specification."""
    x = np.where(mask[:, :, None], x, 0)
    if module.project is not None:
        x = x @ numbers(module.project.weight).T
    x = enhanced(x, module.enhance)
    x = convolved(x, numbers(module.words.weight), numbers(module.words.bias), 1)
    x = normed(gelu(x), module.after_words[1])
    x = mixture(x, module.maps) if isinstance(module.maps, Mixture) else np.concatenate(parallel(x, module.maps), 1)
    x = normed(gelu(x), module.after_maps[1])
    found = {}
    for task, hidden in module.hidden.items():
        convolution, _, norm, _ = module.second[module.reads[task]]
        y = normed(gelu(convolved(x, numbers(convolution.weight), numbers(convolution.bias), 4)), norm)
        flat = y.reshape(len(y), -1)
        skip = flat if isinstance(hidden.skip, torch.nn.Identity) else flat @ numbers(hidden.skip.weight).T
        found[task] = gelu(flat @ numbers(hidden.W.weight).T + numbers(hidden.W.bias)) + skip
    return found


def some_texts(B: int, T: int, D: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Word vectors, padding too, and a mask with texts of every length from none to T."""
    return torch.randn(B, T, D) * 0.4, torch.arange(T) < torch.linspace(0, T, B).round()[:, None]


@pytest.mark.parametrize(("D", "flat"), [(300, 480), (100, 96), (64, 32), (50, 32), (128, 160)])
@pytest.mark.parametrize("routed", [False, True])
def test_published_sizes(D: int, flat: int, routed: bool) -> None:
    encoder = Inception(D, routed=routed)
    assert encoder.widths == {"meta": flat, "label": D if routed else flat}
    features = encoder(*some_texts(4, 32, D))
    assert {name: tuple(value.shape) for name, value in features.items()} == {
        name: (4, width) for name, width in encoder.widths.items()
    }
    assert encoder.maps(torch.zeros(2, 32, D)).shape == (2, 32 if routed else 96, D // 4)


def test_enhancement_is_the_formula() -> None:
    module = stirred(EmbeddingEnhancement(7, 5))
    x = torch.randn(3, 5, 7)
    assert np.allclose(numbers(module(x)), enhanced(numbers(x), module), atol=1e-5)
    assert np.allclose(np.linalg.norm(numbers(module.W2.weight), 2), 1, atol=0.1)
    begun = EmbeddingEnhancement(7, 5).eval()
    assert torch.equal(begun(x), x)  # γ begins at 0


@pytest.mark.parametrize("D", [64, 67, 70])
def test_parallel_convolutions_are_three(D: int) -> None:
    x = torch.randn(2, 3, D)
    concatenated, mixed = stirred(Concatenation(3)), stirred(Mixture(3))
    assert np.allclose(numbers(concatenated(x)), np.concatenate(parallel(numbers(x), concatenated), 1), atol=1e-5)
    assert np.allclose(numbers(mixed(x)), mixture(numbers(x), mixed), atol=1e-5)
    own = torch.nn.Conv1d(3, 3, 8, 4, 2, padding_mode="circular")  # and the second as torch would have it
    own.weight, own.bias = concatenated.weights[1], torch.nn.Parameter(concatenated.bias[3:6])
    assert torch.allclose(concatenated(x)[:, 3:6], own(x), atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"routed": True}, {"routed": True, "width": 17}, {"width": 17}])
@pytest.mark.parametrize("D", [81, 20])
def test_the_whole_is_the_specification(D: int, settings: dict) -> None:
    encoder = stirred(Inception(D, 6, channels=3, **settings))
    x, mask = some_texts(5, 6, D)
    expected = literal(numbers(x), mask.numpy(), encoder)
    for task, value in encoder(x, mask).items():
        assert value.shape == (5, encoder.widths[task])
        assert np.abs(expected[task]).max() > 0.1
        assert np.allclose(numbers(value), expected[task], atol=1e-5, rtol=1e-4), task


@pytest.mark.parametrize("routed", [False, True])
def test_padding_does_not_matter(routed: bool) -> None:
    encoder = stirred(Inception(64, 9, routed=routed))
    x, mask = some_texts(6, 9, 64)
    mask &= torch.arange(9) < 5
    expected = encoder(x, mask)
    other = torch.where(mask[:, :, None], x, torch.full_like(x, 1e3))
    for given in ((other, mask), (x[:, :5], mask[:, :5]), (x[:, :7], mask[:, :7])):
        for task, value in encoder(*given).items():
            assert torch.allclose(value, expected[task], atol=1e-5), task
    alone = encoder(x[3:4], mask[3:4])
    assert torch.allclose(alone["label"], expected["label"][3:4], atol=1e-5)
    with pytest.raises(ParameterError, match="at most 9 words.*got 10"):
        encoder(torch.zeros(2, 10, 64), torch.ones(2, 10, dtype=torch.bool))


@pytest.mark.parametrize("routed", [False, True])
def test_same_seed_same_training(routed: bool) -> None:
    def trained() -> list[torch.Tensor]:
        torch.manual_seed(3)
        encoder = Inception(64, 6, routed=routed)
        optimiser = torch.optim.Adam(encoder.parameters(), 1e-2)
        x, mask = some_texts(8, 6, 64)
        for _ in range(3):
            optimiser.zero_grad()
            sum(value.square().mean() for value in encoder(x, mask).values()).backward()
            optimiser.step()
        return [*encoder.state_dict().values()]

    first, second = trained(), trained()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("routed", [False, True])
def test_it_learns_and_every_parameter_takes_part(routed: bool) -> None:
    """Texts differ only in the order of their words; a linear map of each task tells which came first."""
    encoder = Inception(64, 4, routed=routed, word_dropout=0, map_dropout=0, hidden_dropout=0)
    begun = {name: parameter.detach().clone() for name, parameter in encoder.named_parameters()}
    heads = torch.nn.ModuleDict({task: torch.nn.Linear(width, 1) for task, width in encoder.widths.items()})
    words = torch.randn(2, 64)
    order = torch.randint(0, 2, (64,))
    x = torch.stack([words[order], words[1 - order]], 1) + 0.1 * torch.randn(64, 2, 64)
    optimiser = torch.optim.Adam([*encoder.parameters(), *heads.parameters()], 1e-2)
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(40):
        optimiser.zero_grad()
        features = encoder(x, torch.ones(64, 2, dtype=torch.bool))
        total = sum(loss(heads[task](value)[:, 0], order.float()) for task, value in features.items())
        total.backward()
        optimiser.step()
    assert total < 0.1
    encoder.eval()
    for task, value in encoder(x, torch.ones(64, 2, dtype=torch.bool)).items():
        assert ((heads[task](value)[:, 0] > 0) == order).float().mean() > 0.95
    still = [name for name, parameter in encoder.named_parameters() if torch.equal(parameter, begun[name])]
    assert not still
    assert np.linalg.norm(numbers(encoder.hidden["meta"].W.weight), 2) < 1.05  # the spectral norm held


def test_detached_tasks_train_their_own_layer_alone() -> None:
    encoder = Inception(64, 4)
    detached = frozenset({"label"})
    x, mask = some_texts(8, 4, 64)
    x.requires_grad_()
    encoder(x, mask, detached)["label"].sum().backward()
    with_gradient = {name for name, parameter in encoder.named_parameters() if parameter.grad is not None}
    assert with_gradient and all(name.startswith("hidden.label") for name in with_gradient)
    assert x.grad is None
    encoder(x, mask, detached)["meta"].sum().backward()
    assert x.grad is not None and x.grad.abs().sum() > 0


@pytest.mark.parametrize("routed", [False, True])
def test_under_autocast(routed: bool) -> None:
    encoder = Inception(64, 6, routed=routed, word_dropout=0, map_dropout=0, hidden_dropout=0)
    torch.nn.init.constant_(encoder.enhance.gamma1, 0.1)
    x, mask = some_texts(8, 6, 64)
    for training in (True, False):
        encoder.train(training)
        # not bfloat16: its products take AMX, which kills the process on virtual machines that only announce it
        with torch.autocast("cpu", torch.float16):
            found = encoder(x, mask)
        sum(value.float().sum() for value in found.values()).backward()
        assert all(torch.isfinite(p.grad).all() for p in encoder.parameters())
        if not training:
            exact = encoder(x, mask)
            assert all(torch.allclose(found[t].float(), exact[t], atol=0.15, rtol=0.1) for t in exact)


@pytest.mark.parametrize("routed", [False, True])
def test_settled_predicts_the_same(routed: bool) -> None:
    encoder = stirred(Inception(64, 6, routed=routed)).train()
    x, mask = some_texts(8, 6, 64)
    settling = settled(encoder)
    assert encoder.training and not settling.training
    expected = encoder.eval()(x, mask)
    for task, value in settling(x, mask).items():
        assert torch.allclose(value, expected[task], atol=1e-6) and not value.requires_grad
    assert not [name for name in settling.state_dict() if "parametrizations" in name]
    assert [name for name in encoder.state_dict() if "parametrizations" in name]


def test_a_batch_of_one_text_trains() -> None:
    encoder = Inception(50, 4)  # projected to 64, of which one place is left: nothing to take a variance of
    found = encoder(torch.randn(1, 4, 50), torch.ones(1, 4, dtype=torch.bool))
    found["label"].sum().backward()
    assert torch.isfinite(found["meta"]).all() and found["meta"].abs().sum() > 0
    empty = encoder.eval()(torch.randn(2, 4, 50), torch.zeros(2, 4, dtype=torch.bool))
    assert torch.equal(empty["meta"][0], empty["meta"][1])


@pytest.mark.parametrize("setting", [{"D": 0}, {"length": 0}, {"width": 0}, {"channels": -1}])
def test_refuses_by_name(setting: dict) -> None:
    (name, value), *_ = setting.items()
    with pytest.raises(ParameterError, match=f"inception: {name} must be at least 1, but is {value}"):
        Inception(**({"D": 64} | setting))


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.3, 0.5, 0.9])
def test_dropout_drops_its_share(rate: float) -> None:
    dropout, x = Dropout(rate), torch.ones(1001, 203, requires_grad=True)
    found = dropout(x)
    kept = found != 0
    assert abs(kept.float().mean() - (1 - rate)) < 0.005
    assert torch.allclose(found[kept], torch.tensor(1 / (1 - rate)), rtol=1e-3)
    assert abs(found.mean() - 1) < 0.02
    both = (kept[:, 1:] & kept[:, :-1]).float().mean()  # neighbours are drawn apart
    assert abs(both - (1 - rate) ** 2) < 0.01
    found.sum().backward()
    assert torch.equal(x.grad, found.detach())
    assert dropout.eval()(x) is x


def test_dropout_follows_the_seed_and_keeps_the_type() -> None:
    dropout, x = Dropout(0.4), torch.ones(7, 3)
    torch.manual_seed(1)
    first = dropout(x)
    torch.manual_seed(1)
    assert torch.equal(dropout(x), first) and not torch.equal(dropout(x), first)
    assert dropout(x.bfloat16()).dtype == torch.bfloat16 and dropout(x[:0]).shape == (0, 3)
    with pytest.raises(ParameterError, match="rate must be at least 0 and below 1, but is 1"):
        Dropout(1)


def test_labels_train_the_encoder_in_the_end_however_short_the_training() -> None:
    found = []
    for epochs, detached in ((45, 10), (5, 10), (10, 10), (8, 2), (3, 0)):
        recipe: Any = longtail.recipe("inceptionxml", epochs=epochs, detached=detached)
        found.append(recipe.phases()[0].detached)
    assert found == [((1, 10 / 45),), ((1, 10 / 45),), ((1, 10 / 45),), ((1, 0.25),), ()]
    lf: Any = longtail.recipe("inceptionxml-lf", epochs=8, detached=2)
    assert [phase.detached for phase in lf.phases()] == [((1, 0.25),)] * 2
    assert [phase.detached for phase in longtail.recipe("inceptionxml-lf").phases()] == [()] * 2  # type: ignore[attr-defined]
