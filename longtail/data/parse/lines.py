"""Reading text files in chunks of lines: plain or gzip, with or without byte-order mark, LF or CRLF."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np

from longtail.core.errors import DataError
from longtail.core.progress import Progress

CHUNK = 1 << 20  # bytes read at a time: a reader needs a few of these besides its result
GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"


def open_bytes(path: Path) -> IO[bytes]:
    """Open the bytes of a file, unpacked if it is gzip, whatever its name."""
    try:
        with path.open("rb") as file:
            magic = file.read(2)
        return cast(IO[bytes], gzip.open(path, "rb")) if magic == GZIP_MAGIC else path.open("rb")
    except OSError as error:
        raise DataError("the file cannot be opened", where=path, found=error.strerror or str(error)) from error


def peek(path: Path, size: int = 1 << 16) -> bytes:
    """Return the first bytes of a file, for `matches`: unpacked, without byte-order mark, as far as readable.

    Damage is reported later, when the file is read completely.
    """
    with open_bytes(path) as stream:
        try:
            return next(_pieces(stream, size), b"")[:size].removeprefix(UTF8_BOM)
        except (EOFError, OSError, zlib.error):
            return b""


def peek_lines(path: Path, count: int = 20) -> list[str]:
    """Return at most `count` of the first lines that are not blank, for `matches`; only complete lines."""
    size, start = 1 << 14, b""
    while size <= 1 << 24 and b"\n" not in start.strip():  # the first line must be complete, however long
        size *= 8
        start = peek(path, size)
        if len(start) < size - len(UTF8_BOM):
            start += b"\n"  # the whole file
    lines = start.decode("utf-8", "replace").split("\n")[:-1]
    return [line for line in lines if line.strip()][:count]


class LineBlock(NamedTuple):
    """Complete lines, ending in LF: the number of the first (from 1), how many, and their bytes."""

    first: int
    lines: int
    data: bytes


def blocks(path: Path, progress: Progress | None = None) -> Iterator[LineBlock]:
    """Yield the lines of a file in blocks of about a megabyte.

    A byte-order mark is dropped. A gzip stream that ends early or is damaged is refused, with the last line read.
    UTF-16 is refused too: no reader here can use it.
    """
    first, rest = 1, b""
    with open_bytes(path) as stream, (progress or Progress()).bar(f"reading {path.name}", unit="lines") as bar:
        pieces = _pieces(stream, CHUNK)
        while block := _next(pieces, path, first):
            if first == 1 and not rest:
                block = _without_mark(block, path)
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest += block
                continue
            whole, rest = rest + block[:cut], block[cut:]
            count = int(np.count_nonzero(np.frombuffer(whole, np.uint8) == ord("\n")))
            yield LineBlock(first, count, whole)
            first += count
            bar.advance(count)
        if rest:
            yield LineBlock(first, 1, rest + b"\n")


def check_gzip(path: object, limit: int = 1 << 28) -> None:
    """Refuse a gzip file that is damaged further on; a file larger than `limit` bytes is not checked."""
    if not isinstance(path, Path) or not path.is_file() or path.stat().st_size > limit:
        return
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    if packed:
        for _ in blocks(path):
            pass


def line_chunks(path: Path, progress: Progress | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (number of the first line, lines without line ends): `blocks` split into lines, CRLF read as LF."""
    for block in blocks(path, progress):
        yield block.first, split_lines(block.data)


def split_lines(block: bytes) -> list[bytes]:
    """Return the lines of a block that ends in LF, without line ends; CRLF is read as LF."""
    if b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")
    lines = block.split(b"\n")
    lines.pop()  # the empty rest after the last line end
    return lines


def _pieces(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the stream in pieces of `size` bytes; after an error, first what was read before it."""
    read = cast(BufferedReader, stream).read1
    failure: Exception | None = None
    while failure is None:
        parts, missing = [], size
        try:
            while missing > 0 and (part := read(missing)):
                parts.append(part)
                missing -= len(part)
        except (EOFError, OSError, zlib.error) as error:
            failure = error
        if parts:
            yield b"".join(parts)
        elif failure is None:
            return
    raise failure


def _next(pieces: Iterator[bytes], path: Path, line: int) -> bytes:
    """Return the next piece, empty at the end; an error is raised with the last line read."""
    try:
        return next(pieces, b"")
    except EOFError:
        problem, fix = "the gzip file ends before its end mark: it was cut short", "copy or download it again"
    except (zlib.error, gzip.BadGzipFile) as error:
        problem, fix = f"the gzip file is damaged ({error})", "copy or download it again"
    except OSError as error:
        problem, fix = f"reading failed ({error.strerror or error})", "check the disk"
    raise DataError(problem, where=path, line=line, fix=fix)


def _without_mark(block: bytes, path: Path) -> bytes:
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError("the file is UTF-16", where=path, line=1, found=block[:2], fix="save it as UTF-8")
    return block.removeprefix(UTF8_BOM)


def decode_line(line: bytes, path: Path, number: int) -> str:
    """Return a line as text; invalid UTF-8 is refused with its place and bytes."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        around = line[max(0, error.start - 10) : error.end + 10]
        problem = f"invalid UTF-8 at byte {error.start + 1} of the line"
        raise DataError(problem, where=path, line=number, found=around, fix="save the file as UTF-8") from None
