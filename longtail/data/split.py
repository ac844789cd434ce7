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

    Points go by the hash of their group key where there is one, else of their text (lower-cased, without
    digits and punctuation, so that near-duplicates stay together), else of their features: points with
    one hash are on one side.
    """
    N = len(train)
    if N < 2:
        raise DataError(f"{N} training point(s) are too few to hold a validation part out of")
    wanted = min(max(int(SHARE * N), FEWEST), MOST, N // 2)
    if train.groups is not None:
        hashes = _native.hash_texts(train.groups.data, train.groups.offsets, seed)
    elif isinstance(train.x, Texts):
        hashes = _native.hash_texts(train.x.data, train.x.offsets, seed, fold=True)
    else:
        hashes = _row_hashes(train, seed)
    # whole groups in hash order until the wanted number is reached; none that would take train below half
    _, member, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
    fits = sizes <= N // 2
    reached = np.cumsum(np.where(fits, sizes, 0))
    chosen = fits & (reached <= N // 2) & (reached - sizes < wanted)
    if not chosen.any():
        raise DataError(
            "no validation part can be cut: one group (or one text, repeated) holds most of the points",
            fix="give a dev file, or another group field",
        )
    return np.flatnonzero(chosen[member])


def _row_hashes(train: Dataset, seed: int) -> NDArray[np.uint64]:
    """Hash of each sparse row: its bytes taken as a text."""
    X = train.features
    width = X.indices.itemsize + X.data.itemsize
    packed = np.empty((X.nnz, width), np.uint8)
    packed[:, : X.indices.itemsize] = X.indices.view(np.uint8).reshape(X.nnz, -1)
    packed[:, X.indices.itemsize :] = X.data.view(np.uint8).reshape(X.nnz, -1)
    return _native.hash_texts(packed.ravel(), np.asarray(X.indptr, np.int64) * width, seed)
