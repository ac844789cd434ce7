"""The page of results (docs/results.md) in Markdown: the same outcomes always give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longtail.report.curves import curve_table
from longtail.report.markdown import table

if TYPE_CHECKING:  # for types only: evidence/ is above this folder and decides what is written here
    from longtail.evidence.claim import Claim
    from longtail.evidence.judge import ArmDifference
    from longtail.evidence.reproduce import Decided, Outcome
    from longtail.evidence.table import SystemRuns

SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "C@1", "C@3", "C@5")
HEAD = """# Results: what the papers claim, measured here

<!-- Written by `longtail reproduce` from the lines in `bench/results/`; changes by hand are lost. -->

    longtail reproduce {ids}{seeds} --data FOLDER    # makes the missing runs, then writes this page
    longtail reproduce{seeds} --from-results    # writes this page from the recorded results alone

FOLDER contains the corpora that are not in the package, each in a folder of its own name. [evidence.md](evidence.md)
explains how the harness works and how to add a claim.

A claim compares trainings (its arms) on the same data that differ only in the settings shown. Figures are percentages
on the test part, averaged over the seeds. A difference is the first arm minus the second (for a series: the last minus
the first). Its 95 % interval comes from a paired bootstrap over test points with 10,000 resamples, after the seeds have
been averaged for each point. Shortlist recall is the share of the true labels that a network scores at all.

| kind | reproduced | contradicted |
| --- | --- | --- |
| ahead | the interval is above zero for every metric of the claim | it is below zero for one of them |
| equal | the interval is within ±0.5 points (or the margin stated) for every metric | it is fully outside for one |
| trend | the last of the series is above the first for every metric | it is below the first for one of them |
| tail | every bin of label frequency gains, the last one relatively most | a bin loses, or another one gains more |
| faster | time ratio below 1 and P@1 not lower by more than 0.5 | otherwise |
| level, curve | reported without a verdict | |

Everything else is *not separable*. A claim with several parts is reproduced if all parts are, and contradicted if one
part is. If corpora disagree, the claim is *mixed*.
"""
PREMISE = """## When Gandalf's premise holds

Gandalf trains the text of a label with the labels that occur together with it. Where a label text is also a training
text, its own labels show how many of these co-labels are true. `longtail inspect DATA` prints this share for any
corpus; [augment.md](augment.md) says what follows from it. `xr-linear`, test part, means over three seeds:
"""
MISSING = """## Missing runs

Runs that claims need and that are not recorded yet. FOLDER is the folder of corpora. The same command can run in two
terminals at once: the two share the work.
"""
TableText = tuple[list[str], list[list[str]]]  # columns, rows


def results_page(
    outcomes: Sequence[Outcome],
    verdicts: TableText,
    seeds: Sequence[int] | None = None,
    *,
    premise: TableText = ([], []),
    missing: Sequence[str] = (),
    pictures: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """The whole page.

    `verdicts` is the table of `evidence.reproduce.verdict_table`, `premise` that of `evidence.premises`; `missing`
    are lines about runs that are still to be made; `pictures` names the file of the curves for (claim, corpus).
    `seeds` are the seeds the user asked for, None for the claims' own.
    """
    claims: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        claims.setdefault(outcome.claim.id, []).append(outcome)
    asked = "" if seeds is None else f" --seeds {' '.join(map(str, seeds))}"
    lines = [HEAD.format(ids=" ".join(claims), seeds=asked), "## Verdicts", "", *overview(*verdicts), ""]
    if premise[1]:
        lines += [PREMISE, *table(*premise), ""]
    lines += ["## What was run", "", *table(*corpora_rows(outcomes)), ""]
    if missing:
        lines += [MISSING, *missing]
    for group in claims.values():
        lines += section(group, pictures or {})
    return "\n".join(lines).rstrip("\n") + "\n"


def overview(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The table of verdicts, the last column in bold."""
    bold = [[*cells[:-1], f"**{cells[-1]}**"] for cells in rows]
    return table(columns, bold)


def corpora_rows(outcomes: Sequence[Outcome]) -> tuple[list[str], list[list[str]]]:
    """Corpora, machines and versions of the runs behind the verdicts, as columns and rows."""
    rows = []
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
            rows.append([*cells, "; ".join(machines), "; ".join(versions)])
        else:
            rows.append([name, "–", "–", "0", "–", "–"])
    return ["corpus", "digest", "test points", "runs", "machine", "versions"], rows


def machine(record: dict[str, Any]) -> str:
    """The machine of a run, as text."""
    of = record["machine"]
    return f"{of['cpu']}, {of['cores']} cores, {of['threads']} thread{'s' * (of['threads'] != 1)}"


def code(record: dict[str, Any]) -> str:
    """The package versions of a run, as text."""
    return ", ".join(f"{name} {version}" for name, version in record["versions"].items() if name != "commit")


def section(outcomes: Sequence[Outcome], pictures: Mapping[tuple[str, str], str]) -> list[str]:
    """The section of one claim: for each corpus the verdict, the arms, the differences and the curves."""
    claim = outcomes[0].claim
    lines = [f"## {claim.id}: {claim.says}", "", f"{claim.paper}; {claim.kind}.", ""]
    for outcome in outcomes:
        lines += [f"### {claim.id} on {outcome.corpus}: {outcome.verdict_in_words}", ""]
        if outcome.pools:
            lines += [seeds_of(outcome.claim), ""]
        if outcome.note:
            lines += [outcome.note, ""]
        if outcome.pools:
            lines += [*arms(outcome), ""]
        decided = [part for part in outcome.parts if part.rows]
        if decided:
            lines += [*differences(decided), ""]
        for part in outcome.parts:
            if part.curves:
                lines += [*curves(part, pictures.get((claim.id, outcome.corpus))), ""]
    return lines


def curves(part: Decided, picture: str | None) -> list[str]:
    """The curves of a part as a table, and the picture of them."""
    shown = [] if picture is None else ["", f"![{part.part.says}]({picture})"]
    head = f"On the {part.part.says} (between epochs on a straight line):"
    return [head, "", *table(*curve_table(part.curves, part.part.metrics)), *shown]


def seeds_of(claim: Claim) -> str:
    """A sentence about the seeds of a claim."""
    seeds = ", ".join(map(str, claim.seeds))
    return f"Seed {seeds}." if len(claim.seeds) == 1 else f"Means over the seeds {seeds}."


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


def figures(pool: SystemRuns, metrics: Sequence[str]) -> list[str]:
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


def interval(row: ArmDifference) -> str:
    """The interval of a difference as text, or a dash if there is none."""
    return "–" if row.low is None or row.high is None else f"{row.low:+.2f} … {row.high:+.2f}"
