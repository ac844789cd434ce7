"""Tables and figures on the terminal, and files that commands write."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console, Group
from rich.markup import escape
from rich.text import Text

from longtail.report.terminal import light_table

log = logging.getLogger("longtail")


class Output(Console):
    """Standard output. If it is not a terminal: without colours, and 160 wide unless COLUMNS is set."""

    def __init__(self) -> None:
        super().__init__(highlight=False)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = 160

    def on_broken_pipe(self) -> None:
        """Pass a closed pipe on to `main`, which does not treat it as an error."""
        raise BrokenPipeError


NAME = 12  # characters that the first column of a table keeps on a narrow terminal


def console() -> Console:
    """The console on which commands show their results."""
    return Output()


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Group:
    """A table under its title; columns of numbers are aligned to the right."""
    rows = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    made = light_table(show_header=any(columns))
    for i, name in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[i]) for row in rows)
        # on a narrow terminal many columns of numbers would leave nothing of the name in front of them
        least = min(NAME, max((len(row[i]) for row in rows), default=0)) if i == 0 else None
        made.add_column(name, justify="right" if numeric else "left", overflow="fold", min_width=least)
    for row in rows:
        made.add_row(*map(escape, row))
    return Group(
        *([] if title is None else [Text(title, style="bold")]), made
    )  # a title of the table itself would be wrapped


def number(value: Any) -> str:
    """A number with separated thousands, or with two decimals; – for None."""
    if isinstance(value, bool) or value is None:
        return "–" if value is None else str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def scores_table(scores: Mapping[str, float], title: str | None = None) -> Group:
    """A table with a row for each metric and a column for each k."""
    from longtail.metrics.measures import BY_LABEL, MEANS, RATIOS

    ks = sorted({int(name.partition("@")[2]) for name in scores})
    rows = [
        [f"{metric}@k", *(scores.get(f"{metric}@{k}") for k in ks)]
        for metric in (*MEANS, *RATIOS, *BY_LABEL, "ECE")
        if any(f"{metric}@{k}" in scores for k in ks)
    ]
    return table(["%", *(f"k={k}" for k in ks)], rows, title)


def calibration_table(calibration: Mapping[str, Any]) -> Group:
    """The calibration error before and after calibration."""
    before, after = calibration["before"], calibration["after"] or {}
    title = (
        f"Calibration: {calibration['method']}, {calibration['points']:,} points (after: cross-validated in five parts)"
    )
    rows = [["before", *before.values()], ["after", *(after.get(name) for name in before)]]
    return table(["%", *before], rows, title)


def cut_off_line(cut_off: Mapping[str, Any]) -> str:
    """Which labels a cut-off keeps, and how good they are on the validation part."""
    kept = f"Cut-off for {cut_off['rule']}: {cut_off['on']} of at least {cut_off['threshold']:.4g}"
    scores = cut_off["scores"]
    if scores is None:
        return kept
    figures = ", ".join(f"{name} {scores[name]:.1f}" for name in ("microP", "microR", "microF1"))
    return f"{kept}; {scores['labelsPerText']:.2f} labels per text, {figures}"


def cut_table(decision: Any, scores: Mapping[str, float]) -> Group:
    """The micro measures of the labels above the cut-off."""
    columns = ["micro precision", "micro recall", "micro F1", "labels per text"]
    cut, kind = decision.cut_off, "score" if decision.calibration is None else "probability"
    title = f"Above the cut-off for {cut.rule} (a {kind} of at least {cut.threshold:.4g}, at most {cut.most} labels)"
    return table(columns, [list(scores.values())], title)


def reliability_table(bins: Sequence[Any], k: int) -> Group:
    """For each bin of probabilities, the share of labels that are true."""
    columns = ["bin", "mean probability", "share of true labels", "labels"]
    figures = [[thousandths(row.probability), thousandths(row.rate), row.count] for row in bins]
    rows = [[f"{row.low:.2f}–{row.high:.2f}", *cells] for row, cells in zip(bins, figures, strict=True)]
    return table(columns, rows, f"Reliability of the {k} best labels")


def thousandths(value: float | None) -> str | None:
    """A probability with three decimals."""
    return None if value is None else f"{value:.3f}"


def size(count: int) -> str:
    """A number of bytes with its unit: 12.3 MB."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def dump(value: Any) -> str:
    """A value as JSON, on one line."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def write_output(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file under a temporary name and rename it, so that a failure does not damage an existing file."""
    from longtail.store import disk

    disk.write_atomically(path, chunks)
    log.info("wrote %s", path)


def _is_number(cell: str) -> bool:
    return bool(cell) and cell.lstrip("-+−").replace(",", "").replace(".", "").replace("–", "0").isdigit()
