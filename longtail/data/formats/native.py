"""A corpus in longtail's own form: a folder of memory-mapped arrays that opens in milliseconds.

Holds everything a Corpus has: labels with their counts, propensity constants and tombstones, each part's texts or
features, Y, ignored pairs and groups, and what `corpus.json` said. The arrays lie as docs/format.md tells; opening
checks their sizes and types, but does not read them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from longtail.core.errors import StoreError
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.pairing import refuse_fields
from longtail.store.folder import open_folder, save_folder
from longtail.store.parts import pack_csr, pack_labels, pack_texts, unpack_csr, unpack_labels, unpack_texts

MANIFEST = "corpus.longtail.json"
KIND = "longtail-corpus"


def matches(path: Path) -> bool:
    """A folder with the manifest of a corpus."""
    return (path / MANIFEST).is_file()


def read(path: Path, options: ReadOptions) -> Corpus:
    """Open a folder that `save` wrote; its arrays stay on disk until they are looked at."""
    refuse_fields(options, "the native format")
    manifest, arrays = open_folder(path, MANIFEST, KIND, verify=False)
    try:
        name, about, parts, meta = (manifest[key] for key in ("name", "about", "parts", "labels"))
        data = {part: _unpack(part, arrays, path) for part in parts}
        labels = unpack_labels("labels", arrays, meta, check=False)
        return Corpus(name, data["train"], labels, data.get("dev"), data.get("test"), about)
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path / MANIFEST}: is damaged ({error!r}); make the corpus again") from None


def save(corpus: Corpus, folder: Path) -> None:
    """Write a corpus to a new or empty folder."""
    arrays, meta = pack_labels("labels", corpus.labels)
    for part, data in corpus.parts():
        arrays |= _pack(part, data)
    parts = [part for part, _ in corpus.parts()]
    manifest = {"name": corpus.name, "about": corpus.about, "parts": parts, "labels": meta, "digest": corpus.digest}
    save_folder(folder, MANIFEST, KIND, manifest, arrays)


def _pack(part: str, data: Dataset) -> dict[str, NDArray[Any]]:
    x = pack_texts(f"{part}.texts", data.texts) if data.has_text else pack_csr(f"{part}.features", data.features)
    rest = pack_csr(f"{part}.Y", data.Y) | pack_csr(f"{part}.ignore", data.ignore)
    return x | rest | pack_texts(f"{part}.groups", data.groups)


def _unpack(part: str, arrays: dict[str, NDArray[Any]], path: Path) -> Dataset:
    texts, features = unpack_texts(f"{part}.texts", arrays), unpack_csr(f"{part}.features", arrays)
    Y = unpack_csr(f"{part}.Y", arrays)
    x = features if texts is None else texts
    if x is None or Y is None:
        raise StoreError(f"{path}: the points or labels of {part!r} are missing; the folder is damaged: make it again")
    return Dataset(x, Y, unpack_csr(f"{part}.ignore", arrays), unpack_texts(f"{part}.groups", arrays))


FORMAT = Format("native", "longtail's own memory-mapped corpus, made by `longtail convert`", matches, read)
