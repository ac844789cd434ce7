"""Sparse matrices of points × labels or features: building them, checking them, converting them to one form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native import csr_arrays
from longtail._native.terms import unit_rows
from longtail.core.errors import DataError

MOST_COLUMNS = np.iinfo(np.int32).max - 1  # labels or features: columns are stored as int32
WEIGHT = "a label's weight must be above 0 and at most 1"


def csr(
    indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], shape: tuple[int, int], canonical: bool = False
) -> sp.csr_matrix:
    """Return a CSR matrix over these arrays. `canonical`: columns are known to be ascending within each row.

    Nothing is copied except `indptr`, which is converted to 32 bits if they suffice; otherwise scipy would copy the
    indices to 64 bits.
    """
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32, copy=False)
    matrix = sp.csr_matrix((data, indices, indptr), shape=shape, copy=False)
    if canonical:
        matrix.has_canonical_format = True  # scipy need not check all indices
    return matrix


def targets(matrix: Any) -> sp.csr_matrix:
    """Return Y in the form a Dataset stores: CSR of float32 in (0, 1], columns ascending within each row.

    Of duplicate entries the largest is used; stored zeros are dropped. A matrix already in this form is returned
    itself; the caller's matrix is never changed.
    """
    matrix = sound(matrix, "Y")
    if matrix.dtype != np.float32:
        with np.errstate(over="ignore"):  # values that are too large become infinite and are found below
            matrix = csr(matrix.indptr, matrix.indices, matrix.data.astype(np.float32), matrix.shape)
    if not matrix.nnz:
        return matrix
    low, high = matrix.data.min(), matrix.data.max()  # NaN if there is one
    if not (low >= 0 and high <= 1):
        at = int(np.argmax(~((matrix.data >= 0) & (matrix.data <= 1))))
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        problem = f"{WEIGHT} (row {row}, column {matrix.indices[at]})"
        raise DataError(problem, where="Y.data", found=float(matrix.data[at]))
    if low == 0:
        matrix = keep_entries(matrix, matrix.data != 0)
    return matrix if is_canonical(matrix) else once(matrix)


def pairs(matrix: Any) -> sp.csr_matrix:
    """Return `ignore` in the form a Dataset stores: CSR of True, columns ascending; stored zeros are dropped.

    A matrix already in this form is returned itself; the caller's matrix is never changed.
    """
    matrix = sound(matrix, "ignore")
    true = np.ascontiguousarray(matrix.data if matrix.dtype == bool else matrix.data != 0).view(np.uint8)
    if matrix.dtype == bool and (true == 1).all() and is_canonical(matrix):
        return matrix
    return _ones(matrix if true.all() else keep_entries(matrix, true != 0)).astype(bool)


def sound(matrix: Any, name: str) -> sp.csr_matrix:
    """Return the matrix as CSR; refuse it if its arrays do not fit together, so that no code reads outside them."""
    if not sp.issparse(matrix) or matrix.dtype.kind not in "biuf":
        found = f"{type(matrix).__name__} of {matrix.dtype}" if hasattr(matrix, "dtype") else type(matrix).__name__
        raise DataError("must be a scipy sparse matrix of numbers", where=name, found=found)
    if not isinstance(matrix, sp.csr_matrix):
        matrix = sp.csr_matrix(matrix)
    indptr, indices, data, (rows, columns) = matrix.indptr, matrix.indices, matrix.data, matrix.shape
    room = min(len(indices), len(data))
    if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] > room or (indptr[1:] < indptr[:-1]).any():
        problem = f"must increase from 0 to at most {room:,}, the number of entries, in {rows + 1:,} steps"
        raise DataError(problem, where=f"{name}.indptr")
    stored = int(indptr[-1])
    if stored < max(len(indices), len(data)):  # scipy allows unused space after the entries; our readers do not
        matrix = csr(indptr, indices[:stored], data[:stored], matrix.shape)
        indices = matrix.indices
    if stored and (indices.min() < 0 or indices.max() >= columns):
        at = int(np.argmax((indices < 0) | (indices >= columns)))
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        problem = f"a column is outside 0 … {columns - 1} (row {row})"
        raise DataError(problem, where=f"{name}.indices", found=int(indices[at]))
    return matrix


def is_canonical(matrix: sp.csr_matrix) -> bool:
    """Whether columns are ascending within each row. Checks the indices: the matrix's own flags may be outdated."""
    fresh = sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=False)
    return bool(fresh.has_canonical_format)


def once(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Return a copy sorted within rows; of duplicate entries, the largest is used."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = order_once(rows, matrix.indices, matrix.data)
    indptr = np.append(0, np.cumsum(np.bincount(rows[order], minlength=matrix.shape[0])))
    return csr(indptr, matrix.indices[order], matrix.data[order], matrix.shape, canonical=True)


def order_once(rows: NDArray[Any], columns: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order of entries by row and column; of duplicates, only the one with the largest weight."""
    order = np.lexsort((-weights, columns, rows))
    rows, columns = rows[order], columns[order]
    first = np.ones(len(order), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    return order[first]


def keep_entries(matrix: sp.csr_matrix, keep: NDArray[np.bool_]) -> sp.csr_matrix:
    """Return a copy with only the entries where `keep` (nnz,) is true."""
    return csr(_kept_rows(matrix, keep), matrix.indices[keep], matrix.data[keep], matrix.shape)


def move_columns(matrix: sp.csr_matrix, columns: NDArray[np.int64], width: int) -> sp.csr_matrix:
    """Move column j to `columns[j]` of `width` columns; columns sent to −1 are dropped."""
    target = columns[matrix.indices]
    keep = target >= 0
    shape = matrix.shape[0], width
    moved = csr(_kept_rows(matrix, keep), target[keep].astype(np.int32), matrix.data[keep], shape)
    moved.sort_indices()
    return moved


def without(matrix: sp.csr_matrix, stored: sp.csr_matrix) -> sp.csr_matrix:
    """Return `matrix` without the entries that `stored` contains."""
    hit = matrix.multiply(_ones(stored)).tocsr()
    left = (matrix - hit).tocsr()
    left.eliminate_zeros()
    left.sort_indices()
    return left.astype(np.float32)


def _ones(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Return 1 wherever the matrix stores an entry, columns ascending within each row."""
    ones = csr(matrix.indptr, matrix.indices, np.ones(matrix.nnz, np.float32), matrix.shape)
    return ones if is_canonical(ones) else once(ones)


def _kept_rows(matrix: sp.csr_matrix, keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the `indptr` that remains if only the entries where `keep` is true are kept."""
    return np.append(0, np.cumsum(keep))[matrix.indptr]


def normalise_rows(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Scale rows to unit length; empty rows stay empty."""
    indptr, _, data = csr_arrays(matrix)
    return with_data(matrix, unit_rows(indptr, data))


def with_data(matrix: sp.csr_matrix, data: NDArray[np.float32]) -> sp.csr_matrix:
    """Return a matrix with the same structure and other values."""
    return csr(matrix.indptr, matrix.indices, data, matrix.shape, canonical=matrix.has_canonical_format)
