"""Pieces of plots, for the terminal and for pages: binning, ticks, a braille scatter, SVG charts.

SVG comes as a string without colours: elements carry classes (`axis`, `grid`, `dots`, `bar-0`, `bar-1`, …) that
the style sheet of the page colours, for light and dark alike.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_BINS = 40
LONG = 60  # lengths that mostly exceed this are binned by their logarithm


@dataclass(frozen=True)
class Histogram:
    """Counts of whole numbers: bin i holds those from `edges[i]` up to, not including, `edges[i + 1]`.

    With `more` the last bin holds all that lie above, too. With `log` the edges are evenly spaced in the
    logarithm, and `zeros` values of 0 stand in no bin.
    """

    edges: tuple[int, ...]
    counts: tuple[int, ...]
    log: bool = False
    more: bool = False
    zeros: int = 0

    def name(self, i: int) -> str:
        """The numbers of bin i: `7`, `10–14`, `≥ 60`."""
        low, high = self.edges[i], self.edges[i + 1] - 1
        if self.more and i == len(self.counts) - 1:
            return f"≥ {low:,}"
        return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def linear_bins(values: NDArray[np.integer]) -> Histogram:
    """At most 40 bins of equal width from 0, and one for the few that may lie above them."""
    if not len(values):
        return Histogram((0, 1), (0,))
    bulk, top = (int(value) for value in np.quantile(values, (0.98, 0.998)))
    width = next(w for w in _round_numbers() if bulk // w < MOST_BINS)
    bins = min(top // width + 1, MOST_BINS)
    more = int(values.max()) >= bins * width
    counts = np.bincount(np.minimum(values // width, bins), minlength=bins)
    return Histogram(tuple(range(0, (bins + more + 1) * width, width)), tuple(counts.tolist()), more=more)


def log_bins(values: NDArray[np.integer]) -> Histogram:
    """At most 30 bins of equal width in the logarithm, over the values of at least 1."""
    positive = values[values > 0]
    if not len(positive):
        return Histogram((1, 2), (0,), log=True, zeros=len(values))
    low, high = int(positive.min()), int(positive.max()) + 1
    # rounded to whole numbers, narrow bins would be of uneven width: eight numbers in a typical one are enough
    bins = int(np.clip(math.log(high / low) / math.log1p(8 / np.median(positive)), 1, 30))
    edges = np.unique(np.round(np.geomspace(low, high, bins + 1)).astype(np.int64))
    counts = np.histogram(positive, edges)[0]
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), log=True, zeros=len(values) - len(positive))


def length_bins(values: NDArray[np.integer]) -> Histogram:
    """Bins for lengths: by the logarithm, but one by one where nearly all are short (titles, names)."""
    long = len(values) and np.quantile(values, 0.995) > LONG
    return log_bins(values) if long else linear_bins(values)


def rank_curve(counts: NDArray[np.integer], points: int = 300) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rank (from 1) and count of the largest, second largest, … count above 0, at most `points` of them.

    The ranks are evenly spaced in the logarithm, with the first and the last among them.
    """
    falling = np.sort(counts[counts > 0])[::-1].astype(np.int64)
    if not len(falling):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ranks = np.unique(np.round(np.geomspace(1, len(falling), points)).astype(np.int64))
    return ranks, falling[ranks - 1]


