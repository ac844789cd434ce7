"""Tables of which a step uses few rows, their Adam, and the sums and products over such rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from longtail.encoders import sums  # noqa: E402
from longtail.encoders.sums import CandidateLogits, WeightedSums, turned  # noqa: E402
from longtail.encoders.table import Table, compact  # noqa: E402
from longtail.train.adam import TableAdam, TableSGD  # noqa: E402

seeds = st.integers(0, 2**32 - 1)


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def picks(n: int, steps: int, rng: np.random.Generator) -> list[torch.Tensor]:
    """For each step the rows it uses, without duplicates."""
    return [torch.from_numpy(rng.permutation(n)[: rng.integers(1, n + 1)]) for _ in range(steps)]


@given(seed=seeds, n=st.integers(1, 9), d=st.integers(1, 4), steps=st.integers(1, 6))
def test_adam_of_a_table_is_sparse_adam(seed: int, n: int, d: int, steps: int) -> None:
    begin = draw(seed, n, d)
    table = Table(begin.clone())
    adam = TableAdam(table)
    weight = torch.nn.Parameter(begin.clone())
    theirs = torch.optim.SparseAdam([weight], lr=1.0)
    for step, ids in enumerate(picks(n, steps, np.random.default_rng(seed))):
        gradients, lr = draw(seed + step, len(ids), d), 0.1 / (step + 1)
        gradients += gradients.sign() / 2  # theirs adds ε before the bias of moments is taken out: felt near 0 alone
        (table.rows(ids) * gradients).sum().backward()
        found = table.gradient()
        assert found is not None
        adam.step(*found, lr)
        weight.grad = torch.sparse_coo_tensor(ids[None], gradients, (n, d), check_invariants=True)
        theirs.param_groups[0]["lr"] = lr
        theirs.step()
        torch.testing.assert_close(table.weight, weight.detach(), rtol=1e-5, atol=1e-6)


@given(seed=seeds, n=st.integers(1, 9), d=st.integers(1, 4), steps=st.integers(1, 6))
def test_sgd_of_a_table_written_out(seed: int, n: int, d: int, steps: int) -> None:
    """m ← 0.9 m + g, w ← (1 − ηλ) w − η m in doubles, of the rows used alone; checkpoints hold the momentum."""
    table = Table(draw(seed, n, d))
    w, m, decay = table.weight.double().numpy().copy(), np.zeros((n, d)), 0.1
    sgd = TableSGD(table)
    for step, ids in enumerate(picks(n, steps, np.random.default_rng(seed))):
        gradients, lr = draw(seed + step, len(ids), d), 0.1 / (step + 1)
        (table.rows(ids) * gradients).sum().backward()
        found = table.gradient()
        assert found is not None
        sgd.step(*found, lr, decay)
        rows = ids.numpy()
        m[rows] = 0.9 * m[rows] + gradients.double().numpy()
        w[rows] = (1 - lr * decay) * w[rows] - lr * m[rows]
        np.testing.assert_allclose(table.weight.numpy(), w, rtol=1e-4, atol=1e-5)
        again = TableSGD(table)
        again.restore(sgd.state())
        sgd = again


def test_gradients_of_many_parts_are_gathered() -> None:
    """As gradient caching leaves them, chunk by chunk: each row is held once."""
    table, total = Table(draw(0, 5, 2)), torch.zeros(5, 2)
    for part, ids in enumerate(([0, 3], [3, 1], [0, 4])):
        gradients = draw(part, 2, 2)
        (table.rows(torch.tensor(ids)) * gradients).sum().backward()
        total.index_add_(0, torch.tensor(ids), gradients)
        table.gather()
    found = table.gradient()
    assert found is not None and found[0].tolist() == [0, 1, 3, 4]
    torch.testing.assert_close(found[1], total[found[0]])
    assert table.gradient() is None


def test_adam_written_out() -> None:
    """Row by row in doubles: an unused row keeps weights and moments; the step count belongs to the table."""
    rng = np.random.default_rng(3)
    n, d, lr = 6, 3, 0.05
    table = Table(draw(1, n, d))
    adam = TableAdam(table)
    weight = table.weight.double().numpy().copy()
    first, second = np.zeros((n, d)), np.zeros((n, d))
    for t, ids in enumerate(picks(n, 12, rng), 1):
        gradient = draw(t, len(ids), d)
        adam.step(ids, gradient, lr)
        for row, g in zip(ids.tolist(), gradient.double().numpy(), strict=True):
            first[row] = 0.9 * first[row] + 0.1 * g
            second[row] = 0.999 * second[row] + 0.001 * g * g
            lower = np.sqrt(second[row] / (1 - 0.999**t)) + 1e-8
            weight[row] -= lr * first[row] / (1 - 0.9**t) / lower
    np.testing.assert_allclose(table.weight.numpy(), weight, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(adam.first.numpy(), first, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(adam.second.numpy(), second, rtol=1e-4, atol=1e-9)


def test_adam_goes_on_from_its_state() -> None:
    tables = [Table(draw(5, 4, 2)) for _ in range(2)]
    adams = [TableAdam(table) for table in tables]
    for step in range(3):
        for adam in adams:
            adam.step(torch.tensor([step, 3]), draw(step, 2, 2), 0.1)
    again = TableAdam(tables[1])
    again.restore({name: tensor.clone() for name, tensor in adams[1].state().items()})
    for adam in (adams[0], again):
        adam.step(torch.tensor([0, 2]), draw(9, 2, 2), 0.1)
    assert torch.equal(tables[0].weight, tables[1].weight)
    assert again.steps == 4


@given(seed=seeds, n=st.integers(1, 8), calls=st.integers(1, 4))
def test_gradients_of_several_calls_add_up(seed: int, n: int, calls: int) -> None:
    table, d = Table(draw(seed, n, 3)), 3
    whole = table.weight.clone().requires_grad_()
    loss, expected = torch.zeros(()), torch.zeros(())
    asked = picks(n, calls, np.random.default_rng(seed))
    for i, ids in enumerate(asked):
        weights = draw(seed + i, len(ids), d)
        loss = loss + (table.rows(ids).square() * weights).sum()
        expected = expected + (whole[ids].square() * weights).sum()
    assert torch.allclose(loss, expected)
    loss.backward()
    expected.backward()
    found = table.gradient()
    assert found is not None
    ids, gradient = found
    touched = sorted({int(i) for ids in asked for i in ids})
    assert sorted(ids.tolist()) == touched
    dense = torch.zeros(n, d).index_add_(0, ids, gradient)
    torch.testing.assert_close(dense, whole.grad)
    assert table.gradient() is None, "they are given out once"


def test_rows_that_no_loss_read_have_no_gradient() -> None:
    table = Table(draw(0, 5, 2))
    assert table.gradient() is None
    table.rows(torch.tensor([1, 2]))
    table.rows(torch.tensor([4])).sum().backward()
    found = table.gradient()
    assert found is not None and found[0].tolist() == [4]


def test_a_frozen_table_and_rows_without_gradient_are_constants() -> None:
    table = Table(draw(0, 5, 2))
    table.trainable = False
    assert not table.rows(torch.tensor([0])).requires_grad
    table.trainable = True
    with torch.no_grad():
        assert not table.rows(torch.tensor([0])).requires_grad
    assert table.gradient() is None
    assert not table.weight.requires_grad and not list(table.parameters()), "no optimiser of torch finds it"
    rows = table.rows(torch.tensor([3, 1]))
    with torch.no_grad():
        rows.add_(1)
    assert torch.equal(table.weight, draw(0, 5, 2)), "rows are copies"


@given(ids=st.lists(st.integers(0, 9), max_size=30), wide=st.booleans())
def test_compact_is_unique(ids: list[int], wide: bool) -> None:
    given_ids = torch.tensor(ids, dtype=torch.long).view((-1, 1) if wide else (-1,))
    found, at = compact(given_ids, 10)
    expected, place = given_ids.unique(return_inverse=True)
    assert torch.equal(found, expected) and torch.equal(at, place)


@st.composite
def patterns(draw_from: st.DrawFn) -> tuple[list[list[int]], int]:
    """Rows of columns below a width; rows may be empty, and a column may occur twice in a row."""
    width = draw_from(st.integers(1, 6))
    rows = st.lists(st.integers(0, width - 1), max_size=5)
    return draw_from(st.lists(rows, min_size=1, max_size=6)), width


def flat(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return torch.tensor([c for row in rows for c in row], dtype=torch.long), torch.from_numpy(ptr.astype(np.int64))


@given(pattern=patterns(), seed=seeds)
def test_weighted_sums_and_their_gradient(pattern: tuple[list[list[int]], int], seed: int) -> None:
    rows, width = pattern
    at, ptr = flat(rows)
    vectors, weights, back = draw(seed, width, 3), draw(seed + 1, len(at)), draw(seed + 2, len(rows), 3)
    dense = torch.zeros(len(rows), width)
    for b, row in enumerate(rows):
        for j, column in enumerate(row):
            dense[b, column] += weights[ptr[b] + j]
    mine, plain = vectors.clone().requires_grad_(), vectors.clone().requires_grad_()
    summed = WeightedSums.apply(mine, at, ptr, weights)
    torch.testing.assert_close(summed, dense @ plain, rtol=1e-5, atol=1e-5)
    (summed * back).sum().backward()
    (dense @ plain * back).sum().backward()
    torch.testing.assert_close(mine.grad, plain.grad, rtol=1e-5, atol=1e-5)


def test_weighted_sums_of_nothing() -> None:
    """A batch in which no text has a known word."""
    vectors = torch.zeros(0, 3, requires_grad=True)
    none = torch.zeros(0, dtype=torch.long)
    summed = WeightedSums.apply(vectors, none, torch.zeros(3, dtype=torch.long), torch.zeros(0))
    assert torch.equal(summed, torch.zeros(2, 3))
    summed.sum().backward()
    assert vectors.grad is not None and vectors.grad.shape == (0, 3)


@given(pattern=patterns())
def test_both_ways_to_turn_a_pattern(pattern: tuple[list[list[int]], int]) -> None:
    rows, width = pattern
    at, ptr = flat(rows)
    entries = [(column, b, int(ptr[b]) + j) for b, row in enumerate(rows) for j, column in enumerate(row)]
    entries.sort()
    counted = turned(at, ptr, width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums.sp, "csr_matrix", None)  # the other way has no use for it
        by_sort = turned(NotOnCpu(at), ptr, width)
    for found in (counted, by_sort):
        assert found.rows.tolist() == [b for _, b, _ in entries]
        assert found.order.tolist() == [entry for _, _, entry in entries]
        assert found.ptr.tolist() == [sum(c < column for c, _, _ in entries) for column in range(width)]


class NotOnCpu:
    """A tensor that says it is on a GPU."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor
        self.device = torch.device("cuda")

    def __len__(self) -> int:
        return len(self.tensor)

    def argsort(self, stable: bool) -> torch.Tensor:
        self.device = self.tensor.device  # what follows is made beside it
        return self.tensor.argsort(stable=stable)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return func(*(a.tensor if isinstance(a, NotOnCpu) else a for a in args), **(kwargs or {}))


@given(seed=seeds, B=st.integers(1, 5), C=st.integers(1, 6), U=st.integers(1, 6), d=st.integers(1, 4))
def test_logits_of_candidates_and_their_gradients(seed: int, B: int, C: int, U: int, d: int) -> None:
    at = torch.from_numpy(np.random.default_rng(seed).integers(0, U, (B, C)))  # with duplicates
    x, vectors, back = draw(seed, B, d), draw(seed + 1, U, d), draw(seed + 2, B, C)
    mine = [tensor.clone().requires_grad_() for tensor in (x, vectors)]
    plain = [tensor.clone().requires_grad_() for tensor in (x, vectors)]
    logits = CandidateLogits.apply(*mine, at)
    expected = (plain[0] @ plain[1].T).gather(1, at)
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
    (logits * back).sum().backward()
    (expected * back).sum().backward()
    for one, other in zip(mine, plain, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-5)
