"""Tables in Markdown files that are written from recorded results: what stands between two marks is replaced.

<!-- longtail reproduce writes: cascades man-seealso -->
…
<!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from longtail.core.errors import DataError, nearest
from longtail.evidence.bench import Bench
from longtail.evidence.choices import CORPORA, NEEDS, Choice, Measured, measured, of_peers
from longtail.evidence.network_tables import cascade_lines, dual_lines
from longtail.report.choose_table import choose_table
from longtail.store import disk

BEGIN = "<!-- longtail reproduce writes: {} -->"
END = "<!-- end -->"
MARKED = re.compile(rf"^{re.escape(BEGIN).replace(re.escape('{}'), '(.+?)')}\n(.*?)^{re.escape(END)}$", re.S | re.M)


def makers(bench: Bench) -> dict[str, Callable[[], list[str]]]:
    """The tables by name, each with the function that makes its lines."""
    made: dict[str, Callable[[], list[str]]] = {"what to choose": lambda: choose_lines(bench)}
    for corpus in ("debian-related", "man-seealso"):
        made[f"cascades {corpus}"] = lambda corpus=corpus: cascade_lines(bench, corpus)  # type: ignore[misc]
        made[f"dual encoders {corpus}"] = lambda corpus=corpus: dual_lines(bench, corpus)  # type: ignore[misc]
    return made


def rewritten(bench: Bench, text: str, where: str) -> str:
    """The text with every marked table made anew; refuses a name that no table has, and a text without marks."""
    known = makers(bench)

    def one(match: re.Match[str]) -> str:
        name = match[1]
        if name not in known:
            raise DataError(f"there is no table {name!r}.{nearest(name, known)}", where=where)
        return "\n".join([BEGIN.format(name), "", *known[name](), "", END])

    made, count = MARKED.subn(one, text)
    if not count:
        raise DataError(
            "there is no marked table",
            where=where,
            fix=f"put {BEGIN.format('what to choose')!r} and {END!r} on lines of their own; tables: {', '.join(known)}",
        )
    return made


def rewrite(bench: Bench, places: Sequence[Path]) -> None:
    """Rewrite the marked tables of these files; all are made before the first is written."""
    texts = {}
    for place in places:
        with disk.explained("read this file", place):
            texts[place] = rewritten(bench, place.read_text(encoding="utf-8"), str(place))
    for place, text in texts.items():
        disk.write_atomically(place, [text.encode()])


def choose_lines(bench: Bench) -> list[str]:
    """The table of what to choose when."""
    return choose_table(choose_groups(bench), CORPORA)


def choose_groups(bench: Bench) -> list[tuple[str, list[dict[str, Measured]]]]:
    """What one needs, and for each choice what is recorded on each corpus; other projects come last."""
    groups = [(need.says, [_on_all(bench, need.family, choice) for choice in need.choices]) for need in NEEDS]
    peers: dict[str, dict[str, Measured]] = {}
    for corpus in CORPORA:
        for found in of_peers(bench, corpus):
            peers.setdefault(found.title, {})[corpus] = found
    return [*groups, ("Other projects, on the same parts", list(peers.values()))]


def _on_all(bench: Bench, family: str, choice: Choice) -> dict[str, Measured]:
    found = {corpus: measured(bench, choice, family, corpus) for corpus in CORPORA}
    return {corpus: one for corpus, one in found.items() if one is not None}
