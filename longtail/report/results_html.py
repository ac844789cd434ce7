"""The page of results as HTML: verdicts, what to choose when, charts, and the papers' tables, filled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from longtail.report import html, paper_tables, quality_time
from longtail.report.quality_time import Dot, chart

if TYPE_CHECKING:  # for types only: evidence/ is above this folder
    from longtail.evidence.filled import Filled

Rows = tuple[Sequence[str], Sequence[Sequence[str]]]  # columns, rows
SIGNS = {
    "reproduced": ("yes", "✓"),
    "contradicted": ("no", "✗"),
    "not separable": ("open", "≈"),
    "mixed": ("open", "±"),
}
STYLE = f"""
h2 {{ font-size: 1.25rem; margin: 0 0 .6rem; }} h3 {{ font-size: 1rem; font-weight: 600; margin: 1.6rem 0 .2rem; }}
section > h3:first-child {{ margin-top: 2rem; }} section section {{ margin-top: 0; }}
nav {{ margin: 1.2rem 0 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }} a {{ color: var(--c0); }}
.verdict {{ white-space: nowrap; }} .yes {{ color: var(--c3); font-weight: 600; }}
.no {{ color: var(--c4); font-weight: 600; }} .open {{ color: var(--ink); }} .none {{ color: var(--soft); }}
.words td, .words th {{ text-align: left; white-space: normal; padding-left: 1rem; }}
.words tr > :first-child {{ padding-left: 0; }}
.choose {{ font-size: .82rem; }} .choose th, .choose td {{ padding-left: .8rem; }}
.choose td:nth-child(3n+1) {{ white-space: normal; }}
.choose tr > :first-child {{ padding-left: 0; position: sticky; left: 0; background: var(--paper); }}
.choose .need td {{ font-weight: 600; padding-top: .7rem; }} p {{ max-width: 46rem; }}
.pairs figure svg {{ max-width: 40rem; }}
{quality_time.STYLE}{paper_tables.STYLE}
@media (max-width: 34rem) {{ .verdicts tr > :nth-child(3), .verdicts tr > :nth-child(4) {{ display: none; }}
  .verdicts tr > :nth-child(2) {{ min-width: 9.5rem; }}
  .dots figure {{ overflow-x: auto; }} .dots figure svg {{ width: 31rem; max-width: none; }} }}
@page {{ margin: 1.3cm; }}
@media print {{ html, body {{ font-size: 11px; }} nav {{ display: none; }} section {{ margin-top: 1.4rem; }}
  .pairs {{ grid-template-columns: 1fr 1fr; gap: 1rem 1.5rem; margin-top: 1rem; }} .wide {{ overflow: visible; }}
  table {{ break-inside: auto; }} tr {{ break-inside: avoid; }} h2, h3, h3 + p {{ break-after: avoid; }}
  .paper th:first-child, .choose tr > :first-child {{ position: static; }} .verdict {{ white-space: normal; }}
  .paper th, .paper td, .choose th, .choose td {{ padding-left: .5rem; }} }}
