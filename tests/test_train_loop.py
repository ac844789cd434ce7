"""The training loop: its parts, several processes, and how it ends."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pytest
from corpora import topic_corpus

torch = pytest.importorskip("torch")
from training import BATCH, SETTINGS, fit, stop_at  # noqa: E402

import longtail  # noqa: E402
from longtail.core.errors import DataError, ParameterError  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.data.corpus import Corpus  # noqa: E402
from longtail.data.write import write  # noqa: E402
from longtail.train import memory  # noqa: E402
from longtail.train.fit import trains_again  # noqa: E402
from longtail.train.loop import Loop, share_of  # noqa: E402
from longtail.train.optimise import Optimisers  # noqa: E402
from longtail.train.phase import Group, Phase, steps_of  # noqa: E402
from longtail.train.plan import Shuffled  # noqa: E402
from longtail.train.settings import LoopParameters  # noqa: E402
from longtail.train.step import Averages  # noqa: E402


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return topic_corpus(60)


@pytest.fixture(autouse=True)
def _not_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips syncing: no machine is switched off here, and waiting for hundreds of small files takes long."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


# --- steps


def learner_of(name: str, corpus: Corpus, **changed: Any) -> Any:
    no_dropout = {"dropout": 0.0} | ({"label_dropout": 0.0} if name in ("decaf", "eclare") else {})
    recipe: Any = longtail.recipe(name, **{**SETTINGS[name], **no_dropout, **changed})
    torch.manual_seed(0)
    return recipe.network(recipe.read(corpus.train, corpus.labels, Run()), 0)


def gradients(loop: Loop, number: int, step: int) -> dict[str, torch.Tensor]:
    """The gradients of a step, of parameters and of tables; nothing is updated."""
    found: dict[str, torch.Tensor] = {}

    def seen(self: Loop) -> None:
        found.update({n: p.grad.clone() for n, p in self.learner.named_parameters() if p.grad is not None})
        for name, table in self.learner.tables().items():
            own = table.gradient()
            if own is not None:
                found[name] = torch.zeros_like(table.weight).index_add_(0, *own)
        self.learner.zero_grad()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Optimisers, "move", lambda self, *args: seen(loop))
        loop.step(number, step)
    return found


def test_in_parts_the_gradient_is_that_of_the_whole(corpus: Corpus) -> None:
    """DECAF: no batch norm, no spectral norm, dropout 0."""
    learner = learner_of("decaf", corpus)
    for number, phase in enumerate(learner.phases):
        phase.build(learner, phase.prepare(learner))
        found = []
        for accumulate in (1, 4):
            loop = Loop(learner, LoopParameters(batch=20, accumulate=accumulate), Run(device="cpu"))
            loop.structures[phase.name] = {}  # it is built
            loop.open(number)
            found.append(gradients(loop, number, 0))
        whole, parts = found
        assert whole.keys() == parts.keys() and any(t.abs().sum() for t in whole.values())
        for name, tensor in whole.items():
            if phase.levels == (0,):
                torch.testing.assert_close(parts[name], tensor, rtol=1e-4, atol=1e-7)
            else:  # the mean is over the candidates of each part, of which there are not equally many
                alike = torch.cosine_similarity(parts[name].flatten(), tensor.flatten(), 0)
                assert alike > 0.95 and parts[name].norm() == pytest.approx(float(tensor.norm()), rel=0.2), name


def test_more_parts_than_points(corpus: Corpus) -> None:
    learner = learner_of("decaf", corpus)
    loop = Loop(learner, LoopParameters(batch=7, accumulate=9, min_steps=1), Run(device="cpu"))
    loop.open(0)
    assert np.isfinite(loop.step(0, 8)["loss"])  # the last batch of 60 points: 4


def test_a_loss_that_is_no_number(corpus: Corpus) -> None:
    learner = learner_of("decaf", corpus)
    loop = Loop(learner, LoopParameters(batch=BATCH), Run(device="cpu"))
    learner.encoder.E.weight.fill_(float("nan"))
    with pytest.raises(DataError, match=r"the loss became nan at step 1 of phase surrogate") as error:
        loop.train()
    assert "lr=" in str(error.value)


@pytest.mark.parametrize("device", ["cuda", "abacus"])
def test_a_device_that_is_not_there(device: str, corpus: Corpus) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ParameterError, match=f"device '{device}' is not available"):
        fit("decaf", corpus, Run(device=device))


def test_clipping_bounds_the_dense_gradient(corpus: Corpus) -> None:
    norms = []
    for clip in (None, 1e-3):
        learner = learner_of("decaf", corpus)
        loop = Loop(learner, LoopParameters(batch=BATCH, clip=clip), Run(device="cpu"))
        loop.open(0)
        assert loop.optimisers.dense is not None
        step = loop.optimisers.dense.step
        with pytest.MonkeyPatch.context() as patch:
            squares = []

            def seen(step: Any = step, squares: list = squares, learner: Any = learner) -> None:
                squares += [float(p.grad.square().sum()) for p in learner.parameters() if p.grad is not None]
                step()

            patch.setattr(loop.optimisers.dense, "step", seen)
            loop.step(0, 0)
        norms.append(np.sqrt(sum(squares)))
    assert norms[0] > 1e-3 and norms[1] == pytest.approx(1e-3, rel=1e-3)


def phases(*epochs: int) -> list[Phase]:
    return [Phase(f"p{i}", n, (Group("", 0.1),)) for i, n in enumerate(epochs)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"min_steps": 1}, [20, 10, 5]),  # 33 points in batches of 8: 5 steps of an epoch
        ({"min_steps": 8}, [20, 10, 8]),
        ({"min_steps": 100}, [100, 100, 100]),
        ({"min_steps": 1, "steps": 70}, [40, 20, 10]),
        ({"min_steps": 1, "steps": 7}, [4, 2, 1]),
        ({"min_steps": 100, "steps": 9}, [3, 3, 3]),
        ({"min_steps": 1, "steps": 1}, [1, 1, 1]),
    ],
)
def test_steps_of_phases(settings: dict[str, int], expected: list[int]) -> None:
    assert steps_of(phases(4, 2, 1), 33, LoopParameters(batch=8, **settings)) == expected


def test_steps_are_taken_as_they_were_planned(corpus: Corpus) -> None:
    with pytest.MonkeyPatch.context() as patch:
        done = stop_at(patch, -1, -1)
        model = fit("decaf", corpus.with_validation(0), Run(device="cpu"), steps=20)
    assert [sum(number == n for n, _ in done) for number in range(3)] == [4, 8, 8]
    history = model.about["training"]
    assert [(row["phase"], row["epoch"]) for row in history] == [
        ("surrogate", 1), ("clusters", 1), ("clusters", 2), ("labels", 1), ("labels", 2)
    ]  # fmt: skip


def batch_of(seed: int, phase: int, step: int, points: int, size: int) -> np.ndarray:
    """The points of a step, as the loop takes them."""
    epoch, place = divmod(step, -(-points // size))
    order = Shuffled().order(SimpleNamespace(points=points), (seed, phase, epoch))
    return order[place * size : (place + 1) * size]


def test_each_epoch_has_every_point_once() -> None:
    epochs = []
    for epoch in range(3):
        batches = [batch_of(7, 1, epoch * 4 + number, 30, 8) for number in range(4)]
        assert [len(batch) for batch in batches] == [8, 8, 8, 6]
        epochs.append(np.concatenate(batches))
        assert sorted(epochs[-1]) == list(range(30))
    assert not np.array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[0][:8], batch_of(7, 0, 0, 30, 8)), "phases have orders of their own"
    assert not np.array_equal(epochs[0][:8], batch_of(8, 1, 0, 30, 8)), "so have seeds"


def test_averages_are_weighted_and_go_on() -> None:
    averages = Averages()
    averages.add({"loss": 1.0}, 0.25)
    averages.add({"loss": 3.0}, 0.75)
    assert averages.means() == {"loss": 2.5}
    again = Averages(orjson.loads(orjson.dumps(averages.sums)))
    again.add({"loss": 4.5})
    assert again.means() == {"loss": 3.5}


def test_patience_keeps_the_best(corpus: Corpus) -> None:
    """Validation scores as if from a list: 3 of them get worse after the second."""
    scores = iter([10.0, 30.0, 20.0, 29.0, 5.0, 99.0])
    learner = learner_of("decaf", corpus, epochs=6)
    states = []

    def watch() -> dict[str, float]:
        states.append({name: tensor.clone() for name, tensor in learner.state_dict().items()})
        return {"mean": next(scores)}

    loop = Loop(learner, LoopParameters(batch=20, min_steps=1, patience=3), Run(device="cpu"), watch=watch)
    history = loop.train()
    assert [row["validation"]["mean"] for row in history if "validation" in row] == [10, 30, 20, 29, 5]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in learner.state_dict().items())


def test_a_lower_precision_trains(corpus: Corpus) -> None:
    model = fit("decaf", corpus, Run(device="cpu", seed=5), precision="bfloat16")
    plain = fit("decaf", corpus, Run(device="cpu", seed=5))
    for one, other in zip(model.about["training"], plain.about["training"], strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=0.1)
    assert all(array.dtype in (np.float32, np.int32, np.int64, np.uint8) for array in model.state()[0].values())


def test_what_a_phase_builds_goes_to_the_device(corpus: Corpus) -> None:
    """In every phase, optimisers with it; torch's device without memory stands for a GPU."""
    trained = Loop(learner_of("decaf", corpus), LoopParameters(batch=16, steps=3), Run(device="cpu"))
    trained.train()
    away = torch.device("meta")
    for number in range(3):
        second = learner_of("decaf", corpus)
        loop = Loop(second, LoopParameters(batch=16), Run(device="cpu"))
        loop.accelerator = SimpleNamespace(device=away, prepare=lambda network: network)  # type: ignore[assignment]
        loop.structures = trained.structures
        for phase in second.phases[: number + 1]:  # as a run that resumes builds them
            phase.build(second, trained.structures[phase.name])
        loop.open(number)
        assert {tensor.device for tensor in second.state_dict().values()} == {away}
        moments = [moment for adam, _ in loop.optimisers.tables.values() for moment in (adam.first, adam.second)]
        assert moments and {moment.device for moment in moments} == {away}
        assert {buffer.device for buffer in second.buffers()} == {away}, "points, targets, shortlists and the tree too"
    assert second.level(1).candidates.lists.device == away


