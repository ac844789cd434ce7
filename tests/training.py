"""Very small networks of every recipe, and interrupted trainings of them."""

from typing import Any

import pytest
from encoders import tiny_encoder

import longtail
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.train import checkpoint
from longtail.train.loop import Loop

BATCH = 8
SMALL: dict[str, Any] = {"clusters": 3, "batch": BATCH, "min_steps": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "astec": SMALL | {"dimension": 8, "shortlist": 3, "neighbours": 5, "surrogate_epochs": 2, "epochs": 2},
    "decaf": SMALL | {"dimension": 8, "beam": 1, "surrogate_epochs": 1, "epochs": 2},
    "eclare": SMALL | {"dimension": 8, "beam": 2, "surrogate_epochs": 1, "epochs": 2},
    "inceptionxml": SMALL | {"dimension": 64, "length": 8, "shortlist": 2, "epochs": 3, "detached": 1},
    "inceptionxml-lf": SMALL | {"dimension": 64, "length": 8, "shortlist": 2, "epochs": 2},
}
DUAL: dict[str, Any] = {"batch": BATCH, "min_steps": 1, "dimension": 8, "epochs": 3}
STATIC: dict[str, Any] = DUAL | {"backbone": "static", "reader": "words"}
SETTINGS |= {
    "unidec": STATIC | {"refresh": 2, "cluster_size": 4},
    "depsl": STATIC | {"refresh": 2},
    "dpr": STATIC,
    "ance": STATIC | {"refresh": 1},
    "ngame": STATIC | {"refresh": 1, "table_epochs": 2, "table_batch": BATCH},
    "siamesexml": DUAL | {"refresh": 2},
    "dexml": STATIC | {"chunk": 3},
    "renee": STATIC | {"warmup": 2},
}
TINY: dict[str, Any] = {"encoder": "tiny", "length": 16, "batch": BATCH, "min_steps": 1, "epochs": 3}
SETTINGS |= {
    "cascadexml": TINY | {"resolutions": "2:4", "beams": "1:2"},
    "lightxml": TINY | {"flat": 0, "labels_per_cluster": 2.0, "beam": 2, "width": 8, "tapped": 3},
    "xr-transformer": TINY | {"branching": 2, "leaf_size": 2, "warmup": 0},
    "x-transformer": TINY | {"labels_per_cluster": 2.0, "warmup": 0},
}
SETTINGS["attentionxml"] = {"dimension": 8, "hidden": 4, "layers": "8:4", "length": 8, "batch": BATCH, "min_steps": 1}
SETTINGS["attentionxml"] |= {"flat": 0, "resolutions": "2:4", "beam": 1, "epochs": 3}
PHASES = {"astec": 2, "decaf": 3, "eclare": 3, "inceptionxml": 1, "inceptionxml-lf": 2}
PHASES |= {"unidec": 1, "ngame": 2, "siamesexml": 2, "dexml": 1, "renee": 1}
PHASES |= {"cascadexml": 1, "lightxml": 1, "xr-transformer": 3, "attentionxml": 3}  # the others have nothing new
UNWATCHED = {"xr-transformer"}  # what ranks is trained after the network: no patience


class StoppedError(Exception):
    """Raised as if the machine had been switched off."""


def fit(name: str, corpus: Corpus, run: Run, **changed: Any) -> Any:
    settings = {**SETTINGS[name], **changed}
    if settings.get("encoder") == "tiny":
        settings["encoder"] = tiny_encoder()
    return longtail.recipe(name, **settings).fit(corpus, run)


def stop_at(monkeypatch: pytest.MonkeyPatch, phase: int, step: int) -> list[tuple[int, int]]:
    """Interrupt training before this step of this phase, after a checkpoint; returns what was done until then."""
    plain, done = Loop.step, []

    def broken(self: Loop, number: int, at: int) -> dict[str, float]:
        if (number, at) == (phase, step):
            raise StoppedError
        if (number, at) == (phase, step - 1):
            monkeypatch.setattr(checkpoint, "EVERY", 0.0)
            monkeypatch.setattr(checkpoint, "SHARE", float("inf"))
        done.append((number, at))
        return plain(self, number, at)

    monkeypatch.setattr(Loop, "step", broken)
    return done
