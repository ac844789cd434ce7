"""Data of PECOS and X-Transformer: label matrices as scipy's `.npz`, texts one per line.

A folder has `Y.trn.npz` (N×L), beside it texts (`X.trn.txt`; elsewhere `trn_X.txt`, `raw/trn_X.txt`,
`raw/X.trn.txt`, `train_raw_texts.txt`) or features (`X.trn.npz`, `tfidf-attnxml/X.trn.npz`); the same with `tst`,
and with `val` or `dev`. `output-items.txt` (`output-labels.txt`, `Y.txt`, `raw/Y.txt`, `label_map.txt`) has the
labels' texts. If there are both texts and features, texts are used. A label's key is its number.

Or the form of text2text: lines "0,2<TAB>text", whose numbers are lines of `output-labels.txt`, from 0: a folder
with `training-data.txt` and optionally `test-data.txt`, or one file with the list of labels beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from longtail.core.errors import DataError
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.builder import Chunk
from longtail.data.parse.filters import find_filter
from longtail.data.parse.labelspace import LabelSpace, ListedLabels, NumberedLabels, numbered
from longtail.data.parse.line_points import line_points
from longtail.data.parse.lines import peek_lines
from longtail.data.parse.npz import read_features, read_weights
from longtail.data.parse.pairing import check_lengths, check_widths, join, refuse_fields
from longtail.data.parse.parts import CODES, STEMS, TEXT, RecordLines, about_of, find_file, make_corpus, read_parts
from longtail.data.parse.text_lines import read_list, read_texts

NPZ = (".npz",)
LISTS = ("output-items", "output-labels", "Y", "raw/Y", "label_map")
NUMBERED_LINE = re.compile(r"(\d+(,\d+)*)?\t")
DATA_FILES = {"train": ("training-data", "train-data"), "dev": ("validation-data", "dev-data"), "test": ("test-data",)}


def matches(path: Path) -> bool:
    """A folder with a label matrix or text2text lines for train; or a file of such lines with a list beside it."""
    if path.is_dir():
        return find_matrix(path, "train", "Y") is not None or _is_numbered(find_file(path, DATA_FILES["train"], TEXT))
    return find_file(path.parent, LISTS[:2], TEXT) not in (None, path) and _is_numbered(path)


def _is_numbered(path: Path | None) -> bool:
    lines = [] if path is None else peek_lines(path)
    return bool(lines) and all(NUMBERED_LINE.match(line) for line in lines)


def find_matrix(folder: Path, part: str, name: str) -> Path | None:
    """Return the file with matrix X or Y of a part."""
    names = [f"{name}.{code}" for code in CODES[part]]
    return find_file(folder, [*names, *(f"tfidf-attnxml/{stem}" for stem in names)], NPZ)


def find_texts(folder: Path, part: str) -> Path | None:
    """Return the file with the texts of a part."""
    names = [name for code in CODES[part] for name in (f"X.{code}", f"{code}_X", f"raw/{code}_X", f"raw/X.{code}")]
    return find_file(folder, names + [f"{stem}_raw_texts" for stem in STEMS[part]], TEXT)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read a folder, or a file of text2text lines as the training part."""
    refuse_fields(options, "the PECOS format")
    about = about_of(path)
    folder = path if path.is_dir() else path.parent
    listed = find_file(folder, LISTS, TEXT)
    texts = None if listed in (None, path) else read_list(listed, options)
    lines = {part: file for part, stems in DATA_FILES.items() if (file := find_file(folder, stems, TEXT))}
    if not path.is_dir():
        lines = {"train": path}
    elif find_matrix(path, "train", "Y") or "train" not in lines:
        return _read_matrices(path, texts, listed, options)
    space: LabelSpace = NumberedLabels() if texts is None else ListedLabels(numbered(len(texts), texts))

    def points(file: Path, records: RecordLines) -> Iterator[Chunk]:
        return line_points(file, records, options, parse)

    return read_parts(path, lines, points, space, options, about)


def _read_matrices(path: Path, texts: Texts | None, listed: Path | None, options: ReadOptions) -> Corpus:
    data: dict[str, Dataset] = {}
    labels, features = [], []  # (file, count): how many each file has
    for part in options.parts:
        y_file = find_matrix(path, part, "Y")
        if y_file is not None:
            x_file, data[part] = _read_part(path, part, y_file, options)
            labels.append((y_file, data[part].Y.shape[1]))
            features += [] if data[part].has_text else [(x_file, data[part].features.shape[1])]
    if "train" not in data:
        fix = "it must have Y.trn.npz, and X.trn.txt or X.trn.npz"
        raise DataError("the folder has no training part", where=path, fix=fix)
    if texts is not None and listed is not None:
        labels.append((listed, len(texts)))
    check_widths(labels, "labels")
    check_widths(features, "features")
    return make_corpus(path, data, numbered(labels[0][1], texts), about_of(path))


def _read_part(path: Path, part: str, y_file: Path, options: ReadOptions) -> tuple[Path, Dataset]:
    """Return the points of a part, and the file they come from."""
    Y, good = read_weights(y_file, options)
    x_file = find_texts(path, part)
    if x_file is not None:
        file = read_texts(x_file, options)
        x, good_x = file.texts, file.good
    else:
        x_file = find_matrix(path, part, "X")
        if x_file is None:
            code = y_file.name.split(".")[1]
            fix = f"put X.{code}.txt or X.{code}.npz beside it"
            raise DataError(f"{y_file.name} has labels, but there are neither texts nor features", where=path, fix=fix)
        x, good_x = read_features(x_file, options)
    check_lengths(x_file, len(good_x), y_file, len(good))
    return x_file, join(x, Y, good & good_x, path, find_filter(path, part), options.checks)


def parse(line: str) -> tuple[str, list[int]]:
    """Return the text and the label numbers of a line "0,2<TAB>text"."""
    if not NUMBERED_LINE.match(line):
        raise DataError("a line must consist of label numbers joined by commas, a TAB, and a text", found=line)
    numbers, _, text = line.partition("\t")
    return text, [int(word) for word in numbers.split(",") if word]


FORMAT = Format("pecos", "PECOS, X-Transformer: Y.trn.npz with X.trn.txt or X.trn.npz; text2text", matches, read)
