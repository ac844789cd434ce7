"""Which runs the claims still need, and the commands that make them."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.evidence.reproduce import Outcome
from longtail.evidence.trials import System

Missing = dict[str, dict[System, tuple[int, ...]]]  # corpus → system → seeds


def missing_runs(outcomes: Sequence[Outcome]) -> Missing:
    """The runs that are not recorded, each once, by corpus and system."""
    found: dict[str, dict[System, dict[int, None]]] = {}
    for outcome in outcomes:
        for system, seeds in outcome.missing.items():
            found.setdefault(outcome.corpus, {}).setdefault(system, {}).update(dict.fromkeys(seeds))
    return {
        name: {system: tuple(own[system]) for system in sorted(own, key=lambda system: system.recipe)}
        for name, own in found.items()
    }


def claims_with_missing_runs(outcomes: Sequence[Outcome], corpus: str) -> list[str]:
    """The ids of the claims that still need runs on a corpus."""
    return list(dict.fromkeys(o.claim.id for o in outcomes if o.corpus == corpus and o.missing))


def reproduce_command(outcomes: Sequence[Outcome], corpus: str, folder: str = "FOLDER") -> str:
    """The command that makes all missing runs on a corpus and decides the claims; `folder` contains the corpora."""
    ids = " ".join(claims_with_missing_runs(outcomes, corpus))
    return f"longtail reproduce {ids} --corpus {corpus} --data {folder} --threads 1"


def bench_command(corpus: str, system: System, seeds: Sequence[int], folder: str = "FOLDER") -> str:
    """The command that makes the missing runs of one arm."""
    preset = [] if system.preset is None else [f"--preset {system.preset}"]
    settings = [f"--set {key}={value}" for key, value in system.settings]
    words = ["longtail bench", corpus, f"--data {folder} --threads 1 --recipe", system.recipe, *preset, *settings]
    return " ".join([*words, "--seeds", *map(str, seeds)])
