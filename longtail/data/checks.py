"""What to do about bad lines, and the record of what was mended while reading."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from longtail.core.errors import DataError, ParameterError

log = logging.getLogger("longtail")
OnBadLine = Literal["error", "skip"]


@dataclass
class Checks:
    """Refuses bad lines, or skips and counts them; counts what was mended; `tell` reports both.

    A bad line is one whose point cannot be trusted. What is mended loses nothing: a label that stands twice
    in one line counts once, an empty text keeps its labels.
    """

    on_bad_line: OnBadLine = "error"
    skipped: int = 0
    first_skipped: DataError | None = None
    mended: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.on_bad_line not in ("error", "skip"):
            raise ParameterError(f"on_bad_line must be 'error' or 'skip'; got {self.on_bad_line!r}")

    def bad(self, error: DataError) -> None:
        """A bad line: raised, or counted as skipped."""
        if self.on_bad_line == "error":
            raise error
        self.skipped += 1
        self.first_skipped = self.first_skipped or error

    def mend(self, what: str, where: Path, line: int, count: int = 1) -> None:
        """`count` things were mended, the first of them at `line`."""
        seen, first = self.mended.get(what, (0, f"{where.name}, line {line}"))
        self.mended[what] = (seen + count, first)

    def tell(self) -> None:
        """Log what was skipped and mended."""
        if self.skipped:
            log.warning("skipped %s bad line(s); the first: %s", f"{self.skipped:,}", self.first_skipped)
        for what, (count, first) in self.mended.items():
            log.warning("%s: %s time(s), the first in %s", what, f"{count:,}", first)
