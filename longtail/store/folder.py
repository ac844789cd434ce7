"""Folders of arrays with a manifest: a crash leaves the old content or the new one; arrays open memory-mapped.

Arrays are stored in `FOLDER/data-<digest>/`, a *generation*. Once a manifest names a generation, it never changes.
A save writes a new generation, then replaces the manifest, then deletes the generations no manifest names.
docs/format.md explains why the steps come in this order.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from longtail._native import get_threads
from longtail.core.errors import StoreError, shorten
from longtail.store import disk, npy
from longtail.store.lock import LOCK, locked
from longtail.store.manifest import ARRAY_NAME, GENERATION, Stamp, encode, read_manifest, read_stamped

log = logging.getLogger("longtail")

RUN = ".run"  # checkpoints of a training stay here until it succeeds
RETRIES = 100

T = TypeVar("T")
R = TypeVar("R")


def save_folder(
    folder: str | Path,
    manifest_name: str,
    kind: str,
    manifest: dict[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    overwrite: bool,
    replaces: str | None = None,
) -> None:
    """Save `arrays` in `folder`, with a manifest of format `kind` that holds the JSON fields of `manifest`.

    The save is atomic: whoever opens the folder, at any time and after any crash, finds the old content or the new.
    The arrays may be memory-mapped from this same folder. A folder that holds other files is refused; without
    `overwrite`, so is a folder that already holds something of this kind. `replaces` names the generation that the
    new content was made from: if another process has saved a different one since, this save is refused.
    """
    folder = Path(folder)
    check_place(folder, manifest_name, kind)  # refuse before changing anything
    check_arrays(arrays)
    files = dict(zip(arrays, parallel(lambda item: npy.entry(*item), arrays.items()), strict=True))
    digest = hashlib.sha256(orjson.dumps(files, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    encode(kind, f"data-{digest}", files, manifest)  # refuse now what JSON cannot hold

    disk.make_folders(folder)
    with locked(folder):
        current = check_place(folder, manifest_name, kind)
        before: str | None = None if current is None else current["generation"]
        if current is not None and not overwrite and replaces is None:
            noun = kind.removeprefix("longtail-")
            raise StoreError(
                f"{folder}: already contains a {noun}; use overwrite=True (--overwrite) to replace it, or choose "
                "another folder"
            )
        if replaces is not None and before != replaces:
            raise StoreError(f"{folder}: another process has saved it in the meantime; load it again and repeat this")
        try:
            if current is not None and current["arrays"] == files and _is_intact(folder, current):
                generation = current["generation"]
            else:  # never write to the named generation, even if damaged: it may be in use
                generation = f"data-{digest}-2" if before == f"data-{digest}" else f"data-{digest}"
                _write_generation(folder / generation, arrays, files)
            _write_manifest(folder, manifest_name, encode(kind, generation, files, manifest))
        except BaseException:
            _sweep(folder, manifest_name, kind, also_keep=before)  # free the disk space
            raise
        _sweep(folder, manifest_name, kind)


def open_folder(
    folder: str | Path, manifest_name: str, kind: str, verify: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the manifest and the arrays of a folder; the arrays are memory-mapped and read-only.

    Missing files, and files whose size, dtype or shape differs from the manifest, are always refused. With `verify`,
    all content is read once and its checksum compared.
    """
    folder = Path(folder)
    failed: Stamp | None = None
    for _ in range(RETRIES):
        manifest, seen = read_stamped(folder, manifest_name, kind)
        try:
            return manifest, _open_arrays(folder, manifest, verify)
        except StoreError:  # damaged, or just replaced by a newer generation
            if seen == failed:
                raise
            failed = seen
    raise StoreError(f"{folder}: changed {RETRIES} times while it was being opened; try again when nobody writes to it")


def size_of(folder: str | Path, manifest_name: str, manifest: dict[str, Any]) -> int:
    """Return the size on disk, in bytes, of a manifest and the arrays it names; a missing file is an error."""
    folder = Path(folder)
    files = [folder / manifest["generation"] / entry["file"] for entry in manifest["arrays"].values()]
    try:
        return sum(path.stat().st_size for path in [folder / manifest_name, *files])
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}; the folder is damaged"
        raise StoreError(f"{problem}: restore it from a copy, or create it again") from None


def check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse names that are not safe as file names on every system, and dtypes that only pickle could store."""
    names: dict[str, str] = {}
    for name, array in arrays.items():
        if not ARRAY_NAME.fullmatch(name) or len(name) > 200:
            raise StoreError(f"array names use letters, digits, _ and inner dots or dashes; got {shorten(name)}")
        if names.setdefault(name.lower(), name) != name:
            raise StoreError(f"array names must differ by more than case; got {names[name.lower()]!r} and {name!r}")
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufc":
            found = f"dtype {array.dtype}" if isinstance(array, np.ndarray) else shorten(array)
            raise StoreError(f"array {name!r} must be a numpy array of numbers or booleans; got {found}")


def parallel(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return `function(item)` for each item, computed in threads: hashing and reading release the interpreter lock."""
    items = list(items)
    with ThreadPoolExecutor(max(1, min(get_threads(), len(items)))) as pool:
        return list(pool.map(function, items))


