"""Shows an explanation on the terminal: for each label the words that speak for and against it, and its path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from longtail.core.explanation import Explanation, PathStep, Reason, Term, Voice

ON_PATH = 4  # words shown for each cluster on the path to a label


def explanation_page(explanation: Explanation, terms: int) -> Group:
    """For each label a table of at most `terms` words, and the path to it in each tree."""
    text = explanation.text or ""
    parts: list[Any] = [Text(text if len(text) < 100 else text[:100] + "…", style="bold")]
    spoken = any(reason.voices for reason in explanation.reasons)
    if not explanation.terms and not spoken:
        parts.append(Text("The model knows none of these words: the ranking depends on the biases alone."))
    if not explanation.reasons:
        parts.append(Text("The model suggests no label for this text."))
    for rank, reason in enumerate(explanation.reasons, 1):
        parts += [Text(), heading(rank, reason, explanation.kind)]
        if reason.voices:
            parts.append(voices_table(reason.voices))
        if not reason.paths:
            continue
        parts.append(words_table(reason.own, terms))
        several = len(reason.paths) > 1
        for number, path in enumerate(reason.paths, 1):
            if len(path.steps) > 1:
                parts += [Text(), path_table(path.steps, f" in tree {number}" if several else "")]
    if any(term.in_label for reason in explanation.reasons for term in shown_terms(reason, terms)):
        parts += [Text(), Text("* also occurs in the text of the label", style="dim")]
    return Group(*parts)


def shown_terms(reason: Reason, terms: int) -> list[Term]:
    """The terms of a label's own classifier that are shown; none where there is no classifier to show."""
    return foremost(reason.own.terms, terms)[0] if reason.paths else []


def voices_table(voices: Sequence[Voice]) -> Table:
    """What each member of an ensemble says of the label; the words below are those of the member that is marked."""
    made = plain_table("member", "share", "rank", "score")
    for voice in voices:
        name = f"{voice.member} (words below)" if voice.explains else voice.member
        own = ("–", "–") if voice.rank is None or voice.score is None else (str(voice.rank), shown_score(voice.score))
        made.add_row(escape(name), f"{100 * voice.share:.0f} %", *own)
    return made


def heading(rank: int, reason: Reason, kind: str) -> Text:
    """The label, its score, its text."""
    return Text.assemble(
        (f"{rank}. {reason.label}", "bold"), f"  {kind} {shown_score(reason.score)}", (f"  {reason.text or ''}", "dim")
    )


def words_table(step: PathStep, limit: int) -> Table:
    """The words for the label, those against it, and the bias; they add up to the margin."""
    made = plain_table("word", "value", "weight", "contribution")
    shown, left_out = foremost(step.terms, limit)
    for term in shown:
        numbers = f"{term.value:.3f}", signed(term.weight), signed(term.contribution)
        made.add_row(escape(term.term + " *" * term.in_label), *numbers, style=style_of(term.contribution))
    if left_out:
        made.add_row(f"({len(left_out):,} more)", "", "", signed(sum(term.contribution for term in left_out)))
    made.add_row("(bias)", "", "", signed(step.bias), style=style_of(step.bias))
    made.add_row("(margin)", "", "", signed(step.margin), style="bold")
    return made


def path_table(steps: Sequence[PathStep], where: str) -> Table:
    """The margins of the clusters from the root to the label, and the score of the path up to each of them."""
    made = plain_table(f"path{where}", "labels", "margin", "score", "main words")
    for step in steps:
        shown, left_out = foremost(step.terms, ON_PATH)
        words = [f"{term.term} {signed(term.contribution, 2)}" for term in shown] + ["…"] * bool(left_out)
        cells = step.node, f"{step.labels:,}", signed(step.margin), shown_score(step.score), escape(", ".join(words))
        made.add_row(*cells)
    return made


def plain_table(*columns: str) -> Table:
    """A light table; numbers to the right, words to the left."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i in (0, 4) else "right", overflow="fold")
    return made


def foremost(terms: Sequence[Term], limit: int) -> tuple[list[Term], list[Term]]:
    """The `limit` terms with the largest contributions by absolute value, in their order; and the other terms."""
    chosen = set(sorted(range(len(terms)), key=lambda i: -abs(terms[i].contribution))[:limit])
    return [terms[i] for i in sorted(chosen)], [term for i, term in enumerate(terms) if i not in chosen]


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign."""
    return f"{value:+.{digits}f}".replace("-", "−")


def shown_score(score: float) -> str:
    """A score with three decimals; very small ones in scientific notation."""
    return f"{score:.3f}" if abs(score) >= 0.0005 or score == 0 else f"{score:.1e}"


def style_of(contribution: float) -> str:
    """The style of a contribution: red if it is negative."""
    return "red" if contribution < 0 else ""
