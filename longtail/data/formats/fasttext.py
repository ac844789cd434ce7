"""fastText lines: `__label__x __label__y some text`, in one file or in `train.txt`, `valid.txt`, `test.txt`.

As in fastText itself, any token that starts with `__label__` is a label, at any place in the line; the rest is the
text. Tokens end at ASCII white space only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from longtail.core.errors import DataError
from longtail.data.corpus import Corpus
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.builder import Chunk
from longtail.data.parse.labelspace import InferredLabels
from longtail.data.parse.line_points import line_points
from longtail.data.parse.lines import peek_lines
from longtail.data.parse.parts import RecordLines, about_of, find_file, find_parts, read_parts

PREFIX = "__label__"
ENDINGS = (".txt", ".txt.gz", ".ft.txt", ".ft.txt.gz", ".ft", ".ft.gz")
_SPACE = r" \t\v\f\r\0"  # what ends a token, besides the end of the line
# The prefix comes first in the pattern, and the character before it is checked afterwards: ten times faster.
_LABEL = re.compile(rf"{PREFIX}(?<![^{_SPACE}]{PREFIX})([^{_SPACE}]*)[{_SPACE}]*")


def matches(path: Path) -> bool:
    """A file with labels in most of its first lines; or a folder with such a train file."""
    file = find_file(path, ["train"], ENDINGS) if path.is_dir() else path
    if file is None:
        return False
    lines = peek_lines(file)
    return 2 * sum(1 for line in lines if _LABEL.search(line)) > len(lines)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read a folder, or one file as the training part."""

    def points(file: Path, records: RecordLines) -> Iterator[Chunk]:
        return line_points(file, records, options, parse)

    return read_parts(path, find_parts(path, ENDINGS), points, InferredLabels(), options, about_of(path))


def parse(line: str) -> tuple[str, list[str]]:
    """Return the text and the labels of a line."""
    labels = _LABEL.findall(line)
    if "" in labels:
        raise DataError(f"a label without a name: {PREFIX!r} alone", found=line)
    return _LABEL.sub("", line).strip(), labels


FORMAT = Format("fasttext", "fastText lines: __label__x … text; one file, or train.txt, test.txt", matches, read)
