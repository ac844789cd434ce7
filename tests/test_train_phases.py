"""Phases: groups at rates of their own, work that is repeated, plans of batches, averaged weights."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn  # noqa: E402
from training import StoppedError, stop_at  # noqa: E402

from longtail.core.errors import ParameterError  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.encoders.specials import padding  # noqa: E402
from longtail.encoders.table import Table  # noqa: E402
from longtail.train.average import Average  # noqa: E402
from longtail.train.learner import Learner  # noqa: E402
from longtail.train.loop import Loop  # noqa: E402
from longtail.train.phase import Group, Phase, Refresh  # noqa: E402
from longtail.train.plan import Clustered, Shuffled, Sized  # noqa: E402
from longtail.train.settings import LoopParameters  # noqa: E402

N = 12


class Toy(Learner):
    """Two linear maps and a table; each point has a target, and an offset that refreshes change."""

    def __init__(self, *phases: Phase):
        super().__init__()
        torch.manual_seed(0)
        self.phases, self.points = list(phases), N
        self.one, self.other, self.table = nn.Linear(3, 1), nn.Linear(3, 1), Table.random(N, 1, 0.1)
        self.register_buffer("offset", torch.zeros(N), persistent=False)
        self.x, self.y, self.seen = torch.randn(N, 3), torch.randn(N), []

    def forward(self, points: Tensor, phase: Phase, done: float) -> tuple[Tensor, dict[str, Tensor]]:
        self.seen.append(sorted(points.tolist()))
        found = (self.one(self.x[points]) + self.other(self.x[points]) + self.table.rows(points))[:, 0]
        return (found - self.y[points] - self.offset[points]).square().mean(), {}


def trained(learner: Toy, run: Run | None = None, **settings: Any) -> Loop:
    loop = Loop(learner, LoopParameters(**{"batch": 4, "min_steps": 1, **settings}), run or Run(device="cpu"))
    loop.train()
    return loop


def test_groups_have_rates_of_their_own() -> None:
    """The first step of Adam moves each weight by its rate, whatever the gradient."""
    groups = (Group("", 0.1), Group("other", 0.01), Group("*.bias", 0.0))
    learner = Toy(Phase("all", 1, groups))
    before = {name: tensor.clone() for name, tensor in learner.state_dict().items()}
    trained(learner, steps=1)
    moved = {name: (tensor - before[name]).abs().max().item() for name, tensor in learner.state_dict().items()}
    assert moved["one.weight"] == pytest.approx(0.1, rel=1e-3)
    assert moved["other.weight"] == pytest.approx(0.01, rel=1e-3)
    assert moved["table.weight"] == pytest.approx(0.1, rel=1e-3)
    assert moved["one.bias"] == moved["other.bias"] == 0, "a rate of 0 freezes"


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_decay_shrinks_weights_apart_from_their_gradient(decay: float) -> None:
    learner = Toy(Phase("all", 1, (Group("", 0.1, decay=decay),)))
    learner.x.zero_()  # so that only biases and the table have a gradient
    before = learner.one.weight.detach().clone(), learner.table.weight.clone()
    trained(learner, steps=1)
    torch.testing.assert_close(learner.one.weight.detach(), before[0] * (1 - 0.1 * decay))
    rows = learner.seen[0]
    change = learner.table.weight[rows] - before[1][rows] * (1 - 0.1 * decay)
    torch.testing.assert_close(change.abs(), torch.full_like(change, 0.1), rtol=1e-3, atol=1e-4)


def test_misspelt_modules_and_names_used_twice_are_refused() -> None:
    with pytest.raises(ParameterError, match="phase 'all' trains 'encodr', but the network has no such module"):
        trained(Toy(Phase("all", 1, (Group("encodr", 0.1),))))
    with pytest.raises(ParameterError, match="two phases of a training are called 'all'"):
        trained(Toy(*[Phase("all", 1, (Group("", 0.1),))] * 2))


def test_a_phase_has_a_batch_size_of_its_own() -> None:
    learner = Toy(Phase("small", 1, (Group("", 0.1),), batch=3), Phase("usual", 1, (Group("", 0.1),)))
    assert trained(learner).steps == [4, 3]
    assert [len(points) for points in learner.seen] == [3] * 4 + [4] * 3


def refreshing(calls: list[int]) -> Phase:
    def prepare(learner: Any) -> dict[str, np.ndarray]:
        calls.append(len(learner.seen))
        return {"offset": torch.rand(N).numpy()}

    def apply(learner: Any, structure: Any) -> None:
        learner.offset = torch.from_numpy(np.array(structure["offset"]))

    return Phase("one", 5, (Group("", 0.1),), refresh=Refresh(2, prepare, apply))


def test_work_is_repeated_every_few_epochs() -> None:
    calls: list[int] = []
    learner = Toy(refreshing(calls))
    trained(learner)
    assert calls == [6, 12], "of five epochs of three steps, before the third and the fifth"
    assert learner.offset.abs().sum() > 0


def test_a_resumed_training_has_what_was_refreshed(tmp_path: Path) -> None:
    whole = Toy(refreshing([]))
    trained(whole, Run(device="cpu", seed=3))
    calls: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 0, 8)
        with pytest.raises(StoppedError):
            trained(Toy(refreshing(calls)), Run(device="cpu", seed=3, folder=tmp_path / "run"))
    resumed = Toy(refreshing(calls))
    trained(resumed, Run(device="cpu", seed=3, folder=tmp_path / "run", resume=True))
    assert len(calls) == 2, "once before the stop, once after it"
    assert torch.equal(whole.offset, resumed.offset)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_what_a_phase_refreshed_is_there_when_a_later_one_resumes(tmp_path: Path) -> None:
    def toy(calls: list[int]) -> Toy:
        return Toy(refreshing(calls), Phase("two", 2, (Group("", 0.1),)))

    whole, resumed, calls = toy([]), toy([]), []
    trained(whole, Run(device="cpu", seed=3))
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 1, 2)
        with pytest.raises(StoppedError):
            trained(toy(calls), Run(device="cpu", seed=3, folder=tmp_path / "run"))
    trained(resumed, Run(device="cpu", seed=3, folder=tmp_path / "run", resume=True))
    assert torch.equal(whole.offset, resumed.offset) and whole.offset.abs().sum() > 0
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_a_phase_may_have_a_number_of_steps() -> None:
    learner = Toy(Phase("one", 5, (Group("", 0.1),), steps=7), Phase("two", 2, (Group("", 0.1),)))
    assert trained(learner).steps == [7, 6]


def test_similar_points_share_batches() -> None:
    clusters = np.array([0, 1, 2] * 4)
    plan = Clustered(lambda learner: clusters)
    orders = [plan.order(None, (1, 0, epoch)) for epoch in range(3)]
    for order in orders:
        assert sorted(order) == list(range(N))
        assert all(len(set(clusters[order[first : first + 4]])) == 1 for first in (0, 4, 8))
    assert not np.array_equal(orders[0], orders[1])
    assert np.array_equal(orders[0], plan.order(None, (1, 0, 0))), "a function of seed, phase and epoch"
    learner = Toy(Phase("one", 2, (Group("", 0.1),), plan=plan))
    trained(learner)
    assert all(len(set(clusters[points])) == 1 for points in learner.seen)


def test_texts_of_similar_length_share_batches() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 1003)
    plan = Sized(lambda learner: lengths, batch=10, window=20)
    orders = [plan.order(None, (1, 0, epoch)) for epoch in range(2)]
    for order in orders:
        assert sorted(order) == list(range(len(lengths)))
        assert padding(lengths, 10, order) < 0.1
        means = lengths[order[:1000]].reshape(-1, 10).mean(1)
        assert abs(np.corrcoef(means[1:], means[:-1])[0, 1]) < 0.3, "batches come in random order"
    assert padding(lengths, 10, Shuffled().order(SimpleNamespace(points=len(lengths)), (1, 0, 0))) > 0.4
    assert not np.array_equal(orders[0], orders[1])
    assert np.array_equal(orders[0], plan.order(None, (1, 0, 0))), "a function of seed, phase and epoch"
    for few in (7, 0):
        assert sorted(Sized(lambda learner, n=few: lengths[:n], batch=10).order(None, (0, 0, 0))) == [*range(few)]


def test_the_share_of_pads() -> None:
    lengths = np.array([1, 4, 2, 2, 3])
    assert padding(lengths, 2) == pytest.approx(3 / 15)  # of 8, 4 and 3 places
    assert padding(lengths, 2, np.array([0, 2, 3, 4, 1])) == pytest.approx(2 / 14)  # of 4, 6 and 4
    assert padding(lengths, 1) == 0 and padding(lengths[:0], 3) == 0


def test_a_plan_is_all_points_in_random_order() -> None:
    order = Shuffled().order(SimpleNamespace(points=N), (0, 0, 0))
    assert sorted(order) == list(range(N)) and order.tolist() != sorted(order)


def averaged(share: float | None) -> Phase:
    return Phase("one", 4, (Group("", 0.1),), average=share)


def test_weights_are_averaged_over_the_last_epochs(tmp_path: Path) -> None:
    ends: list[dict[str, Tensor]] = []
    learner = Toy(averaged(0.5))
    with pytest.MonkeyPatch.context() as patch:
        plain = Loop._end_epoch

        def seen(self: Loop, *args: Any) -> None:
            plain(self, *args)
            ends.append({name: tensor.clone() for name, tensor in learner.state_dict().items()})

        patch.setattr(Loop, "_end_epoch", seen)
        trained(learner)
    assert len(ends) == 4
    for name, tensor in learner.state_dict().items():  # the second, third and fourth epoch end in the second half
        torch.testing.assert_close(tensor, torch.stack([end[name] for end in ends[1:]]).mean(0))
        assert not torch.equal(tensor, ends[-1][name])


def test_validation_sees_averaged_weights_and_training_goes_on_without(tmp_path: Path) -> None:
    watched = []
    learner, plain = Toy(averaged(0.5)), Toy(averaged(None))

    def watch() -> dict[str, float]:
        watched.append(learner.one.weight.detach().clone())
        return {"mean": 0.0}

    loop = Loop(learner, LoopParameters(batch=4, min_steps=1), Run(device="cpu"), watch=watch)
    loop.train()
    trained(plain)
    assert torch.equal(watched[-1], learner.one.weight.detach())
    assert learner.seen == plain.seen
    assert loop.average.count == 3


def test_a_resumed_training_has_the_same_average(tmp_path: Path) -> None:
    whole, resumed = Toy(averaged(0.25)), Toy(averaged(0.25))
    trained(whole, Run(device="cpu", seed=3))
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 0, 8)
        with pytest.raises(StoppedError):
            trained(Toy(averaged(0.25)), Run(device="cpu", seed=3, folder=tmp_path / "run"))
    trained(resumed, Run(device="cpu", seed=3, folder=tmp_path / "run", resume=True))
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_an_average_before_the_first_epoch_changes_nothing() -> None:
    module = nn.Linear(2, 2)
    before = module.weight.detach().clone()
    with Average().used_in(module):
        assert torch.equal(module.weight, before)
    Average().put_into(module)
    assert torch.equal(module.weight, before)


# --- clipping at recent norms


def recent_bounds(norms: list[float], times: float) -> list[float]:
    """The bound before each step, from all norms before it."""
    kept: list[float] = []
    bounds = []
    for norm in norms:
        longest = max(kept[-5:]) if kept else np.inf
        bounds.append(times * longest)
        kept.append(min(norm, 2 * longest, 1.0))
    return bounds


@pytest.mark.parametrize("clip", [None, 0.3])
def test_gradients_are_clipped_at_recent_norms(clip: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Toy(Phase("one", 10, (Group("", 0.1),), clip=clip, clip_recent=0.5))
    step, before, after = torch.optim.AdamW.step, [], []
    clipping = torch.nn.utils.clip_grad_norm_

    def seen(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        before.append(float(clipping(parameters, *args, **kwargs)))
        return torch.tensor(before[-1])

    def stepped(self: Any, *args: Any) -> Any:
        after.append(sum(float(p.grad.square().sum()) for p in learner.parameters() if p.grad is not None) ** 0.5)
        return step(self, *args)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", seen)
    monkeypatch.setattr(torch.optim.AdamW, "step", stepped)
    trained(learner)
    bounds = np.minimum(recent_bounds(before, 0.5), clip or np.inf)
    assert len(after) == 30 and max(before) > 1, "longer than a norm counts"
    np.testing.assert_allclose(after, np.minimum(before, bounds), rtol=1e-4)
    assert (np.array(before) > bounds).sum() > 5


def test_recent_norms_are_part_of_a_checkpoint(tmp_path: Path) -> None:
    def made() -> Toy:
        return Toy(Phase("one", 4, (Group("", 0.1),), clip_recent=0.5))

    whole = made()
    trained(whole, Run(device="cpu", seed=3))
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 0, 7)
        with pytest.raises(StoppedError):
            trained(made(), Run(device="cpu", seed=3, folder=tmp_path / "run"))
    resumed = made()
    loop = trained(resumed, Run(device="cpu", seed=3, folder=tmp_path / "run", resume=True))
    assert loop.optimisers.recent is not None and len(loop.optimisers.recent.norms) == 5
    for name, tensor in whole.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], tensor), name
