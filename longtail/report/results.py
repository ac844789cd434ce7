"""The page of results (docs/results.md) in Markdown: the same outcomes always give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from longtail.report.markdown import row, table

if TYPE_CHECKING:  # for types only: evidence/ is above this folder and decides what is written here
    from longtail.evidence.claims import Claim
    from longtail.evidence.judge import Spread
    from longtail.evidence.reproduce import Decided, Outcome
    from longtail.evidence.table import Pool

SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "C@1", "C@3", "C@5")
HEAD = """# Results: what the papers claim, measured here

<!-- Written by `longtail reproduce` from the lines in `bench/results/`; changes by hand are lost. -->

    longtail reproduce {ids}{seeds} --data FOLDER    # runs what is missing, then writes this page
    longtail reproduce{seeds} --from-results    # writes it from what is recorded, byte for byte

FOLDER holds the corpora that are not in the package, each in a folder of its name. How it works, and how to add a
claim: [evidence.md](evidence.md).

A claim relates trainings on the same data that differ in nothing but the settings shown. Figures are percentages on the
test part, means over the seeds that a claim names. A difference is first arm − second (of a series: last − first), with
the 95 % interval of a paired bootstrap over test points, 10,000 resamples, the seeds averaged point by point before.
Shortlist recall is the share of what is true that a network scores at all.

| kind | reproduced | contradicted |
| --- | --- | --- |
| ahead | the interval lies above zero on every metric named | it lies below zero on one |
| equal | the interval lies within ±0.5 points (or what is said) on every metric | it lies wholly outside on one |
| trend | the ends of the series are ordered as claimed on every metric | they are ordered the other way on one |
| tail | every bin of label frequency gains, the last relatively most | a bin loses, or another gains relatively more |
| faster | time ratio below 1 and P@1 not lower by more than 0.5 | otherwise |
| level | reported, not judged | |

What is neither is *not separable*. A claim of several parts holds where all of them do, and is contradicted where one
is; where corpora disagree it is *mixed*.
"""


Table = tuple[list[str], list[list[str]]]  # columns, rows


def results_page(outcomes: Sequence[Outcome], verdicts: Table, seeds: Sequence[int] | None = None) -> str:
    """The whole page.

    `verdicts` is the table of `evidence.reproduce.verdict_table`; `seeds` are the seeds the user asked for, None for
    the claims' own.
    """
    claims = list(dict.fromkeys(outcome.claim for outcome in outcomes))
    ids = " ".join(claim.id for claim in claims)
    asked = "" if seeds is None else f" --seeds {' '.join(map(str, seeds))}"
    lines = [HEAD.format(ids=ids, seeds=asked), "## Verdicts", "", *overview(*verdicts), ""]
    lines += ["## What was run", "", *corpora(outcomes), ""]
    for claim in claims:
        lines += section(claim, [outcome for outcome in outcomes if outcome.claim is claim])
    return "\n".join(lines).rstrip("\n") + "\n"


def overview(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The table of verdicts, the last column in bold."""
    bold = [[*cells[:-1], f"**{cells[-1]}**"] for cells in rows]
    return table(columns, bold)


def corpora(outcomes: Sequence[Outcome]) -> list[str]:
    """The table of corpora, machines and versions of the runs behind the verdicts."""
    lines = ["| corpus | digest | test points | runs | machine | versions |", "| --- | --- | --- | --- | --- | --- |"]
    for name in dict.fromkeys(outcome.corpus for outcome in outcomes):
        records = {
            record["id"]: record
            for outcome in outcomes
            if outcome.corpus == name
            for pool in outcome.pools.values()
            for record in pool.records
        }
        if records:
            some = next(iter(records.values()))
            machines = sorted({machine(record) for record in records.values()})
            versions = sorted({code(record) for record in records.values()})
            cells = [name, some["corpus"]["digest"][:12], f"{some['points']:,}", str(len(records))]
            lines.append(row([*cells, "; ".join(machines), "; ".join(versions)]))
        else:
            lines.append(row([name, "–", "–", "0", "–", "–"]))
    return lines


def machine(record: dict[str, Any]) -> str:
    """The machine of a run, as text."""
    of = record["machine"]
    return f"{of['cpu']}, {of['cores']} cores, {of['threads']} thread{'s' * (of['threads'] != 1)}"


def code(record: dict[str, Any]) -> str:
    """The package versions of a run, as text."""
    return ", ".join(f"{name} {version}" for name, version in record["versions"].items() if name != "commit")


def section(claim: Claim, outcomes: Sequence[Outcome]) -> list[str]:
    """The section of one claim: for each corpus the verdict, the arms and the differences."""
    lines = [f"## {claim.id}: {claim.says}", "", f"{claim.paper}; {claim.kind}; {seeds_of(claim)}.", ""]
    for outcome in outcomes:
        lines += [f"### {claim.id} on {outcome.corpus}: {outcome.verdict}", ""]
        if outcome.note:
            lines += [outcome.note, ""]
        if outcome.pools:
            lines += [*arms(outcome), ""]
        decided = [part for part in outcome.parts if part.rows]
        if decided:
            lines += [*differences(decided), ""]
    return lines


def seeds_of(claim: Claim) -> str:
    """The seeds of a claim, as text."""
    return f"seed{'s' * (len(claim.seeds) != 1)} {', '.join(map(str, claim.seeds))}"


def arms(outcome: Outcome) -> list[str]:
    """The table of the arms of a claim with their figures."""
    extra = [m for part in outcome.claim.parts for m in part.metrics if m not in SHOWN]
    metrics = [*SHOWN, *dict.fromkeys(extra)]
    rows, systems = [], [arm.system for arm in outcome.claim.arms]
    for arm in outcome.claim.arms:
        pool = outcome.pools.get(arm.system)
        cells = ["–"] * (len(metrics) + 2) if pool is None else figures(pool, metrics)
        rows.append([arm.title, f"`{arm.system}`", *cells])
    columns = ["arm", "trained by", *metrics, "train s", "peak MB"]
    recalls = [None if pool is None else pool.mean("shortlist_recall") for pool in map(outcome.pools.get, systems)]
    if any(recall is not None for recall in recalls):
        columns.append("shortlist recall")
        rows = [
            [*cells, "–" if recall is None else f"{recall:.2f}"] for cells, recall in zip(rows, recalls, strict=True)
        ]
    return table(columns, rows)


def figures(pool: Pool, metrics: Sequence[str]) -> list[str]:
    """The figures of an arm, then its training time and peak memory."""
    seconds, memory = pool.mean("seconds", "train"), pool.mean("peak_mb")
    costs = ["–" if seconds is None else f"{seconds:.1f}", "–" if memory is None else f"{memory:,.0f}"]
    return [*(f"{pool.figure(metric):.2f}" for metric in metrics), *costs]


def differences(parts: Sequence[Decided]) -> list[str]:
    """The table of the differences that a verdict is based on."""
    rows = []
    for decided in parts:
        for i, spread in enumerate(decided.rows):
            first = [decided.part.says, decided.part.kind] if i == 0 else ["", ""]
            note = f" ({decided.note})" if decided.note else ""
            last = decided.verdict + note if i == 0 else ""
            rows.append([*first, spread.metric, f"{spread.difference:+.2f}", interval(spread), last])
    return table(["part", "kind", "metric", "difference", "95 % interval", "verdict"], rows)


def interval(spread: Spread) -> str:
    """The interval of a difference as text, or a dash if there is none."""
    return "–" if spread.low is None or spread.high is None else f"{spread.low:+.2f} … {spread.high:+.2f}"
