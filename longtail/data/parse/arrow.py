"""Converts Arrow columns, from Parquet or Hugging Face folders, to texts and labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError, MissingExtraError
from longtail.core.texts import Texts
from longtail.data.checks import Checks
from longtail.data.parse.builder import Chunk
from longtail.data.parse.columns import Columns, LabelCutter
from longtail.data.parse.json_points import joined
from longtail.data.parse.lines import decode_line
from longtail.data.parse.parts import RecordLines


def load_pyarrow(feature: str) -> Any:
    """Return the pyarrow package, with the modules that readers use."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(feature, "tables") from None
    return pyarrow


@contextmanager
def guarded(path: Path, what: str) -> Iterator[None]:
    """Turn pyarrow's errors about a damaged or wrong file into one error."""
    pa = load_pyarrow(f"reading {what}")
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        fix = "write or copy it again"
        raise DataError(f"not {what}, or damaged", where=path, found=str(error), fix=fix) from None


class ArrowPoints:
    """Turns record batches into chunks of points. Messages give row numbers, from 1, instead of line numbers.

    Null means an empty text, or no label; so does the integer `missing`, if one is given.
    """

    def __init__(self, path: Path, columns: Columns, cutter: LabelCutter, checks: Checks, missing: int | None = None):
        self.pa = load_pyarrow("reading Arrow data")
        self.path, self.columns, self.cutter, self.checks, self.missing = path, columns, cutter, checks, missing

    def chunks(self, batches: Iterator[Any], records: RecordLines) -> Iterator[Chunk]:
        """Yield the points of some batches, in order."""
        for batch in self.cutter.after_guess(batches, self._cells):
            if batch.num_rows:
                lines = np.arange(batch.num_rows) + len(records) + 1
                records.add(lines)
                with guarded(self.path, "Arrow data"):
                    chunk = self._chunk(batch, lines)
                yield chunk

    def _cells(self, batch: Any) -> list[str] | None:
        """Return the label cells that are text, as well as they can be read, to guess the separator."""
        array = batch.column(self.columns.labels)
        if not self._is_text(array.type):
            return None
        with guarded(self.path, "Arrow data"):
            self._is_sound(array)  # text that is not UTF-8 is refused later, with its row
            octets = array.cast(self.pa.large_string()).view(self.pa.large_binary()).drop_null().to_pylist()
        return [cell.decode("utf-8", "replace") for cell in octets]

    def _chunk(self, batch: Any, lines: NDArray[np.int64]) -> Chunk:
        good = np.ones(len(lines), bool)
        columns = self.columns
        texts = joined([self._texts(batch, name, lines, good) for name in columns.text])
        groups = None if columns.group is None else self._texts(batch, columns.group, lines, good, text=False)
        values, lengths = self._labels(batch.column(columns.labels), lines, good)
        chunk = Chunk(lines, texts, values, lengths, groups=groups)
        return chunk if good.all() else chunk.only(good)

    def _bad(self, good: NDArray[np.bool_], at: int, error: DataError) -> None:
        """Report a bad row, only once."""
        if good[at]:
            self.checks.bad(error)
            good[at] = False

    def _texts(
        self, batch: Any, name: str, lines: NDArray[np.int64], good: NDArray[np.bool_], text: bool = True
    ) -> Texts:
        array, types = batch.column(name), self.pa.types
        if text and not self._is_text(array.type):
            fix = "name a column of strings with --text"
            raise DataError(f"column {name!r} must be text", where=self.path, found=str(array.type), fix=fix)
        if not text and not (self._is_text(array.type) or types.is_integer(array.type)):
            problem = f"column {name!r} must contain group keys: text or whole numbers"
            raise DataError(problem, where=self.path, found=str(array.type))
        return texts_of(self._strings(array, lines, np.arange(len(array)), good))

    def _strings(self, array: Any, lines: NDArray[np.int64], rows: NDArray[np.int64], good: NDArray[np.bool_]) -> Any:
        """Return large strings, empty for null; a row that is not UTF-8 is bad. `rows`: the row of each string."""
        sound = self._is_sound(array)
        array = self.pa.compute.fill_null(array.cast(self.pa.large_string()), "")
        if sound:
            return array
        cells = array.view(self.pa.large_binary()).to_pylist()
        for at, cell in enumerate(cells):
            try:
                decode_line(cell, self.path, int(lines[rows[at]]))
            except DataError as error:
                self._bad(good, int(rows[at]), error)
                cells[at] = b""
        return self.pa.array(cells, self.pa.large_binary()).cast(self.pa.large_string())

    def _is_sound(self, array: Any) -> bool:
        """Whether all strings are UTF-8; an array that is broken in another way is refused."""
        try:
            array.validate(full=True)
        except self.pa.ArrowException as error:
            if "UTF8" in str(error):
                return False
            raise
        return True

    def _labels(self, array: Any, lines: NDArray[np.int64], good: NDArray[np.bool_]) -> tuple[Any, NDArray[np.int64]]:
        """Return flat label values, and the number of labels in each row."""
        types = self.pa.types
        if types.is_null(array.type):
            return np.empty(0, np.int64), np.zeros(len(array), np.int64)
        if types.is_integer(array.type):
            there = array.is_valid().to_numpy(zero_copy_only=False)
            numbers = _int64(self.pa, array)
            there &= numbers != self.missing
            return numbers[there], there.astype(np.int64)
        if self._is_text(array.type):
            return self._cut(array, lines, good)
        if self._is_list(array.type):
            return self._listed(array, lines, good)
        problem = f"column {self.columns.labels!r} must contain labels: text, whole numbers or lists of these"
        fix = "name another column with --labels"
        raise DataError(problem, where=self.path, found=str(array.type), fix=fix)

    def _cut(self, array: Any, lines: NDArray[np.int64], good: NDArray[np.bool_]) -> tuple[Any, NDArray[np.int64]]:
        cells = self._strings(array, lines, np.arange(len(array)), good).to_pylist()
        cut = self.cutter.cut(cells, self.path, lines.tolist())
        for at, row in enumerate(cut):
            if isinstance(row, DataError):
                self._bad(good, at, row)
        rows = [[] if isinstance(row, DataError) else row for row in cut]
        return [value for row in rows for value in row], np.fromiter(map(len, rows), np.int64, len(rows))

    def _listed(self, array: Any, lines: NDArray[np.int64], good: NDArray[np.bool_]) -> tuple[Any, NDArray[np.int64]]:
        pc, types = self.pa.compute, self.pa.types
        self._is_sound(array)
        lengths = pc.fill_null(pc.list_value_length(array), 0).cast(self.pa.int64()).to_numpy(zero_copy_only=False)
        flat, rows = pc.list_flatten(array), np.repeat(np.arange(len(array)), lengths)
        for at in rows[flat.is_null().to_numpy(zero_copy_only=False)].tolist():
            problem = "a list of labels contains a null"
            self._bad(good, at, DataError(problem, where=self.path, line=int(lines[at]), found=array[at].as_py()))
        if types.is_integer(flat.type):
            return _int64(self.pa, flat), lengths
        return self._strings(flat, lines, rows, good).to_pylist(), lengths

    def _is_text(self, kind: Any) -> bool:
        types = self.pa.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        view = getattr(types, "is_string_view", None)
        return bool(types.is_string(kind) or types.is_large_string(kind) or (view is not None and view(kind)))

    def _is_list(self, kind: Any) -> bool:
        types = self.pa.types
        listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        return bool(listed and (self._is_text(kind.value_type) or types.is_integer(kind.value_type)))


def texts_of(array: Any) -> Texts:
    """Return an Arrow array of large strings, without nulls, as `Texts`."""
    _, offsets, data = array.buffers()
    cuts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return Texts(raw[cuts[0] : cuts[-1]], cuts - cuts[0])


def _int64(pa: Any, array: Any) -> NDArray[np.int64]:
    """Return integers as int64, 0 for null; values too large for any index become −1, which no list contains."""
    if array.type == pa.uint64():
        array = pa.compute.if_else(pa.compute.greater(array, 2**62), None, array)
        array = pa.compute.fill_null(array.cast(pa.int64()), -1)
    return np.asarray(pa.compute.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), np.int64)
