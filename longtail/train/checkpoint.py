"""The state of an unfinished training, as named arrays in the folder of its run."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail.store.cache import find, keep

log = logging.getLogger("longtail")
EVERY = 30.0  # seconds between checkpoints, at least
SHARE = 0.05  # of the time that writing them may take


class Checkpoint:
    """The latest state of one training, found by a `key` of its data and settings; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, key: str):
        self.folder, self.key = folder, key
        self._last, self._took = time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether it is time to write; rarely enough that writing takes a small share of the time."""
        since = time.monotonic() - self._last
        return self.folder is not None and since > max(EVERY, self._took / SHARE)

    def save(self, tensors: dict[str, Tensor], structures: dict[str, NDArray[Any]], meta: dict[str, Any]) -> None:
        """Replace the last checkpoint; a crash leaves either the old one or the new one."""
        if self.folder is None:
            return
        began = time.monotonic()
        arrays = {f"tensor.{name}": tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        arrays |= {f"structure.{name}": array for name, array in structures.items()}
        keep(self.folder, self.key, arrays | {"meta": np.frombuffer(orjson.dumps(meta), np.uint8)})
        self._last = time.monotonic()
        self._took = self._last - began

    def load(self) -> tuple[dict[str, Tensor], dict[str, NDArray[Any]], dict[str, Any]] | None:
        """The tensors, structures and settings that were saved last; None if there is no checkpoint."""
        found = None if self.folder is None else find(self.folder, self.key)
        if found is None:
            return None
        meta: dict[str, Any] = orjson.loads(found["meta"].tobytes())
        tensors = {
            name.removeprefix("tensor."): torch.from_numpy(np.array(array))
            for name, array in found.items()
            if name.startswith("tensor.")
        }
        structures = {
            name.removeprefix("structure."): np.array(array)
            for name, array in found.items()
            if name.startswith("structure.")
        }
        return tensors, structures, meta
