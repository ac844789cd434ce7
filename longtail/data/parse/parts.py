"""From the files of a corpus to the Corpus: code that all readers of points share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.data.about import propensity_of, read_about
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.options import ReadOptions
from longtail.data.parse.builder import Chunk, PointsBuilder
from longtail.data.parse.filters import find_filter, with_filter_pairs
from longtail.data.parse.labelspace import LabelSpace, NumberedLabels

TEXT = (".txt", ".txt.gz")
STEMS: Mapping[str, Sequence[str]] = {  # file names of the parts of a corpus
    "train": ("train",),
    "dev": ("dev", "valid", "validation", "val"),
    "test": ("test",),
}
CODES: Mapping[str, Sequence[str]] = {"train": ("trn",), "dev": ("val", "dev"), "test": ("tst",)}  # as in Y.trn.npz


def find_file(folder: Path, stems: Iterable[str], endings: Sequence[str]) -> Path | None:
    """Return the first file in a folder whose name is one of `stems` with one of `endings`."""
    names = (folder / f"{stem}{end}" for stem in stems for end in endings)
    return next((path for path in names if path.is_file()), None)


def find_parts(path: Path, endings: Sequence[str]) -> dict[str, Path]:
    """Return the file of each part in a folder; a single file is the training part."""
    if not path.is_dir():
        return {"train": path}
    found = {part: file for part, stems in STEMS.items() if (file := find_file(path, stems, endings))}
    if "train" not in found:
        names = ", ".join(f"train{end}" for end in endings)
        raise DataError("the folder has no training part", where=path, fix=f"it must be called one of: {names}")
    return found


class RecordLines:
    """The line numbers of all records of a file, skipped ones too; filter pairs count these records."""

    def __init__(self) -> None:
        self._lines = bytearray()

    def add(self, lines: Sequence[int] | NDArray[np.int64]) -> None:
        """Add the lines of further records, in order."""
        self._lines += np.asarray(lines, np.int64).tobytes()

    def __len__(self) -> int:
        return len(self._lines) // 8

    def rows(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the record number of each of `lines`."""
        return np.searchsorted(np.frombuffer(self._lines, np.int64), lines)


PointsOf = Callable[[Path, RecordLines], Iterator[Chunk]]  # yields the points of one file; records all its lines


def about_of(path: Path) -> dict[str, Any]:
    """Return the content of `corpus.json` in a folder; empty for a single file."""
    return read_about(path) if path.is_dir() else {}


def read_parts(
    path: Path,
    files: Mapping[str, Path],
    points: PointsOf,
    space: LabelSpace,
    options: ReadOptions,
    about: dict[str, Any] | None = None,
    *,
    filters: Callable[[Path, str], Path | None] = find_filter,
    note_bare: bool = True,
) -> Corpus:
    """Read the files of the parts, train first, into a Corpus named by `about`, else after `path`.

    `filters` finds the filter pairs of a part in a folder; with `note_bare`, points without labels are reported.
    """
    readers = {
        part: _read_part(files[part], points, space, options, note_bare) for part in options.parts if part in files
    }
    check_numbers(space, [builder for builder, _ in readers.values()])
    labels, final = finish_labels(space, path)
    data = {}
    for part, (builder, records) in readers.items():
        pairs = filters(path, part) if path.is_dir() else None
        dataset = builder.finish(len(labels), final)
        data[part] = with_filter_pairs(dataset, pairs, options.checks, records.rows(builder.lines), len(records))
    return make_corpus(path, data, labels, about or {})


def make_corpus(path: Path, data: Mapping[str, Dataset], labels: Labels, about: dict[str, Any]) -> Corpus:
    """Return the parts as a Corpus, named by `about`, else after `path`, with the propensity constants in `about`."""
    labels = Labels(labels.keys, labels.texts, propensity=propensity_of(about))
    name = about.get("name") or (path.name if path.is_dir() else path.name.split(".")[0])
    return Corpus(name, data["train"], labels, data.get("dev"), data.get("test"), about)


def finish_labels(space: LabelSpace, where: Path) -> tuple[Labels, NDArray[np.int64] | None]:
    """Return the labels of a space, and the final column for each of its columns (None if they are final already)."""
    try:
        return space.finish()
    except DataError as error:
        raise DataError(error.problem, where=where, fix=error.fix) from None


def check_numbers(space: LabelSpace, builders: Sequence[PointsBuilder]) -> None:
    """Refuse label numbers that are implausibly large if nothing says how many labels there are.

    Otherwise one wrong number could create a label space of up to two billion labels.
    """
    if not isinstance(space, NumberedLabels):
        return
    believed = 100 * sum(builder.occurrences for builder in builders) + 1_000_000
    for builder in builders:
        largest, line = builder.largest()
        if largest >= believed:
            problem = f"a label number is implausible: with so few points, at most {believed - 1:,} is accepted"
            fix = "correct it, or put a list of the labels beside the file"
            raise DataError(problem, where=builder.path, line=line, found=largest, fix=fix)


def _read_part(
    file: Path, points: PointsOf, space: LabelSpace, options: ReadOptions, note_bare: bool
) -> tuple[PointsBuilder, RecordLines]:
    builder, records = PointsBuilder(space, options.checks, file), RecordLines()
    for chunk in points(file, records):
        bare = np.flatnonzero(chunk.lengths == 0)
        if note_bare and len(bare):
            options.checks.mend("a point without labels was kept", file, int(chunk.lines[bare[0]]), len(bare))
        builder.add(chunk)
    builder.check_some(len(records))
    return builder, records