def check_place(folder: Path, manifest_name: str, kind: str) -> dict[str, Any] | None:
    """Return the current manifest, or None if the folder is new; refuse a folder that is not ours to write to."""
    if not os.path.lexists(folder):
        parent = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise StoreError(f"{folder}: cannot be created: {parent} is not a writable folder; choose another")
        return None
    if folder.is_file():
        raise StoreError(f"{folder}: is a file, not a folder; choose another name to save under")
    with disk.explained("read this folder", folder):
        names = sorted(entry.name for entry in folder.iterdir())
    if manifest_name in names:
        return read_manifest(folder, manifest_name, kind)
    foreign = [name for name in names if name not in (RUN, LOCK) and not _is_leftover(name, manifest_name)]
    if foreign:
        raise StoreError(
            f"{folder}: refuses to save here: it holds other files ({', '.join(map(shorten, foreign[:3]))}"
            f"{', …' if len(foreign) > 3 else ''}) and no {manifest_name}; choose a new or an empty folder"
        )
    return None


def _is_leftover(name: str, manifest_name: str) -> bool:
    """Whether only the store uses this name: a generation, or a manifest that is not in place yet."""
    return GENERATION.fullmatch(name) is not None or name == _temporary(manifest_name)


def _temporary(manifest_name: str) -> str:
    return f".{manifest_name}.tmp"


def _write_generation(folder: Path, arrays: Mapping[str, NDArray[Any]], files: Mapping[str, Any]) -> None:
    """Write all arrays to a new generation that no manifest names yet, and sync it to disk."""
    if os.path.lexists(folder):  # left by a killed writer; it may be incomplete
        disk.sync_folder(folder.parent)  # the writer's manifest may not be synced yet
        disk.remove_folder(folder)
    disk.make_folder(folder)
    for name, array in arrays.items():
        written = disk.write_file(folder / files[name]["file"], npy.chunks(array))
        if written != files[name]["sha256"]:
            raise StoreError(f"array {name!r} was changed while it was being saved; save it again")
    disk.sync_folder(folder)
    disk.sync_folder(folder.parent)


def _write_manifest(folder: Path, manifest_name: str, text: bytes) -> None:
    """Replace the manifest in one step, and sync it to disk."""
    temporary = folder / _temporary(manifest_name)
    disk.write_file(temporary, [text])
    disk.replace(temporary, folder / manifest_name)
    disk.sync_folder(folder)  # before deleting old data: a crash could bring the old manifest back


def sweep_folder(folder: str | Path, manifest_name: str, kind: str) -> None:
    """Delete what earlier saves left behind; an error if something cannot be deleted.

    For edits that erase: a save that was interrupted leaves the old arrays, and a save itself only warns of them.
    """
    folder = Path(folder)
    with locked(folder), disk.explained("delete files of earlier saves", folder):
        _delete_unnamed(folder, manifest_name, kind)


def _sweep(folder: Path, manifest_name: str, kind: str, also_keep: str | None = None) -> None:
    """Delete everything the current manifest does not name. A failure here must not make the save fail."""
    try:
        _delete_unnamed(folder, manifest_name, kind, also_keep)
    except (StoreError, OSError) as error:  # e.g. a file still open on Windows; the next save tries again
        log.warning("could not delete files that an earlier save left behind: %s", error)


def _delete_unnamed(folder: Path, manifest_name: str, kind: str, also_keep: str | None = None) -> None:
    current = check_place(folder, manifest_name, kind)
    kept = {also_keep, None if current is None else current["generation"]}
    for path in sorted(folder.iterdir()):
        if path.name == _temporary(manifest_name):
            disk.unlink(path)
        elif path.name not in kept and GENERATION.fullmatch(path.name):
            disk.remove_folder(path)


def _open_arrays(folder: Path, manifest: dict[str, Any], verify: bool) -> dict[str, NDArray[Any]]:
    data, entries = folder / manifest["generation"], manifest["arrays"]
    arrays = {name: npy.open_array(data / entry["file"], entry) for name, entry in entries.items()}
    if verify:
        parallel(lambda entry: npy.check_sum(data / entry["file"], entry), entries.values())
    return arrays


def _is_intact(folder: Path, manifest: dict[str, Any]) -> bool:
    try:
        _open_arrays(folder, manifest, verify=True)
    except StoreError:
        return False
    return True
