"""The layouts of the Extreme Classification Repository: a folder, or one file.

- JSON: `trn.json[.gz]`, `tst…`, one point per line with `title`, `content`, `target_ind` (rows of the label list) and
  `target_rel`; the text is title and content joined by a blank. `lbl.json[.gz]` lists the labels by `uid`.
- Matrices: `trn_X_Y.txt`, `tst_X_Y.txt` (header "N L", rows "label:weight …"), beside them texts, one per line
  (`trn_X.txt`, also in `raw/`; or `raw_data/train.raw.txt`, where a line may start with "id->"), or features
  `trn_X_Xf.txt` (header "N D"). `Y.txt` has the labels' texts.
- Points: `train.txt`, `test.txt`, or `*_train.txt`, `*_test.txt` (header "N D L", rows "label,label f:v f:v …"; a
  row without labels starts with a blank). Or `*_data.txt` with all points, and `*_trSplit.txt`, `*_tstSplit.txt`
  whose first column has the rows, counted from 1, of train and test.

If there are both texts and features, texts are used. A `lbl.json` gives keys and texts in every layout; without one, a
label's key is its number. Validation parts are called `val…`, `dev…`, `valid…` or `validation…`. Filter pairs are in
`filter_labels_train.txt`, `filter_labels_test.txt`; `corpus.json` has name and propensity constants.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.core.labels import Labels
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.filters import find_filter
from longtail.data.parse.json_points import Fields, JsonPoints
from longtail.data.parse.label_lists import read_json_labels
from longtail.data.parse.labelspace import LabelSpace, ListedLabels, NumberedLabels, numbered
from longtail.data.parse.lines import line_chunks, peek
from longtail.data.parse.pairing import check_lengths, check_widths, join, refuse_fields
from longtail.data.parse.parts import CODES, STEMS, TEXT, about_of, find_file, make_corpus, read_parts
from longtail.data.parse.sparse_text import SparseFile, read_features, read_points, read_weights
from longtail.data.parse.text_lines import read_list, read_texts

log = logging.getLogger("longtail")

JSON = (".json", ".json.gz", ".raw.json", ".raw.json.gz")
NAMES = {part: tuple(dict.fromkeys((*codes, *STEMS[part]))) for part, codes in CODES.items()}  # trn, train; …
# A header "N D L", then a row: labels or none, then pairs or none.
HEADER = rb"[ \t]*\d+[ \t]+\d+[ \t]+\d+[ \t]*\r?\n"
SPARSE = re.compile(HEADER + rb"((\d+(,\d+)*)?([ \t]*(\r?\n|\Z)|[ \t]+\d+:[^\s:])|\d+:[^\s:])")


class Matrices(NamedTuple):
    """The files of one part: label weights, and texts or features."""

    weights: Path
    x: Path
    is_text: bool


def matches(path: Path) -> bool:
    """A folder with the training part of one of the layouts, or a file that is one."""
    if path.is_dir():
        return bool(find_json(path) or _stem(path, "train", "_X_Y") or find_points(path) or find_split(path))
    return is_sparse(path) or is_json(path)


def is_sparse(path: Path) -> bool:
    """Whether a file starts with a header "N D L" and a row."""
    return SPARSE.match(peek(path)) is not None


def is_json(path: Path) -> bool:
    """Whether a file starts with a JSON object that has the repository's field for labels."""
    start = peek(path).lstrip()
    return start.startswith(b"{") and b'"target_ind"' in start


def find_json(folder: Path) -> dict[str, Path]:
    """Return the JSON file of each part; empty if train has none."""
    return _with_train({part: find_file(folder, codes, JSON) for part, codes in NAMES.items()})


def find_points(folder: Path) -> dict[str, Path]:
    """Return the file of points of each part; empty if train has none, or it does not start like one."""
    named = sorted(p for end in TEXT for p in folder.glob(f"*_train{end}") if not p.name.startswith("filter_"))
    train = find_file(folder, ("train",), TEXT) or (named[0] if len(named) == 1 else None)
    if train is None or not is_sparse(train):
        return {}
    prefix = train.name[: train.name.index("train.")]
    rest = {part: find_file(folder, [prefix + code for code in NAMES[part]], TEXT) for part in ("dev", "test")}
    return _with_train({"train": train, **rest})


