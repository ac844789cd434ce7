"""Files that describe changes to a label space: new labels, keys to remove or restore, new names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import Texts
from longtail.data.parse.json_points import parse_object
from longtail.data.parse.lines import decode_line, line_chunks


def read_new_labels(path: Path, known: Labels) -> tuple[Texts, Texts | None]:
    """Read keys and texts of labels to add, one JSON object per line; texts are None if `known` has no texts.

    A duplicate key, or one that `known` already has, is refused with its line number.
    """
    lines: dict[str, int] = {}
    texts: list[str] = []
    for number, line in full_lines(path):
        label = parse_object(line, path, number)
        key, text = label.get("key"), label.get("text")
        if not isinstance(key, str) or not isinstance(text, str if known.has_text else str | None):
            what = "a key and a text that are strings" if known.has_text else "a key that is a string"
            raise DataError(f"a label must have {what}", where=path, line=number, found=label)
        note_key(lines, key, path, number)
        texts.append(text or "")
    if not lines:
        raise DataError("the label list is empty", where=path)
    keys = Texts.of(list(lines))
    taken = known.indices(keys) >= 0
    if taken.any():
        key = keys[int(taken.argmax())]
        problem, _, fix = known.taken(key).partition("; ")
        raise DataError(f"the label {problem}", where=path, line=lines[key], found=key, fix=fix)
    return keys, Texts.of(texts) if known.has_text else None


def read_keys(path: Path, known: Labels) -> list[str]:
    """Read keys of `known`, one per line; or JSON objects with a `key`."""
    lines: dict[str, int] = {}
    for number, value in values(path, ("key",)):
        note_key(lines, value[0], path, number)
    return check_known(lines, path, known)


def read_names(path: Path, known: Labels) -> dict[str, str]:
    """Read old keys of `known` and new ones: `OLD<tab>NEW` per line, or JSON objects with `old` and `new`."""
    lines: dict[str, int] = {}
    names = []
    for number, (old, new) in values(path, ("old", "new")):
        note_key(lines, old, path, number)
        names.append(new)
    return dict(zip(check_known(lines, path, known), names, strict=True))


def values(path: Path, fields: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, values) of each line: fields of a JSON object if the file starts with one, else split at tabs."""
    json: bool | None = None
    for number, line in full_lines(path):
        json = line.lstrip().startswith(b"{") if json is None else json
        if json:
            record: dict[str, Any] = parse_object(line, path, number)
            found = [record.get(name) for name in fields]
            if not all(isinstance(value, str) for value in found):
                problem = f"a line must have {' and '.join(map(repr, fields))}, as strings"
                raise DataError(problem, where=path, line=number, found=record)
            yield number, [str(value) for value in found]
            continue
        cells = decode_line(line, path, number).split("\t") if len(fields) > 1 else [decode_line(line, path, number)]
        if len(cells) != len(fields):
            problem = f"a line must be {'<tab>'.join(name.upper() for name in fields)}"
            raise DataError(problem, where=path, line=number, found=line.decode())
        yield number, [cell.strip() for cell in cells]


def full_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) of the lines of a file that are not blank."""
    for first, chunk in line_chunks(path):
        yield from ((number, line) for number, line in enumerate(chunk, first) if line.strip())


def note_key(lines: dict[str, int], key: str, path: Path, number: int) -> None:
    """Record the line of a key; an empty or duplicate key is refused."""
    if not key:
        raise DataError("a key must not be empty", where=path, line=number)
    if lines.setdefault(key, number) != number:
        problem = f"the key is already on line {lines[key]}"
        raise DataError(problem, where=path, line=number, found=key, fix="keys must be unique")


def check_known(lines: dict[str, int], path: Path, known: Labels) -> list[str]:
    """Return the keys of `lines`; a key that `known` does not have is refused with its line number."""
    if not lines:
        raise DataError("the file lists no labels", where=path)
    unknown = known.indices(lines) < 0
    if unknown.any():
        key = list(lines)[int(unknown.argmax())]
        raise DataError("the model has no label with this key", where=path, line=lines[key], found=key)
    return list(lines)
