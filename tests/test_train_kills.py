"""`longtail train` killed at random moments leaves the old model or the new one."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from corpora import topic_corpus

import longtail
from longtail.cli.main import main
from longtail.data.write import write


def train(data: Path, model: Path, power: int) -> subprocess.Popen[bytes]:
    settings = ["--recipe", "neighbours", "--set", f"power={power}", "--overwrite", "--quiet"]
    return subprocess.Popen([sys.executable, "-m", "longtail", "train", str(data), "--out", str(model), *settings])


def check_kills(folder: Path, kills: int) -> None:
    data, model = folder / "data", folder / "model"
    write(topic_corpus(2000), data, to="jsonl")
    expected = {}
    texts = ["boat wind flour", "pawn rose", "unknown"]
    for power in (1, 3):
        assert main(["train", str(data), "--out", str(folder / f"p{power}"), "--recipe", "neighbours",
                     "--set", f"power={power}", "--quiet"]) == 0  # fmt: skip
        expected[power] = longtail.load(folder / f"p{power}").predict(texts, 5).scores
    assert not np.array_equal(expected[1], expected[3])
    began = time.monotonic()
    assert train(data, model, 1).wait() == 0
    whole = time.monotonic() - began
    rng = random.Random(0)
    ended = {"killed": 0, "done": 0}
    for i in range(kills):
        process = train(data, model, power := (3, 1)[i % 2])
        # most kills fall near the end, where the model is written
        time.sleep(whole * (rng.uniform(0.7, 1.1) if i % 3 else rng.uniform(0, 1)))
        process.send_signal(signal.SIGKILL)
        ended["done" if process.wait() == 0 else "killed"] += 1
        scores = longtail.load(model).predict(texts, 5).scores
        assert any(np.array_equal(scores, known) for known in expected.values()), f"kill {i}"
    assert ended["killed"] > 0
    assert train(data, model, power).wait() == 0
    assert np.array_equal(longtail.load(model).predict(texts, 5).scores, expected[power])
    left = list(model.glob("data-*"))
    assert len(left) == 1, "a killed save left a generation behind"


def test_a_few_kills(tmp_path: Path) -> None:
    check_kills(tmp_path, 8)


@pytest.mark.slow
def test_fifty_kills(tmp_path: Path) -> None:
    check_kills(tmp_path, 50)
