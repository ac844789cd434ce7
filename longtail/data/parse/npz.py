"""Sparse matrices in scipy's `.npz` files, checked row by row like any other input."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.data.options import ReadOptions
from longtail.data.sparse import WEIGHT, once


def load_npz(path: Path) -> sp.csr_matrix:
    """Read a sparse matrix saved by scipy, checked, as CSR of float32."""
    try:
        matrix = sp.csr_matrix(sp.load_npz(path))  # scipy loads without pickle
        matrix.check_format(full_check=True)
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"its values are {matrix.dtype}")
    except (OSError, ValueError, KeyError, TypeError, EOFError, IndexError, zipfile.BadZipFile, zlib.error) as error:
        fix = "copy or download it again"
        raise DataError(f"cannot be read as a sparse matrix ({error})", where=path, fix=fix) from error
    with np.errstate(over="ignore"):  # values that are too large become infinite and are found below
        return sp.csr_matrix((matrix.data.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


def read_weights(path: Path, options: ReadOptions) -> tuple[sp.csr_matrix, NDArray[np.bool_]]:
    """Read a label matrix with weights above 0 and at most 1; also return which rows could be read."""
    Y = load_npz(path)
    stored = Y.nnz
    if not Y.has_canonical_format:
        Y = once(Y)
        if Y.nnz < stored:
            what = "a label was repeated in one row and is counted once"
            options.checks.mend(what, path, 1, stored - Y.nnz)
    stored = Y.nnz
    Y.eliminate_zeros()  # a stored 0 is not a label
    if Y.nnz < stored:
        options.checks.mend("a label stored with weight 0 was dropped", path, 1, stored - Y.nnz)
    wrong = ~((Y.data > 0) & (Y.data <= 1))
    return Y, _good_rows(Y, wrong, WEIGHT, path, options)


def read_features(path: Path, options: ReadOptions) -> tuple[sp.csr_matrix, NDArray[np.bool_]]:
    """Read a feature matrix; also return which rows could be read."""
    X = load_npz(path)
    stored = X.nnz
    X.sum_duplicates()
    if X.nnz < stored:
        what = "a feature was repeated in one row and its values are added up"
        options.checks.mend(what, path, 1, stored - X.nnz)
    return X, _good_rows(X, ~np.isfinite(X.data), "the value of a feature is not finite", path, options)


def _good_rows(
    matrix: sp.csr_matrix, wrong: NDArray[np.bool_], problem: str, path: Path, options: ReadOptions
) -> NDArray[np.bool_]:
    """Return which rows have no wrong value; every other row is a bad line."""
    good = np.ones(matrix.shape[0], bool)
    if wrong.any():
        at = np.flatnonzero(wrong)
        rows = np.searchsorted(matrix.indptr, at, side="right") - 1
        rows, first = np.unique(rows, return_index=True)
        good[rows] = False
        for row, place in zip(rows.tolist(), at[first].tolist(), strict=True):
            found = (int(matrix.indices[place]), float(matrix.data[place]))
            options.checks.bad(DataError(f"{problem} (row {row + 1}, counted from 1)", where=path, found=found))
    return good
