"""Sparse matrices in scipy's `.npz` files, checked row by row like any other input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import DataError, shorten
from longtail.data.options import ReadOptions
from longtail.data.sparse import WEIGHT, once


def load_npz(path: Path) -> sp.csr_matrix:
    """Read a sparse matrix saved by scipy, checked, as CSR of float32."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            matrix = _converted({name: stored[name] for name in stored.files})
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"its values are {matrix.dtype}")
    except (MemoryError, OverflowError) as error:
        raise DataError("claims to be larger than memory", where=path, fix="copy or download it again") from error
    except Exception as error:  # zipfile and numpy raise nearly everything for files that are none of theirs
        fix = "copy or download it again"
        raise DataError(f"cannot be read as a sparse matrix ({error})", where=path, fix=fix) from error
    with np.errstate(over="ignore"):  # values that are too large become infinite and are found below
        return sp.csr_matrix((matrix.data.astype(np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)


def _converted(stored: dict[str, NDArray[Any]]) -> sp.csr_matrix:
    """The arrays of a matrix as CSR. Every index is checked first: scipy's conversions trust them."""
    layout = stored["format"].item()
    layout = layout.decode() if isinstance(layout, bytes) else str(layout)
    rows, columns = (int(size) for size in stored["shape"].tolist())
    if min(rows, columns) < 0 or max(rows, columns) >= 2**31:
        raise ValueError(f"its shape is {(rows, columns)}")
    data = stored["data"]
    if layout in ("csr", "csc", "bsr"):
        height, width = data.shape[1:] if layout == "bsr" else (1, 1)
        if layout == "bsr" and (data.ndim != 3 or min(height, width) < 1 or rows % height or columns % width):
            raise ValueError(f"blocks of shape {data.shape[1:]} do not fit {(rows, columns)}")
        lines, places = (columns, rows) if layout == "csc" else (rows // height, columns // width)
        _check_pointers(stored["indptr"], stored["indices"], len(data), lines, places)
        build = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "bsr": sp.bsr_matrix}[layout]
        return build((data, stored["indices"], stored["indptr"]), shape=(rows, columns)).tocsr()
    if layout == "coo":
        _check_numbers("row", stored["row"], len(data), rows)
        _check_numbers("column", stored["col"], len(data), columns)
        return sp.coo_matrix((data, (stored["row"], stored["col"])), shape=(rows, columns)).tocsr()
    if layout == "dia":
        _check_numbers("diagonal", np.abs(stored["offsets"].astype(np.int64)), len(data), rows + columns)
        return sp.dia_matrix((data, stored["offsets"]), shape=(rows, columns)).tocoo().tocsr()
    raise ValueError(f"its format is {shorten(layout)}; save it as CSR")


def _check_pointers(indptr: NDArray[Any], indices: NDArray[Any], stored: int, lines: int, places: int) -> None:
    """Refuse row pointers that do not rise from 0 to the number of entries, and indices out of range."""
    if indptr.dtype.kind not in "iu" or indptr.shape != (lines + 1,):
        raise ValueError(f"it has {indptr.size:,} row pointers for {lines:,} rows")
    if indptr[0] != 0 or (np.diff(indptr.astype(np.int64)) < 0).any() or indptr[-1] != stored:
        raise ValueError(f"its row pointers do not rise from 0 to {stored:,}")
    _check_numbers("index", indices, stored, places)


def _check_numbers(what: str, numbers: NDArray[Any], stored: int, limit: int) -> None:
    """Refuse numbers that are not one integer below `limit` for each stored value."""
    if numbers.dtype.kind not in "iu" or numbers.shape != (stored,):
        raise ValueError(f"{stored:,} values have {numbers.size:,} {what} numbers")
    wrong = (numbers < 0) | (numbers >= limit)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"{what} number {int(numbers[at])} of value {at + 1:,} is not below {limit:,}")


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
