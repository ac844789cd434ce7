"""`longtail graph --picture`: a label in the middle, its strongest neighbours around it, as SVG or as a page.

The SVG needs no other file and has a light and a dark mode. Neighbours are placed on an ellipse at even heights, so
that names never overlap. Text from the data is cut to the space available, and escaped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from longtail.core.labels import Labels
from longtail.report import html
from longtail.report.names import cut_name, full_name, short_name

if TYPE_CHECKING:  # for types only: labels/ is above this folder and fills in what is drawn here
    from longtail.labels.neighbourhood import Neighbour, Neighbourhood

WIDTH, STEP, MARGIN = 960, 42, 34  # width of the picture; height of a name; space above and below
ACROSS, LEAST_DOWN = 235, 110  # half axes of the ellipse; the vertical one grows with the number of neighbours
NAME, MIDDLE = 28, 24  # columns available for the name of a neighbour, and of the label in the middle
DEGREE_AT = 0.6  # where on a line its degree is written, from the middle (0) to the neighbour (1)
LETTER = 7.4  # width of a character of the name in the middle, a little more than needed
EDGES_EACH = 2  # at most this many edges between neighbours are drawn for each neighbour,
FAINT = 0.05  # and only those of at least this degree
LINES = """
svg text { fill: var(--ink); font: 13px var(--sans); }
svg .small { fill: var(--soft); font-size: 11px; }
svg .left { text-anchor: end; } svg .centre { text-anchor: middle; }
svg .degree { fill: var(--ink); font-size: 11px; text-anchor: middle; paint-order: stroke; stroke: var(--paper);
  stroke-width: 4px; stroke-linejoin: round; }
