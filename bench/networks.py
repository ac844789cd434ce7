"""The tables of docs/cascade.md and docs/dual.md: networks on one or more corpora, from the results in `bench/results`.

python bench/networks.py [CORPUS …]            # cascades; default: debian-related man-seealso; trains nothing
python bench/networks.py --duals [CORPUS …]    # dual encoders
longtail reproduce G8 G9a --data FOLDER        # makes the runs of cascades
longtail reproduce U1 U7 R1 G9b --data FOLDER  # makes those of dual encoders
"""

from __future__ import annotations

import argparse
import sys

import longtail.recipes  # noqa: F401  # so that recipes are known by name
from longtail.evidence.bench import Bench
from longtail.evidence.claim import BINS, Arm
from longtail.evidence.claims import claims_of
from longtail.evidence.corpora import Corpora
from longtail.evidence.gandalf import ITEMS, TITLES
from longtail.evidence.missing import bench_command
from longtail.evidence.results import Results
from longtail.evidence.table import SystemRuns, pools_of
from longtail.evidence.trials import Trial, trials_of
from longtail.report.markdown import table

SCORES = ["P@1 / 3 / 5", "PSP@1 / 3 / 5", "C@1 / 3 / 5", "bins 1 – 5, parts of P@5"]
METHODS = ("none", "self", "gandalf", "gandalf-shrunk", "mixup", "label-mixup", "synonyms")  # in this order


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", default=list(ITEMS), metavar="CORPUS", help="(default: %(default)s)")
    parser.add_argument("--duals", action="store_true", help="dual encoders instead of cascades")
    args = parser.parse_args()
    for corpus in args.corpora:
        show(Bench(Results(), Corpora()), corpus, args.duals)


def show(bench: Bench, corpus: str, duals: bool) -> None:
    """The table of one corpus, then the arms that are not recorded with all their seeds."""
    arms, seeds = duals_of(corpus) if duals else cascades_of(corpus)
    rows, missing, shown = [], [], ""
    for arm in arms:
        trials = trials_of(corpus, str(bench.results.of(corpus).digest), [arm.system], seeds)
        pools = pools_of(bench, trials)
        done: tuple[Trial, ...] = pools[0].trials if pools else ()
        if len(done) < len(trials):
            missing.append((arm, [trial.seed for trial in trials if trial not in done]))
        if pools:
            name, told = arm.system.recipe, arm.title if duals else method_of(arm)
            told += "" if len(done) == len(trials) else f" ({len(done)} of {len(trials)} seeds)"
            first = [told] if duals else ["" if name == shown else f"`{name}`", told]
            rows.append([*first, *scores(pools[0]), *([] if duals else recalls(pools[0])), *costs(pools[0])])
            shown = name
    print(f"**{corpus}**, seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds))}\n")
    first = ["system"] if duals else ["system", "`augment`"]
    columns = [*first, *SCORES, *([] if duals else ["shortlist recall", "of seen labels"]), "minutes", "MB"]
    print(*table(columns, rows), sep="\n", end="\n\n")
    for arm, left in missing:
        print(f"missing: {bench_command(corpus, arm.system, left)}", file=sys.stderr)


def arms_of(corpus: str, *claims: str) -> tuple[list[Arm], tuple[int, ...]]:
    """The arms of claims on a corpus, each once, and their seeds."""
    own = [claim.on(corpus) for claim in claims_of(claims)]
    every = {arm.system: arm for claim in own for arm in claim.arms if arm.system.lacks is None}
    return list(every.values()), own[0].seeds


def cascades_of(corpus: str) -> tuple[list[Arm], tuple[int, ...]]:
    """The arms of the claims about cascades, system by system."""
    every, seeds = arms_of(corpus, "G8", "G9a")
    order = [*TITLES], [*METHODS]
    own = sorted(every, key=lambda arm: (order[0].index(arm.system.recipe), order[1].index(method_of(arm))))
    return own, seeds


def duals_of(corpus: str) -> tuple[list[Arm], tuple[int, ...]]:
    """UniDEC with its heads and its memory, all other systems, Renee with and without label texts."""
    every, seeds = arms_of(corpus, "U1", "U7", "R1", "G9b")
    return sorted(every, key=lambda arm: arm.system.recipe != "unidec"), seeds


def method_of(arm: Arm) -> str:
    """The augmentation of an arm."""
    return str(arm.system.given["augment"])


def scores(pool: SystemRuns) -> list[str]:
    """P, PSP and C, and the parts that labels of different frequency have of P@5."""
    families = [" / ".join(f"{pool.figure(f'{family}@{k}'):.1f}" for k in (1, 3, 5)) for family in ("P", "PSP", "C")]
    return [*families, " ".join(f"{pool.figure(name):.1f}" for name in BINS)]


def recalls(pool: SystemRuns) -> list[str]:
    """Shortlist recall, of all labels and of those with training examples; older runs do not have the second."""
    found = [pool.mean(key) for key in ("shortlist_recall", "shortlist_recall_seen")]
    return ["–" if recall is None else f"{recall:.1f}" for recall in found]


def costs(pool: SystemRuns) -> list[str]:
    """Minutes of training and peak memory."""
    return [f"{(pool.mean('seconds', 'train') or 0) / 60:.1f}", f"{pool.mean('peak_mb') or 0:,.0f}"]


if __name__ == "__main__":
    main()