def find_split(folder: Path) -> dict[str, Path]:
    """Return the file of all points, and the files that say which are train and test."""
    found = {
        name: next((p for p in sorted(folder.iterdir()) if p.name.lower().endswith(f"_{name.lower()}.txt")), None)
        for name in ("data", "trSplit", "tstSplit")
    }
    there = {name: path for name, path in found.items() if path is not None}
    return there if len(there) == 3 and is_sparse(there["data"]) else {}


def find_matrices(folder: Path) -> dict[str, Matrices]:
    """Return the matrix files of each part."""
    found = {}
    for part, codes in NAMES.items():
        weights = _stem(folder, part, "_X_Y")
        if weights is None:
            continue
        texts = _stem(folder, part, "_X") or find_file(folder / "raw", [f"{c}_X" for c in codes], TEXT)
        texts = texts or find_file(folder / "raw_data", [f"{c}.raw" for c in codes], TEXT)
        x = texts or _stem(folder, part, "_X_Xf")
        if x is None:
            code = weights.name[: weights.name.index("_X_Y")]
            problem = f"{weights.name} has labels, but there are neither texts ({code}_X.txt) nor features"
            raise DataError(problem, where=folder, fix=f"put {code}_X.txt or {code}_X_Xf.txt beside it")
        found[part] = Matrices(weights, x, texts is not None)
    return found


def _stem(folder: Path, part: str, tail: str) -> Path | None:
    return find_file(folder, [code + tail for code in NAMES[part]], TEXT)


