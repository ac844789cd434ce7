"""How to treat bad lines, and the record of what was corrected while reading."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError, ParameterError
from longtail.core.texts import Texts

log = logging.getLogger("longtail")
OnBadLine = Literal["error", "skip"]


@dataclass
class Checks:
    """Refuses bad lines, or skips and counts them; counts corrections; `tell` reports both.

    A bad line is one whose point cannot be trusted. A correction loses nothing: a label that appears twice in one line
    counts once, an empty text keeps its labels.
    """

    on_bad_line: OnBadLine = "error"
    skipped: int = 0
    first_skipped: DataError | None = None
    mended: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.on_bad_line not in ("error", "skip"):
            raise ParameterError(f"on_bad_line must be 'error' or 'skip'; got {self.on_bad_line!r}")

    def bad(self, error: DataError) -> None:
        """Handle a bad line: raise its error, or count it as skipped."""
        if self.on_bad_line == "error":
            raise error
        self.skipped += 1
        self.first_skipped = self.first_skipped or error

    def mend(self, what: str, where: Path, line: int, count: int = 1) -> None:
        """Record `count` corrections, the first of them at `line`."""
        seen, first = self.mended.get(what, (0, f"{where.name}, line {line}"))
        self.mended[what] = (seen + count, first)

    def note_empty(self, texts: Texts, where: Path, lines: NDArray[np.int64]) -> None:
        """Record the texts that are only white space, which are kept; `lines` has the line number of each text."""
        starts = texts.offsets[:-1]
        begins = np.zeros(len(texts), np.uint8)  # the first byte of each text, 0 for an empty one
        full = texts.byte_lengths > 0
        begins[full] = texts.data[starts[full]]
        doubtful = np.flatnonzero((begins <= ord(" ")) | (begins >= 0x80))  # other texts start with a word
        some = texts.take(doubtful)
        blank = doubtful[_native.count_words(some.data, some.offsets) == 0]
        if len(blank):
            self.mend("an empty text was kept", where, int(lines[blank[0]]), len(blank))

    def tell(self) -> None:
        """Log what was skipped and corrected."""
        if self.skipped:
            log.warning("skipped %s bad line(s); the first: %s", f"{self.skipped:,}", self.first_skipped)
        for what, (count, first) in self.mended.items():
            log.warning("%s: %s time(s), the first in %s", what, f"{count:,}", first)
