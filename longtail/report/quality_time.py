"""Quality against training time: charts of named dots with a logarithmic time axis, for pages and as one picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from longtail.report import html, svg
from longtail.report.figures import duration, ticks_between
from longtail.report.names import cut_name
from longtail.report.placing import Box, Place, place_names

WIDTH, HEIGHT = 470, 330
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 42
FAMILIES = ("default", "linear", "dual encoder", "cascade", "transformer", "other project")
MARKS = {  # the shape of a family's dots, around (0, 0)
    "default": "M0 -6L1.6 -1.9 5.7 -1.9 2.4 .8 3.5 4.9 0 2.5 -3.5 4.9 -2.4 .8 -5.7 -1.9 -1.6 -1.9Z",
    "linear": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "dual encoder": "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "cascade": "M0 -4.6L4.4 3.4H-4.4Z",
    "transformer": "M0 -5L4.6 0 0 5 -4.6 0Z",
    "other project": "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0",
}
LONGEST = 24  # characters of a name
ROUND = (0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 36000, 86400)  # seconds that get a tick
STYLE = """
svg .name { fill: var(--ink); font-size: 10.5px; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
svg .leader { stroke: var(--soft); stroke-width: .6; opacity: .7; }
svg .front { fill: none; stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 3 3; opacity: .8; }
svg .family-0 { fill: var(--c4); } svg .family-1 { fill: var(--c0); } svg .family-2 { fill: var(--c1); }
svg .family-3 { fill: var(--c3); } svg .family-4 { fill: var(--c5); }
.family { white-space: nowrap; margin-right: .8em; }
svg.mark { display: inline-block; width: .9em; height: .9em; vertical-align: -.1em; }
svg .family-5 { fill: var(--paper); stroke: var(--soft); stroke-width: 1.4; }
"""


@dataclass(frozen=True)
class Dot:
    """A system: its name, family, seconds of training, and a metric in percent; `about` is how it was trained."""

    name: str
    family: str
    seconds: float
    value: float
    about: str = ""


def chart(dots: Sequence[Dot], metric: str, label: str) -> str:
    """One chart: seconds of training to the right, the metric upwards, and the best for the time as a dashed line."""
    times, values = [dot.seconds for dot in dots], [dot.value for dot in dots]
    start, end = math.log10(max(min(times), 0.01) * 0.7), math.log10(max(times) * 1.4)
    marks = ticks_between(min(values), max(values))
    axis = Axes(start, end, marks[0], marks[-1])
    body = [axis.y_tick(mark) for mark in marks]
    body += [axis.x_tick(seconds) for seconds in ROUND if start <= math.log10(seconds) <= end]
    body.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    corners = front(dots, axis)
    body.append(f'<path class="front" d="M{"L".join(f"{x:g} {y:g}" for x, y in corners)}"/>')
    places = [(axis.across(dot.seconds), axis.down(dot.value)) for dot in dots]
    frame = Box(LEFT + 2, TOP - 8, WIDTH - 2, HEIGHT - BOTTOM - 2)
    named = place_names(tuple(places), tuple(short(dot.name) for dot in dots), frame, tuple(pairwise(corners)))
    body += [leader(at, place) for at, place in zip(places, named, strict=True)]
    body += [mark_of(dot, at) for dot, at in zip(dots, places, strict=True)]
    body += [name_of(dot, place) for dot, place in zip(dots, named, strict=True)]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return "\n".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">',
            *body,
            f'<text class="title" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 6}">training time</text>',
            f'<text class="title" transform="translate(12 {middle:g}) rotate(-90)">{escape(metric)}, %</text>',
            "</svg>",
        ]
    )


@dataclass(frozen=True)
class Axes:
    """Where a time and a value are in the chart: powers of ten of seconds, and percent, from low to high."""

    start: float
    end: float
    low: float
    high: float

    def across(self, seconds: float) -> float:
        """The x of a time."""
        share = (math.log10(max(seconds, 0.01)) - self.start) / (self.end - self.start)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def down(self, value: float) -> float:
        """The y of a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    def x_tick(self, seconds: float) -> str:
        """A tick of the time axis."""
        x, bottom = self.across(seconds), HEIGHT - BOTTOM
        line = f'<path class="grid" d="M{x} {TOP}V{bottom}"/><path class="axis" d="M{x} {bottom}v4"/>'
        return f'{line}<text class="x" x="{x}" y="{bottom + 16}">{duration(seconds)}</text>'

    def y_tick(self, value: float) -> str:
        """A tick of the value axis."""
        y = self.down(value)
        line = f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
        return f'{line}<text class="y" x="{LEFT - 6}" y="{y}" dy=".34em">{value:g}</text>'


def front(dots: Sequence[Dot], axis: Axes) -> list[tuple[float, float]]:
    """The corners of the line along the dots that no faster one reaches."""
    best = -math.inf
    corners: list[tuple[float, float]] = []
    for dot in sorted(dots, key=lambda dot: (dot.seconds, -dot.value)):
        if dot.value > best:
            x, y = axis.across(dot.seconds), axis.down(dot.value)
            corners += [*([(x, corners[-1][1])] if corners else []), (x, y)]
            best = dot.value
    return [*corners, (WIDTH - RIGHT, corners[-1][1])]


def mark_of(dot: Dot, at: tuple[float, float]) -> str:
    """The dot, with name and figures where the pointer rests."""
    tip = f"{dot.name}: {dot.value:.1f} % after {duration(dot.seconds)}" + (f" ({dot.about})" if dot.about else "")
    place = f'transform="translate({at[0]} {at[1]})"'
    family = FAMILIES.index(dot.family)
    return f'<path class="family-{family}" d="{MARKS[dot.family]}" {place}><title>{escape(tip)}</title></path>'


def leader(at: tuple[float, float], place: Place) -> str:
    """A thin line from a dot to a name that is not beside it."""
    if place.distance < 10:
        return ""
    x, y = place.box.nearest(*at)
    return f'<path class="leader" d="M{at[0]} {at[1]}L{x:.1f} {y:.1f}"/>'


def short(name: str) -> str:
    """A name as it is drawn; the whole name is where the pointer rests."""
    return cut_name(name, LONGEST)


def name_of(dot: Dot, place: Place) -> str:
    """The name of a dot."""
    x, y = (place.box.left + place.box.right) / 2, place.box.bottom - 2.5
    return f'<text class="name" text-anchor="middle" x="{x:.1f}" y="{y:.1f}">{escape(short(dot.name))}</text>'


def key(families: Sequence[str], x: float, y: float) -> str:
    """The line that says which mark is which family."""
    parts = []
    for family in (family for family in FAMILIES if family in families):
        parts.append(
            f'<path class="family-{FAMILIES.index(family)}" d="{MARKS[family]}" transform="translate({x:g} {y:g})"/>'
            f'<text class="name" x="{x + 10:g}" y="{y + 3.5:g}">{escape(family)}</text>'
        )
        x += 34 + 5.7 * len(family)
    return "".join(parts)


def key_html(families: Sequence[str]) -> str:
    """The same for a page."""
    told = []
    for family in (family for family in FAMILIES if family in families):
        mark = f'<path class="family-{FAMILIES.index(family)}" d="{MARKS[family]}"/>'
        told.append(
            f'<span class="family"><svg class="mark" viewBox="-7 -7 14 14">{mark}</svg> {escape(family)}</span>'
        )
    return " ".join(told)


def picture(charts: Sequence[tuple[str, Sequence[tuple[str, Sequence[Dot]]]]]) -> str:
    """The charts of several corpora, a row for each corpus and a column for each metric, as SVG that needs no file."""
    families = {dot.family for _, row in charts for _, dots in row for dot in dots}
    columns, tall, above = max(len(row) for _, row in charts), HEIGHT + 26, 34
    width, height = columns * WIDTH, above + len(charts) * tall
    body = [key(sorted(families), 24, 16)]
    for i, (corpus, row) in enumerate(charts):
        top = above + i * tall
        body.append(f'<text class="head" x="{LEFT}" y="{top + 12}">{escape(corpus)}</text>')
        for j, (metric, dots) in enumerate(row):
            size = f'<svg overflow="visible" x="{j * WIDTH}" y="{top + 18}" width="{WIDTH}" height="{HEIGHT}" '
            body.append(chart(dots, metric, f"{metric} on {corpus}").replace("<svg ", size, 1))
    style = html.written_out(f"{svg.STYLE}{STYLE}svg .head {{ fill: var(--ink); font-size: 13px; font-weight: 600; }}")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-label="Quality against training time of every recipe, corpus by corpus">',
            f"<style>{style}</style>",
            *body,
            "</svg>\n",
        ]
    )
