"""Prints the table of docs/cascade.md: the networks on debian-related, from the runs recorded in `bench/results`.

python bench/networks.py    # trains nothing; `longtail reproduce G9a G8` does the runs
"""

from __future__ import annotations

import longtail.recipes  # noqa: F401  # registers the recipes
from longtail.evidence.bench import Bench
from longtail.evidence.claims import BINS, ELSE, ITEMS, ONCE, OTHERS, PLAIN, WITH_GANDALF, Arm
from longtail.evidence.corpora import Corpora
from longtail.evidence.results import Results
from longtail.evidence.table import Pool, pools_of
from longtail.evidence.trials import trials_of

COLUMNS = ["system", "`augment`", "P@1 / 3 / 5", "PSP@1 / 3 / 5", "C@1 / 3 / 5", "bins 1 – 5, parts of P@5"]
COSTS = ["shortlist recall", "minutes", "MB"]


def main() -> None:
    bench, (corpus,) = Bench(Results(), Corpora()), ITEMS
    print(row([*COLUMNS, *COSTS]), row(["---"] * len([*COLUMNS, *COSTS])), sep="\n")
    shown = ""
    for arm in arms():
        pools = pools_of(bench, trials_of(corpus, str(bench.results.of(corpus).digest), [arm.system], ONCE))
        if pools:
            name = arm.system.recipe
            print(row(["" if name == shown else f"`{name}`", arm.system.given["augment"], *figures(pools[0])]))
            shown = name


def arms() -> list[Arm]:
    """Print the table, system by system."""
    every = [*PLAIN.values(), *WITH_GANDALF.values(), *ELSE, *OTHERS]
    return [arm for name in PLAIN for arm in every if arm.system.recipe == name]


def figures(pool: Pool) -> list[str]:
    """Return the scores of a run, and its costs."""
    families = [" / ".join(f"{pool.figure(f'{family}@{k}'):.1f}" for k in (1, 3, 5)) for family in ("P", "PSP", "C")]
    bins = " ".join(f"{pool.figure(name):.1f}" for name in BINS)
    recall, seconds, memory = (pool.mean(*key) for key in (["shortlist_recall"], ["seconds", "train"], ["peak_mb"]))
    return [*families, bins, f"{recall:.1f}", f"{(seconds or 0) / 60:.1f}", f"{memory:,.0f}"]


def row(cells: list[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
