"""Debian's package indexes: the `Packages` files that a mirror serves and that apt keeps after an update."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtail.core.errors import DataError

RELATIONS = ("Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances")
WANTED = frozenset((*RELATIONS, "Package", "Source", "Version", "Description"))

_NAME = r"[A-Za-z0-9][A-Za-z0-9+.\-]*"
# one alternative of a relation: name, then optionally :arch, (>= version), [arch list], <build profile>
_ALTERNATIVE = re.compile(
    rf"\s*({_NAME})(?::[A-Za-z0-9\-]+)?\s*(?:\([^()]*\))?\s*(?:\[[^\[\]]*\])?\s*(?:<[^<>]*>\s*)*\s*"
)
_FIELD = re.compile(r"[!-9;-~]+")
_VERSION = re.compile(r"(?:(\d+):)?(.*?)(?:-([^-]*))?")

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open, b"BZh": bz2.open}


@dataclass(frozen=True, slots=True)
class Stanza:
    """What one stanza says of a binary package: `related` are the packages it names in any of `RELATIONS`."""

    name: str
    version: str
    source: str
    description: str | None
    related: frozenset[str]


def read_stanzas(path: Path) -> Iterator[Stanza]:
    """The stanzas of a `Packages` file: plain, .gz, .xz, .bz2 or .lz4, told apart by their first bytes."""
    fields: dict[str, tuple[int, str]] = {}
    start, field = 0, ""
    number = 0
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            if start:
                yield _stanza(fields, path, start)
            fields, start, field = {}, 0, ""
        elif line[0] in " \t":
            if not field:
                raise DataError("a continuation line stands before any field", where=path, line=number, found=line)
            if field in RELATIONS:  # of a description only the first line is wanted
                fields[field] = (fields[field][0], fields[field][1] + line)
        else:
            field, colon, value = line.partition(":")
            if not colon or not _is_field(field):
                problem = "neither `Field: value`, nor a continuation, nor the blank line between packages"
                raise DataError(problem, where=path, line=number, found=line, fix="give a Debian Packages file")
            if field in fields:
                raise DataError(f"the field {field} stands twice for one package", where=path, line=number)
            if field in WANTED:
                fields[field] = (number, value.strip())
            start = start or number
    if start:
        yield _stanza(fields, path, start)
    if not number:
        raise DataError("the file is empty", where=path, fix="give a Debian Packages file")


def version_key(version: str) -> tuple[int, list[Any], list[Any]]:
    """Sorts as dpkg compares versions: epoch, upstream, revision; digits as numbers, `~` before the end."""
    epoch, upstream, revision = _VERSION.fullmatch(version).groups()  # type: ignore[union-attr]  # matches any line
    return int(epoch or 0), _version_parts(upstream), _version_parts(revision or "")


def _version_parts(text: str) -> list[Any]:
    """Non-digits and digits by turns; letters sort before other signs, `~` before everything, even the end."""
    parts: list[Any] = re.split(r"([0-9]+)", text)
    parts[0::2] = [[-1 if c == "~" else ord(c) + (0 if c.isalpha() else 256) for c in p] + [0] for p in parts[0::2]]
    parts[1::2] = map(int, parts[1::2])
    return parts


def _stanza(fields: dict[str, tuple[int, str]], path: Path, start: int) -> Stanza:
    for field in ("Package", "Version"):
        if not fields.get(field, (0, ""))[1]:
            name = fields.get("Package", (0, None))[1]
            raise DataError(f"the stanza that begins here has no {field}", where=path, line=start, found=name or None)
    line, name = fields["Package"]
    if not re.fullmatch(_NAME, name):
        raise DataError("not a package name", where=path, line=line, found=name)
    related = {other for field in RELATIONS if field in fields for other in _names(*fields[field], field, path)}
    # `Source: foo (1.2)` gives the version where it differs; without the field the source has the package's name
    source = fields.get("Source", (0, name))[1].partition("(")[0].strip() or name
    description = fields.get("Description", (0, ""))[1] or None
    return Stanza(sys.intern(name), fields["Version"][1], source, description, frozenset(related))


def _names(line: int, value: str, field: str, path: Path) -> Iterator[str]:
    """The packages named in the value of a relation field, alternatives alike."""
    for alternative in re.split(r"[,|]", value):
        if alternative.strip():
            name = _name(alternative)
            if name is None:
                raise DataError(f"not a relation to a package in {field}", where=path, line=line, found=alternative)
            yield name


@functools.lru_cache(1 << 16)  # a few thousand alternatives, as `libc6 (>= 2.34)`, make up most of an index
def _name(alternative: str) -> str | None:
    found = _ALTERNATIVE.fullmatch(alternative)
    return sys.intern(found[1]) if found else None


@functools.lru_cache(1 << 10)
def _is_field(name: str) -> bool:
    return _FIELD.fullmatch(name) is not None


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, unpacked and decoded, without their ends."""
    number = 0
    try:
        with _open(path) as stream:
            for line in stream:
                number += 1
                yield line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError("invalid UTF-8", where=path, line=number, found=error.object) from None
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        problem = f"the compressed file is cut short or damaged ({error})"
        raise DataError(problem, where=path, line=number + 1, fix="copy or download it again") from None
    except OSError as error:
        raise DataError("the file cannot be read", where=path, found=error.strerror or str(error)) from None


def _open(path: Path) -> AbstractContextManager[Iterable[bytes]]:
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(_LZ4_MAGIC):
        return _lz4(path)
    return next((opener for start, opener in _OPENERS.items() if magic.startswith(start)), open)(path, "rb")


@contextmanager
def _lz4(path: Path) -> Iterator[Iterable[bytes]]:
    """The lines of an lz4 file, unpacked by the `lz4` command: Python has no reader of its own."""
    command = shutil.which("lz4")
    if command is None:
        fix = "install the package lz4, or unpack the file elsewhere and give the result"
        raise DataError("the file is lz4, and there is no `lz4` command to unpack it", where=path, fix=fix)
    with subprocess.Popen([command, "-dcq", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process.stdout or ()
            said = process.communicate()[1].decode("utf-8", "replace").strip()
        finally:
            process.kill()  # in case the reader gave up in the middle
    if process.returncode:
        raise DataError("the lz4 file is damaged", where=path, found=said, fix="copy or download it again")
