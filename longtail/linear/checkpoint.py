"""The solved parts of a training, kept so that a killed one can go on where it stopped."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import orjson

from longtail._native.linear import Weights
from longtail.core.run import Run
from longtail.labels.tree import LabelTree
from longtail.store.cache import find, keep

if TYPE_CHECKING:
    from longtail.linear.parameters import LinearParameters
    from longtail.linear.train import Training

log = logging.getLogger("longtail")
PREDICTION_ONLY = ("weights",)  # settings that do not change what is solved
WORTH_KEEPING = 2.0  # seconds: a part that took less is solved again faster than it is read


class Checkpoints:
    """Solved parts in the folder of a run (None: nothing is kept); the key of each names everything it depends on."""

    def __init__(self, folder: Path | None, key: str):
        self.folder, self.key = folder, key

    @classmethod
    def of(
        cls,
        data: Training,
        tree: LabelTree,
        by_level: Sequence[LinearParameters],
        run: Run,
        number: int,
        solved_before: Sequence[Weights] = (),
    ) -> Checkpoints:
        """The checkpoints of one tree of a training; `by_level` are the settings of each level."""
        if run.folder is None:
            return cls(None, "")
        hasher = hashlib.sha256()
        matrices = [data.Y, *([] if data.ignore is None else [data.ignore])]
        arrays = [*data.features.arrays, *(a for m in matrices for a in (m.indptr, m.indices, m.data))]
        arrays += [tree.order, *tree.levels, *([] if data.features.dense is None else [data.features.dense])]
        arrays += [array for weights in solved_before for array in weights]
        for array in arrays:
            hasher.update(f"{array.dtype}{array.shape}".encode())
            hasher.update(np.ascontiguousarray(array).data)
        changed = [
            {name: value for name, value in settings.changed().items() if name not in PREDICTION_ONLY}
            for settings in by_level
        ]
        told = {"settings": changed, "seed": run.seed, "tree": number, "data": hasher.hexdigest()}
        return cls(run.folder, orjson.dumps(told, option=orjson.OPT_SORT_KEYS).decode())

    def part(self, first_parent: int, number: int, solve: Callable[[], Weights]) -> Weights:
        """The weights of a part of the problem that begins at a parent: read from the folder, or solved and kept."""
        if self.folder is None:
            return solve()
        key = f"{self.key} from {first_parent} part {number}"
        found = find(self.folder, key)
        if found is not None:
            log.info("resuming: part %d of the training was solved before", number + 1)
            return Weights(**found)
        began = time.monotonic()
        solved = solve()
        if time.monotonic() - began < WORTH_KEEPING:
            return solved
        return Weights(**keep(self.folder, key, solved._asdict()))
