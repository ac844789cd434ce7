"""Tables: one CSV, TSV (plain or gzip) or Parquet file, or a folder of `train…`, `dev…`, `test…`, `labels…`.

A text file starts with a line of column names. `--text` (several joined by commas), `--labels`, `--label-sep`
and `--group-by` say which columns to use; without them, usual names are found. In Parquet, the labels may also be
a column of lists. A label list has the columns `key` and, optionally, `text`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts, TextsBuilder
from longtail.data.checks import Checks
from longtail.data.corpus import Corpus
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.arrow import ArrowPoints, guarded, load_pyarrow
from longtail.data.parse.builder import Chunk
from longtail.data.parse.columns import Columns, LabelCutter, choose_columns
from longtail.data.parse.csv_rows import CsvFile
from longtail.data.parse.json_points import joined
from longtail.data.parse.labelspace import InferredLabels, LabelSpace, ListedLabels
from longtail.data.parse.lines import peek
from longtail.data.parse.parts import RecordLines, about_of, find_file, find_parts, read_parts

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
ENDINGS = (*CSV_ENDINGS, ".parquet")
BATCH = 1024  # Parquet rows per batch: with long texts, more would need much memory


def matches(path: Path) -> bool:
    """A folder with a train table, or a file that is one by its name or, for Parquet, its first bytes."""
    if path.is_dir():
        return find_file(path, ["train"], ENDINGS) is not None
    return path.name.lower().endswith(ENDINGS) or peek(path, 4) == b"PAR1"


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read a folder, or one file as the training part."""
    listed = find_file(path, ["labels"], ENDINGS) if path.is_dir() else None
    space: LabelSpace = InferredLabels() if listed is None else ListedLabels(read_labels(listed, options))
    about = about_of(path)
    reader = TableReader(options, about.get("group"))
    return read_parts(path, find_parts(path, ENDINGS), reader.points, space, options, about)


class TableReader:
    """Reads the parts of one table; how label cells are split is decided once, on the training part."""

    def __init__(self, options: ReadOptions, group: str | None):
        self.options, self.group = options, group
        self._cutter: LabelCutter | None = None

    def points(self, path: Path, records: RecordLines) -> Iterator[Chunk]:
        """Yield the points of one file."""
        return self._parquet(path, records) if is_parquet(path) else self._csv(path, records)

    def _cut_like(self, columns: Columns) -> LabelCutter:
        if self._cutter is None:
            self._cutter = LabelCutter(self.options.label_sep, columns.labels)
        return self._cutter

    def _csv(self, path: Path, records: RecordLines) -> Iterator[Chunk]:
        file = CsvFile(path, self.options.checks, self.options.progress)
        columns = choose_columns(file.header, self.options, path, self.group)
        place = {name: file.header.index(name) for name in columns.all}
        cutter, at = self._cut_like(columns), place[columns.labels]
        for lines, rows in cutter.after_guess(file.chunks(), lambda found: (row[at] for row in found[1] if row)):
            records.add(lines)
            kept = [(line, row) for line, row in zip(lines, rows, strict=True) if row is not None]
            cut = cutter.cut([row[at] for _, row in kept], path, [line for line, _ in kept])
            for labels in cut:
                if isinstance(labels, DataError):
                    self.options.checks.bad(labels)
            good = [(*point, labels) for point, labels in zip(kept, cut, strict=True) if isinstance(labels, list)]
            if good:
                yield _chunk(good, [place[name] for name in columns.text], place.get(columns.group or ""))
        if not len(records):
            raise DataError("the table has no rows", where=path, found=file.header)

    def _parquet(self, path: Path, records: RecordLines) -> Iterator[Chunk]:
        with open_parquet(path) as file:
            names = parquet_columns(file, path)
            columns = choose_columns(names, self.options, path, self.group)
            points = ArrowPoints(path, columns, self._cut_like(columns), self.options.checks)
            title = f"reading {path.name}"
            with self.options.progress.bar(title, total=file.metadata.num_rows, unit="rows") as bar:
                for chunk in points.chunks(batches(file, columns.all, path), records):
                    yield chunk
                    bar.advance(len(chunk.lengths))
            if not len(records):
                raise DataError("the table has no rows", where=path, found=names)


