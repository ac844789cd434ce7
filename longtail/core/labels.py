"""The label space: the meaning of the columns of Y and of the indices of a Ranking."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError, ParameterError, nearest, shorten
from longtail.core.texts import Texts


@dataclass(frozen=True)
class Propensity:
    """The constants A and B of the propensity model (Jain et al. 2016); 0.55 and 1.5 unless the data says otherwise."""

    A: float = 0.55
    B: float = 1.5

    def __post_init__(self) -> None:
        if not (np.isfinite(self.A) and self.A >= 0):
            raise ParameterError(f"propensity A must be a number of at least 0; got {self.A!r}")
        if not (np.isfinite(self.B) and self.B >= 1e-6):  # with 0, a label without examples would have propensity 0
            raise ParameterError(f"propensity B must be a number above 0; got {self.B!r}")

    def of(self, counts: NDArray[Any], points: int) -> NDArray[np.float64]:
        """Return p_l = 1 / (1 + C·exp(−A·ln(N_l + B))), C = (ln N − 1)(B + 1)^A, for label counts N_l of N points."""
        C = (np.log(max(points, 1)) - 1) * (self.B + 1) ** self.A
        # ln N − 1 is negative for fewer than three points, where the model does not apply: then p = 1
        return np.asarray(1 / (1 + max(C, 0.0) * np.exp(-self.A * np.log(counts + self.B))))


@dataclass(frozen=True, eq=False)
class Labels:
    """L labels with stable string keys. Indices are internal and never change.

    `counts` (L,) and `points` are the label frequencies N_l and the number of points N of the *original* training set,
    fixed when the data is read. Propensities come from these, no matter what a model is trained on later.
    Append-only: `add` appends, `remove` sets a tombstone that every scorer respects, `rename` keeps the index.
    """

    keys: Texts
    texts: Texts | None = None
    counts: NDArray[np.int64] = None  # type: ignore[assignment]  # zeros until a training set is known
    points: int = 0
    propensity: Propensity = Propensity()
    removed: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        L = len(self.keys)
        if self.counts is None:
            object.__setattr__(self, "counts", np.zeros(L, np.int64))
        for name in ("texts", "counts", "removed"):
            value = getattr(self, name)
            if value is not None and len(value) != L:
                raise DataError(f"got {name} of {len(value):,} labels for {L:,} keys")

    @classmethod
    def of(cls, keys: Iterable[str], texts: Iterable[str] | None = None, **more: Any) -> Labels:
        """Build from plain strings; duplicate keys are refused."""
        labels = cls(Texts.of(keys), None if texts is None else Texts.of(texts), **more)
        labels.check_unique()
        return labels

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"Labels({len(self):,}{', with text' if self.has_text else ''})"

    @property
    def has_text(self) -> bool:
        """Whether labels have texts (label features, LF)."""
        return self.texts is not None

    @functools.cached_property
    def propensities(self) -> NDArray[np.float64]:
        """p_l (L,), from the original training set."""
        return self.propensity.of(self.counts, self.points)

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return {key: i for i, key in enumerate(self.keys)}

    def check_unique(self, where: str | Path | None = None) -> None:
        """Refuse duplicate keys; `where` is the file of the label list, for the message."""
        if len(self._index) != len(self.keys):
            seen: set[str] = set()
            twice = next(key for key in self.keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise DataError("the label list contains a key twice", where=where, found=twice, fix="keys must be unique")

    def index(self, key: str) -> int:
        """Return the index of a key; the error for an unknown key suggests the nearest known one."""
        try:
            return self._index[key]
        except KeyError:
            known = self._index if len(self) <= 200_000 else ()  # larger spaces would take too long to search
            raise ParameterError(f"no label has the key {shorten(key)}.{nearest_few(key, known)}") from None

    def indices(self, keys: Iterable[str]) -> NDArray[np.int32]:
        """Return the indices of many keys, −1 for unknown ones."""
        get = self._index.get
        return np.fromiter((get(key, -1) for key in keys), np.int32)

    def add(self, keys: Iterable[str], texts: Iterable[str] | None = None) -> Labels:
        """Append new labels; they have no training examples."""
        new = Texts.of(keys)
        taken = self.indices(new) >= 0
        if taken.any():
            key = new[int(np.flatnonzero(taken)[0])]
            raise ParameterError(f"label {shorten(key)} {self.taken(key)}")
        if (texts is not None) != self.has_text:
            raise ParameterError(f"these labels {'have' if self.has_text else 'have no'} texts; so must new ones")
        grown = replace(
            self,
            keys=self.keys + new,
            texts=None if texts is None or self.texts is None else self.texts + Texts.of(texts),
            counts=np.concatenate([self.counts, np.zeros(len(new), np.int64)]),
            removed=None if self.removed is None else np.concatenate([self.removed, np.zeros(len(new), bool)]),
        )
        grown.check_unique()
        return grown

    def remove(self, keys: Iterable[str]) -> Labels:
        """Set tombstones: the labels keep their indices but are never suggested again."""
        removed = np.zeros(len(self), bool) if self.removed is None else self.removed.copy()
        removed[[self.index(key) for key in keys]] = True
        return replace(self, removed=removed)

    def restore(self, keys: Iterable[str]) -> Labels:
        """Remove tombstones: the labels are suggested again, with what was learnt about them before."""
        removed = np.zeros(len(self), bool) if self.removed is None else self.removed.copy()
        removed[[self.index(key) for key in keys]] = False
        return replace(self, removed=removed if removed.any() else None)

    def rename(self, names: Mapping[str, str]) -> Labels:
        """Give labels new keys; indices stay. Two labels may swap keys, because all names change at once."""
        keys = list(self.keys)
        for old, new in names.items():
            keys[self.index(old)] = new
        for old, new in names.items():
            if new in self._index and new not in names:
                raise ParameterError(f"{shorten(old)} cannot be renamed: label {shorten(new)} {self.taken(new)}")
        renamed = replace(self, keys=Texts.of(keys))
        renamed.check_unique()
        return renamed

    def taken(self, key: str) -> str:
        """Return why a key is not free, and what to do."""
        if self.removed is None or not self.removed[self._index[key]]:
            return "already exists; keys must be unique"
        return "was removed, but its key is still reserved; restore it (`longtail labels restore`), or rename it first"

    def with_counts(self, counts: NDArray[Any], points: int) -> Labels:
        """Return the same labels with the frequencies of a training set."""
        return replace(self, counts=np.asarray(counts, np.int64), points=int(points))

    def best(self, values: NDArray[np.float32], k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the min(k, L) labels of largest value (L,), and their values; best first, ties by lower index.

        Removed labels are left out; −1 and −inf pad where they are missing.
        """
        alive = values if self.removed is None else np.where(self.removed, np.float32(-np.inf), values)
        order, found = _native.top_k(alive[None, :], min(k, len(self)))
        return order[0], found[0]

    def most_frequent(self, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the min(k, L) labels with the most training examples, and their shares of all; as `best`.

        What a text without known words gets.
        """
        counts = self.counts if self.removed is None else np.where(self.removed, 0, self.counts)
        return self.best((counts / max(counts.sum(), 1)).astype(np.float32), k)

    def digest(self) -> str:
        """Return the SHA-256 of keys and texts; a model and the data it is used on must have the same."""
        hasher = hashlib.sha256(self.keys.digest().encode())
        hasher.update(b"" if self.texts is None else self.texts.digest().encode())
        return hasher.hexdigest()


def nearest_few(key: str, known: Iterable[str]) -> str:
    """Like `nearest`, but without listing all keys of a large label space."""
    return nearest(key, known).partition(" Known:")[0]
