"""Converts texts, sparse matrices and labels to named arrays and back.

Packing does not copy contiguous arrays. Unpacking only wraps the arrays, so memory-mapped ones stay mapped.
None packs to no arrays, and missing arrays unpack to None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import StoreError
from longtail.core.labels import Labels, Propensity
from longtail.core.texts import Texts

Arrays = dict[str, NDArray[Any]]


def pack_texts(name: str, texts: Texts | None) -> Arrays:
    """Return `name.data` (uint8) and `name.offsets` (int64, n + 1 values, the first is 0)."""
    if texts is None:
        return {}
    first, last = texts.offsets[0], texts.offsets[-1]  # of a slice, only the part of the buffer it uses
    offsets = texts.offsets - first if first else texts.offsets
    return {f"{name}.data": texts.data[first:last], f"{name}.offsets": offsets}


def unpack_texts(name: str, arrays: Mapping[str, NDArray[Any]]) -> Texts | None:
    """Return the `Texts` packed under `name`."""
    found = _parts(name, ("data", "offsets"), arrays)
    if found is None:
        return None
    data, offsets = found
    if data.dtype != np.uint8 or offsets.dtype != np.int64 or not len(offsets) or offsets[-1] != len(data):
        raise _mismatch(name, "texts", found)
    return Texts(data, offsets)


def pack_csr(name: str, matrix: sp.csr_matrix | None) -> Arrays:
    """Return `name.data`, `name.indices`, `name.indptr` with their own dtypes, and `name.shape`.

    If indices and indptr have different dtypes, both are converted to one: scipy fails on a mixture.

    `shape` is (rows, columns, whether indices are sorted, whether there are no duplicates). With the two flags,
    nobody has to read all indices to find out.
    """
    if matrix is None:
        return {}
    indices, indptr = matrix.indices, matrix.indptr
    if indices.dtype != indptr.dtype:
        kind = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
        indices, indptr = indices.astype(kind, copy=False), indptr.astype(kind, copy=False)
    flags = (matrix.has_sorted_indices, matrix.has_canonical_format)
    return {
        f"{name}.data": matrix.data,
        f"{name}.indices": indices,
        f"{name}.indptr": indptr,
        f"{name}.shape": np.array([*matrix.shape, *flags], np.int64),
    }


def unpack_csr(name: str, arrays: Mapping[str, NDArray[Any]], check: bool = True) -> sp.csr_matrix | None:
    """Return the CSR matrix packed under `name`; with `check`, all of its indices are read and must lie inside."""
    found = _parts(name, ("data", "indices", "indptr", "shape"), arrays)
    if found is None:
        return None
    data, indices, indptr, shape = found
    fits = len(shape) == 4 and len(indptr) == shape[0] + 1 and indptr[-1] == len(data) == len(indices)
    if not fits or indices.dtype != indptr.dtype or (check and not _leads_inside(indptr, indices, int(shape[1]))):
        raise _mismatch(name, "a sparse matrix", found)
    # scipy's constructor may read all indices and copy them to another dtype, so that they are no longer mapped
    matrix = sp.csr_matrix((int(shape[0]), int(shape[1])), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    matrix.has_sorted_indices, matrix.has_canonical_format = bool(shape[2]), bool(shape[3])
    return matrix


def _leads_inside(indptr: NDArray[Any], indices: NDArray[Any], columns: int) -> bool:
    """Whether row pointers rise from 0 and every index is below the number of columns: kernels do not check again."""
    if indptr.dtype.kind != "i" or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return False
    return not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < columns)


def pack_labels(name: str, labels: Labels) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays of a label space, and its JSON fields: count, digest, points and propensity constants."""
    arrays = {
        **pack_texts(f"{name}.keys", labels.keys),
        **pack_texts(f"{name}.texts", labels.texts),
        f"{name}.counts": labels.counts,
        **({} if labels.removed is None else {f"{name}.removed": labels.removed}),
    }
    constants = {"A": labels.propensity.A, "B": labels.propensity.B}
    meta = {"count": len(labels), "digest": labels.digest(), "points": labels.points, "propensity": constants}
    return arrays, meta


def unpack_labels(name: str, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], check: bool = True) -> Labels:
    """Return the label space packed under `name`; with `check`, its digest must equal the one in `meta`."""
    keys = unpack_texts(f"{name}.keys", arrays)
    if keys is None or f"{name}.counts" not in arrays:
        raise StoreError(f"the arrays of the labels {name!r} are missing; the folder is damaged: create it again")
    try:
        points, propensity, count, digest = (meta[key] for key in ("points", "propensity", "count", "digest"))
        constants = Propensity(**propensity)
    except (KeyError, TypeError) as error:
        raise StoreError(f"the manifest's entry {name!r} is damaged ({error!r}); create the folder again") from None
    labels = Labels(
        keys=keys,
        texts=unpack_texts(f"{name}.texts", arrays),
        counts=arrays[f"{name}.counts"],
        points=points,
        propensity=constants,
        removed=arrays.get(f"{name}.removed"),
    )
    found = labels.digest() if check else digest
    if len(labels) != count or found != digest:
        raise StoreError(
            f"the labels {name!r} differ from the manifest: {len(labels):,} with digest {found[:12]}…, it says "
            f"{count:,} with {digest[:12]}…; the folder was put together by hand or is damaged: create it again"
        )
    return labels


def _parts(name: str, parts: tuple[str, ...], arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]] | None:
    """Return the arrays `name.part`; None if all are missing; refuse if only some are."""
    missing = [part for part in parts if f"{name}.{part}" not in arrays]
    if len(missing) == len(parts):
        return None
    if missing:
        raise StoreError(f"array '{name}.{missing[0]}' is missing; the folder is damaged: create it again")
    return [arrays[f"{name}.{part}"] for part in parts]


def _mismatch(name: str, what: str, found: list[NDArray[Any]]) -> StoreError:
    shown = ", ".join(f"{array.dtype} {array.shape}" for array in found)
    return StoreError(f"the arrays of {name!r} do not describe {what}: found {shown}; create the folder again")
