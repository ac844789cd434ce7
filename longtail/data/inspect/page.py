"""`longtail inspect --html`: one page with the figures and plots of a corpus, for a browser or an appendix.

The page stands alone: no script, no font, no image from elsewhere. Whatever comes from the data is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from longtail.data.inspect.plots import number, percent, svg_bars, svg_histogram, svg_scatter
from longtail.data.inspect.statistics import Statistics
from longtail.data.inspect.terminal import duplicate_name, label_name, label_rows, part_rows

STYLE = """
:root { color-scheme: light dark; --ink: #1c1d21; --soft: #62656e; --rule: #d9dbe0; --grid: #ebecef;
  --paper: #ffffff; --c0: #2f5d8c; --c1: #d08c2e; --c2: #8fa9bf; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e7ea; --soft: #9da1ab; --rule: #3b3e46; --grid: #2b2d33;
  --paper: #17181b; --c0: #7fb0e0; --c1: #e2a957; --c2: #56697c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem 3rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 "Source Sans 3", "Helvetica Neue", "Segoe UI", Roboto, Arial, sans-serif;
  font-variant-numeric: tabular-nums lining-nums; }
h1 { font-size: 1.7rem; line-height: 1.2; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; font-weight: 600; margin: 0 0 .5rem; } section { margin-top: 2.2rem; }
.pairs section { margin: 0; }
p { margin: .3rem 0; } .soft, figcaption, footer { color: var(--soft); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(6rem, 1fr)); gap: 1rem 1.5rem;
  margin: 1.6rem 0 0; padding: 1.1rem 0; border: solid var(--rule); border-width: 1px 0; }
.figures div { display: flex; flex-direction: column-reverse; justify-content: flex-end; }
.figures dt { color: var(--soft); font-size: .85rem; line-height: 1.3; }
.figures dd { margin: 0; font-size: 1.45rem; line-height: 1.3; }
.pairs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 2rem 2.5rem;
  margin-top: 2.2rem; align-items: start; }
figure { margin: 0; } figcaption { font-size: .85rem; line-height: 1.4; margin-top: .3rem; }
figcaption b { color: var(--ink); font-weight: 600; }
svg { display: block; width: 100%; height: auto; max-width: 34rem; }
svg text { fill: var(--soft); font-size: 11px; } svg .title { fill: var(--ink); font-size: 12px; text-anchor: middle; }
svg .x { text-anchor: middle; } svg .y { text-anchor: end; } svg .up { font-size: 8px; }
svg .axis { fill: none; stroke: var(--soft); } svg .grid { stroke: var(--grid); }
svg .dots { stroke: var(--c0); stroke-width: 3.4; stroke-linecap: round; }
svg .bar-0 { fill: var(--c0); } svg .bar-1 { fill: var(--c1); } svg .bar-2 { fill: var(--c2); }
.key { display: inline-block; width: .7em; height: .7em; } .key.bar-0 { background: var(--c0); }
.key.bar-1 { background: var(--c1); } .key.bar-2 { background: var(--c2); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; } caption { caption-side: bottom; text-align: left;
  color: var(--soft); font-size: .85rem; padding-top: .45rem; }
