"""`longtail inspect --html`: one page with the figures and plots of a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from longtail.data.inspect.statistics import Statistics
from longtail.report import html
from longtail.report.corpus_rows import (
    duplicate_rows,
    frequent_rows,
    group_rows,
    has_test,
    label_rows,
    longest_rows,
    part_rows,
)
from longtail.report.figures import number, percent
from longtail.report.svg import svg_bars, svg_histogram, svg_scatter


def corpus_page(stats: Statistics) -> str:
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
    ]
    return html.page(stats.name, body, "longtail inspect")


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
    if has_test(stats):
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
    return html.figure(svg, f"<b>{name}</b> {caption}")


def _spread_words(mean: float, median: float, most: int) -> str:
    return f"Mean {number(mean)}, median {number(median)}, most {number(most)}."


def _figures(stats: Statistics) -> Iterator[str]:
    yield html.table(["", *(p.part for p in stats.parts)], ([n, *v] for n, v in part_rows(stats.parts)), "Parts")
    yield html.table(["", "labels", "examples, mean", "median", "most"], label_rows(stats), "Label space")
    test = has_test(stats)
    header = ["training examples", "labels", "share of labels", "of train", *(["of test"] if test else [])]
    caption = f"Of train{' and test' if test else ''}: share of the label occurrences there."
    yield html.table(header, group_rows(stats), "Labels by number of training examples", caption)
    if stats.duplicates:
        caption = "Folded: lower-cased, without digits and punctuation."
        yield html.table(["", "exact", "share", "folded", "share"], duplicate_rows(stats), "Duplicates", caption)


def _examples(stats: Statistics) -> Iterator[str]:
    if stats.frequent:
        yield html.table(["", "examples", "of points"], frequent_rows(stats), "Most frequent labels")
    if stats.longest:
        header = ["part", "row", "words", "characters", "begins"]
        yield html.table(header, longest_rows(stats), "Longest texts", "Rows count from 0.", text=4)
