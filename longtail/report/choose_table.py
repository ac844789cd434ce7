"""What to choose when, in Markdown: a row for each recipe, grouped by need, and three columns for each corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from longtail.report.figures import duration, instant, memory
from longtail.report.markdown import table

if TYPE_CHECKING:  # for types only: evidence/ is above this folder
    from longtail.evidence.choices import Measured

Groups = Sequence[tuple[str, Sequence[Mapping[str, "Measured"]]]]  # what one needs → for each row: corpus → figures
PAIRS = (("P@1", "P@5"), ("PSP@1", "PSP@5"))


def choose_table(groups: Groups, corpora: Sequence[str]) -> list[str]:
    """The lines of the table."""
    return table(*choose_rows(groups, corpora))


def choose_rows(groups: Groups, corpora: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows. The best figure of each column is bold; a row without figures is left out."""
    columns = ["recipe"]
    for corpus in corpora:
        columns += [f"{corpus}: P@1 / 5", "PSP@1 / 5", "train, memory (one text)"]
    best = {(corpus, metric): value for corpus, metric, value in best_of(groups, corpora)}
    rows = []
    for says, members in groups:
        own = [row_of(member, corpora, best) for member in members if member]
        if own:
            rows += [[f"**{says}**", *[""] * (len(columns) - 1)], *own]
    return columns, rows


def best_of(groups: Groups, corpora: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """The highest value of each metric on each corpus, as it is shown."""
    for corpus in corpora:
        for metric in (metric for pair in PAIRS for metric in pair):
            values = [
                member[corpus].scores[metric]
                for _, members in groups
                for member in members
                if corpus in member and metric in member[corpus].scores
            ]
            if values:
                yield corpus, metric, round(max(values), 1)


def row_of(member: Mapping[str, Measured], corpora: Sequence[str], best: Mapping[tuple[str, str], float]) -> list[str]:
    """The cells of a recipe: its name, then for each corpus the scores, and what they cost."""
    cells = [name_of(member)]
    for corpus in corpora:
        found = member.get(corpus)
        if found is None:
            cells += ["–", "–", "–"]
            continue
        for pair in PAIRS:
            cells.append(" / ".join(figure(found.scores.get(m), best.get((corpus, m))) for m in pair))
        spent = [duration(found.seconds), *([] if found.megabytes is None else [memory(found.megabytes)])]
        told = "" if found.one_text is None else f" ({instant(found.one_text)})"
        cells.append(", ".join(spent) + told)
    return cells


def name_of(member: Mapping[str, Measured]) -> str:
    """The name of a row: a recipe as code, another project as it is."""
    some = next(iter(member.values()))
    name, _, rest = some.title.partition(" ")
    return some.title if some.family == "other project" else f"`{name}` {rest}".strip()


def use_rows(groups: Groups, corpora: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of what models cost in use; rows without such figures are left out."""
    columns = ["recipe"]
    for corpus in corpora:
        columns += [f"{corpus}: one text", "texts/s", "on disk"]
    rows = []
    for _, members in groups:
        for member in members:
            if any(found.one_text is not None for found in member.values()):
                cells = [cell for corpus in corpora for cell in use_of(member.get(corpus))]
                rows.append([name_of(member), *cells])
    return columns, rows


def use_of(found: Measured | None) -> list[str]:
    """Time of one text alone, texts a second, size on disk."""
    if found is None or found.one_text is None:
        return ["–", "–", "–"]
    speed = "–" if found.texts_a_second is None else f"{found.texts_a_second:,.0f}"
    return [instant(found.one_text), speed, "–" if found.on_disk is None else memory(found.on_disk)]


def figure(value: float | None, best: float | None) -> str:
    """A figure in percent, bold if it is the best."""
    if value is None:
        return "–"
    return f"**{value:.1f}**" if round(value, 1) == best else f"{value:.1f}"
