"""Curves of scores against training steps: a table of a few steps, and a picture as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from longtail.report import html, svg

if TYPE_CHECKING:  # for types only: evidence/ is above this folder
    from longtail.evidence.curves import Curve

ROWS = 8  # steps in a table
KEY = 26  # height of the line above the charts that names the curves


def curve_table(curves: Sequence[Curve], metrics: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: the metrics of all curves at a few steps that lie on all of them."""
    first, last = max(curve.steps[0] for curve in curves), min(curve.steps[-1] for curve in curves)
    steps = list(dict.fromkeys(round(first + i * (last - first) / (ROWS - 1)) for i in range(ROWS)))
    columns = ["step", *(f"{curve.title}, {metric}" for metric in metrics for curve in curves)]
    values = [curve.at(metric, steps) for metric in metrics for curve in curves]
    return columns, [[f"{step:,}", *(f"{own[i]:.2f}" for own in values)] for i, step in enumerate(steps)]


def curve_picture(curves: Sequence[Curve], metrics: Sequence[str]) -> str:
    """One chart for each metric, side by side, as SVG that needs no other file."""
    width, height = svg.WIDTH * len(metrics) + svg.RIGHT, svg.HEIGHT + KEY
    body = []
    for i, curve in enumerate(curves):
        x = svg.LEFT + i * svg.WIDTH / 2
        body.append(
            f'<path class="line-{i % 3}" d="M{x:g} 16h22"/><text x="{x + 28:g}" y="20">{escape(curve.title)}</text>'
        )
    for i, metric in enumerate(metrics):
        lines = [(curve.steps, curve.values[metric]) for curve in curves]
        chart = svg.svg_lines(lines, ("training steps", f"{metric} on validation, %"), metric)
        size = f'<svg overflow="visible" x="{i * svg.WIDTH}" y="{KEY}" width="{svg.WIDTH}" height="{svg.HEIGHT}" '
        body.append(chart.replace("<svg ", size, 1))
    label = f"{' and '.join(metrics)} against training steps: {', '.join(curve.title for curve in curves)}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(label)}">',
            f"<style>{html.written_out(svg.STYLE)}</style>",
            *body,
            "</svg>\n",
        ]
    )
