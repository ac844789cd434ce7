"""`write`: writes a Corpus as files from which `read` restores it."""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from longtail.core.defaults import WRITTEN_AS
from longtail.core.errors import ParameterError, StoreError, nearest, shorten
from longtail.core.progress import Progress
from longtail.data.corpus import Corpus
from longtail.data.formats import formats, native
from longtail.data.writers.jsonl import write_jsonl
from longtail.data.writers.repository import write_repository
from longtail.store import disk
from longtail.store.lock import LOCK

log = logging.getLogger("longtail")
# the files that the writers below create: overwriting a corpus may delete these only
OUR_FILES = re.compile(
    r"(train|dev|test|labels)\.jsonl(\.gz)?|(train|val|test)\.txt|(trn|val|tst|lbl)\.json(\.gz)?|corpus(\.longtail)?\.json"
    r"|(trn|val|tst)_X_(Y|Xf)\.txt|filter_labels_(train|dev|test)\.txt(\.gz)?|data-[0-9a-f]{16}(-2)?|\.lock"
)


def write_native(corpus: Corpus, folder: Path, progress: Progress) -> None:
    """Write a corpus as memory-mapped arrays."""
    native.save(corpus, folder)
    disk.unlink(folder / LOCK)  # no other process knows this folder yet


WRITERS: dict[str, Callable[[Corpus, Path, Progress], None]] = {
    "jsonl": write_jsonl,
    "repository": write_repository,
    "native": write_native,
}


def write(
    corpus: Corpus, folder: str | Path, to: str = WRITTEN_AS, overwrite: bool = False, progress: Progress | None = None
) -> None:
    """Write a corpus to a folder, new or empty: as JSON lines, in the repository's format, or natively.

    The files are written to a temporary folder beside it, which is renamed at the end, so that a failure leaves the
    old content. `overwrite` replaces an existing corpus; a folder that is not a corpus is never replaced.

    A corpus that a format cannot store is refused. JSON lines can store texts only; the repository's sparse text (for
    features) has no groups. Both take label counts from train when they are read, so a part of a corpus, or one with
    removed labels, can only be written natively.
    """
    if to not in WRITERS:
        raise ParameterError(f"unknown format {to!r}.{nearest(to, WRITERS)}")
    folder = Path(folder).resolve()
    _check_place(folder, overwrite)
    disk.make_folders(folder.parent)
    new = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.new"
    disk.make_folder(new)
    try:
        WRITERS[to](corpus, new, progress or Progress())
        disk.sync_folder(new)
        _put_in_place(new, folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    log.info("wrote %r to %s as %s", corpus, folder, to)


def _check_place(folder: Path, overwrite: bool) -> None:
    """Refuse a place whose content must not be lost."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise StoreError(f"{folder}: is a file, not a folder; choose another name to write to")
    names = sorted(entry.name for entry in folder.iterdir())
    if not names:
        return
    shown = f"{', '.join(map(shorten, names[:3]))}{', …' if len(names) > 3 else ''}"
    if not overwrite:
        raise StoreError(f"{folder}: is not empty (it holds {shown}); choose another folder, or use --overwrite")
    if not any(formats[name].matches(folder) for name in formats):
        raise StoreError(f"{folder}: will not be overwritten: it is not a corpus (it holds {shown}); choose another")
    others = [name for name in names if not OUR_FILES.fullmatch(name)]
    if others:
        raise StoreError(
            f"{folder}: will not be overwritten: besides a corpus it has {', '.join(map(shorten, others[:3]))}, which "
            "would be lost; move that elsewhere, or choose another folder"
        )


def _put_in_place(new: Path, folder: Path) -> None:
    """Rename the new folder to its place; an old one is kept under another name until that is done."""
    old = new.with_suffix(".old")
    with disk.explained("move the corpus to this folder", folder):
        if folder.is_dir() and any(folder.iterdir()):
            folder.rename(old)
        elif folder.is_dir():
            folder.rmdir()
        try:
            new.rename(folder)
        except OSError:
            if old.is_dir():
                old.rename(folder)
            raise
    disk.sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)
