"""Numpy's `.npy` files: written in pieces without a second copy, opened memory-mapped."""

from __future__ import annotations

import errno
import hashlib
import io
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import StoreError

CHUNK = 1 << 24  # bytes written at once


def chunks(array: NDArray[Any]) -> Iterator[bytes | memoryview]:
    """Yield the content of an array's `.npy` file, piece by piece."""
    array = np.asarray(array)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    yield header.getvalue()
    if array.flags.c_contiguous:
        yield from _pieces(array)
    elif array.flags.f_contiguous:  # the header says so
        yield from _pieces(array.T)
    else:  # copied a few rows at a time
        rows = max(1, CHUNK * len(array) // max(array.nbytes, 1))
        for start in range(0, len(array), rows):
            yield from _pieces(np.ascontiguousarray(array[start : start + rows]))


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    octets: Any = array.reshape(-1).view(np.uint8)
    flat = memoryview(octets)
    for start in range(0, len(flat), CHUNK):
        yield flat[start : start + CHUNK]


def entry(name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Return an array's entry in the manifest: file, dtype, shape, bytes and SHA-256 of the file."""
    hasher, size = hashlib.sha256(), 0
    for chunk in chunks(array):
        hasher.update(chunk)
        size += len(chunk)
    return {
        "file": f"{name}.npy",
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": size,
        "sha256": hasher.hexdigest(),
    }


def open_array(path: Path, expected: dict[str, Any]) -> NDArray[Any]:
    """Memory-map the array at `path`, read-only; refuse it if it differs from its manifest entry."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise damaged(path, "is not a regular file")
        size = status.st_size
        if size != expected["bytes"]:
            raise damaged(path, f"has {size:,} bytes, but should have {expected['bytes']:,}")
        mode: Any = "r" if 0 not in expected["shape"] else None  # an empty array cannot be mapped
        array = np.asarray(np.load(path, mmap_mode=mode, allow_pickle=False))
    except FileNotFoundError:
        raise damaged(path, "is missing") from None
    except (OSError, MemoryError) as error:
        raise unreadable(path, error) from error
    except (ValueError, EOFError, SyntaxError, OverflowError, TypeError) as error:
        raise damaged(path, f"cannot be read as a numpy array ({error})") from error
    if array.dtype.str != expected["dtype"] or list(array.shape) != expected["shape"]:
        found = f"{array.dtype.str} {tuple(array.shape)}"
        raise damaged(path, f"holds {found}, but should hold {expected['dtype']} {tuple(expected['shape'])}")
    array.flags.writeable = False
    return array


def check_sum(path: Path, expected: dict[str, Any]) -> None:
    """Refuse a file whose SHA-256 differs from the manifest's."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error
    if found != expected["sha256"]:
        raise damaged(path, f"has the SHA-256 {found[:12]}…, but should have {expected['sha256'][:12]}…")


def unreadable(path: Path, error: OSError | MemoryError) -> StoreError:
    """Return the error for a file that the system does not let us read, which says nothing of its content."""
    if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
        return StoreError(f"{path}: there is not enough memory to open it; free some, or use a larger machine")
    fix = "change its permissions" if error.errno in (errno.EACCES, errno.EPERM) else "check the disk, and try again"
    return StoreError(f"{path}: cannot be read: {error.strerror or error}; {fix}")


def damaged(path: Path, how: str) -> StoreError:
    """Return the error for a damaged file."""
    return StoreError(f"{path}: {how}; the folder is damaged: restore it from a copy, or create it again")
