"""The charts of the page of results: bins of label frequency, shares of label texts, curves of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from longtail.report import html
from longtail.report.svg import svg_bars, svg_lines

if TYPE_CHECKING:  # for types only: evidence/ is above this folder
    from longtail.evidence.curves import Curve
    from longtail.evidence.table import SystemRuns


def keys(names: Sequence[str]) -> str:
    """The names of series, each behind the colour that it has."""
    return ", ".join(f'<span class="key bar-{i % 3}"></span> {escape(name)}' for i, name in enumerate(names))


def bin_chart(title: str, series: Sequence[tuple[str, SystemRuns]]) -> str:
    """What labels of different frequency contribute to P@5, from head to tail, for each of the systems."""
    first = series[0][1]
    k = first.records[0]["by_frequency"]["k"]
    bins = [i for i, row in enumerate(first.bins) if row["fewest"] is not None]
    names = [span(first.bins[i]) for i in bins]
    shares = []
    for name, pool in series:
        values = pool.of_bins("contribution")
        shares.append((f"P@{k}, {name}", [(values[i] or 0.0) / 100 for i in bins]))
    drawing = svg_bars(names, shares, ("training examples of the labels", f"part of P@{k}"), f"P@{k} by bin: {title}")
    return html.figure(drawing, f"<b>{escape(title)}.</b> {keys([name for name, _ in series])}.")


def span(row: Mapping[str, int]) -> str:
    """How many training examples the labels of a bin have."""
    return "0 alone" if row["most"] == 0 else f"{row['fewest']:,}–{row['most']:,}"


def share_chart(corpus: str, metric: str, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """A metric against the share of label texts that are training points; a line for each order of drawing them."""
    drawn = [([x for x, _ in points], [y for _, y in points]) for _, points in lines]
    titles = ("label texts used for training, %", f"{metric}, %")
    drawing = svg_lines(drawn, titles, f"{metric} against the share of label texts", from_zero=False, dots=True)
    return html.figure(drawing, f"<b>{escape(corpus)}, {metric}.</b> {keys([name for name, _ in lines])}.")


def curve_chart(corpus: str, metric: str, curves: Sequence[Curve]) -> str:
    """A metric on the validation part against training steps."""
    drawing = svg_lines(
        [(curve.steps, curve.values[metric]) for curve in curves],
        ("training steps", f"{metric} on validation, %"),
        f"{metric} against training steps",
    )
    return html.figure(drawing, f"<b>{escape(corpus)}, {metric}.</b> {keys([curve.title for curve in curves])}.")
