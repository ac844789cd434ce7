"""The pages of results and the pictures that belong to them, written from recorded results alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from longtail.evidence.bench import Bench
from longtail.evidence.html_page import html_page, quality_dots
from longtail.evidence.missing import bench_command, missing_runs, reproduce_command
from longtail.evidence.premises import premise_table
from longtail.evidence.reproduce import Outcome, verdict_table
from longtail.report.curves import curve_picture
from longtail.report.quality_time import picture
from longtail.report.results import results_page
from longtail.store import disk

PICTURE = "quality-time.svg"


def publish(bench: Bench, outcomes: Sequence[Outcome], place: Path, seeds: Sequence[int] | None) -> None:
    """Write the page to `place`, and beside it the page as HTML, the pictures of curves, and that of quality and time.

    `seeds` are those the user asked for.
    """
    disk.make_folders(place.parent)
    pictures = {}
    for outcome in outcomes:
        for part in outcome.parts:
            if part.curves:
                name = f"results-{outcome.claim.id}-{outcome.corpus}.svg"
                pictures[outcome.claim.id, outcome.corpus] = name
                disk.write_atomically(place.with_name(name), [curve_picture(part.curves, part.part.metrics).encode()])
    names = list(dict.fromkeys(outcome.corpus for outcome in outcomes))
    text = results_page(
        outcomes,
        verdict_table(outcomes),
        seeds,
        premise=premise_table(bench, names),
        missing=missing_lines(outcomes),
        pictures=pictures,
    )
    disk.write_atomically(place, [text.encode()])
    disk.write_atomically(place.with_suffix(".html"), [html_page(bench, outcomes).encode()])
    dots = quality_dots(bench)
    if dots:
        disk.write_atomically(place.with_name(PICTURE), [picture(dots).encode()])


def missing_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """For each corpus with missing runs: how many there are, one command for all, and one for each arm."""
    lines = []
    for corpus, systems in missing_runs(outcomes).items():
        runs = sum(map(len, systems.values()))
        lines += [f"{corpus}: {runs} run{'s' * (runs != 1)} of {len(systems)} arm{'s' * (len(systems) != 1)}.", ""]
        lines += [f"    {reproduce_command(outcomes, corpus)}    # all of them", ""]
        lines += [*(f"    {bench_command(corpus, system, seeds)}" for system, seeds in systems.items()), ""]
    return lines
