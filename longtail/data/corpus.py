"""A corpus: train, optional validation and test, the label space, and what the data is."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.data.dataset import Dataset
from longtail.data.split import held_out_rows

Part = Literal["train", "dev", "test"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """`train`, optional `dev` (validation) and `test` over one label space.

    `labels` carries the counts of the original train, whatever part of it is trained on later. `about` holds
    what `corpus.json` says of the data (licence, kind, …).
    """

    name: str
    train: Dataset
    labels: Labels
    dev: Dataset | None = None
    test: Dataset | None = None
    about: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part, data in self.parts():
            if data.Y.shape[1] != len(self.labels):
                raise DataError(f"{part} has {data.Y.shape[1]:,} label columns for {len(self.labels):,} labels")
        if not self.labels.points:  # read just now: fix the counts of the original train
            counts = self.train.label_counts()
            object.__setattr__(self, "labels", self.labels.with_counts(counts, len(self.train)))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part} {len(data):,}" for part, data in self.parts())
        return f"Corpus({self.name!r}: {sizes}; {len(self.labels):,} labels)"

    def parts(self) -> Iterator[tuple[Part, Dataset]]:
        """The parts that are there, by name."""
        for part in ("train", "dev", "test"):
            data = getattr(self, part)
            if data is not None:
                yield part, data

    def with_validation(self, seed: int) -> Corpus:
        """This corpus if it has a dev part; else one whose dev is cut out of train (see `held_out_rows`)."""
        if self.dev is not None:
            return self
        held = held_out_rows(self.train, seed)
        rest = np.setdiff1d(np.arange(len(self.train)), held)
        return replace(self, train=self.train.take(rest), dev=self.train.take(held))

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 over labels and all parts."""
        hasher = hashlib.sha256(self.labels.digest().encode())
        for part, data in self.parts():
            hasher.update(f"{part}:{data.digest()}".encode())
        return hasher.hexdigest()
