"""`read`: reads a data set in any of the field's formats as a Corpus."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from longtail.core.errors import DataError
from longtail.core.progress import Progress
from longtail.data.checks import Checks, OnBadLine
from longtail.data.corpus import Corpus
from longtail.data.formats import Format, formats
from longtail.data.options import ReadOptions
from longtail.data.parse.lines import check_gzip, peek

log = logging.getLogger("longtail")
BUNDLED = Path(__file__).parent / "bundled"


def read(
    path: str | Path,
    *,
    format: str | None = None,
    text: str | None = None,
    labels: str | None = None,
    label_sep: str | None = None,
    group_by: str | None = None,
    on_bad_line: OnBadLine = "error",
    progress: Progress | None = None,
    test: bool = True,
) -> Corpus:
    """Read a folder or file, or a bundled corpus by its name ("debian-related").

    The format is detected, or set by `format`. `text`, `labels`, `group_by` name fields or columns, and `label_sep`
    splits a label column, in formats that have them. `on_bad_line="skip"` skips bad lines and logs how many. With
    `test=False` the test part is not read; `longtail train` does this. Nothing is ever written beside the data.
    """
    place = locate(path)
    chosen = formats[format] if format else detect(place)
    checks = Checks(on_bad_line)
    parts = ("train", "dev", "test") if test else ("train", "dev")
    options = ReadOptions(text, labels, label_sep, group_by, checks, progress or Progress(), parts)
    try:
        corpus = chosen.read(place, options)
    except DataError as error:
        check_gzip(error.where)  # if the file itself is damaged, report that instead of a bad line
        raise
    if not test:  # formats with all parts in one file have read it anyway
        corpus = replace(corpus, test=None)
    checks.tell()
    log.info("read %s as %s: %r", place, chosen.name, corpus)
    return corpus


def locate(path: str | Path) -> Path:
    """Return the path itself if it exists, else the path of the bundled corpus of that name."""
    place = Path(path)
    if place.exists():
        return place
    bundled = sorted(folder.name for folder in BUNDLED.iterdir() if folder.is_dir()) if BUNDLED.is_dir() else []
    if str(path) in bundled:
        return BUNDLED / str(path)
    fix = f"bundled corpora are: {', '.join(bundled)}" if bundled else None
    raise DataError("no such file or folder", where=path, fix=fix)


def detect(path: Path) -> Format:
    """Return the first format that recognises the path."""
    for name in formats:
        if formats[name].matches(path):
            return formats[name]
    found: Any = sorted(p.name for p in path.iterdir())[:8] if path.is_dir() else peek(path, 60)
    if not path.is_dir() and found.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError("the file is UTF-16", where=path, line=1, found=found[:2], fix="save it as UTF-8")
    known = ", ".join(formats)
    raise DataError("the format was not recognised", where=path, found=found, fix=f"name one with --format: {known}")
