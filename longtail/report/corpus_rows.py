"""The tables of `longtail inspect` as rows of text, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.data.inspect.statistics import Duplicates, PartStatistics, Spread, Statistics
from longtail.report.figures import number, percent
from longtail.report.names import key_and_text


def part_rows(parts: Sequence[PartStatistics]) -> list[tuple[str, list[str]]]:
    """The table of parts, one figure in each row: its name and a cell for each part.

    Rows that apply to no part, or hold only zeros, are left out.
    """
    rows: list[tuple[str, Sequence[float | None], bool]] = [("points", [p.points for p in parts], True)]
    spreads: dict[str, list[Spread] | list[Spread | None]] = {
        "labels per point": [p.labels for p in parts],
        "words per point": [p.words for p in parts],
        "non-zeros per point": [p.nonzeros for p in parts],
    }
    for name, of_parts in spreads.items():
        for figure, field in (("mean", "mean"), ("median", "median"), ("most", "max")):
            rows.append((f"{name}, {figure}", [getattr(s, field, None) for s in of_parts], any(of_parts)))
    counts: dict[str, list[int] | list[int | None]] = {
        "feature columns": [p.columns for p in parts],
        "points without labels": [p.unlabelled for p in parts],
        "texts without a word": [p.empty for p in parts],
        "ignored pairs": [p.ignored for p in parts],
    }
    rows += [(name, values, any(values)) for name, values in counts.items()]
    shown = [(name, ["–" if v is None else number(v) for v in values]) for name, values, wanted in rows if wanted]
    if any(p.unseen is not None for p in parts):
        shown.append(("labels never seen in training", ["–" if p.unseen is None else number(p.unseen) for p in parts]))
        masses = ["–" if p.unseen_mass is None else percent(p.unseen_mass) for p in parts]
        shown.append(("their share of label occurrences", masses))
    return shown


def label_rows(stats: Statistics) -> list[list[str]]:
    """The label space: which labels, how many, and the mean, median and maximum of their training examples."""
    every, occurring = (
        [number(value) for value in (s.mean, s.median, s.max)] for s in (stats.per_label_all, stats.per_label)
    )
    return [
        ["all", number(stats.labels), *every],
        ["with training examples", number(stats.labels_in_train), *occurring],
        ["without training examples", number(stats.labels_unseen), "", "", ""],
        ["with text", number(stats.labels_with_text), "", "", ""],
    ]


def has_test(stats: Statistics) -> bool:
    """Whether label groups have a share of the test part."""
    return all(group.test_share is not None for group in stats.groups)


def group_rows(stats: Statistics) -> list[list[str]]:
    """Labels by their number of training examples: how many, and their shares of labels, train and test."""
    rows = []
    for group in stats.groups:
        shares = [group.share, group.occurrence_share, *([] if group.test_share is None else [group.test_share])]
        rows.append([group.name, number(group.labels), *map(percent, shares)])
    return rows


def frequent_rows(stats: Statistics) -> list[list[str]]:
    """The most frequent labels: name, training examples, share of the training points."""
    points = max(stats.train.points, 1)
    return [
        [key_and_text(label.key, label.text), number(label.examples), percent(label.examples / points)]
        for label in stats.frequent
    ]


def duplicate_rows(stats: Statistics) -> list[list[str]]:
    """Texts that occur twice: what is counted, then number and share of exact and of folded duplicates."""
    rows = []
    for found in stats.duplicates:
        counts = [[number(count), percent(count / max(found.points, 1))] for count in (found.exact, found.folded)]
        rows.append([duplicate_name(found), *counts[0], *counts[1]])
    return rows


def duplicate_name(found: Duplicates) -> str:
    """What a row of duplicates counts, in words."""
    if found.other == "earlier":
        return "training texts that equal an earlier one"
    part = "training" if found.part == "train" else found.part
    return f"{part} texts that equal a {'label’s' if found.other == 'labels' else 'training'} text"


def longest_rows(stats: Statistics) -> list[list[str]]:
    """The longest texts: part, row, words, characters, how the text begins."""
    return [[t.part, number(t.row), number(t.words), number(t.characters), t.start] for t in stats.longest]