def number(value: float) -> str:
    """A count or a mean for reading: thousands separated, as many decimals as matter."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0}f}"


def percent(share: float) -> str:
    """A share of 1 as a percentage."""
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def power(exponent: int, ascii: bool = False) -> str:
    """`10³`, or `10^3` where only ASCII can be shown."""
    return f"10^{exponent}" if ascii else "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def ticks(high: float, about: int = 5) -> list[float]:
    """Round numbers from 0 to at least `high`, about so many."""
    scale = 10.0 ** math.floor(math.log10(high / about)) if high > 0 else 1.0
    step = next(s for s in (scale, 2 * scale, 5 * scale, 10 * scale) if s * about >= high * 0.999)
    return [round(i * step, 10) for i in range(math.ceil(high / step - 1e-9) + 1)]


def decades(high: float) -> float:
    """Where a logarithmic axis from 1 ends, in powers of 10: a little above `high`, and above 10¹."""
    return max(math.log10(max(high, 1)) * 1.02, 1.02)


def scatter(
    x: NDArray[np.integer], y: NDArray[np.integer], width: int, height: int, titles: tuple[str, str], ascii: bool
) -> list[str]:
    """A log-log scatter as lines of text at most `width` wide, in braille dots (with `ascii` in stars).

    x and y are at least 1; `titles` are those of the axes.
    """
    columns = width - 6  # left of them: a tick label of four characters, a blank, the axis
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
    """Dots at places from 0 to 1, y upwards, on a field of characters: 2 × 4 dots in one, or with `ascii` one."""
    wide, tall = (1, 1) if ascii else (2, 4)
    across = np.round(x * (columns * wide - 1)).astype(int)
    down = np.round((1 - y) * (rows * tall - 1)).astype(int)
    field = np.zeros((rows, columns), np.int64)
    bits = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # of U+2800, by row and column
    np.bitwise_or.at(field, (down // tall, across // wide), bits[down % tall, across % wide])
    drawn = np.where(field == 0, ord(" "), ord("*") if ascii else 0x2800 + field)
    return ["".join(map(chr, line)) for line in drawn.tolist()]


# ---------------------------------------------------------------------------------------------------- SVG

WIDTH, HEIGHT = 440, 290
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 44


def svg_scatter(x: Sequence[int], y: Sequence[int], titles: tuple[str, str], label: str) -> str:
    """A log-log scatter."""
    x_end, y_end = decades(max(x, default=1)), decades(max(y, default=1))
    body = [_y_tick(e / y_end, f"10{_raised(e)}") for e in range(int(y_end) + 1)]
    body += [_x_tick(e / x_end, f"10{_raised(e)}") for e in range(int(x_end) + 1)]
    dots = (f"M{_across(math.log10(a) / x_end)} {_down(math.log10(b) / y_end)}h0" for a, b in zip(x, y, strict=True))
    body.append(f'<path class="dots" d="{"".join(dots)}"/>')
    return _figure(body, titles, label)


def svg_histogram(histogram: Histogram, titles: tuple[str, str], label: str) -> str:
    """Bars of the share of each bin; a tick stands under a bar that holds one number, else at its left edge."""
    edges, total = histogram.edges, max(sum(histogram.counts) + histogram.zeros, 1)
    shares = [count / total for count in histogram.counts]
    body, top = _share_axis(max(shares))
    if histogram.log:
        start, end = math.log10(edges[0]), math.log10(edges[-1])
        places = [(math.log10(e) - start) / (end - start) for e in edges]
        body += [_x_tick((math.log10(m) - start) / (end - start), f"{m:,}") for m in _log_marks(edges[0], edges[-1])]
    else:
        bins = len(histogram.counts)
        places = [i / bins for i in range(bins + 1)]
        one = edges[1] - edges[0] == 1
        last = bins - histogram.more  # the open bin has a label of its own
        every = next(step for step in _round_numbers() if bins / step <= 9)
        shown = [i for i in range(0, last, every) if not histogram.more or i + every / 2 <= last]
        body += [_x_tick(places[i] + one / (2 * bins), f"{edges[i]:,}") for i in shown]
        if histogram.more:
            body.append(_x_tick((last + 0.5) / bins, f"≥{edges[last]:,}"))
    for i, share in enumerate(shares):
        tip = f"{histogram.name(i)}: {histogram.counts[i]:,} ({percent(share)})"
        body.append(_bar(places[i], places[i + 1], share / top, 0, tip))
    return _figure(body, titles, label)


def svg_bars(
    names: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], titles: tuple[str, str], label: str
) -> str:
    """Groups of bars, one for each name, of several series of shares; the legend is the caption's."""
    body, top = _share_axis(max((value for _, values in series for value in values), default=0))
    slot = 1 / len(names)
    for i, name in enumerate(names):
        body.append(_x_tick((i + 0.5) * slot, name, mark=False))
        for j, (title, values) in enumerate(series):
            left = (i + 0.14 + 0.72 * j / len(series)) * slot
            tip = f"{name}: {percent(values[i])} of {title}"
            body.append(_bar(left, left + 0.72 * slot / len(series), values[i] / top, j, tip))
    return _figure(body, titles, label)


def _figure(body: Sequence[str], titles: tuple[str, str], label: str) -> str:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return "\n".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(label)}">',
            *body,
            f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
            f'<text class="title" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 6}">{html.escape(titles[0])}</text>',
            f'<text class="title" transform="translate(13 {middle:g}) rotate(-90)">{html.escape(titles[1])}</text>',
            "</svg>",
        ]
    )


def _share_axis(most: float) -> tuple[list[str], float]:
    marks = ticks(100 * most or 1)
    return [_y_tick(mark / marks[-1], f"{mark:g} %") for mark in marks], marks[-1] / 100


def _y_tick(place: float, text: str) -> str:
    y = _down(place)
    line = f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
    return f'{line}<text class="y" x="{LEFT - 6}" y="{y}" dy=".34em">{text}</text>'


def _x_tick(place: float, text: str, mark: bool = True) -> str:
    x, bottom = _across(place), HEIGHT - BOTTOM
    line = f'<path class="axis" d="M{x} {bottom}v4"/>' if mark else ""
    return f'{line}<text class="x" x="{x}" y="{bottom + 16}">{text}</text>'


def _bar(left: float, right: float, height: float, series: int, tip: str) -> str:
    x, y = _across(left), _down(height)
    gap = 0.6 if (right - left) * (WIDTH - LEFT - RIGHT) > 3 else 0
    size = f'width="{round(_across(right) - x - gap, 1):g}" height="{round(HEIGHT - BOTTOM - y, 1):g}"'
    return f'<rect class="bar-{series}" x="{x}" y="{y}" {size}><title>{html.escape(tip)}</title></rect>'


def _log_marks(low: int, high: int) -> list[int]:
    """1, 2, 5, 10, … between two numbers: only the powers of 10 over a wide range, even steps over a narrow one."""
    marks = [m for m in _round_numbers() if low <= m <= high]
    if len(marks) < 3:
        step = next(s for s in _round_numbers() if (high - low) / s <= 5)
        return list(range(-(-low // step) * step, high + 1, step))
    return [m for m in marks if str(m).startswith("1")] if len(marks) > 9 else marks


def _raised(exponent: int) -> str:
    return f'<tspan class="up" dy="-5">{exponent}</tspan>'


def _across(place: float) -> float:
    return round(LEFT + place * (WIDTH - LEFT - RIGHT), 1)


def _down(place: float) -> float:
    return round(HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM), 1)


def _round_numbers() -> list[int]:
    return [m * 10**d for d in range(12) for m in (1, 2, 5)]
