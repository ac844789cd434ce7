"""Hugging Face `datasets` folders as `save_to_disk` writes them: several splits, or one. Needs only pyarrow.

A folder of splits has `dataset_dict.json` and a folder for each split. A split has `state.json`, which names its
Arrow files, and `dataset_info.json`, whose features give names to integer labels (ClassLabel). The splits train,
validation (valid, val, dev) and test are read; a single split is the training part.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.data.corpus import Corpus
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.arrow import ArrowPoints, guarded, load_pyarrow
from longtail.data.parse.builder import Chunk
from longtail.data.parse.columns import Columns, LabelCutter, choose_columns
from longtail.data.parse.labelspace import InferredLabels, LabelSpace, ListedLabels
from longtail.data.parse.parts import STEMS, RecordLines, about_of, read_parts

log = logging.getLogger("longtail")
WHAT = "an Arrow stream"
NO_CLASS = -1  # the library's value for an unknown ClassLabel


def matches(path: Path) -> bool:
    """A folder with `dataset_dict.json`, or with `state.json` and `dataset_info.json`."""
    split = (path / "state.json").is_file() and (path / "dataset_info.json").is_file()
    return split or (path / "dataset_dict.json").is_file()


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the splits that exist."""
    splits = find_splits(path)
    about = about_of(path)
    first = data_files(splits["train"])[0]
    columns = choose_columns(column_names(first), options, splits["train"], about.get("group"))
    names = {part: class_names(folder, columns.labels) for part, folder in splits.items()}
    odd = next((part for part in names if names[part] != names["train"]), None)
    if odd is not None:
        problem = f"the splits train and {odd} name the classes of column {columns.labels!r} differently"
        raise DataError(problem, where=path, found=names[odd], fix="cast both to the same features")
    listed = names["train"]
    space: LabelSpace = InferredLabels() if listed is None else ListedLabels(Labels.of(listed))
    cutter = LabelCutter(options.label_sep, columns.labels)

    def points(folder: Path, records: RecordLines) -> Iterator[Chunk]:
        missing = None if listed is None else NO_CLASS
        source = ArrowPoints(folder, columns, cutter, options.checks, missing)
        with options.progress.bar(f"reading {folder.name}", unit="rows") as bar:
            for chunk in source.chunks(batches(folder, columns), records):
                yield chunk
                bar.advance(len(chunk.lengths))

    return read_parts(path, splits, points, space, options, about)


def find_splits(path: Path) -> dict[str, Path]:
    """Return the folder of each part."""
    if not (path / "dataset_dict.json").is_file():
        return {"train": path}
    names = read_json(path / "dataset_dict.json").get("splits")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("'splits' must be a list of names", where=path / "dataset_dict.json", found=names)
    chosen = {part: name for part, usual in STEMS.items() if (name := next((n for n in usual if n in names), None))}
    if "train" not in chosen:
        raise DataError("there is no split 'train'", where=path, found=names, fix="give the folder of one split")
    left = [name for name in names if name not in chosen.values()]
    if left:
        log.info("%s: not read: the split(s) %s", path.name, ", ".join(left))
    return {part: path / name for part, name in chosen.items()}


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of the folder."""
    try:
        value = orjson.loads(path.read_bytes())
    except OSError as error:
        raise DataError("the file cannot be opened", where=path, found=error.strerror or str(error)) from None
    except orjson.JSONDecodeError as error:
        raise DataError(f"not valid JSON ({error.msg})", where=path, line=error.lineno) from None
    if not isinstance(value, dict):
        raise DataError("must contain one JSON object", where=path, found=value)
    return value


def data_files(folder: Path) -> list[Path]:
    """Return the Arrow files of a split, in order."""
    state = read_json(folder / "state.json")
    if state.get("_indices_data_files") or state.get("_indices_files"):
        fix = "call flatten_indices() before save_to_disk()"
        raise DataError("the split is an index into its rows", where=folder / "state.json", fix=fix)
    listed = state.get("_data_files")
    names = [item.get("filename") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    files = [folder / name for name in names if isinstance(name, str) and Path(name).name == name]
    if not files or len(files) != len(listed or []):
        raise DataError("'_data_files' must name the Arrow files", where=folder / "state.json", found=listed)
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise DataError("a file that state.json names is missing", where=missing, fix="copy the folder again")
    return files


def class_names(folder: Path, column: str) -> list[str] | None:
    """Return the class names if a column is a ClassLabel, or a list of them; else None."""
    features = read_json(folder / "dataset_info.json").get("features")
    feature: Any = features.get(column) if isinstance(features, dict) else None
    while isinstance(feature, dict) and "feature" in feature:
        feature = feature["feature"]
    if isinstance(feature, list) and len(feature) == 1:  # how old versions wrote a list
        feature = feature[0]
    names = feature.get("names") if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" else None
    return [str(name) for name in names] if isinstance(names, list) else None


def column_names(file: Path) -> list[str]:
    """Return the columns of an Arrow file."""
    with guarded(file, WHAT), open_stream(file) as stream:
        return list(stream.schema.names)


def batches(folder: Path, columns: Columns) -> Iterator[Any]:
    """Yield the record batches of a split."""
    for file in data_files(folder):
        lacking = sorted(set(columns.all) - set(names := column_names(file)))
        if lacking:
            raise DataError(f"there is no column {lacking[0]!r}", where=file, found=names)
        with guarded(file, WHAT), open_stream(file) as stream:
            yield from stream


@contextmanager
def open_stream(file: Path) -> Iterator[Any]:
    """Open a reader of the Arrow IPC stream in a memory-mapped file."""
    pa = load_pyarrow("reading Hugging Face folders")
    with pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as stream:
        yield stream


FORMAT = Format("huggingface", "Hugging Face datasets folder, as save_to_disk writes it", matches, read)
