"""Models from strangers: whatever their arrays hold, they work or are refused, and nothing ends the process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from corpora import topic_corpus

import longtail

SCRIPT = Path(__file__).parent / "mutate_models.py"
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "xr-linear": ("xr-linear", {"branching": 2, "leaf_size": 2}),
    "int8": ("xr-linear", {"branching": 2, "leaf_size": 2, "weights": "int8", "augment": "self"}),
    "dismec": ("dismec", {"weights": "float16"}),
    "neighbours": ("neighbours", {}),
    "popular": ("popular", {}),
}


def mutated(name: str, folder: Path, seed: int, times: int) -> list[dict[str, Any]]:
    """What became of a model whose arrays were changed so many times; fails if a process ended by a signal."""
    recipe, settings = MODELS[name]
    longtail.recipe(recipe, **settings).fit(topic_corpus(200, ignore=True)).save(folder / "model")
    command = [sys.executable, str(SCRIPT), str(folder / "model"), str(folder / "out"), str(seed), str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.returncode, told[-1:], done.stderr[-2000:])
    return [one for one in told if "found" in one]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_changed_arrays_works_or_is_refused(name: str, tmp_path: Path) -> None:
    found = mutated(name, tmp_path, seed=3, times=60)
    assert len(found) == 60
    assert not [one for one in found if "a bug" in one["found"] or "slow" in one]
    assert any(one["found"] == "used" for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_changed_arrays_works_or_is_refused_many_times(name: str, tmp_path: Path) -> None:
    found = mutated(name, tmp_path, seed=4, times=3000)
    assert not [one for one in found if "a bug" in one["found"] or "slow" in one]
