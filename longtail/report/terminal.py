"""Drawing in the terminal: light tables and a scatter plot made of braille dots."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table

from longtail.report.figures import decades, power


def light_table(**options: Any) -> Table:
    """An empty table with a line under its header and no frame; `options` go to `rich.table.Table`."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, **options)


def scatter(
    x: NDArray[np.integer], y: NDArray[np.integer], width: int, height: int, titles: tuple[str, str], ascii: bool
) -> list[str]:
    """A scatter plot with logarithmic axes as lines of text, at most `width` wide, in braille dots or ASCII stars.

    x and y (n,) are at least 1; `titles` name the axes.
    """
    columns = width - 6  # on their left: a tick label of four characters, a space, the axis
    x_end, y_end = decades(float(x.max(initial=1))), decades(float(y.max(initial=1)))
    rows = _dots(np.log10(x) / x_end, np.log10(y) / y_end, columns, height, ascii)
    side, tick, corner, rule, mark = "|++-+" if ascii else "│┤└─┬"
    y_ticks = {round((1 - e / y_end) * (height - 1)): power(e, ascii) for e in range(int(y_end) + 1)}
    lines = [titles[1]]
    for i, row in enumerate(rows):
        lines.append(f"{y_ticks.get(i, ''):>4} {tick if i in y_ticks else side}{row}".rstrip())
    axis, below = [rule] * columns, [" "] * columns
    for exponent in range(int(x_end) + 1):
        at = round(exponent / x_end * (columns - 1))
        axis[at] = mark
        text = power(exponent, ascii)
        start = min(at, columns - len(text))
        below[start : start + len(text)] = text
    return [*lines, f"     {corner}{''.join(axis)}", f"      {''.join(below)}".rstrip(), titles[0].rjust(width)]


def _dots(x: NDArray[np.floating], y: NDArray[np.floating], columns: int, rows: int, ascii: bool) -> list[str]:
    """Lines of characters with dots at x and y (n,) from 0 to 1; a character holds 2 × 4 dots, with `ascii` one."""
    wide, tall = (1, 1) if ascii else (2, 4)
    across = np.round(x * (columns * wide - 1)).astype(int)
    down = np.round((1 - y) * (rows * tall - 1)).astype(int)
    field = np.zeros((rows, columns), np.int64)
    bits = np.array(
        [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]]
    )  # bits of a braille character (U+2800 + bits), by row and column
    np.bitwise_or.at(field, (down // tall, across // wide), bits[down % tall, across % wide])
    drawn = np.where(field == 0, ord(" "), ord("*") if ascii else 0x2800 + field)
    return ["".join(map(chr, line)) for line in drawn.tolist()]
