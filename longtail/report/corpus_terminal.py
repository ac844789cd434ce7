"""`longtail inspect` in the terminal: compact tables and a plot of label frequencies, readable without colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longtail.core.texts import printable
from longtail.data.inspect.statistics import Statistics
from longtail.report.corpus_rows import (
    duplicate_rows,
    frequent_rows,
    group_rows,
    has_test,
    label_rows,
    longest_rows,
    part_rows,
)
from longtail.report.terminal import light_table, scatter

WIDEST = 100  # columns; wider tables and plots are hard to read
PLOT_ROWS = 14
PLAIN = str.maketrans("–’…", "-'.")


def render(stats: Statistics, console: Console) -> None:
    """Print the statistics of a corpus; in ASCII on a console that can show nothing else."""
    if console.options.ascii_only:
        with console.capture() as captured:
            _render(stats, console)
        console.file.write(captured.get().translate(PLAIN).encode("ascii", "replace").decode())
    else:
        _render(stats, console)


def _render(stats: Statistics, console: Console) -> None:
    console.print(Text(printable(stats.name), style="bold"))
    parts = ([name, *values] for name, values in part_rows(stats.parts))
    tables = [
        _table(["", *(p.part for p in stats.parts)], parts),
        _table(["label space", "labels", "examples, mean", "median", "most"], label_rows(stats)),
        _groups(stats),
    ]
    tables += [_frequent(stats)] if stats.frequent else []
    tables += [_duplicates(stats)] if stats.duplicates else []
    tables += [_longest(stats, console.width)] if stats.longest else []
    for i, table in enumerate(tables):
        console.print()
        console.print(table)
        if i == 2:
            _plot(stats, console)


def _groups(stats: Statistics) -> Table:
    test = has_test(stats)
    header = ["training examples", "labels", "of labels", "of train", *(["of test"] if test else [])]
    caption = f"of train{' and test' if test else ''}: share of the label occurrences there"
    return _table(header, group_rows(stats), caption)


def _plot(stats: Statistics, console: Console) -> None:
    ranks, frequencies = (np.array(values, np.int64) for values in stats.curve)
    width = min(console.width, WIDEST) - 1
    if len(ranks) and width >= 30:
        titles = ("labels by rank of their frequency", "training examples of a label")
        console.print()
        for line in scatter(ranks, frequencies, width, PLOT_ROWS, titles, console.options.ascii_only):
            console.print(Text(line, no_wrap=True))


def _frequent(stats: Statistics) -> Table:
    rows: list[list[str | Text]] = [
        [Text(name, no_wrap=True, overflow="ellipsis"), *cells] for name, *cells in frequent_rows(stats)
    ]
    return _table(["most frequent labels", "examples", "of points"], rows)


def _duplicates(stats: Statistics) -> Table:
    caption = "folded: lower-cased, without digits and punctuation"
    return _table(["duplicates", "exact", "share", "folded", "share"], duplicate_rows(stats), caption)


def _longest(stats: Statistics, width: int) -> Table:
    """The longest texts; how they begin fills the width that the other columns leave."""
    rows = longest_rows(stats)
    table = _table(["longest", "row", "words", "characters"], ())
    taken = sum(
        max(len(str(column.header)), *map(len, cells)) + 3
        for column, cells in zip(table.columns, zip(*(row[:-1] for row in rows), strict=True), strict=True)
    )
    table.add_column("begins", no_wrap=True, max_width=max(min(width, WIDEST) - taken, 8))
    for *cells, start in rows:
        table.add_row(*cells, Text(start, overflow="ellipsis"))
    return table


def _table(header: Sequence[str], rows: Iterable[Sequence[str | Text]], caption: str | None = None) -> Table:
    """A light table: names in the first column, numbers to the right in the others."""
    table = light_table(show_edge=False, caption=caption, caption_justify="left", header_style="bold")
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else "left", no_wrap=bool(i))
    for row in rows:
        table.add_row(*row)
    return table
