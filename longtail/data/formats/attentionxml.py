"""Folders of AttentionXML and of projects that use its data (LightXML, CascadeXML).

`train_texts.txt` or `train_raw_texts.txt` has one text per line, `train_labels.txt` (CascadeXML: `Y.trn.txt`) the
names of its labels, separated by blanks; the same for `test`, and for `valid`, `val` or `dev`. If both exist, raw
texts are used instead of texts that are split into tokens. Labels are sorted by name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.data.corpus import Corpus
from longtail.data.formats import Format
from longtail.data.options import ReadOptions
from longtail.data.parse.builder import Chunk, PointsBuilder
from longtail.data.parse.filters import find_filter
from longtail.data.parse.labelspace import InferredLabels
from longtail.data.parse.lines import LineBlock, blocks
from longtail.data.parse.pairing import check_lengths, join, refuse_fields
from longtail.data.parse.parts import CODES, STEMS, TEXT, about_of, find_file, finish_labels, make_corpus
from longtail.data.parse.text_lines import read_texts, without_invalid


def matches(path: Path) -> bool:
    """A folder with texts and labels of a training part."""
    return path.is_dir() and find_texts(path, "train") is not None and find_labels(path, "train") is not None


def find_texts(folder: Path, part: str) -> Path | None:
    """Return the file with the texts of a part: raw texts if there are any, else tokens."""
    return find_file(folder, [f"{stem}_raw_texts" for stem in STEMS[part]], TEXT) or find_file(
        folder, [f"{stem}_texts" for stem in STEMS[part]], TEXT
    )


def find_labels(folder: Path, part: str) -> Path | None:
    """Return the file with the labels of a part."""
    names = [f"{stem}_labels" for stem in STEMS[part]] + [f"Y.{code}" for code in CODES[part]]
    return find_file(folder, names, TEXT)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read a folder."""
    refuse_fields(options, "the AttentionXML format")
    about = about_of(path)
    files = {part: (x, y) for part in options.parts if (x := find_texts(path, part)) and (y := find_labels(path, part))}
    if "train" not in files:
        fix = "it must have train_texts.txt or train_raw_texts.txt, and train_labels.txt"
        raise DataError("the folder has no training part", where=path, fix=fix)
    space = InferredLabels()
    texts, names = {}, {}
    for part, (x, y) in files.items():
        texts[part] = read_texts(x, options)
        names[part] = LabelLines(y, texts[part].good, space, options)
        check_lengths(x, len(texts[part].good), y, len(names[part].builder))
    labels, final = finish_labels(space, files["train"][1])
    data = {}
    for part, file in texts.items():
        Y = names[part].builder.finish(len(labels), final, file.texts).Y
        good = file.good & names[part].good
        data[part] = join(file.texts, Y, good, path, find_filter(path, part), options.checks)
    return make_corpus(path, data, labels, about)


class LabelLines:
    """Label names separated by blanks, one point per line; `good` (N,) says which lines could be read.

    Labels of points whose text could not be read (`wanted` is false) are ignored: those points are skipped.
    """

    def __init__(self, path: Path, wanted: NDArray[np.bool_], space: InferredLabels, options: ReadOptions):
        self.path, self.checks = path, options.checks
        self.builder = PointsBuilder(space, options.checks, path)
        bad = [np.empty(0, np.int64)]
        for block in blocks(path, options.progress):
            data, wrong = self._valid(block)
            before = block.first - 1
            bad.append(wrong + before)
            chunk = _chunk(data, block.first)
            unwanted = np.flatnonzero(~wanted[before : before + len(chunk.lengths)])
            bare = np.setdiff1d(np.flatnonzero(chunk.lengths == 0), np.append(wrong, unwanted))
            if len(bare):
                self.checks.mend("a point without labels was kept", path, block.first + int(bare[0]), len(bare))
            self.builder.add(_emptied(chunk, unwanted) if len(unwanted) else chunk)
        self.good = np.ones(len(self.builder), bool)
        self.good[np.concatenate(bad)] = False

    def _valid(self, block: LineBlock) -> tuple[bytes, NDArray[np.int64]]:
        """Return the block with lines that are not UTF-8 emptied, and the numbers of those lines."""
        try:
            block.data.decode("utf-8")
        except UnicodeDecodeError:
            return without_invalid(block, self.path, self.checks)
        return block.data, np.empty(0, np.int64)


def _chunk(data: bytes, first: int) -> Chunk:
    """Return the labels of each line, without a loop over lines."""
    octets = np.frombuffer(data, np.uint8)
    blank = np.isin(octets, np.frombuffer(b" \t\n\v\f\r", np.uint8))  # where bytes.split() splits
    begins = ~blank
    begins[1:] &= blank[:-1]
    ends = np.flatnonzero(octets == ord("\n"))
    lengths = np.diff(np.cumsum(begins, dtype=np.int64)[ends], prepend=0)
    words = data.split()
    names = b"\n".join(words).decode("utf-8").split("\n") if words else []
    return Chunk(np.arange(first, first + len(ends)), None, names, lengths)


def _emptied(chunk: Chunk, rows: NDArray[np.int64]) -> Chunk:
    """Return the chunk with no labels in some rows."""
    full = np.ones(len(chunk.lengths), bool)
    full[rows] = False
    return replace(chunk, values=chunk.only(full).values, lengths=np.where(full, chunk.lengths, 0))


FORMAT = Format("attentionxml", "AttentionXML, LightXML: train_texts.txt, train_labels.txt, test…", matches, read)
