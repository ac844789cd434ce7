"""Vectors as a file for other programs, such as vector databases: Parquet, or NumPy's npy. Written block by block."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import ParameterError
from longtail.data.parse.arrow import load_pyarrow
from longtail.store import disk

GROUP = 16_384  # rows of a row group in Parquet
VECTOR = "vector"  # the column of vectors in Parquet


class VectorFile(ABC):
    """A file under way. It holds at most one row group in memory, however many vectors there are."""

    def __init__(self, file: IO[bytes], width: int, columns: Mapping[str, str]):
        self.file, self.width, self.rows = file, width, 0

    @abstractmethod
    def add(self, vectors: NDArray[np.float32], **columns: Sequence[Any]) -> None:
        """Append vectors (n, width), and the n values of each of its columns; values for others are ignored."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is still missing, once all vectors were added."""

    @abstractmethod
    def close(self) -> None:
        """Release what the file holds, also after a failure."""


class NpyFile(VectorFile):
    """An array (N, width) of float32. Its header is written again at the end, when N is known."""

    def __init__(self, file: IO[bytes], width: int, columns: Mapping[str, str]):
        super().__init__(file, width, columns)
        if columns:
            raise ParameterError(f"an npy file has vectors only, not {', '.join(columns)}; write a .parquet file")
        self.header = self.header_of(0)
        file.write(self.header)

    def header_of(self, rows: int) -> bytes:
        """The header of an array with this many rows. Its length is the same for all numbers: it is padded."""
        header = io.BytesIO()
        described = {"descr": "<f4", "fortran_order": False, "shape": (rows, self.width)}
        np.lib.format.write_array_header_1_0(header, described)
        return header.getvalue()

    def add(self, vectors: NDArray[np.float32], **columns: Sequence[Any]) -> None:
        with writing(self.file):
            self.file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
        self.rows += len(vectors)

    def finish(self) -> None:
        header = self.header_of(self.rows)
        if len(header) != len(self.header):
            raise RuntimeError(f"the header for {self.rows} rows does not fit into {len(self.header)} bytes")
        with writing(self.file):
            self.file.seek(0)
            self.file.write(header)

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""


class ParquetFile(VectorFile):
    """A row for each vector: the columns, then `vector`, a list of fixed size of float32."""

    def __init__(self, file: IO[bytes], width: int, columns: Mapping[str, str]):
        super().__init__(file, width, columns)
        self.pa = load_pyarrow("writing Parquet files")
        kinds = {"int": self.pa.int64(), "text": self.pa.large_string()}
        fields = [self.pa.field(name, kinds[kind], nullable=False) for name, kind in columns.items()]
        floats = self.pa.list_(self.pa.field("element", self.pa.float32(), nullable=False), width)
        self.schema = self.pa.schema([*fields, self.pa.field(VECTOR, floats, nullable=False)])
        self.writer = self.pa.parquet.ParquetWriter(file, self.schema, use_dictionary=False)  # no value occurs twice
        self.waiting: list[Any] = []

    def add(self, vectors: NDArray[np.float32], **columns: Sequence[Any]) -> None:
        flat = self.pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
        arrays = [self.pa.array(columns[field.name], field.type) for field in list(self.schema)[:-1]]
        arrays.append(self.pa.FixedSizeListArray.from_arrays(flat, type=self.schema.field(VECTOR).type))
        self.waiting.append(self.pa.Table.from_arrays(arrays, schema=self.schema))
        self.rows += len(vectors)
        if sum(map(len, self.waiting)) >= GROUP:
            self._write()

    def _write(self) -> None:
        if self.waiting:
            with writing(self.file):
                self.writer.write_table(self.pa.concat_tables(self.waiting))
            self.waiting = []

    def finish(self) -> None:
        self._write()
        with writing(self.file):
            self.writer.close()

    def close(self) -> None:
        with suppress(Exception):  # it may have failed before; then it must not try once more when it is deleted
            self.writer.close()


WRITERS: dict[str, type[VectorFile]] = {".parquet": ParquetFile, ".npy": NpyFile}


@contextmanager
def vector_file(path: Path, width: int, columns: Mapping[str, str] | None = None) -> Iterator[VectorFile]:
    """A file of vectors with `width` dimensions, which the block fills; it appears under its name at the end.

    `columns` are the names and kinds ("int" or "text") of what stands beside a vector, for Parquet only. The end of the
    name says which format is written. If the block fails, what was there before stays.
    """
    kind = writer_of(path)
    with disk.drafted(path) as draft, disk.created(draft) as file, closing(kind(file, width, columns or {})) as writer:
        yield writer
        writer.finish()


def writing(file: IO[bytes]) -> AbstractContextManager[None]:
    """Explains why the file cannot be written, if so."""
    return disk.explained("write this file", Path(file.name))


def writer_of(path: Path) -> type[VectorFile]:
    """The format that the end of a file's name stands for."""
    if path.suffix not in WRITERS:
        raise ParameterError(f"a file of vectors must end in {' or '.join(WRITERS)}; got {path.name}")
    return WRITERS[path.suffix]
