"""The papers' tables as HTML: what was measured here in full ink, the papers' figures beside it in a lighter one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from longtail.report import html

if TYPE_CHECKING:  # for types only: evidence/ is above this folder
    from longtail.evidence.filled import Block, Filled, Panel
    from longtail.evidence.papers.table import PaperTable

WIDEST = 12  # columns of figures side by side
KINDS = {
    "here": "measured here",
    "paper": "the paper’s figures",
    "elsewhere": "the paper’s figures, another corpus",
}
COSTS = ("train h", "peak GB")  # figures of which the lowest is the best
STYLE = """
table.paper { font-size: .86rem; } .paper th, .paper td { padding-left: .75rem; }
.paper th:first-child, .paper td:first-child { padding-left: 0; min-width: 9rem; padding-right: .8rem;
  max-width: 21rem; position: sticky; left: 0; background: var(--paper); }
.paper thead tr:first-child th { border-bottom: 0; padding-right: .9rem; text-align: left; white-space: nowrap; }
.paper thead tr:first-child th span, .paper td span { display: block; font-weight: 400; color: var(--soft);
  font-size: .8rem; } .paper td span { font-size: .74rem; line-height: 1.25; overflow-wrap: anywhere; }
.paper .of-paper { color: var(--soft); } .paper .edge { border-left: 1px solid var(--rule); padding-left: .9rem; }
.paper .last { padding-right: .9rem; } .paper td.edge, .paper th.edge { padding-left: .9rem; }
.paper tr.of-paper td { color: var(--soft); }
@media (max-width: 34rem) { .paper td:first-child { min-width: 7rem; max-width: 8rem; }
  .paper td span { display: none; }  .paper.turned td span { display: block; } }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--soft); }
section > .wide, details > .wide { margin: .9rem 0 1.2rem; }
"""


def paper_table(filled: Filled, verdicts: Sequence[tuple[str, str]]) -> str:
    """One table of a paper: heading, its claims with their verdicts (HTML), panels, and a note."""
    table = filled.table
    claims = " · ".join(f'<a href="#{escape(id)}">{escape(id)}</a> {verdict}' for id, verdict in verdicts)
    parts = [f'<section id="{table.id}"><h3>{escape(table.source)}: {escape(table.says)}</h3>']
    parts.append(f'<p class="soft">{claims}</p>' if claims else "")
    if turned(table):
        parts.append(_turned(table, [block for panel in filled.panels for block in panel.blocks]))
    else:
        shown = [panel for panel in filled.panels if panel.measured]
        parts += [_panel(table, panel.rows, panel.blocks) for panel in shown]
        parts.append(_alone(table, [panel for panel in filled.panels if not panel.measured], bool(shown)))
    parts.append(f'<p class="soft">{escape(table.note)}</p>' if table.note else "")
    return "\n".join([*filter(None, parts), "</section>"])


def turned(table: PaperTable) -> bool:
    """Whether corpora are the rows: where there is one metric, or one system."""
    return len(table.metrics) == 1 or len(table.rows) == 1


def _alone(table: PaperTable, panels: Sequence[Panel], others: bool) -> str:
    """The paper's figures on corpora of which nothing was measured, folded away."""
    if not panels:
        return ""
    made, together = [], max(1, WIDEST // len(table.metrics))
    for start in range(0, len(panels), together):
        some = panels[start : start + together]
        rows = sorted({row for panel in some for row in panel.rows})
        made.append(_panel(table, rows, [block for panel in some for block in panel.blocks]))
    names = ", ".join(panel.blocks[0].corpus for panel in panels)
    says = f"The paper’s figures on {names}" if others else f"Nothing is recorded yet. The paper’s figures on {names}"
    return f"<details><summary>{escape(says)}</summary>{''.join(made)}</details>"


def _panel(table: PaperTable, rows: Sequence[int], blocks: Sequence[Block]) -> str:
    """Blocks side by side: a row for each system."""
    span = len(table.metrics)
    head = "".join(f'<th class="edge{_soft(block)}" colspan="{span}">{_head(block)}</th>' for block in blocks)
    names = "".join(
        f'<th class="{_classes(block, j)}">{escape(metric)}</th>'
        for block in blocks
        for j, metric in enumerate(table.metrics)
    )
    lines = []
    for row in rows:
        system = next((block.systems[row] for block in blocks if block.systems and block.systems[row]), "")
        cells = "".join(cell for block in blocks for cell in _cells(table, block, row))
        lines.append(f"<tr><td>{_titled(table.rows[row].title, system)}</td>{cells}</tr>")
    return html.grid("paper", [f"<tr><th></th>{head}</tr>", f"<tr><th></th>{names}</tr>"], lines)


def _cells(table: PaperTable, block: Block, row: int) -> Iterator[str]:
    for j, metric in enumerate(table.metrics):
        text = shown(block.figures[row][j], metric, block.decimals)
        best = block.kind == "here" and block.figures[row][j] == best_of(block, j, metric) and text != "–"
        yield f'<td class="{_classes(block, j)}">{f"<b>{text}</b>" if best else text}</td>'


def best_of(block: Block, column: int, metric: str) -> float | None:
    """The best figure of a column, where there are at least two."""
    found = [row[column] for row in block.figures if row[column] is not None]
    if len(found) < 2:
        return None
    return min(found) if metric in COSTS else max(found)  # type: ignore[type-var]


def _turned(table: PaperTable, blocks: Sequence[Block]) -> str:
    """A row for each corpus, a column for each system, or for each metric of the one system."""
    single = len(table.rows) == 1
    columns = list(table.metrics) if single else [row.title for row in table.rows]
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = []
    for block in blocks:
        values = block.figures[0] if single else [figures[0] for figures in block.figures]
        metrics = table.metrics if single else table.metrics * len(columns)
        cells = "".join(
            f"<td>{shown(value, metric, block.decimals)}</td>" for value, metric in zip(values, metrics, strict=True)
        )
        kind = ' class="of-paper"' if block.kind != "here" else ""
        lines.append(f"<tr{kind}><td>{_head(block)}</td>{cells}</tr>")
    title = "" if single else escape(table.metrics[0])
    return html.grid("paper turned", [f"<tr><th>{title}</th>{head}</tr>"], lines)


def _head(block: Block) -> str:
    """The name of a corpus, and whose figures these are."""
    told = [KINDS[block.kind]]
    if block.points is not None:
        told.append(f"{block.points:,} test points")
    if block.seeds:
        told.append(f"seed{'s' * (len(block.seeds) > 1)} {', '.join(map(str, block.seeds))}")
    return f"{escape(block.corpus)}<span>{', '.join(told)}</span>"


def _titled(title: str, system: str) -> str:
    return escape(title) + (f"<span>{escape(system)}</span>" if system else "")


def _classes(block: Block, column: int) -> str:
    at_edge = {0: "edge", len(block.figures[0]) - 1: "last"}
    return at_edge.get(column, "") + _soft(block)


def _soft(block: Block) -> str:
    return "" if block.kind == "here" else " of-paper"


def shown(value: float | None, metric: str, decimals: int = 2) -> str:
    """A figure as text; costs without zeros at the end."""
    if value is None:
        return "–"
    return f"{value:.2f}".rstrip("0").rstrip(".") if metric in COSTS else f"{value:.{decimals}f}"