def _chunk(points: list[tuple[int, list[str], list[Any]]], text: list[int], group: int | None) -> Chunk:
    texts = joined([Texts.of([row[at] for _, row, _ in points]) for at in text])
    flat = [value for _, _, labels in points for value in labels]
    lengths = np.fromiter((len(labels) for _, _, labels in points), np.int64, len(points))
    groups = None if group is None else Texts.of([row[group] for _, row, _ in points])
    lines = np.fromiter((line for line, _, _ in points), np.int64, len(points))
    return Chunk(lines, texts, flat, lengths, groups=groups)


def is_parquet(path: Path) -> bool:
    """Whether a table is Parquet rather than text."""
    return path.name.lower().endswith(".parquet") or peek(path, 4) == b"PAR1"


def open_parquet(path: Path) -> Any:
    """Open a Parquet file; a damaged file, or one of another format, is refused."""
    pa = load_pyarrow("reading Parquet files")
    with guarded(path, "a Parquet file"):
        return pa.parquet.ParquetFile(path, memory_map=False, buffer_size=1 << 20, pre_buffer=False)


def parquet_columns(file: Any, path: Path) -> list[str]:
    """Return the names of the columns."""
    with guarded(path, "a Parquet file"):  # they may not be UTF-8
        return list(file.schema_arrow.names)


def batches(file: Any, names: list[str], path: Path) -> Iterator[Any]:
    """Yield some columns of a Parquet file, batch by batch."""
    with guarded(path, "a Parquet file"):
        yield from file.iter_batches(batch_size=BATCH, columns=names)


def texts_of(path: Path, column: str) -> Iterator[str]:
    """Yield the texts in one column of a table, row by row; an empty cell is an empty text."""
    if is_parquet(path):
        file = open_parquet(path)
        _check_column(column, parquet_columns(file, path), path)
        for batch in batches(file, [column], path):
            yield from (str(cell or "") for cell in batch.column(0).to_pylist())
        return
    table = CsvFile(path, Checks())
    _check_column(column, table.header, path)
    at = table.header.index(column)
    for _, rows in table.chunks():
        yield from (row[at] for row in rows if row is not None)


def _check_column(column: str, names: list[str], path: Path) -> None:
    if column not in names:
        raise DataError(f"there is no column {column!r}", where=path, found=names, fix="name the column with --text")


def read_labels(path: Path, options: ReadOptions) -> Labels:
    """Read a label list with the columns `key` and, optionally, `text`. No row is skipped: row numbers matter."""
    keys, texts = TextsBuilder(), TextsBuilder()
    has_text = False
    for lines, some_keys, some_texts in _parquet_labels(path) if is_parquet(path) else _csv_labels(path, options):
        if "" in some_keys:
            raise DataError("a label has no key", where=path, line=lines[some_keys.index("")])
        keys.extend(some_keys)
        has_text |= some_texts is not None
        texts.extend(some_texts or [""] * len(some_keys))
    if not len(keys):
        raise DataError("the label list is empty", where=path)
    labels = Labels(keys.finish(), texts.finish() if has_text else None)
    labels.check_unique(path)
    return labels


LabelRows = Iterator[tuple[list[int], list[str], list[str] | None]]  # lines, keys, texts


def _csv_labels(path: Path, options: ReadOptions) -> LabelRows:
    file = CsvFile(path, Checks("error"), options.progress)
    places = [file.header.index(name) for name in _label_columns(file.header, path)]
    for lines, rows in file.chunks():
        kept = [row for row in rows if row is not None]
        texts = [row[places[1]] for row in kept] if len(places) == 2 else None
        yield lines, [row[places[0]].strip() for row in kept], texts


def _parquet_labels(path: Path) -> LabelRows:
    with open_parquet(path) as file:
        names = _label_columns(parquet_columns(file, path), path)
        row = 1
        for batch in batches(file, names, path):
            with guarded(path, "a Parquet file"):
                cells = [["" if v is None else str(v) for v in batch.column(name).to_pylist()] for name in names]
            yield list(range(row, row + batch.num_rows)), cells[0], cells[1] if len(cells) == 2 else None
            row += batch.num_rows


def _label_columns(names: list[str], path: Path) -> list[str]:
    """Return `key`, and `text` if it exists, as the file spells them."""
    lower = {name.lower(): name for name in names}
    if "key" not in lower:
        raise DataError("a label list needs a column 'key'", where=path, found=names, fix="a column 'text' is optional")
    return [lower[name] for name in ("key", "text") if name in lower]


FORMAT = Format("table", "CSV, TSV or Parquet: one file, or train.csv, test.csv, dev.csv, labels.csv", matches, read)
