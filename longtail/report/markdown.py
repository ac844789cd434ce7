"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table: the header, the rule below it, and a line for each row."""
    return [row(columns), row(["---"] * len(columns)), *map(row, rows)]


def row(cells: Sequence[str]) -> str:
    """One line of a table; `|` inside a cell is escaped."""
    return "| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |"