"""


@dataclass(frozen=True)
class ResultsPage:
    """What the page shows; `charts` and `figures` are HTML already, by heading and remark."""

    verdicts: Rows
    choose: Rows
    use: Rows
    dots: Sequence[tuple[str, Sequence[tuple[str, Sequence[Dot]]]]]  # corpus → metric → dots
    charts: Sequence[tuple[str, str, str, Sequence[str]]]  # id, heading, remark, figures
    tables: Sequence[Filled]
    runs: Rows = ((), ())
    by_claim: Mapping[str, str] = field(default_factory=dict)  # the verdict of each claim, all in all


def results_html(page: ResultsPage) -> str:
    """The whole page; the same figures always give the same bytes."""
    links = [("verdicts", "Verdicts"), ("choose", "What to choose when")]
    links += [(id, heading) for id, heading, _, _ in page.charts]
    links += [("papers", "The papers’ tables"), ("runs", "What was run")]
    body = [
        "<h1>Results: what the papers claim, measured here</h1>",
        '<p class="soft">Figures are percentages on test parts, averaged over seeds. All arms of all claims, with '
        'differences and intervals, are in <a href="results.md">results.md</a>.</p>',
        "<nav>" + "".join(f'<a href="#{id}">{escape(heading)}</a>' for id, heading in links) + "</nav>",
        _section("verdicts", "Verdicts", [_verdicts(page.verdicts), f'<p class="soft">{PAPERS}</p>']),
        _section("choose", "What to choose when", [*_dots(page), _choose(page.choose), *_use(page.use)]),
        *(
            _section(id, heading, [f"<p>{remark}</p>", f'<div class="pairs">{"".join(figures)}</div>'])
            for id, heading, remark, figures in page.charts
            if figures
        ),
        _section("papers", "The papers’ tables", _papers(page)),
        _section("runs", "What was run", [html.table(*page.runs).replace("<table>", '<table class="words">')]),
    ]
    return html.page("Results of longtail", body, "longtail reproduce", STYLE)


def _section(id: str, heading: str, parts: Iterable[str]) -> str:
    return f'<section id="{id}"><h2>{escape(heading)}</h2>\n' + "\n".join(parts) + "\n</section>"


PAPERS = (
    "000, 001: Gandalf, Kharbanda et al. 2024, and Kharbanda’s thesis, 2024; 002: CascadeXML, Kharbanda et al. 2022; "
    "003: XR-Transformer, Zhang et al. 2021; 004: UniDEC, Kharbanda et al. 2024; T: table, F: figure."
)


def verdict(words: str) -> str:
    """A verdict with its sign, in its colour."""
    kind, sign = SIGNS.get(words, ("none", ""))
    return f'<span class="verdict {kind}">{sign}{" " if sign else ""}{escape(words)}</span>'


def _verdicts(rows: Rows) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    lines = []
    for id, *cells in rows[1]:
        words = "".join(f"<td>{escape(cell)}</td>" for cell in cells[:3])
        decided = "".join(f"<td>{verdict(cell)}</td>" for cell in cells[3:])
        lines.append(f'<tr id="{escape(id)}"><td>{escape(id)}</td>{words}{decided}</tr>')
    return html.grid("words verdicts", [f"<tr>{head}</tr>"], lines)


def _dots(page: ResultsPage) -> list[str]:
    families = {dot.family for _, charts in page.dots for _, dots in charts for dot in dots}
    if not families:
        return []
    told = quality_time.key_html(sorted(families))
    figures = [
        html.figure(chart(dots, metric, f"{metric} on {corpus}"), f"<b>{escape(corpus)}, {metric}.</b>")
        for corpus, charts in page.dots
        for metric, dots in charts
        if dots
    ]
    says = (
        "A dot is a recipe; the dashed line joins the best for the time. The time axis is logarithmic. What is far "
        "below the others is in the table alone."
    )
    return [f"<p>{says}</p><p>{told}</p>", f'<div class="pairs dots">{"".join(figures)}</div>']


def _choose(rows: Rows) -> str:
    """The table in which Markdown marks code and what is best."""
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    lines = []
    for first, *cells in rows[1]:
        if any(cells):
            others = "".join(f"<td>{inline(cell)}</td>" for cell in cells)
            lines.append(f"<tr><td>{inline(first)}</td>{others}</tr>")
        else:
            lines.append(f'<tr class="need"><td colspan="{len(rows[0])}">{inline(first)}</td></tr>')
    return html.grid("choose", [f"<tr>{head}</tr>"], lines)


def _use(rows: Rows) -> list[str]:
    """The table of what models cost in use, if there is something to show."""
    return [f"<h3>In use: one text alone, many at once, on disk</h3>{_choose(rows)}"] if rows[1] else []


def inline(text: str) -> str:
    """A cell of a Markdown table as HTML: bold and code; a number stays on one line with its unit."""
    made = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    made = re.sub(r"(\d) (?=(s|min|h|d|MB|GB|ms|µs)\b)", r"\1&nbsp;", made)
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", made)


def _papers(page: ResultsPage) -> list[str]:
    says = (
        "<p>The tables of the papers with longtail’s figures. <b>Dark</b> figures were measured here; "
        '<span class="soft">light</span> ones are the papers’ own. Where the corpus that was measured is not the '
        "paper’s, the two stand side by side for orientation: how rows differ from each other can be compared, the "
        "figures themselves cannot. Under a system’s name is what was trained. The papers’ corpora are measured where "
        "they are on disk: <code>longtail reproduce T1.3 --corpus LF-AmazonTitles-131K --data FOLDER</code>.</p>"
    )
    made = [says]
    for filled in page.tables:
        told = [(id, verdict(page.by_claim[id])) for id in filled.table.claims if id in page.by_claim]
        made.append(paper_tables.paper_table(filled, told))
    return made
