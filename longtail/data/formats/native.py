"""A corpus in longtail's own format: a folder of memory-mapped arrays that opens in milliseconds.

It stores everything a Corpus has: labels with their counts, propensity constants and tombstones; each part's texts
or features, Y, ignored pairs and groups; and the content of `corpus.json`. docs/format.md describes the arrays.

A damaged folder is refused, and no damage can make code read outside an array. Opening compares sizes and types of
all files with the manifest, and checksums of the smaller files, up to `VERIFIED` bytes in total. In the other files
it checks offsets, rows, columns and Y. The texts, most of a large corpus, are not read; bytes in them that are not
UTF-8 are reported as damage when they are used.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.core.errors import DataError, ParameterError, StoreError
from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.pairing import refuse_fields
from longtail.store import npy
from longtail.store.folder import open_folder, parallel, save_folder
from longtail.store.parts import pack_csr, pack_labels, pack_texts, unpack_csr, unpack_labels, unpack_texts

MANIFEST = "corpus.longtail.json"
KIND = "longtail-corpus"
VERIFIED = 1 << 24  # bytes hashed on opening: about ten milliseconds


def matches(path: Path) -> bool:
    """A folder with the manifest of a corpus."""
    return (path / MANIFEST).is_file()


def read(path: Path, options: ReadOptions) -> Corpus:
    """Open a folder that `save` wrote; its arrays stay on disk until they are used."""
    refuse_fields(options, "the native format")
    try:
        manifest, arrays = open_folder(path, MANIFEST, KIND, verify=False)
        folder = Opened(path, manifest, arrays)
        folder.verify(VERIFIED)
        return folder.corpus()
    except StoreError:
        raise
    except Exception as error:  # damaged headers make numpy raise many kinds of errors
        raise StoreError(f"{path}: the folder is damaged ({error}); create the corpus again") from error


class Opened:
    """The arrays of a folder, and the methods that build a corpus from them."""

    def __init__(self, path: Path, manifest: dict[str, Any], arrays: Mapping[str, NDArray[Any]]):
        self.path, self.manifest, self.arrays = path, manifest, arrays

    def verify(self, limit: int) -> None:
        """Compare files with their checksums, the smallest first, up to `limit` bytes in total."""
        entries = sorted(self.manifest["arrays"].values(), key=lambda entry: entry["bytes"])
        total = itertools.accumulate(entry["bytes"] for entry in entries)
        small = [entry for entry, so_far in zip(entries, total, strict=True) if so_far <= limit]
        folder = self.path / self.manifest["generation"]
        parallel(lambda entry: npy.check_sum(folder / entry["file"], entry), small)

    def corpus(self) -> Corpus:
        """Return the corpus; the manifest is checked on the way."""
        name, about, parts = (self.manifest[key] for key in ("name", "about", "parts"))
        if not isinstance(name, str) or not isinstance(about, dict) or not isinstance(parts, list):
            raise StoreError(f"{self.path / MANIFEST}: name, about or parts are damaged; create the corpus again")
        data = {part: self.part(part) for part in parts}
        labels = self.labels()
        return Corpus(name, data["train"], labels, data.get("dev"), data.get("test"), about)

    def part(self, part: str) -> Dataset:
        """Return the points of a part."""
        texts, features = self.texts(f"{part}.texts"), self.csr(f"{part}.features")
        Y = self.csr(f"{part}.Y")
        x = features if texts is None else texts
        if x is None or Y is None:
            raise StoreError(f"{self.path}: the points or labels of {part!r} are missing; create the corpus again")
        try:
            return Dataset(x, Y, self.csr(f"{part}.ignore"), self.texts(f"{part}.groups"))
        except DataError as error:
            raise self.damaged(f"{part}.{error.where}", str(error)) from None

    def labels(self) -> Labels:
        """Return the label space."""
        try:
            labels = unpack_labels("labels", self.arrays, self.manifest["labels"], check=False)
        except (StoreError, DataError, ParameterError) as error:
            raise StoreError(f"{self.path}: {error}; create the corpus again") from None
        points, counts = labels.points, labels.counts
        if type(points) is not int or points < 0:
            raise StoreError(f"{self.path / MANIFEST}: the number of points is {points!r}; create the corpus again")
        if counts.dtype != np.int64 or counts.min(initial=0) < 0 or counts.max(initial=0) > points:
            raise self.damaged("labels.counts", f"must contain counts from 0 to {points:,}")
        if labels.removed is not None and (labels.removed.dtype != bool or labels.removed.view(np.uint8).max() > 1):
            raise self.damaged("labels.removed", "must contain true and false only")
        keys = self.texts("labels.keys")
        return replace(labels, keys=labels.keys if keys is None else keys, texts=self.texts("labels.texts"))

    def texts(self, name: str) -> MappedTexts | None:
        """Return the texts of that name; refuse them if their offsets decrease."""
        try:
            texts = unpack_texts(name, self.arrays)
        except StoreError as error:
            raise StoreError(f"{self.path}: {error}") from None
        if texts is None:
            return None
        if texts.offsets[0] != 0 or (texts.offsets[1:] < texts.offsets[:-1]).any():
            raise self.damaged(f"{name}.offsets", "must increase from 0, but decreases")
        return MappedTexts(texts, self.file(f"{name}.data"))

    def csr(self, name: str) -> sp.csr_matrix | None:
        """Return the sparse matrix of that name; `Dataset` checks its content."""
        try:
            return unpack_csr(name, self.arrays, check=False)
        except StoreError as error:
            raise StoreError(f"{self.path}: {error}") from None

    def file(self, array: str) -> Path:
        """Return the file of an array; the folder if there is no such array."""
        entry = self.manifest["arrays"].get(array)
        return self.path if entry is None else self.path / self.manifest["generation"] / entry["file"]

    def damaged(self, array: str, how: str) -> StoreError:
        """Return the error for an array with impossible content."""
        return npy.damaged(self.file(array), how)


class MappedTexts(Texts):
    """Texts on disk whose content has not been checked: bytes that are not UTF-8 are reported as damage."""

    __slots__ = ("where",)

    def __init__(self, texts: Texts, where: Path):
        super().__init__(texts.data, texts.offsets)
        self.where = where

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice | NDArray[Any]) -> Texts: ...
    def __getitem__(self, index: int | slice | NDArray[Any]) -> str | Texts:
        try:
            found = super().__getitem__(index)
        except UnicodeDecodeError as error:
            raise self._damaged(error) from None
        return MappedTexts(found, self.where) if isinstance(found, Texts) else found

    def take(self, rows: NDArray[Any]) -> Texts:
        """Return the texts at `rows`, in that order."""
        return MappedTexts(super().take(rows), self.where)

    def __iter__(self) -> Iterator[str]:
        try:
            yield from super().__iter__()
        except UnicodeDecodeError as error:
            raise self._damaged(error) from None

    def _damaged(self, error: UnicodeDecodeError) -> StoreError:
        return npy.damaged(self.where, f"holds {error.object[error.start : error.end]!r}, which is not text")


def save(corpus: Corpus, folder: Path) -> None:
    """Write a corpus to a new or empty folder."""
    arrays, meta = pack_labels("labels", corpus.labels)
    for part, data in corpus.parts():
        arrays |= _pack(part, data)
    parts = [part for part, _ in corpus.parts()]
    manifest = {"name": corpus.name, "about": corpus.about, "parts": parts, "labels": meta, "digest": corpus.digest}
    save_folder(folder, MANIFEST, KIND, manifest, arrays, overwrite=True)


def _pack(part: str, data: Dataset) -> dict[str, NDArray[Any]]:
    x = pack_texts(f"{part}.texts", data.texts) if data.has_text else pack_csr(f"{part}.features", data.features)
    rest = pack_csr(f"{part}.Y", data.Y) | pack_csr(f"{part}.ignore", data.ignore)
    return x | rest | pack_texts(f"{part}.groups", data.groups)


FORMAT = Format("native", "longtail's own memory-mapped corpus, made by `longtail convert`", matches, read)