def _with_train(found: dict[str, Path | None]) -> dict[str, Path]:
    there = {part: path for part, path in found.items() if path is not None}
    return there if "train" in there else {}


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read a folder, or one file as the training part."""
    about = about_of(path)
    fields = tuple((options.text or "title,content").split(","))
    listed = _label_list(path, options, fields) if path.is_dir() else None
    files = find_json(path) if path.is_dir() else {"train": path} if is_json(path) else {}
    if files:
        return _read_json(path, files, listed, options, fields, about)
    refuse_fields(options, "this layout of the repository")
    if "group" in about:
        log.warning("%s: corpus.json names the group field %r, but there are no fields", path, about["group"])
    labels, data = _read_sparse(path, listed, options)
    return make_corpus(path, data, labels, about)


Found = tuple[Labels, dict[str, Dataset]]


def _read_json(
    path: Path,
    files: dict[str, Path],
    listed: Labels | None,
    options: ReadOptions,
    text: tuple[str, ...],
    about: dict[str, Any],
) -> Corpus:
    space: LabelSpace = NumberedLabels() if listed is None else ListedLabels(listed)
    group = options.group_by or about.get("group")
    fields = Fields(text, options.labels or "target_ind", "target_rel", group, frozenset(text))
    points = JsonPoints(options, fields).points
    return read_parts(path, files, points, space, options, about, filters=_filter, note_bare=False)


def _read_sparse(path: Path, listed: Labels | None, options: ReadOptions) -> Found:
    if not path.is_dir():
        return _read_points(path, {"train": path}, listed, options)
    if matrices := find_matrices(path):
        return _read_matrices(path, matrices, listed, options)
    if points := find_points(path):
        return _read_points(path, points, listed, options)
    if split := find_split(path):
        return _read_split(path, split, listed, options)
    raise DataError(
        "the folder has none of the repository's training files",
        where=path,
        found=sorted(p.name for p in path.iterdir())[:8],
        fix="they are called trn.json.gz, trn_X_Y.txt, train.txt or …_train.txt, the last two with a header 'N D L'",
    )


def _read_matrices(path: Path, files: dict[str, Matrices], listed: Labels | None, options: ReadOptions) -> Found:
    data, weights, features = {}, [], []
    for part, (weights_file, x_file, is_text) in files.items():
        if part not in options.parts:
            continue
        Y = read_weights(weights_file, options)
        weights.append(Y)
        if is_text:
            texts = read_texts(x_file, options, ids=x_file.parent.name == "raw_data")
            x, good = texts.texts, texts.good
        else:
            found = read_features(x_file, options)
            features.append(found)
            x, good = found.matrix, found.good
        check_lengths(x_file, len(good), weights_file, len(Y.good))
        data[part] = join(x, Y.matrix, good & Y.good, path, _filter(path, part), options.checks)
    check_widths([(file.path, file.matrix.shape[1]) for file in features], "features")
    return _labels(listed, [(file.path, file.matrix.shape[1]) for file in weights], path), data


def _read_points(path: Path, files: dict[str, Path], listed: Labels | None, options: ReadOptions) -> Found:
    found = {part: read_points(file, options) for part, file in files.items() if part in options.parts}
    check_widths([(file.path, file.matrix.shape[1]) for file in found.values()], "features")
    data = {part: _points(file, path, part, options) for part, file in found.items()}
    return _labels(listed, [(file.path, data[part].Y.shape[1]) for part, file in found.items()], path), data


def _points(file: SparseFile, path: Path, part: str, options: ReadOptions) -> Dataset:
    return join(file.matrix, file.labels, file.good, path, _filter(path, part), options.checks)


def _read_split(path: Path, files: dict[str, Path], listed: Labels | None, options: ReadOptions) -> Found:
    found, checks = read_points(files["data"], options), options.checks
    points = Dataset(found.matrix, found.labels)
    data = {}
    for part, name in (("train", "trSplit"), ("test", "tstSplit")):
        rows = _split_rows(files[name], len(found.good))
        some = points.take(rows)
        data[part] = join(some.features, some.Y, found.good[rows], path, _filter(path, part), checks)
    return _labels(listed, [(found.path, data["train"].Y.shape[1])], path), data


def _split_rows(path: Path, N: int) -> NDArray[np.int64]:
    """Return the rows in the first column of a split file, which counts from 1; other columns are other splits."""
    rows = []
    for first, lines in line_chunks(path):
        for number, line in enumerate(lines, first):
            words = line.split()
            if words and not (words[0].isdigit() and 1 <= int(words[0]) <= N):
                raise DataError(f"a split must list points from 1 to {N:,}", where=path, line=number, found=words[0])
            rows += [int(words[0]) - 1] if words else []
    if not rows:
        raise DataError("the split lists no points", where=path)
    return np.array(rows, np.int64)


def _label_list(folder: Path, options: ReadOptions, fields: tuple[str, ...]) -> Labels | None:
    listed = find_file(folder, ("lbl",), JSON)
    if listed is not None:
        return read_json_labels(listed, options, fields)
    texts = find_file(folder, ("Y",), TEXT) or find_file(folder / "raw", ("Y",), TEXT)
    if texts is not None:
        found = read_list(texts, options)
        return numbered(len(found), found)
    raw = find_file(folder / "raw_data", ("label.raw",), TEXT)
    if raw is None:
        return None
    found = read_list(raw, options, ids=True)
    return numbered(len(found), found)


def _labels(listed: Labels | None, counts: list[tuple[Path, int]], path: Path) -> Labels:
    """Return the labels of the list, or numbered ones; refuse files with different numbers of labels."""
    check_widths(counts, "labels")
    file, L = counts[0]
    if listed is not None and len(listed) != L:
        problem = f"the label list has {len(listed):,} labels, but {file.name} counts {L:,}"
        raise DataError(problem, where=path, fix="they must belong to the same data set: get both again")
    if not L:
        raise DataError("the header says that there are no labels", where=file, line=1)
    return numbered(L) if listed is None else listed


def _filter(path: Path, part: str) -> Path | None:
    if not path.is_dir():
        return None
    found = (find_filter(path, code) or find_file(path, [f"{code}_filter_labels"], TEXT) for code in NAMES[part])
    return next((file for file in found if file is not None), None)


FORMAT = Format("repository", "Extreme Classification Repository: trn.json.gz, trn_X_Y.txt, train.txt", matches, read)
