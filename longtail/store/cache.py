"""A cache on disk for arrays that are expensive to compute, stored under a key."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import platformdirs
from numpy.typing import NDArray

from longtail.core.errors import StoreError
from longtail.store import disk
from longtail.store.folder import open_folder, save_folder
from longtail.store.manifest import read_manifest

log = logging.getLogger("longtail")

MANIFEST = "cache.json"
KIND = "longtail-cache"
ENTRY = re.compile(r"[0-9a-f]{32}")
_off: ContextVar[bool] = ContextVar("cache off", default=False)


def cached(key: str, build: Callable[[], Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Return the arrays for `key`: read from the cache if present, otherwise built by `build` and stored.

    `key` must describe everything the arrays depend on: texts, encoder, settings, and a version of the code.
    A damaged entry is built again. If the cache cannot be written, this only logs a warning.
    """
    if _off.get():
        return dict(build())
    try:
        folder = cache_folder()
    except StoreError as error:
        log.warning("nothing is cached: %s", error)
        return dict(build())
    found = find(folder, key)
    return keep(folder, key, dict(build())) if found is None else found


@contextmanager
def without_cache(off: bool = True) -> Iterator[None]:
    """Inside the block, `cached` neither reads nor writes. `find` and `keep` still work: they name their own folder."""
    before = _off.set(off)
    try:
        yield
    finally:
        _off.reset(before)


def find(folder: Path, key: str) -> dict[str, NDArray[Any]] | None:
    """Return the arrays stored in `folder` under `key`, memory-mapped; None if they are missing or damaged."""
    return _open(_entry(folder, key), key)


def keep(folder: Path, key: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Store arrays in `folder` under `key` and return them memory-mapped, so that the originals can be freed."""
    try:
        _put(_entry(folder, key), key, arrays)
    except StoreError as error:
        log.warning("could not write to the cache: %s", error)
        return arrays
    return _open(_entry(folder, key), key, verify=False) or arrays


def forget(folder: Path) -> None:
    """Delete all entries in `folder`, then the folder itself unless it also holds files of somebody else.

    Links are deleted, and what they lead to is left alone.
    """
    if folder.is_symlink():
        disk.unlink(folder)
        return
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if ENTRY.fullmatch(entry.name) and entry.is_symlink():
            disk.unlink(entry)
        elif ENTRY.fullmatch(entry.name) and entry.is_dir():
            for generation in entry.glob("data-*"):
                disk.remove_folder(generation)
            disk.remove_folder(entry)
    if folder.is_dir() and not any(folder.iterdir()):
        disk.remove_folder(folder)


def _entry(folder: Path, key: str) -> Path:
    return folder / hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def cache_folder() -> Path:
    """Return `LONGTAIL_CACHE`, or `longtail` in the platform's cache folder."""
    own = os.environ.get("LONGTAIL_CACHE")
    try:
        return Path(own).expanduser() if own else platformdirs.user_cache_path("longtail", appauthor=False)
    except (RuntimeError, KeyError):  # as in a container whose user has neither HOME nor an entry in the user database
        raise StoreError("this user has no home folder to cache in; set LONGTAIL_CACHE to a folder") from None


def _open(folder: Path, key: str, verify: bool = True) -> dict[str, NDArray[Any]] | None:
    if not (folder / MANIFEST).exists():
        return None
    try:
        manifest, arrays = open_folder(folder, MANIFEST, KIND, verify)
    except StoreError as error:
        log.warning("rebuilding a damaged cache entry: %s", error)
        return None
    return arrays if manifest.get("key") == key else None


def _put(folder: Path, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an entry. Two processes may write the same one at once; the folder's lock makes one wait for the other."""
    if (folder / MANIFEST).exists():
        try:
            read_manifest(folder, MANIFEST, KIND)
        except StoreError:  # damaged or of another version: saving over it would be refused
            disk.unlink(folder / MANIFEST)
    save_folder(folder, MANIFEST, KIND, {"key": key}, arrays, overwrite=True)
