"""The features of points as the linear engine reads them: sparse columns, then dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import csr_arrays
from longtail._native.linear import CsrArrays
from longtail.core.errors import DataError
from longtail.data.sparse import csr

Rows = sp.csr_matrix | NDArray[np.float32]  # one block of N points: sparse or dense columns


class Features(NamedTuple):
    """N points with d sparse columns, then e dense ones. The bias is not among them; the kernels add it.

    `arrays` are the CSR arrays of the sparse columns, `columns` is d, `dense` is (N, e) or None. A bare tuple, because
    a scipy matrix would cost a single query more than its search.
    """

    arrays: CsrArrays
    columns: int
    dense: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, blocks: Sequence[Any]) -> Features:
        """Blocks (N, ·) side by side: all sparse ones in their order, then all dense ones in theirs.

        Dense blocks stay dense. A single sparse and a single dense block are taken without a copy.
        """
        sparse = [block for block in blocks if sp.issparse(block)]
        dense = [_checked_dense(block) for block in blocks if not sp.issparse(block)]
        counts = {int(block.shape[0]) for block in blocks}
        if len(counts) != 1:
            raise DataError("feature blocks must have the same number of rows", found=sorted(counts))
        if not sparse:
            sparse = [sp.csr_matrix((*counts, 0), dtype=np.float32)]
        X = sparse[0] if len(sparse) == 1 else sp.hstack(sparse, format="csr")
        E = None if not dense else dense[0] if len(dense) == 1 else np.hstack(dense)
        return cls(csr_arrays(X if X.format == "csr" else X.tocsr()), int(X.shape[1]), E)

    @property
    def points(self) -> int:
        """The number of points, N."""
        return len(self.arrays[0]) - 1

    @property
    def width(self) -> int:
        """How many columns there are: d + e."""
        return self.columns + self.dense_columns

    @property
    def dense_columns(self) -> int:
        """How many of them are dense: e, the last ones."""
        return 0 if self.dense is None else self.dense.shape[1]

    @property
    def sparse(self) -> sp.csr_matrix:
        """The sparse columns as a matrix (N, d) over the same arrays."""
        return csr(*self.arrays, (self.points, self.columns))

    def take(self, rows: Any) -> Features:
        """The points at `rows` (an index array, mask or slice)."""
        X = self.sparse[rows]
        return Features(csr_arrays(X), self.columns, None if self.dense is None else self.dense[rows])


def _checked_dense(block: Any) -> NDArray[np.float32]:
    values = np.ascontiguousarray(block, np.float32)
    if values.ndim != 2:
        raise DataError("a dense feature block must be a matrix (points, columns)", found=values.shape)
    if not np.isfinite(values).all():
        raise DataError("a dense feature block holds NaN or infinite values", fix="look at what computed it")
    return values
