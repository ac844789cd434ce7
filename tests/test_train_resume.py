"""An interrupted training continues and ends with the same bits."""

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpora import topic_corpus

torch = pytest.importorskip("torch")
from training import PHASES, SETTINGS, UNWATCHED, StoppedError, fit, stop_at  # noqa: E402

import longtail  # noqa: E402
from longtail.cli.main import main  # noqa: E402
from longtail.core.run import Run  # noqa: E402
from longtail.data.corpus import Corpus  # noqa: E402
from longtail.data.write import write  # noqa: E402
from longtail.train import checkpoint  # noqa: E402
from longtail.train.loop import Loop  # noqa: E402


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return topic_corpus(60)


@pytest.fixture(autouse=True)
def _not_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips syncing: no machine is switched off here, and waiting for hundreds of small files takes long."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def same(one: Any, other: Any) -> None:
    mine, theirs = one.state()[0], other.state()[0]
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert np.array_equal(mine[name], theirs[name]), name
    assert one.about["training"] == other.about["training"]


CASES = [(name, phase) for name, phases in PHASES.items() for phase in range(phases)]


@functools.cache
def unbroken(name: str, patience: int | None) -> Any:
    return fit(name, topic_corpus(60), Run(device="cpu", seed=5), patience=patience)


# validation is looked at in the last phase alone
@pytest.mark.parametrize(
    ("name", "phase", "patience"),
    [
        (name, phase, p)
        for name, phase in CASES
        for p in (None, 1)
        if p is None or (phase + 1 == PHASES[name] and name not in UNWATCHED)
    ],
)
def test_a_broken_training_goes_on_to_the_bit(
    name: str, phase: int, patience: int | None, corpus: Corpus, tmp_path: Path
) -> None:
    whole = unbroken(name, patience)
    run = Run(device="cpu", seed=5, folder=tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        before = stop_at(patch, phase, 2)  # in mid-epoch: 30 points in batches of 8 are 4 steps
        with pytest.raises(StoppedError):
            fit(name, corpus, run, patience=patience)
    with pytest.MonkeyPatch.context() as patch:
        after = stop_at(patch, -1, -1)
        again = Run(device="cpu", seed=5, folder=tmp_path / "run", resume=True)
        resumed = fit(name, corpus, again, patience=patience)
    assert before[-1] == (phase, 1) and after[0] == (phase, 2), "nothing is done twice"
    same(whole, resumed)


def test_steps_after_the_last_checkpoint_are_done_again(corpus: Corpus, tmp_path: Path) -> None:
    whole = fit("decaf", corpus, Run(device="cpu"))
    with pytest.MonkeyPatch.context() as patch:
        asked = []
        patch.setattr(checkpoint.Checkpoint, "due", lambda self: asked.append(1) or len(asked) == 7)
        stop_at(patch, 1, 6)
        with pytest.raises(StoppedError):
            fit("decaf", corpus, Run(device="cpu", folder=tmp_path / "run"))
    with pytest.MonkeyPatch.context() as patch:
        after = stop_at(patch, -1, -1)
        resumed = fit("decaf", corpus, Run(device="cpu", folder=tmp_path / "run", resume=True))
    assert after[0] == (1, 3)
    same(whole, resumed)


def test_stopped_after_the_last_step(corpus: Corpus, tmp_path: Path) -> None:
    """Nothing is left to train; of two networks, the first is not trained again."""
    corpus = corpus.with_validation(0)
    whole = fit("decaf", corpus, Run(device="cpu"), trees=2)
    with pytest.MonkeyPatch.context() as patch:
        plain = Loop.train
        patch.setattr(Loop, "train", lambda self: (plain(self), (_ for _ in ()).throw(StoppedError))[0])
        with pytest.raises(StoppedError):
            fit("decaf", corpus, Run(device="cpu", folder=tmp_path / "run"), trees=2)
    with pytest.MonkeyPatch.context() as patch:
        after = stop_at(patch, -1, -1)
        resumed = fit("decaf", corpus, Run(device="cpu", folder=tmp_path / "run", resume=True), trees=2)
    assert after.count((0, 0)) == 1
    same(whole, resumed)


def test_stopped_in_the_second_training(corpus: Corpus, tmp_path: Path) -> None:
    """Half of a small corpus is held out at first; the network scored then is not trained again."""
    whole, trainings = fit("decaf", corpus, Run(device="cpu")), []
    with pytest.MonkeyPatch.context() as patch:
        plain = Loop.train

        def second_stops(self: Loop) -> Any:
            trainings.append(self.learner.points)
            if len(trainings) == 2:
                raise StoppedError
            return plain(self)

        patch.setattr(Loop, "train", second_stops)
        with pytest.raises(StoppedError):
            fit("decaf", corpus, Run(device="cpu", folder=tmp_path / "run"))
    assert trainings == [30, 60]
    with pytest.MonkeyPatch.context() as patch:
        after = stop_at(patch, -1, -1)
        resumed = fit("decaf", corpus, Run(device="cpu", folder=tmp_path / "run", resume=True))
    assert after.count((0, 0)) == 1
    same(whole, resumed)


def test_other_settings_begin_at_the_beginning(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 1, 2)
        with pytest.raises(StoppedError):
            fit("decaf", corpus, Run(device="cpu", folder=tmp_path / "run"))
    for run, changed in ((Run(seed=1), {}), (Run(), {"lr": 0.01})):
        with pytest.MonkeyPatch.context() as patch:
            after = stop_at(patch, -1, -1)
            own = Run(device="cpu", seed=run.seed, folder=tmp_path / "run", resume=True)
            fit("decaf", corpus, own, **changed)
        assert after[0] == (0, 0)


# a training that dies before one of its steps, and keeps that before it and all after
KILLED = """
import os, signal
from longtail.cli.main import main
from longtail.train import checkpoint
from longtail.train.loop import Loop
plain = Loop.step
def killed(self, number, step):
    if step == {step}:
        os.kill(os.getpid(), signal.SIGKILL)
    if step >= {step} - 1:
        checkpoint.EVERY, checkpoint.SHARE = 0.0, float("inf")
    return plain(self, number, step)
Loop.step = killed
main({arguments!r})
"""


def test_a_killed_command_is_taken_up_again(corpus: Corpus, tmp_path: Path) -> None:
    data, model, whole = tmp_path / "data", tmp_path / "model", tmp_path / "whole"
    write(corpus, data, to="jsonl")
    chosen = [f"--set={key}={value}" for key, value in SETTINGS["inceptionxml"].items()]
    arguments = ["train", str(data), "--recipe", "inceptionxml", *chosen, "--device", "cpu", "--quiet"]
    assert main([*arguments, "--out", str(whole)]) == 0
    arguments += ["--out", str(model)]
    died = subprocess.run([sys.executable, "-c", KILLED.format(step=6, arguments=arguments)], capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert len(list((model / ".run").iterdir())) == 1
    with pytest.MonkeyPatch.context() as patch:
        after = stop_at(patch, -1, -1)
        assert main([*arguments, "--resume"]) == 0
    assert after[0] == (0, 6)
    assert not (model / ".run").exists(), "what a finished training no longer needs"
    one, other = longtail.load(whole), longtail.load(model)
    same(one, other)
    assert one.about["validation"] == other.about["validation"]


@pytest.mark.slow
def test_killed_at_any_moment(corpus: Corpus, tmp_path: Path) -> None:
    """This also holds while a checkpoint is being written."""
    data, model, whole = tmp_path / "data", tmp_path / "model", tmp_path / "whole"
    write(corpus, data, to="jsonl")
    chosen = [f"--set={key}={value}" for key, value in (SETTINGS["inceptionxml"] | {"epochs": 20}).items()]
    arguments = ["train", str(data), "--recipe", "inceptionxml", *chosen, "--device", "cpu", "--quiet"]
    assert main([*arguments, "--out", str(whole)]) == 0
    arguments += ["--out", str(model), "--resume"]
    script, rng, kills = KILLED.format(step=-1, arguments=arguments), np.random.default_rng(0), 0
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
        try:
            if process.wait(timeout=float(rng.uniform(3, 6))) == 0:
                break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills
    if not (model / "model.json").exists():
        assert main(arguments) == 0
    same(longtail.load(whole), longtail.load(model))


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_checkpoints_are_not_written_through_a_link(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".run").symlink_to(tmp_path / "elsewhere")
    for resume in (False, True):
        with pytest.raises(longtail.LongtailError, match=r"\.run: is a symbolic link.*delete it"):
            fit("unidec", corpus, Run(folder=tmp_path / ".run", resume=resume))
    assert not list((tmp_path / "elsewhere").iterdir())
