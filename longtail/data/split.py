"""The validation split: a function of the data and the seed, not of the order of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError
from longtail.core.texts import Texts

if TYPE_CHECKING:
    from longtail.data.dataset import Dataset

SHARE, FEWEST, MOST = 0.1, 200, 10_000


def held_out_rows(train: Dataset, seed: int) -> NDArray[np.int64]:
    """Rows for validation: 10 % of train, at least 200, at most 10,000 points, never more than half.

    Points go by the hash of their group key where they have one, else of their text (lower-cased, without
    digits and punctuation, so that near-duplicates stay together), else of their features: points with
    one hash are on one side. Only where every group is larger than that is one held out that is, alone: then the
    part may have more than 10,000 points.
    """
    N = len(train)
    if N < 2:
        raise DataError(f"{N} training point(s) are too few to hold a validation part out of")
    wanted = min(max(int(SHARE * N), FEWEST), MOST, N // 2)
    _, member, sizes = np.unique(_hashes(train, seed), return_inverse=True, return_counts=True)
    chosen = _whole_groups(sizes, wanted, min(MOST, N // 2))
    if not chosen.any():
        chosen[np.flatnonzero(sizes <= N // 2)[:1]] = True
    if not chosen.any():
        raise DataError(
            "no validation part can be cut: one group (or one text, repeated) holds most of the points",
            fix="give a dev file, or another group field",
        )
    return np.flatnonzero(chosen[member])


def folds(data: Dataset, seed: int, count: int) -> NDArray[np.int64]:
    """The fold (N,) of each point, 0 … count − 1; points with one hash, as above, are in one fold."""
    _, member = np.unique(_hashes(data, seed), return_inverse=True)
    return np.asarray(member % count, np.int64)


def _whole_groups(sizes: NDArray[np.int64], wanted: int, most: int) -> NDArray[np.bool_]:
    """Which groups are held out: as they come, until `wanted` points are reached.

    Passed over is a group that is larger than that alone, or that would take the part above `most`.
    """
    chosen = np.zeros(len(sizes), bool)
    total = 0
    for at in np.flatnonzero(sizes <= wanted):
        if total + sizes[at] <= most:
            chosen[at] = True
            total += int(sizes[at])
        if total >= wanted:
            break
    return chosen


def _hashes(train: Dataset, seed: int) -> NDArray[np.uint64]:
    """What tells groups apart (N,): the hash of the key; for a point without one (an empty key) of what it is."""
    if train.groups is None:
        return _content_hashes(train, seed)
    hashes = _native.hash_texts(train.groups.data, train.groups.offsets, seed)
    alone = train.groups.byte_lengths == 0
    if alone.any():
        hashes[alone] = _content_hashes(train, seed)[alone]
    return hashes


def _content_hashes(train: Dataset, seed: int) -> NDArray[np.uint64]:
    if isinstance(train.x, Texts):
        return _native.hash_texts(train.x.data, train.x.offsets, seed, fold=True)
    return _row_hashes(train, seed)


def _row_hashes(train: Dataset, seed: int) -> NDArray[np.uint64]:
    """Hash of each sparse row: its bytes taken as a text."""
    X = train.features.sorted_indices()
    packed = np.empty((X.nnz, 2), np.int32)
    packed[:, 0] = X.indices
    packed[:, 1] = np.asarray(X.data, np.float32).view(np.int32)
    return _native.hash_texts(packed.view(np.uint8).ravel(), np.asarray(X.indptr, np.int64) * 8, seed)
