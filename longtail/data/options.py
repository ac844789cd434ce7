"""Options of reading: what a user may say about a data set that its files do not."""

from __future__ import annotations

from dataclasses import dataclass, field

from longtail.core.progress import Progress
from longtail.data.checks import Checks


@dataclass(frozen=True)
class ReadOptions:
    """`text`, `labels`, `group_by` name fields or columns; `label_sep` splits a label column.

    `text` may name several fields, separated by commas: their contents are joined with a blank. None means the
    format's usual names. Parts that are not in `parts` are not opened, and no labels come from them.
    """

    text: str | None = None
    labels: str | None = None
    label_sep: str | None = None
    group_by: str | None = None
    checks: Checks = field(default_factory=Checks)
    progress: Progress = field(default_factory=Progress)
    parts: tuple[str, ...] = ("train", "dev", "test")
