"""What a paper's table is: systems × corpora × metrics with the figures that were published, and how it is filled "
"here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from longtail.evidence.claim import Arm
from longtail.evidence.trials import System

P, PSP, C = (tuple(f"{family}@{k}" for k in (1, 3, 5)) for family in ("P", "PSP", "C"))
ENDS = ("P@1", "P@5", "PSP@1", "PSP@5")
HOURS, GIGABYTES = "train h", "peak GB"  # figures that are not metrics: from a run's seconds and memory
RECALL = "recall "  # and a number: of the shortlist of a level, from coarse to fine
TEST_POINTS = {  # of the papers' test parts, where they say it (003, Table 1): other splits go by the same names
    "Eurlex-4K": 3865,
    "Wiki10-31K": 6616,
    "AmazonCat-13K": 306782,
    "Wiki-500K": 769421,
    "Amazon-670K": 153025,
    "Amazon-3M": 742507,
}
OURS_ALONE = ("curve", "dimension", "breadth")  # settings of our arms that say how a run is watched, or shrink it


@dataclass(frozen=True)
class Row:
    """A row: the paper's name for a system, and how it is trained.

    `paper` is the system on the paper's corpora, with the paper's settings, which are the recipe's defaults; None if
    longtail does not have it. `here` is the arm that stands for it on our own corpora.
    """

    title: str
    paper: System | None = None
    here: Arm | None = None

    def on(self, corpus: str, table: PaperTable, preset: str | None = None) -> System | None:
        """The system of this row on a corpus; `preset` goes before the paper's settings."""
        if corpus in table.beside:
            arm = None if self.here is None else self.here.on(corpus)
            return None if arm is None else arm.system
        return None if self.paper is None else replace(self.paper, preset=preset)


def like(title: str, arm: Arm) -> Row:
    """A row whose system is that of an arm of our claims: on the paper's corpora without preset and steps."""
    kept = tuple((key, value) for key, value in arm.system.settings if key not in OURS_ALONE)
    return Row(title, System(arm.system.recipe, kept), arm)


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper.

    `figures` has the table as printed: for each of the paper's corpora a line for each of `rows`, with a figure for
    each of `metrics`; `-` where the paper has none. `beside` says for each of our own corpora which of the paper's is
    most like it. `claims` are the claims about this table; `note` says how rows were filled here, and names known slips
    of the paper.
    """

    id: str
    source: str
    says: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    figures: Mapping[str, str]
    beside: Mapping[str, str]
    claims: tuple[str, ...] = ()
    note: str = ""

    @property
    def corpora(self) -> tuple[str, ...]:
        """The paper's corpora."""
        return tuple(self.figures)

    def printed(self, corpus: str) -> list[list[float | None]]:
        """The paper's figures on one of its corpora, row by row."""
        lines = [line.split() for line in self.figures[corpus].splitlines() if line.strip()]
        return [[None if figure == "-" else float(figure) for figure in line] for line in lines]

    def decimals(self, corpus: str) -> int:
        """How many decimals the paper's figures on a corpus have, apart from hours and gigabytes."""
        lines = [line.split() for line in self.figures[corpus].splitlines() if line.strip()]
        figures = [f for line in lines for f, m in zip(line, self.metrics, strict=True) if m not in (HOURS, GIGABYTES)]
        return max((len(figure.partition(".")[2]) for figure in figures), default=0)
