"""Corpora by name. The folder of a corpus differs between machines, so it is never recorded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longtail.core.errors import DataError
from longtail.core.progress import Progress
from longtail.data.corpus import Corpus
from longtail.data.read import locate, read

VARIABLE = "LONGTAIL_DATA"


class Corpora:
    """Reads corpora, each once. `data` and the folders in `LONGTAIL_DATA` contain one folder for each corpus."""

    def __init__(
        self, data: str | Path | None = None, options: Mapping[str, Any] | None = None, progress: Progress | None = None
    ):
        self.data = data
        self.options = dict(options or {})
        self.progress = progress or Progress()
        self._read: dict[str, Corpus] = {}

    def place(self, name: str) -> Path:
        """The path of a corpus: in a folder of corpora, or `name` itself is a path, or the corpus is in the package."""
        folders = [] if self.data is None else [Path(self.data)]
        folders += [Path(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
        for folder in folders:
            if (folder / name).exists():
                return folder / name
        try:
            return locate(name)
        except DataError as error:
            fix = f"name the folder that contains {name} with --data FOLDER or {VARIABLE}"
            raise DataError(error.problem, where=name, fix=f"{error.fix}; {fix}" if error.fix else fix) from None

    def available(self, name: str) -> bool:
        """Whether a corpus can be read on this machine."""
        try:
            self.place(name)
        except DataError:
            return False
        return True

    def get(self, name: str) -> Corpus:
        """The corpus, with all its parts."""
        if name not in self._read:
            self._read[name] = read(self.place(name), **self.options, progress=self.progress)
        return self._read[name]
