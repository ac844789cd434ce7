"""A corpus: train, optional validation and test parts, the label space, and a description of the data."""

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

    `labels` has the label counts of the original train part, whatever is trained on later. `about` holds the
    description in `corpus.json` (licence, kind, …).
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
                raise DataError(
                    f"{part} has {data.Y.shape[1]:,} label columns, but the corpus has {len(self.labels):,}"
                )
        if not self.labels.points:  # just read: store the counts of the original train part
            counts = self.train.label_counts()
            object.__setattr__(self, "labels", self.labels.with_counts(counts, len(self.train)))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part} {len(data):,}" for part, data in self.parts())
        return f"Corpus({self.name!r}: {sizes}; {len(self.labels):,} labels)"

    def parts(self) -> Iterator[tuple[Part, Dataset]]:
        """Yield the parts that exist, by name."""
        for part in ("train", "dev", "test"):
            data = getattr(self, part)
            if data is not None:
                yield part, data

    def with_validation(self, seed: int) -> Corpus:
        """Return this corpus if it has a dev part; else one whose dev part is split off train (see `held_out_rows`)."""
        if self.dev is not None:
            return self
        held = held_out_rows(self.train, seed)
        rest = np.setdiff1d(np.arange(len(self.train)), held)
        return replace(self, train=self.train.take(rest), dev=self.train.take(held))

    @functools.cached_property
    def digest(self) -> str:
        """Return the SHA-256 of labels and all parts."""
        hasher = hashlib.sha256(self.labels.digest().encode())
        for part, data in self.parts():
            hasher.update(f"{part}:{data.digest()}".encode())
        return hasher.hexdigest()
