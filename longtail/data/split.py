"""The validation split: it depends on the data and the seed, not on the order of the rows."""

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
    """Return the rows for validation: 10 % of train, at least 200 and at most 10,000 points, never more than half.

    Points are split by a hash: of the group key if they have one, else of the text (lower-cased, without digits and
    punctuation, so that near-duplicates stay together), else of the features. Points with the same hash are on the same
    side. If every group is larger than the wanted size, exactly one group is held out; then the part may have more than
    10,000 points.
    """
    N = len(train)
    if N < 2:
        raise DataError(f"{N} training point(s) are too few to split off a validation part")
    wanted = min(max(int(SHARE * N), FEWEST), MOST, N // 2)
    _, member, sizes = np.unique(_hashes(train, seed), return_inverse=True, return_counts=True)
    chosen = _whole_groups(sizes, wanted, min(MOST, N // 2))
    if not chosen.any():
        chosen[np.flatnonzero(sizes <= N // 2)[:1]] = True
    if not chosen.any():
        raise DataError(
            "cannot split off a validation part: one group (or one repeated text) has most of the points",
            fix="provide a dev file, or another group field",
        )
    return np.flatnonzero(chosen[member])


def folds(data: Dataset, seed: int, count: int) -> NDArray[np.int64]:
    """Return the fold (N,) of each point, 0 … count − 1; points with the same hash (as above) are in the same fold."""
    _, member = np.unique(_hashes(data, seed), return_inverse=True)
    return np.asarray(member % count, np.int64)


def _whole_groups(sizes: NDArray[np.int64], wanted: int, most: int) -> NDArray[np.bool_]:
    """Return which groups are held out: in the given order, until `wanted` points are reached.

    A group is skipped if it is larger than `wanted` by itself, or if it would take the part above `most`.
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
    """Return a hash (N,) that identifies groups: of the key, or of the content for points with an empty key."""
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
    """Return a hash of each sparse row, computed over its bytes as if they were a text."""
    X = train.features.sorted_indices()
    packed = np.empty((X.nnz, 2), np.int32)
    packed[:, 0] = X.indices
    packed[:, 1] = np.asarray(X.data, np.float32).view(np.int32)
    return _native.hash_texts(packed.view(np.uint8).ravel(), np.asarray(X.indptr, np.int64) * 8, seed)
