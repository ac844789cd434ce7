"""`longtail inspect` in the terminal: compact tables and the frequencies of labels, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longtail.data.inspect.plots import number, percent, scatter
from longtail.data.inspect.statistics import Duplicates, FrequentLabel, PartStatistics, Spread, Statistics, printable

WIDEST = 100  # tables and the plot stay readable on a wide screen
PLOT_ROWS = 14
PLAIN = str.maketrans("–’…", "-'.")


def render(stats: Statistics, console: Console) -> None:
    """Print the statistics of a corpus; where the console can only show ASCII, in ASCII."""
    if console.options.ascii_only:
        with console.capture() as captured:
            _render(stats, console)
        console.file.write(captured.get().translate(PLAIN).encode("ascii", "replace").decode())
    else:
        _render(stats, console)


def _render(stats: Statistics, console: Console) -> None:
    console.print(Text(printable(stats.name), style="bold"))
    tables = [_parts(stats), _labels(stats), _groups(stats)]
    tables += [_frequent(stats)] if stats.frequent else []
    tables += [_duplicates(stats)] if stats.duplicates else []
    tables += [_longest(stats, console.width)] if stats.longest else []
    for i, table in enumerate(tables):
        console.print()
        console.print(table)
        if i == 2:
            _plot(stats, console)


def part_rows(parts: Sequence[PartStatistics]) -> list[tuple[str, list[str]]]:
    """The table of parts, a row a figure; rows that apply to no part, or would hold only zeros, are left out."""
    rows: list[tuple[str, Sequence[float | None], bool]] = [("points", [p.points for p in parts], True)]
    spreads: dict[str, list[Spread] | list[Spread | None]] = {
        "labels per point": [p.labels for p in parts],
        "words per point": [p.words for p in parts],
        "non-zeros per point": [p.nonzeros for p in parts],
    }
    for name, of_parts in spreads.items():
        for figure, field in (("mean", "mean"), ("median", "median"), ("most", "max")):
            rows.append((f"{name}, {figure}", [getattr(s, field, None) for s in of_parts], any(of_parts)))
    counts: dict[str, list[int] | list[int | None]] = {
        "feature columns": [p.columns for p in parts],
        "points without labels": [p.unlabelled for p in parts],
        "texts without a word": [p.empty for p in parts],
        "ignored pairs": [p.ignored for p in parts],
    }
    rows += [(name, values, any(values)) for name, values in counts.items()]
    shown = [(name, ["–" if v is None else number(v) for v in values]) for name, values, wanted in rows if wanted]
    if any(p.unseen is not None for p in parts):
        shown.append(("labels never seen in training", ["–" if p.unseen is None else number(p.unseen) for p in parts]))
        masses = ["–" if p.unseen_mass is None else percent(p.unseen_mass) for p in parts]
        shown.append(("their share of label occurrences", masses))
    return shown


def label_rows(stats: Statistics) -> list[list[str]]:
    """The label space: which labels, how many, and mean, median and most of their training examples."""
    every, occurring = (
        [number(value) for value in (s.mean, s.median, s.max)] for s in (stats.per_label_all, stats.per_label)
    )
    return [
        ["all", number(stats.labels), *every],
        ["with training examples", number(stats.labels_in_train), *occurring],
        ["without training examples", number(stats.labels_unseen), "", "", ""],
        ["with text", number(stats.labels_with_text), "", "", ""],
    ]


def duplicate_name(found: Duplicates) -> str:
    """What a row of duplicates counts."""
    if found.other == "earlier":
        return "training texts that equal an earlier one"
    part = "training" if found.part == "train" else found.part
    return f"{part} texts that equal a {'label’s' if found.other == 'labels' else 'training'} text"


def label_name(label: FrequentLabel) -> str:
    """Key and text; a text that begins with the key stands alone."""
    if not label.text or label.text.startswith(label.key):
        return printable(label.text or label.key)
    return printable(f"{label.key}  {label.text}")


def _parts(stats: Statistics) -> Table:
    table = _table("", *(p.part for p in stats.parts))
    for name, values in part_rows(stats.parts):
        table.add_row(name, *values)
    return table


def _labels(stats: Statistics) -> Table:
    table = _table("label space", "labels", "examples, mean", "median", "most")
    for row in label_rows(stats):
        table.add_row(*row)
    return table


def _groups(stats: Statistics) -> Table:
    test = any(g.test_share is not None for g in stats.groups)
    table = _table("training examples", "labels", "of labels", "of train", *(["of test"] if test else []))
    table.caption = f"of train{' and test' if test else ''}: share of the label occurrences there"
    for g in stats.groups:
        shares = [g.share, g.occurrence_share, *([] if g.test_share is None else [g.test_share])]
        table.add_row(g.name, number(g.labels), *map(percent, shares))
    return table


def _plot(stats: Statistics, console: Console) -> None:
    ranks, frequencies = (np.array(values, np.int64) for values in stats.curve)
    width = min(console.width, WIDEST) - 1
    if len(ranks) and width >= 30:
        titles = ("labels by rank of their frequency", "training examples of a label")
        console.print()
        for line in scatter(ranks, frequencies, width, PLOT_ROWS, titles, console.options.ascii_only):
            console.print(Text(line, no_wrap=True))


def _frequent(stats: Statistics) -> Table:
    table = _table("most frequent labels", "examples", "of points")
    for label in stats.frequent:
        name = Text(label_name(label), no_wrap=True, overflow="ellipsis")
        table.add_row(name, number(label.examples), percent(label.examples / max(stats.train.points, 1)))
    return table


def _duplicates(stats: Statistics) -> Table:
    table = _table("duplicates", "exact", "share", "folded", "share")
    table.caption = "folded: lower-cased, without digits and punctuation"
    for d in stats.duplicates:
        shares = [percent(count / max(d.points, 1)) for count in (d.exact, d.folded)]
        table.add_row(duplicate_name(d), number(d.exact), shares[0], number(d.folded), shares[1])
    return table


def _longest(stats: Statistics, width: int) -> Table:
    table = _table("longest", "row", "words", "characters")
    rows = [(t.part, number(t.row), number(t.words), number(t.characters)) for t in stats.longest]
    taken = sum(
        max(len(str(column.header)), *map(len, cells)) + 3
        for column, cells in zip(table.columns, zip(*rows, strict=True), strict=True)
    )
    table.add_column("begins", no_wrap=True, max_width=max(min(width, WIDEST) - taken, 8))
    for row, text in zip(rows, stats.longest, strict=True):
        table.add_row(*row, Text(text.start, overflow="ellipsis"))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, caption_justify="left", header_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
