"""Long texts in windows: a transformer reads each window on its own, and their vectors are averaged. No torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.encoders.tokens import PADDING

Floats = NDArray[np.float32]


class Windows(NamedTuple):
    """N texts cut into M windows of `size` tokens; a text shorter than that has one window."""

    rows: NDArray[np.int32]  # (M, size), padded by 0
    texts: NDArray[np.intp]  # (M,): the text of each window, rising
    number: int  # N

    @classmethod
    def of(cls, rows: NDArray[np.integer[Any]], size: int) -> Windows:
        """From the tokens of texts (N, W), padded by 0: windows with at least one token, and every first one."""
        rows = np.asarray(rows, np.int32)
        N, W = rows.shape
        count = max(-(-W // size), 1)
        whole = np.full((N, count * size), PADDING, np.int32)
        whole[:, :W] = rows
        cut = whole.reshape(N * count, size)
        kept = (cut != PADDING).any(1)
        kept[::count] = True
        return cls(cut[kept], np.flatnonzero(kept) // count, N)

    def pooled(self, vectors: Floats) -> Floats:
        """The mean of each text's windows (N, d), weighted by their numbers of tokens, from theirs (M, d)."""
        lengths = np.maximum((self.rows != PADDING).sum(1), 1).astype(np.float32)  # (M,)
        begins = np.searchsorted(self.texts, np.arange(self.number))
        total = np.add.reduceat(vectors * lengths[:, None], begins, axis=0) if self.number else vectors
        return np.asarray(total / np.add.reduceat(lengths, begins)[:, None] if self.number else vectors, np.float32)