svg .spoke { stroke: var(--c0); stroke-linecap: round; } svg .among { fill: none; stroke: var(--c2); opacity: .55; }
svg .node { fill: var(--c0); stroke: var(--paper); stroke-width: 2px; }
svg .self { fill: var(--c0); } svg .self-name { fill: var(--paper); font-weight: 600; text-anchor: middle; }
"""
ALONE = html.written_out(f"svg {{ background: var(--paper); }}{LINES}")  # for a picture without a page around it


@dataclass(frozen=True)
class Place:
    """The place of a neighbour, relative to the middle; x < 0 is the left side."""

    x: float
    y: float

    @property
    def left(self) -> bool:
        return self.x < 0


def places(count: int) -> list[Place]:
    """Places for `count` neighbours, clockwise from the top right: down the right side, up the left side."""
    right = (count + 1) // 2
    down = half_height(count)
    found = []
    for side, number in ((1, right), (-1, count - right)):
        heights = [((i + 0.5) / number * 2 - 1) * (down - STEP / 4) for i in range(number)]
        found += [Place(side * ACROSS * math.sqrt(1 - (y / (down * 1.15)) ** 2), side * y) for y in heights]
    return found


def half_height(count: int) -> float:
    """The vertical half axis of the ellipse that leaves enough space for `count` names."""
    return max(LEAST_DOWN, (count + 1) // 2 * STEP / 2 + STEP / 4)


def drawing(labels: Labels, found: Neighbourhood, style: str = ALONE) -> str:
    """The picture as SVG; without `style` it is drawn for a page that has a style sheet and a caption."""
    height = 2 * (half_height(len(found.neighbours)) + MARGIN)
    at = {n.label: place for n, place in zip(found.neighbours, places(len(found.neighbours)), strict=True)}
    title = f"{full_name(labels, found.label)}: {len(found.neighbours)} of {found.found} neighbours"
    body = [*_among(labels, found, at), *_spokes(found, at)]
    body += [_neighbour(labels, n, at[n.label], found.points) for n in found.neighbours]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-WIDTH / 2:g} {-height / 2:g} {WIDTH} {height:g}" '
            f'role="img" aria-label="{escape(title)}">',
            f"<style>{style}</style>" if style else "",
            *body,
            _middle(labels, found),
            f'<text class="small centre" x="0" y="{height / 2 - 8:g}">{_caption(found)}</text>' if style else "",
            "</svg>\n",
        ]
    )


def _among(labels: Labels, found: Neighbourhood, at: dict[int, Place]) -> list[str]:
    """Edges between neighbours, as lines bent towards the middle."""
    drawn = [edge for edge in found.between if edge[2] >= FAINT][: EDGES_EACH * len(at)]
    lines = []
    for a, b, degree in drawn:
        p, q = at[a], at[b]
        bend = 0.75 if p.left == q.left else 0.3  # a line between two on the same side stays on that side
        x, y = bend * (p.x + q.x) / 2, bend * (p.y + q.y) / 2
        tip = f"{short_name(labels, a)} – {short_name(labels, b)}: {degree:.2f}"
        path = f"M{p.x:.1f} {p.y:.1f}Q{x:.1f} {y:.1f} {q.x:.1f} {q.y:.1f}"
        lines.append(f'<path class="among" stroke-width="{_thick(degree):.1f}" d="{path}">{_tip(tip)}</path>')
    return lines


def _spokes(found: Neighbourhood, at: dict[int, Place]) -> list[str]:
    """Lines from the middle to the neighbours, then the degrees, which are drawn over all lines."""
    most = max((n.degree for n in found.neighbours), default=1.0)
    lines, degrees = [], []
    for n in found.neighbours:
        place, share = at[n.label], n.degree / most if found.kind == "walk" else n.degree
        size = f'x2="{place.x:.1f}" y2="{place.y:.1f}" stroke-width="{_thick(share):.1f}"'
        lines.append(f'<line class="spoke" x1="0" y1="0" {size}/>')
        text = f"{n.degree:.0f}" if found.kind == "walk" else f"{n.degree:.2f}"
        x, y = DEGREE_AT * place.x, DEGREE_AT * place.y
        degrees.append(f'<text class="degree" x="{x:.1f}" y="{y:.1f}" dy=".34em">{text}</text>')
    return lines + degrees


def _neighbour(labels: Labels, n: Neighbour, place: Place, points: int) -> str:
    """A neighbour: a dot, its name, and its figures below the name."""
    radius = 4 + 1.3 * math.log10(max(n.points, 1))
    x = place.x + (-1 if place.left else 1) * (radius + 7)
    side = " left" if place.left else ""
    both = f"P[i|j] {n.forward:.3f}, P[j|i] {n.backward:.3f}"
    tip = f"{full_name(labels, n.label)}: {n.shared:,} of {points:,} points, {both}"
    below = f"{n.shared:,} shared of {n.points:,}"
    return (
        f'<g>{_tip(tip)}<circle class="node" cx="{place.x:.1f}" cy="{place.y:.1f}" r="{radius:.1f}"/>'
        f'<text class="name{side}" x="{x:.1f}" y="{place.y - 2:.1f}">{_text(short_name(labels, n.label), NAME)}</text>'
        f'<text class="small{side}" x="{x:.1f}" y="{place.y + 12:.1f}">{below}</text></g>'
    )


def _middle(labels: Labels, found: Neighbourhood) -> str:
    """The label itself, on a box that covers the ends of the lines."""
    name = cut_name(short_name(labels, found.label), MIDDLE)
    wide = max(len(name), 10) * LETTER + 24
    points = f"{found.points:,} point{'' if found.points == 1 else 's'}"
    return (
        f"<g>{_tip(full_name(labels, found.label))}"
        f'<rect class="self" x="{-wide / 2:.1f}" y="-20" width="{wide:.1f}" height="40" rx="10"/>'
        f'<text class="self-name" x="0" y="-2">{escape(name)}</text>'
        f'<text class="self-name" style="font: 11px inherit; font-weight: 400" x="0" y="13">{points}</text></g>'
    )


def _thick(share: float) -> float:
    return 1 + 7 * min(max(share, 0.0), 1.0)


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _text(name: str, width: int) -> str:
    return escape(cut_name(name, width))


WORDS = {
    "counts": "how often the neighbour occurs where the label does, P[i|j]",
    "symmetric": "½(P[i|j] + P[j|i])",
    "walk": "how often a random walk from the label visited the neighbour",
}


def picture_page(labels: Labels, found: Neighbourhood, corpus: str) -> str:
    """A page with the picture and a table of the figures, as HTML."""
    name = full_name(labels, found.label)
    header = ["neighbour i", "degree", "P[i|j]", "P[j|i]", "shared", "points"]
    rows = ([full_name(labels, n.label), *_cells(n, found.kind)] for n in found.neighbours)
    body = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="soft">{found.points:,} training points in {escape(corpus)}</p>',
        html.figure(drawing(labels, found, style=""), _caption(found)),
        html.table(header, rows),
    ]
    return html.page(name, body, "longtail graph", f"{LINES}svg {{ max-width: none !important; }}")


def _caption(found: Neighbourhood) -> str:
    if not found.neighbours:
        return "No neighbours."
    return (
        f"{len(found.neighbours):,} of {found.found:,} neighbours, clockwise from the top right, strongest first. "
        f"On the lines: {WORDS[found.kind]}. Pale: edges between neighbours."
    )


def _cells(n: Neighbour, kind: str) -> list[str]:
    degree = f"{n.degree:.0f}" if kind == "walk" else f"{n.degree:.3f}"
    return [degree, f"{n.forward:.3f}", f"{n.backward:.3f}", f"{n.shared:,}", f"{n.points:,}"]
