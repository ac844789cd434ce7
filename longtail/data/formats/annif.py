"""Annif's short-text corpora: a text, TAB, then the URIs of its subjects in `<…>`, separated by blanks.

One TSV file, plain or gzip, or a folder of `train.tsv`, `dev.tsv`, `test.tsv` and, optionally, a vocabulary of
lines `<uri>`, TAB, label (a third column, the notation, is ignored), called `vocab.tsv`, `subjects.tsv`,
`labels.tsv` or `…-vocab.tsv`. The key of a label is its URI without brackets. There is no header and no quoting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.core.texts import TextsBuilder
from longtail.data.corpus import Corpus
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.builder import Chunk
from longtail.data.parse.labelspace import InferredLabels, LabelSpace, ListedLabels
from longtail.data.parse.line_points import line_points
from longtail.data.parse.lines import decode_line, line_chunks, peek_lines
from longtail.data.parse.parts import RecordLines, about_of, find_file, find_parts, read_parts

ENDINGS = (".tsv", ".tsv.gz")
VOCABULARIES = ("vocab", "vocabulary", "subjects", "labels", "*-vocab")
_URI = re.compile(r"<[^<>\s]+>|[A-Za-z][A-Za-z0-9+.\-]*:[^<>\s]+")


def matches(path: Path) -> bool:
    """A TSV file whose first lines have only URIs after the TAB; or a folder with such a train file.

    (A table has a header, with column names instead of URIs.)
    """
    file = find_file(path, ["train"], ENDINGS) if path.is_dir() else path
    if file is None or not file.name.lower().endswith(ENDINGS):
        return False
    subjects = [line.partition("\t")[2].split() if "\t" in line else ["-"] for line in peek_lines(file)]
    return any(subjects) and all(_URI.fullmatch(uri) for row in subjects for uri in row)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read a folder, or one file as the training part."""
    listed = find_vocabulary(path) if path.is_dir() else None
    space: LabelSpace = InferredLabels() if listed is None else ListedLabels(read_vocabulary(listed, options))

    def points(file: Path, records: RecordLines) -> Iterator[Chunk]:
        return line_points(file, records, options, parse)

    return read_parts(path, find_parts(path, ENDINGS), points, space, options, about_of(path))


def parse(line: str) -> tuple[str, list[str]]:
    """Return the text and the subjects of a line."""
    text, tab, subjects = line.partition("\t")
    if not tab:
        raise DataError("no TAB between text and subjects", found=line)
    return text.strip(), [without_brackets(uri) for uri in subjects.split()]


def without_brackets(uri: str) -> str:
    """Return `<uri>` or a plain URI as a key; refuse anything else."""
    if not _URI.fullmatch(uri):
        raise DataError("a subject must be a URI, in <…> or plain", found=uri, fix="with a header, use --format table")
    return uri.removeprefix("<").removesuffix(">")


def find_vocabulary(folder: Path) -> Path | None:
    """Return the list of subjects in a folder, if there is one."""
    for name in VOCABULARIES:
        found = sorted(file for end in ENDINGS for file in folder.glob(f"{name}{end}"))
        if len(found) > 1 and "*" in name:
            raise DataError("more than one vocabulary", where=folder, found=[f.name for f in found], fix="keep one")
        if found:
            return found[0]
    return None


def read_vocabulary(path: Path, options: ReadOptions) -> Labels:
    """Read lines of URI, TAB, label; a subject without a label gets an empty text."""
    keys, texts = TextsBuilder(), TextsBuilder()
    for first, lines in line_chunks(path, options.progress):
        rows = []
        for number, line in enumerate(lines, first):
            if not line.strip():
                continue
            uri, *rest = decode_line(line, path, number).split("\t")
            if not _URI.fullmatch(uri.strip()):
                problem, fix = "a line of the vocabulary must start with a URI", "the form is: <uri>, TAB, label"
                raise DataError(problem, where=path, line=number, found=uri, fix=fix)
            rows.append((without_brackets(uri.strip()), rest[0].strip() if rest else ""))
        keys.extend([key for key, _ in rows])
        texts.extend([text for _, text in rows])
    if not len(keys):
        raise DataError("the vocabulary is empty", where=path)
    labels = Labels(keys.finish(), texts.finish())
    labels.check_unique(path)
    return labels


FORMAT = Format("annif", "Annif TSV: text, TAB, <uri> …; one file, or train.tsv, test.tsv, vocab.tsv", matches, read)