th, td { padding: .22rem 0 .22rem 1.6rem; text-align: right; white-space: nowrap; vertical-align: top; }
th { font-weight: 600; white-space: normal; } thead th { border-bottom: 1px solid var(--rule); vertical-align: bottom; }
tbody tr:last-child td { border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { padding-left: 0; text-align: left; white-space: normal; }
.text { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 11rem; }
footer { margin-top: 3rem; font-size: .85rem; }
@media (max-width: 34rem) { th, td { padding-left: .8rem; } svg text { font-size: 12px; }
  svg .title { font-size: 13px; } table { font-size: .88rem; } }
@media print { body { max-width: none; padding: 0; } figure, table { break-inside: avoid; } }
"""


def page(stats: Statistics) -> str:
    """The page, as HTML."""
    about = " · ".join(escape(stats.about[key]) for key in ("kind", "licence") if key in stats.about)
    body = [
        f"<h1>{escape(stats.name)}</h1>",
        f'<p class="soft">{about}</p>' if about else "",
        _headline(stats),
        '<div class="pairs">',
        *_plots(stats),
        "</div>",
        '<div class="pairs">',
        *_figures(stats),
        "</div>",
        *_examples(stats),
        "<footer>Made by <code>longtail inspect</code>.</footer>",
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(stats.name)}</title><style>{STYLE}</style>"
    )
    content = "\n".join(line for line in body if line)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{content}\n</body>\n</html>\n'


def _headline(stats: Statistics) -> str:
    names = {"train": "training points", "dev": "validation points", "test": "test points"}
    figures = [(names[p.part], number(p.points)) for p in stats.parts]
    figures += [
        ("labels", number(stats.labels)),
        ("labels per point", number(stats.train.labels.mean)),
        ("points per label, mean / median", f"{number(stats.per_label.mean)} / {number(stats.per_label.median)}"),
    ]
    if stats.train.words is not None:
        figures.append(("words per point", number(stats.train.words.mean)))
    if stats.train.nonzeros is not None:
        figures.append(("features per point", number(stats.train.nonzeros.mean)))
    for part in stats.parts:
        if part.part == "test" and part.unseen_mass is not None:
            figures.append(("of test labels unseen in training", percent(part.unseen_mass)))
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return f'<dl class="figures">{items}</dl>'


def _plots(stats: Statistics) -> Iterator[str]:
    titles = ("rank of the label", "training examples")
    yield _plot(
        svg_scatter(*stats.curve, titles, "training examples of labels by rank, both axes logarithmic"),
        "Label frequencies.",
        f"{number(stats.labels_in_train)} labels with training examples, most frequent first.",
    )
    series = [
        ("labels", [g.share for g in stats.groups]),
        ("label occurrences in train", [g.occurrence_share for g in stats.groups]),
    ]
    if all(g.test_share is not None for g in stats.groups):
        series.append(("label occurrences in test", [g.test_share or 0.0 for g in stats.groups]))
    names = [g.name.replace(" ", "") for g in stats.groups]
    keys = ", ".join(f'<span class="key bar-{i}"></span> {name}' for i, (name, _) in enumerate(series))
    yield _plot(
        svg_bars(names, series, ("training examples of the label", "share"), "labels by number of training examples"),
        "Head and tail.",
        f"Share of {keys}, by the number of training examples of the label.",
    )
    yield _plot(
        svg_histogram(stats.labels_per_point, ("labels", "training points"), "histogram of labels per point"),
        "Labels per point.",
        _spread_words(stats.train.labels.mean, stats.train.labels.median, stats.train.labels.max),
    )
    size, of = ("words", stats.train.words) if stats.train.words else ("non-zero features", stats.train.nonzeros)
    if of is not None:
        empty = f" {number(stats.lengths.zeros)} without any, not shown." if stats.lengths.zeros else ""
        yield _plot(
            svg_histogram(stats.lengths, (size, "training points"), f"histogram of {size} per point"),
            f"{size.capitalize()} per point.",
            _spread_words(of.mean, of.median, of.max) + empty,
        )


def _plot(svg: str, name: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption><b>{name}</b> {caption}</figcaption></figure>"


def _spread_words(mean: float, median: float, most: int) -> str:
    return f"Mean {number(mean)}, median {number(median)}, most {number(most)}."


def _figures(stats: Statistics) -> Iterator[str]:
    yield _table("Parts", ["", *(p.part for p in stats.parts)], ([n, *v] for n, v in part_rows(stats.parts)))
    header = ["", "labels", "examples, mean", "median", "most"]
    yield _table("Label space", header, label_rows(stats))
    test = all(g.test_share is not None for g in stats.groups)
    header = ["training examples", "labels", "share of labels", "of train", *(["of test"] if test else [])]
    rows = [
        [g.name, number(g.labels), percent(g.share), percent(g.occurrence_share), *_maybe(g.test_share)]
        for g in stats.groups
    ]
    caption = f"Of train{' and test' if test else ''}: share of the label occurrences there."
    yield _table("Labels by number of training examples", header, rows, caption)
    if stats.duplicates:
        counted = ((d, max(d.points, 1)) for d in stats.duplicates)
        rows = [
            [duplicate_name(d), number(d.exact), percent(d.exact / n), number(d.folded), percent(d.folded / n)]
            for d, n in counted
        ]
        caption = "Folded: lower-cased, without digits and punctuation."
        yield _table("Duplicates", ["", "exact", "share", "folded", "share"], rows, caption)


def _examples(stats: Statistics) -> Iterator[str]:
    if stats.frequent:
        points = max(stats.train.points, 1)
        rows = [[label_name(x), number(x.examples), percent(x.examples / points)] for x in stats.frequent]
        yield _table("Most frequent labels", ["", "examples", "of points"], rows)
    if stats.longest:
        rows = [[t.part, number(t.row), number(t.words), number(t.characters), t.start] for t in stats.longest]
        header = ["part", "row", "words", "characters", "begins"]
        yield _table("Longest texts", header, rows, "Rows count from 0.", text=4)


def _table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", text: int | None = None
) -> str:
    """A table under a heading; column `text` holds running text."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = (' class="text"' if i == text else "" for i in range(len(cells)))
        return "<tr>" + "".join(f"<{tag}{k}>{escape(c)}</{tag}>" for c, k in zip(cells, kinds, strict=True)) + "</tr>"

    below = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "\n".join(line(row, "td") for row in rows)
    table = f"<table>{below}<thead>{line(header, 'th')}</thead>\n<tbody>{body}</tbody></table>"
    return f'<section><h2>{escape(title)}</h2>\n<div class="wide">{table}</div></section>'


def _maybe(share: float | None) -> list[str]:
    return [] if share is None else [percent(share)]
