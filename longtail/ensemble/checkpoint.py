"""The trained members of an unfinished ensemble, kept so that a killed training need not train them anew."""

from __future__ import annotations

import functools
import hashlib
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from longtail.core.model import Model
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.ensemble.members import Member
from longtail.store import StoredModel, packed, unpacked
from longtail.store.cache import find, keep
from longtail.store.manifest import plain

log = logging.getLogger("longtail")
WORTH_KEEPING = 2.0  # seconds: what took less is trained again
RESERVE = 0.1  # of a budget: for fusing, and for what a measured training takes longer than planned


class Kept:
    """Members in the folder of a run (None: nothing is kept), found by all that they depend on."""

    def __init__(self, run: Run, split: Corpus):
        self.run, self.split = run, split

    @functools.cached_property
    def _about(self) -> str:
        """What all members depend on: the data without its test part, and the seed."""
        parts = [self.split.train.digest(), self.split.dev.digest() if self.split.dev is not None else ""]
        digest = hashlib.sha256(" ".join([*parts, self.split.labels.digest()]).encode()).hexdigest()
        return f"{digest} seed {self.run.seed} dev {self.run.train_on_dev}"

    def find(self, member: Member, stage: str) -> tuple[Model, float] | None:
        """The model of a member and the seconds that its training took; None if it is not there."""
        if self.run.folder is None or not self.run.resume:
            return None
        found = find(self.run.folder, self._key(member, stage))
        if found is None:
            return None
        told = orjson.loads(found.pop("told").tobytes())
        path = Path(self.run.folder) / "member"
        return unpacked(path, told["manifest"], found, labels=self.split.labels), float(told["seconds"])

    def keep(self, member: Member, stage: str, model: Model, seconds: float) -> None:
        """Store a trained member."""
        if self.run.folder is None or seconds < WORTH_KEEPING or not isinstance(model, StoredModel):
            return
        manifest, arrays = packed(model, self.split.labels)
        told = orjson.dumps(plain({"manifest": manifest, "seconds": seconds}, ""))
        keep(self.run.folder, self._key(member, stage), arrays | {"told": np.frombuffer(told, np.uint8)})

    def budget(self, run: Run, spent: float, members: int) -> float | None:
        """What one of the `members` that are left may take: what members trained so far take again is set aside.

        The same when a killed training goes on: by it, networks find their checkpoints.
        """
        if run.budget is None or run.until is None:
            return None
        key = f"budget {run.budget} {self._about} {members}"
        found = find(run.folder, key) if run.folder is not None and run.resume else None
        if found is not None:
            return float(found["seconds"][0])
        left = run.until - time.monotonic() - RESERVE * run.budget - spent
        seconds = max(left / members, 1.0)
        if run.folder is not None:
            keep(run.folder, key, {"seconds": np.array([seconds])})
        return seconds

    def _key(self, member: Member, stage: str) -> str:
        told: dict[str, Any] = {"recipe": member.recipe.name, "version": member.recipe.version, "stage": stage}
        settings = plain(member.recipe.changed(), "settings")
        return orjson.dumps(told | {"settings": settings, "data": self._about}, option=orjson.OPT_SORT_KEYS).decode()
