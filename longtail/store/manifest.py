"""The manifest: the small JSON file that says what a folder is and which arrays belong to it."""

from __future__ import annotations

import importlib.metadata
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from longtail.core.errors import StoreError, shorten
from longtail.store.disk import explained, open_regular

VERSION = 1  # of the folder format; docs/format.md says when it changes
GENERATION = re.compile(r"data-[0-9a-f]{16}(-2)?")
ARRAY_NAME = re.compile(r"[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*")
OWN_FIELDS = ("format", "version", "longtail", "generation", "arrays")

Stamp = tuple[int, int]  # inode and time of a manifest file: they change when it is replaced


def encode(kind: str, generation: str, entries: dict[str, Any], manifest: dict[str, Any]) -> bytes:
    """Return the bytes of a manifest; `manifest` holds the caller's fields, added to those every folder has."""
    taken = [name for name in OWN_FIELDS if name in manifest]
    if taken:
        raise StoreError(f"a manifest already has a field {taken[0]!r}; choose another name")
    own = (kind, VERSION, package_version(), generation, entries)
    fields = dict(zip(OWN_FIELDS, own, strict=True)) | manifest
    return orjson.dumps(plain(fields, ""), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def plain(value: Any, where: str) -> Any:
    """Convert a value to what JSON can hold: numpy numbers to numbers, paths to strings, NaN and infinities to null."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, Path)):  # a file name may contain bytes that are not UTF-8
        return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {plain(key, where): plain(item, f"{where}.{key}".lstrip(".")) for key, item in value.items()}
    raise StoreError(f"a manifest can only hold JSON values, but {where} is {shorten(value)}")


def read_manifest(folder: str | Path, manifest_name: str, kind: str) -> dict[str, Any]:
    """Return the checked manifest of a folder; no array is opened."""
    return read_stamped(Path(folder), manifest_name, kind)[0]


def read_stamped(folder: Path, manifest_name: str, kind: str) -> tuple[dict[str, Any], Stamp]:
    """Return the manifest of a folder and its stamp, which changes when the file is replaced."""
    path, noun = folder / manifest_name, kind.removeprefix("longtail-")
    try:
        with explained("read this file", path), open_regular(path) as file:
            text, found = file.read(), os.fstat(file.fileno())
    except StoreError as error:
        if not isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
            raise
        raise StoreError(_absent(folder, path, noun)) from None
    try:
        manifest = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise StoreError(
            f"{path}: is not JSON ({error}); found {shorten(text[:60])}. It is damaged, or not a longtail {noun}: "
            "restore it from a copy, or choose another folder"
        ) from None
    check(manifest, path, kind)
    return manifest, (found.st_ino, found.st_mtime_ns)


def _absent(folder: Path, path: Path, noun: str) -> str:
    give = f"give the folder of a saved longtail {noun}"
    if not folder.exists():
        return f"{folder}: there is no such folder; {give}"
    if not folder.is_dir():
        return f"{folder}: is a file, not a folder; {give}"
    others = [
        entry.name for entry in folder.glob("*.json") if entry.is_file() and _format_of(entry).startswith("longtail-")
    ]
    if others:
        found = _format_of(folder / others[0]).removeprefix("longtail-")
        return f"{folder}: holds a {found}, not a {noun}; {give}"
    if any(GENERATION.fullmatch(entry.name) for entry in folder.iterdir()):
        return f"{folder}: there is no {noun} in it (no {path.name}): the save did not finish; create the {noun} again"
    return f"{folder}: there is no {noun} in it (no {path.name}); {give}"


def _format_of(path: Path) -> str:
    try:
        return str(orjson.loads(path.read_bytes()).get("format", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def check(manifest: Any, path: Path, kind: str) -> None:
    """Refuse a manifest of another kind, of an unknown version, or with wrong fields."""
    noun = kind.removeprefix("longtail-")
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != kind:
        what = "not a longtail folder" if found is None else f"in format {shorten(found)}"
        raise StoreError(f"{path}: is {what}, but should be in format {kind!r}; give the folder of a longtail {noun}")
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise StoreError(f"{path}: has the version {shorten(version)}; it is damaged: create the {noun} again")
    if version > VERSION:
        raise StoreError(
            f"{path}: was made by a newer longtail ({manifest.get('longtail')}, format {version}; this one reads up "
            f"to {VERSION}); upgrade: pip install -U longtail"
        )
    wrong = _wrong_field(manifest)
    if wrong is not None:
        raise StoreError(f"{path}: {wrong}; it is damaged: restore it from a copy, or create the {noun} again")


def _wrong_field(manifest: dict[str, Any]) -> str | None:
    generation, arrays = manifest.get("generation"), manifest.get("arrays")
    if not isinstance(generation, str) or not GENERATION.fullmatch(generation):
        return f"generation must be data-<digest>; found {shorten(generation)}"
    if not isinstance(arrays, dict):
        return f"arrays must be an object; found {shorten(arrays)}"
    types = {"file": str, "dtype": str, "shape": list, "bytes": int, "sha256": str}
    for name, entry in arrays.items():
        for key, kind in types.items():
            if not isinstance(entry, dict) or not isinstance(entry.get(key), kind):
                return f"{key} of array {name!r} is missing or has the wrong type"
        stem, _, ending = entry["file"].rpartition(".")
        if ending != "npy" or not ARRAY_NAME.fullmatch(stem):  # never a path: no file outside the folder may be named
            return f"array {name!r} must be a .npy file in {generation}; found {shorten(entry['file'])}"
    if not isinstance(manifest.get("longtail"), str):
        return "it does not say by longtail which version wrote it"
    return None


def package_version() -> str:
    """Return the version of the running longtail."""
    try:
        return importlib.metadata.version("longtail")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
