"""The tables of docs/cascade.md: systems with networks on one or more corpora, from the results in `bench/results`.

python bench/networks.py [CORPUS …]    # default: debian-related man-seealso; trains nothing
longtail reproduce G8 G9a --data FOLDER    # makes the runs
"""

from __future__ import annotations

import sys

import longtail.recipes  # noqa: F401  # so that recipes are known by name
from longtail.evidence.bench import Bench
from longtail.evidence.claim import BINS, Arm
from longtail.evidence.claims import claims_of
from longtail.evidence.corpora import Corpora
from longtail.evidence.gandalf import ITEMS, TITLES
from longtail.evidence.missing import bench_command
from longtail.evidence.results import Results
from longtail.evidence.table import Pool, pools_of
from longtail.evidence.trials import Trial, trials_of
from longtail.report.markdown import table

COLUMNS = ["system", "`augment`", "P@1 / 3 / 5", "PSP@1 / 3 / 5", "C@1 / 3 / 5", "bins 1 – 5, parts of P@5"]
METHODS = ("none", "self", "gandalf", "gandalf-shrunk", "mixup", "label-mixup", "synonyms")  # in this order
COSTS = ["shortlist recall", "of seen labels", "minutes", "MB"]


def main(corpora: list[str]) -> None:
    for corpus in corpora or list(ITEMS):
        show(Bench(Results(), Corpora()), corpus)


def show(bench: Bench, corpus: str) -> None:
    """The table of one corpus, then the arms that are not recorded with all their seeds."""
    arms, seeds = arms_of(corpus)
    rows, missing, shown = [], [], ""
    for arm in arms:
        trials = trials_of(corpus, str(bench.results.of(corpus).digest), [arm.system], seeds)
        pools = pools_of(bench, trials)
        done: tuple[Trial, ...] = pools[0].trials if pools else ()
        if len(done) < len(trials):
            missing.append((arm, [trial.seed for trial in trials if trial not in done]))
        if pools:
            name, method = arm.system.recipe, method_of(arm)
            method += "" if len(done) == len(trials) else f" ({len(done)} of {len(trials)} seeds)"
            rows.append(["" if name == shown else f"`{name}`", method, *figures(pools[0])])
            shown = name
    print(f"**{corpus}**, seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds))}\n")
    print(*table([*COLUMNS, *COSTS], rows), sep="\n", end="\n\n")
    for arm, left in missing:
        print(f"missing: {bench_command(corpus, arm.system, left)}", file=sys.stderr)


def arms_of(corpus: str) -> tuple[list[Arm], tuple[int, ...]]:
    """The arms of the claims about networks on a corpus, system by system, and their seeds."""
    claims = [claim.on(corpus) for claim in claims_of(["G8", "G9a"])]
    every = {arm.system: arm for claim in claims for arm in claim.arms if arm.system.lacks is None}.values()
    order = [*TITLES], [*METHODS]
    own = sorted(every, key=lambda arm: (order[0].index(arm.system.recipe), order[1].index(method_of(arm))))
    return own, claims[0].seeds


def method_of(arm: Arm) -> str:
    """The augmentation of an arm."""
    return str(arm.system.given["augment"])


def figures(pool: Pool) -> list[str]:
    """The scores of an arm, then its shortlist recall, minutes and memory."""
    families = [" / ".join(f"{pool.figure(f'{family}@{k}'):.1f}" for k in (1, 3, 5)) for family in ("P", "PSP", "C")]
    bins = " ".join(f"{pool.figure(name):.1f}" for name in BINS)
    recalls = [pool.mean(key) for key in ("shortlist_recall", "shortlist_recall_seen")]  # the second is in newer runs
    seconds, memory = pool.mean("seconds", "train"), pool.mean("peak_mb")
    shares = ["–" if recall is None else f"{recall:.1f}" for recall in recalls]
    return [*families, bins, *shares, f"{(seconds or 0) / 60:.1f}", f"{memory or 0:,.0f}"]


if __name__ == "__main__":
    main(sys.argv[1:])
