"""Records of CSV and TSV files, streamed, with the line number of each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from longtail.core.errors import DataError
from longtail.core.progress import Progress
from longtail.data.checks import Checks
from longtail.data.parse.lines import blocks, decode_line

DELIMITERS = (",", ";", "\t")
ROWS, SIZE = 4096, 1 << 20  # the largest chunk: number of records, and of characters
FIELD_LIMIT = 2**31 - 1  # the csv module's own limit is 128 kB, for the whole process


class CsvFile:
    """A table in a text file: `header`, then `rows` in chunks.

    Quoted fields may contain delimiters, doubled quotes and line ends. Lines are counted as in an editor.
    """

    def __init__(self, path: Path, checks: Checks, progress: Progress | None = None):
        self.path, self.checks, self.progress = path, checks, progress
        self._trouble: DataError | None = None  # of a line in the record being read
        self._lines = self._decoded()
        first = next((line for line in self._lines_counted() if line.strip()), None)
        if first is None:
            raise DataError("the file is empty", where=path, fix="a table starts with a line of column names")
        if csv.field_size_limit() < FIELD_LIMIT:
            csv.field_size_limit(FIELD_LIMIT)
        self.delimiter = sniff_delimiter(first, path)
        self._first: list[str] = [first]
        self._reader = csv.reader(self._remaining(), delimiter=self.delimiter, strict=True)
        self.header = self._read_header()

    def chunks(self) -> Iterator[tuple[list[int], list[list[str] | None]]]:
        """Yield chunks of (line, fields); the fields of a skipped record are None."""
        lines: list[int] = []
        rows: list[list[str] | None] = []
        size = 0
        while (record := self._record()) is not None:
            line, fields = record
            blank = isinstance(fields, list) and len(fields) < 2 and not "".join(fields).strip()
            if blank and self._trouble is None:  # a line of only NUL bytes is a bad line
                continue
            lines.append(line)
            rows.append(row := self._checked(line, fields))
            size += 0 if row is None else sum(map(len, row))
            if len(rows) == ROWS or size > SIZE:
                yield lines, rows
                lines, rows, size = [], [], 0
        if rows:
            yield lines, rows

    def _checked(self, line: int, fields: list[str] | DataError) -> list[str] | None:
        """Return the fields; None if the record is bad and bad records are skipped."""
        trouble, self._trouble = self._trouble, None
        if isinstance(fields, DataError):
            trouble = trouble or fields
        elif trouble is None and len(fields) != len(self.header):
            problem = f"the row has {len(fields)} column(s), the header has {len(self.header)}"
            fix = "quote fields that contain the delimiter or a line end"
            trouble = DataError(problem, where=self.path, line=line, found=fields, fix=fix)
        if trouble is not None:
            self.checks.bad(trouble)
            return None
        return fields if isinstance(fields, list) else None

    def _record(self) -> tuple[int, list[str] | DataError] | None:
        """Return the next record and the line where it starts; None at the end."""
        line = self._before + self._reader.line_num + 1
        try:
            return line, next(self._reader)
        except StopIteration:
            return None
        except csv.Error as error:
            if "end of data" in str(error):  # nothing after this line can be trusted: never skipped
                fix = "close the quote; a quote inside a quoted field is written twice"
                raise DataError("a quoted field is never closed", where=self.path, line=line, fix=fix) from None
            return line, self._csv_error(error, line)

    def _csv_error(self, error: csv.Error, line: int) -> DataError:
        if "new-line" in str(error):
            fix = "quote the field, or save the file with LF or CRLF line ends"
            return DataError("a carriage return inside a field", where=self.path, line=line, fix=fix)
        fix = "a quote inside a quoted field is written twice"
        return DataError(f"not valid CSV ({error})", where=self.path, line=line, fix=fix)

    def _read_header(self) -> list[str]:
        record = self._record()
        line, fields = record if record is not None else (1, [])
        if isinstance(fields, DataError):
            raise fields
        if self._trouble is not None:
            raise self._trouble
        names = [name.strip() for name in fields]
        # pandas writes its index as a first column without a name
        nameless = [i + 1 for i, name in enumerate(names) if not name and i > 0]
        twice = sorted({name for name in names if name and names.count(name) > 1})
        if nameless:
            problem = f"the header has no name for column {nameless[0]}"
            raise DataError(problem, where=self.path, line=line, found=fields, fix="give every column a name")
        if twice:
            problem = f"the header names a column twice: {twice[0]!r}"
            raise DataError(problem, where=self.path, line=line, found=fields, fix="rename one of them")
        return names

    def _lines_counted(self) -> Iterator[str]:
        self._before = -1  # blank lines before the header
        for line in self._lines:
            self._before += 1
            yield line

    def _remaining(self) -> Iterator[str]:
        yield self._first.pop()
        yield from self._lines

    def _decoded(self) -> Iterator[str]:
        """Yield the lines as text, with their ends; CRLF becomes LF, as in all text files."""
        for block in blocks(self.path, self.progress):
            data = block.data.replace(b"\r\n", b"\n")
            try:
                text = data.decode("utf-8") if b"\0" not in data else None
            except UnicodeDecodeError:
                text = None
            yield from self._line_by_line(data, block.first) if text is None else io.StringIO(text, newline="\n")

    def _line_by_line(self, data: bytes, first: int) -> Iterator[str]:
        """Yield the lines of a block with a NUL or invalid UTF-8; the error is recorded when its line is used."""
        for number, line in enumerate(io.BytesIO(data), first):
            try:
                text = decode_line(line, self.path, number)
                if "\0" in text:
                    fix = "the file is damaged, or not text"
                    raise DataError("a NUL byte", where=self.path, line=number, found=line.rstrip(), fix=fix)
            except DataError as error:
                self._trouble = self._trouble or error
                text = line.decode("utf-8", "replace").replace("\0", "")
            yield text


def sniff_delimiter(header: str, path: Path) -> str:
    """Return TAB for a `.tsv` with a TAB in its header, else the most frequent of `,` `;` TAB in the header."""
    if "\t" in header and ".tsv" in path.suffixes[-2:]:
        return "\t"
    outside = "".join(header.split('"')[::2])  # the part that is not quoted
    return max(DELIMITERS, key=outside.count)
