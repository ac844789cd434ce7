"""Points with their labels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import DataError, UnsupportedError
from longtail.core.texts import Texts
from longtail.data.sparse import move_columns, pairs, sound, targets
from longtail.data.sparse import without as without


@dataclass(frozen=True, eq=False)
class Dataset:
    """N points with their labels.

    `x`: texts, or an N×D CSR float32 feature matrix. `Y`: N×L CSR float32, values in (0, 1], soft targets allowed.
    `ignore`: optional N×L boolean CSR of pairs that count neither as positive nor as negative (the field's "filter
    pairs"). `groups`: an optional key for each point; points of one group stay on one side of a split, and a point with
    an empty key is in no group.

    The columns of Y and ignore are stored in ascending order within each row, without stored zeros; of duplicates, the
    largest value is used. Matrices in another form are copied; the caller's are never changed.
    """

    x: Texts | sp.csr_matrix
    Y: sp.csr_matrix
    ignore: sp.csr_matrix | None = None
    groups: Texts | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "Y", targets(self.Y))
        if self.ignore is not None:
            object.__setattr__(self, "ignore", pairs(self.ignore))
        if not isinstance(self.x, Texts):
            object.__setattr__(self, "x", sound(self.x, "features"))
        N = self.Y.shape[0]
        points = len(self.x) if isinstance(self.x, Texts) else self.x.shape[0]
        if points != N:
            raise DataError(f"{points:,} points but {N:,} rows of labels", fix="both must have the same length")
        if self.groups is not None and len(self.groups) != N:
            raise DataError(f"{len(self.groups):,} group keys for {N:,} points")
        if self.ignore is not None and self.ignore.shape != self.Y.shape:
            raise DataError(f"ignored pairs of shape {self.ignore.shape} for labels of shape {self.Y.shape}")

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    @property
    def has_text(self) -> bool:
        """Whether points are texts rather than rows of features."""
        return isinstance(self.x, Texts)

    @property
    def texts(self) -> Texts:
        """The texts; an error if the points are features."""
        if not isinstance(self.x, Texts):
            raise UnsupportedError("these points are rows of a feature matrix; they have no texts")
        return self.x

    @property
    def features(self) -> sp.csr_matrix:
        """The feature matrix; an error if the points are texts."""
        if isinstance(self.x, Texts):
            raise UnsupportedError("these points are texts; an encoder must turn them into features first")
        return self.x

    def take(self, rows: NDArray[Any]) -> Dataset:
        """Return the points at `rows`, in that order."""
        return replace(
            self,
            x=self.x.take(rows) if isinstance(self.x, Texts) else self.x[rows],
            Y=self.Y[rows],
            ignore=None if self.ignore is None else self.ignore[rows],
            groups=None if self.groups is None else self.groups.take(rows),
        )

    def __add__(self, other: Dataset) -> Dataset:
        """Return the points of both, these first."""
        none = (len(self), self.Y.shape[1]), (len(other), other.Y.shape[1])
        ignore = None
        if self.ignore is not None or other.ignore is not None:
            pairs = [
                sp.csr_matrix(s, dtype=bool) if d.ignore is None else d.ignore
                for d, s in zip((self, other), none, strict=True)
            ]
            ignore = sp.vstack(pairs, format="csr")
        x = self.texts + other.texts if self.has_text else sp.vstack([self.features, other.features], format="csr")
        groups = None if self.groups is None or other.groups is None else self.groups + other.groups
        return Dataset(x, sp.vstack([self.Y, other.Y], format="csr"), ignore, groups)

    def truth(self) -> sp.csr_matrix:
        """Return Y without the ignored pairs."""
        return self.Y if self.ignore is None else without(self.Y, self.ignore)

    def label_counts(self) -> NDArray[np.int64]:
        """Return the number of points with each label (L,)."""
        return np.bincount(self.Y.indices, minlength=self.Y.shape[1])

    def with_labels(self, columns: NDArray[np.int64], L: int) -> Dataset:
        """Return the same points in another label space: label j moves to `columns[j]` of L; −1 drops it."""
        ignore = None if self.ignore is None else move_columns(self.ignore, columns, L)
        return replace(self, Y=move_columns(self.Y, columns, L), ignore=ignore)

    def digest_of_points(self) -> str:
        """Return the SHA-256 of the texts or features only; it does not depend on the labels."""
        return self.x.digest() if isinstance(self.x, Texts) else replace(self, Y=sp.csr_matrix((len(self), 0))).digest()

    def digest(self) -> str:
        """Return the SHA-256 of the whole content."""
        hasher = hashlib.sha256()
        for part in (self.x, self.Y, self.ignore, self.groups):
            if part is None:
                hasher.update(b"none")
            elif isinstance(part, Texts):
                hasher.update(part.digest().encode())
            else:
                hasher.update(repr(part.shape).encode())
                for array, kind in (
                    (part.indptr, np.int64),
                    (part.indices, np.int32),
                    (part.data, np.float32),
                ):
                    hasher.update(np.ascontiguousarray(array, kind).data)
        return hasher.hexdigest()
