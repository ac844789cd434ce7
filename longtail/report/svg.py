"""Charts as SVG: scatter plots, lines, histograms and groups of bars.

A chart is a string without colours. Its elements have classes (`axis`, `grid`, `dots`, `line-0`, `bar-0`, …); the style
sheet in `html.py` gives these their colours, in light and in dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from longtail.data.inspect.bins import Histogram, round_numbers
from longtail.report.figures import decades, percent, ticks, ticks_between

WIDTH, HEIGHT = 440, 290
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 44
# What a picture in a file of its own has of the style sheet of pages
STYLE = """
svg { background: var(--paper); font-family: var(--sans); }
svg text { fill: var(--soft); font-size: 11px; } svg .title { fill: var(--ink); font-size: 12px; text-anchor: middle; }
svg .x { text-anchor: middle; } svg .y { text-anchor: end; } svg .axis { fill: none; stroke: var(--soft); }
svg .grid { stroke: var(--grid); } svg .line-0, svg .line-1, svg .line-2 { fill: none; stroke-width: 2; }
svg .line-0 { stroke: var(--c0); } svg .line-1 { stroke: var(--c1); } svg .line-2 { stroke: var(--c2); }
"""


def svg_scatter(x: Sequence[int], y: Sequence[int], titles: tuple[str, str], label: str) -> str:
    """A scatter plot with logarithmic axes; x and y are at least 1, `label` describes it for screen readers."""
    x_end, y_end = decades(max(x, default=1)), decades(max(y, default=1))
    body = [_y_tick(e / y_end, f"10{_raised(e)}") for e in range(int(y_end) + 1)]
    body += [_x_tick(e / x_end, f"10{_raised(e)}") for e in range(int(x_end) + 1)]
    dots = (f"M{_across(math.log10(a) / x_end)} {_down(math.log10(b) / y_end)}h0" for a, b in zip(x, y, strict=True))
    body.append(f'<path class="dots" d="{"".join(dots)}"/>')
    return _figure(body, titles, label)


def svg_lines(
    lines: Sequence[tuple[Sequence[float], Sequence[float]]],
    titles: tuple[str, str],
    label: str,
    *,
    from_zero: bool = True,
    dots: bool = False,
) -> str:
    """Lines through points (x, y), the x axis from 0; line number i has the class `line-i`.

    The y axis begins at 0 too, or with from_zero=False a little below the lowest point. `dots` marks the points.
    """
    x_marks = ticks(max((max(x, default=0) for x, _ in lines), default=0) or 1)
    heights = [value for _, y in lines for value in y] or [0.0]
    y_marks = ticks(max(heights) or 1) if from_zero else ticks_between(min(heights), max(heights))
    low, high = y_marks[0], y_marks[-1]
    body = [_y_tick((mark - low) / (high - low), f"{mark:g}") for mark in y_marks]
    body += [_x_tick(mark / x_marks[-1], f"{mark:,.0f}") for mark in x_marks]
    for i, (x, y) in enumerate(lines):
        points = [f"{_across(a / x_marks[-1])} {_down((b - low) / (high - low))}" for a, b in zip(x, y, strict=True)]
        body.append(f'<path class="line-{i % 3}" d="M{"L".join(points)}"/>')
        if dots:
            body.append(f'<path class="points-{i % 3}" d="{"".join(f"M{point}h0" for point in points)}"/>')
    return _figure(body, titles, label)


def svg_histogram(histogram: Histogram, titles: tuple[str, str], label: str) -> str:
    """A bar for the share of each bin; its tick is in the middle if the bin holds one number, else at the left edge."""
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
        last = bins - histogram.more  # the open bin gets a tick label of its own
        every = next(step for step in round_numbers() if bins / step <= 9)
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
    """A group of bars for each name, one bar for each series of shares; the caption must explain the colours."""
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
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">',
            *body,
            f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>',
            f'<text class="title" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 6}">{escape(titles[0])}</text>',
            f'<text class="title" transform="translate(13 {middle:g}) rotate(-90)">{escape(titles[1])}</text>',
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
    return f'<rect class="bar-{series}" x="{x}" y="{y}" {size}><title>{escape(tip)}</title></rect>'


def _log_marks(low: int, high: int) -> list[int]:
    """Ticks between two numbers: 1, 2, 5, 10, …; over a wide range powers of 10 only, over a narrow one even steps."""
    marks = [m for m in round_numbers() if low <= m <= high]
    if len(marks) < 3:
        step = next(s for s in round_numbers() if (high - low) / s <= 5)
        return list(range(-(-low // step) * step, high + 1, step))
    return [m for m in marks if str(m).startswith("1")] if len(marks) > 9 else marks


def _raised(exponent: int) -> str:
    return f'<tspan class="up" dy="-5">{exponent}</tspan>'


def _across(place: float) -> float:
    return round(LEFT + place * (WIDTH - LEFT - RIGHT), 1)


def _down(place: float) -> float:
    return round(HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM), 1)