# --- processes

RANK = """
import os, sys
import numpy as np
import torch
sys.path.insert(0, {tests!r})
from corpora import topic_corpus
from test_train_loop import learner_of
from longtail.core.run import Run
from longtail.train.loop import Loop
from longtail.train.settings import LoopParameters
learner = learner_of("decaf", topic_corpus({points}))
loop = Loop(learner, LoopParameters(batch=16, min_steps=1, accumulate=2), Run(device="cpu", seed=2, threads=1))
loop.train()
assert loop.accelerator.num_processes == int(os.environ.get("WORLD_SIZE", 1))
np.savez({out!r} + os.environ.get("RANK", ""), **{{n: t.numpy() for n, t in learner.state_dict().items()}})
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def processes(folder: Path, count: int, points: int) -> list[dict[str, np.ndarray]]:
    """What several processes have trained together, from each of them."""
    launched(RANK.format(tests=str(Path(__file__).parent), out=str(folder / f"of{count}-"), points=points), count)
    names = [f"of{count}-{rank if count > 1 else ''}.npz" for rank in range(count)]
    return [dict(np.load(folder / name)) for name in names]


def launched(script: str, count: int) -> None:
    """Run a script in several processes, as `accelerate launch` does."""
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
    shared |= {"ACCELERATE_USE_CPU": "true", "LOCAL_WORLD_SIZE": str(count)}
    started = []
    for rank in range(count):
        own = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} if count > 1 else {}
        started.append(
            subprocess.Popen([sys.executable, "-c", script], env=os.environ | own, stderr=subprocess.PIPE, text=True)
        )
    for process in started:
        error = process.communicate(timeout=120)[1]
        assert process.returncode == 0, error


@pytest.mark.slow
def test_two_processes_train_one_network(tmp_path: Path) -> None:
    (alone,) = processes(tmp_path, 1, 64)
    one, other = processes(tmp_path, 2, 64)
    assert one.keys() == alone.keys()
    for name in one:
        assert np.array_equal(one[name], other[name]), name
        if not name.startswith(("levels.1", "encoder.residuals.label", "encoder.tables.label")):  # unlike shortlists
            np.testing.assert_allclose(one[name], alone[name], rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.slow
def test_two_processes_and_a_last_batch_of_one_point(tmp_path: Path) -> None:
    one, other = processes(tmp_path, 2, 65)
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_of_two_processes_one_saves(tmp_path: Path) -> None:
    """The second process neither fails because a model already exists, nor writes one."""
    write(topic_corpus(60), tmp_path / "data")
    settings = [option for key, value in SETTINGS["decaf"].items() for option in ("--set", f"{key}={value}")]
    out = str(tmp_path / "model")
    command = ["train", str(tmp_path / "data"), "--recipe", "decaf", "--device", "cpu", "--out", out, *settings]
    launched(f"from longtail.cli.main import main; raise SystemExit(main({command!r}))", 2)
    assert longtail.load(out).predict(["about topic one"], 3).indices.shape == (1, 3)


def test_processes_share_a_batch() -> None:
    batch = np.array([5, 3, 8, 1, 9])
    assert share_of(batch, 0, 1).tolist() == batch.tolist()
    assert [share_of(batch, rank, 2).tolist() for rank in range(2)] == [[5, 8, 9], [3, 1, 5]]
    assert [share_of(batch[:1], rank, 3).tolist() for rank in range(3)] == [[5], [5], [5]]


def test_free_memory_is_given_back_now_and_then(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(memory, "malloc_trim", lambda: trimmed.append)
    monkeypatch.setattr(memory, "EVERY", 3600.0)
    fit("decaf", corpus.with_validation(0), Run(device="cpu"))
    assert trimmed == []
    monkeypatch.setattr(memory, "EVERY", -1.0)
    fit("decaf", corpus.with_validation(0), Run(device="cpu"))
    assert len(trimmed) == 20  # steps
    monkeypatch.setattr(memory, "malloc_trim", lambda: None)  # another library than glibc
    memory.Kept().give_back()


def test_patience_keeps_the_network_that_it_chose() -> None:
    """This also holds for a small corpus, where a network is otherwise trained once more on all data."""
    corpus = topic_corpus(60)
    split = corpus.with_validation(0)
    plain, patient = (longtail.recipe("decaf", **SETTINGS["decaf"], **more) for more in ({}, {"patience": 1}))
    again = [trains_again(recipe, corpus, split, Run()) for recipe in (plain, patient)]  # type: ignore[arg-type]
    assert again == [True, False]
    assert trains_again(patient, corpus, split, Run(train_on_dev=True))  # type: ignore[arg-type]


def test_a_rate_can_rise_at_first(corpus: Corpus) -> None:
    for name in ("decaf", "astec"):
        phases = learner_of(name, corpus, warmup=3).phases
        assert all(group.warmup == 3 for phase in phases for group in phase.groups)
