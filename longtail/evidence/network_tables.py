"""The tables of docs/cascade.md and docs/dual.md: the networks of the claims on one corpus, from recorded runs."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.evidence.bench import Bench
from longtail.evidence.claim import BINS, Arm
from longtail.evidence.claims import claims_of
from longtail.evidence.gandalf import TITLES
from longtail.evidence.table import SystemRuns, pools_of
from longtail.evidence.trials import trials_of
from longtail.report.markdown import table

SCORES = ["P@1 / 3 / 5", "PSP@1 / 3 / 5", "C@1 / 3 / 5", "bins 1 – 5, parts of P@5"]
COSTS = ["minutes", "MB"]
METHODS = ("none", "self", "gandalf", "gandalf-shrunk", "mixup", "label-mixup", "synonyms")  # in this order


def cascade_lines(bench: Bench, corpus: str) -> list[str]:
    """Cascades by system and augmentation."""
    arms, seeds = arms_of(corpus, "G8", "G9a")
    order = [*TITLES], [*METHODS]
    arms.sort(key=lambda arm: (order[0].index(arm.system.recipe), order[1].index(method_of(arm))))
    rows, shown = [], ""
    for arm in arms:
        pool = pool_of(bench, corpus, arm, seeds)
        if pool is not None:
            name = arm.system.recipe
            first = ["" if name == shown else f"`{name}`", method_of(arm) + short_of(pool, seeds)]
            rows.append([*first, *scores(pool), *recalls(pool), *costs(pool)])
            shown = name
    columns = ["system", "`augment`", *SCORES, "shortlist recall", "of seen labels", *COSTS]
    return [headline(corpus, seeds), "", *table(columns, rows)]


def dual_lines(bench: Bench, corpus: str) -> list[str]:
    """UniDEC with its heads and its memory, all other dual encoders, Renee with and without label texts."""
    arms, seeds = arms_of(corpus, "U1", "U7", "R1", "G9b")
    arms.sort(key=lambda arm: arm.system.recipe != "unidec")
    rows = []
    for arm in arms:
        pool = pool_of(bench, corpus, arm, seeds)
        if pool is not None:
            rows.append([arm.title + short_of(pool, seeds), *scores(pool), *costs(pool)])
    return [headline(corpus, seeds), "", *table(["system", *SCORES, *COSTS], rows)]


def arms_of(corpus: str, *claims: str) -> tuple[list[Arm], tuple[int, ...]]:
    """The arms of claims on a corpus, each once, and their seeds."""
    own = [claim.on(corpus) for claim in claims_of(claims)]
    every = {arm.system: arm for claim in own for arm in claim.arms if arm.system.lacks is None}
    return list(every.values()), own[0].seeds


def pool_of(bench: Bench, corpus: str, arm: Arm, seeds: Sequence[int]) -> SystemRuns | None:
    """The recorded runs of an arm; None if there are none."""
    pools = pools_of(bench, trials_of(corpus, str(bench.results.of(corpus).digest), [arm.system], seeds))
    return pools[0] if pools else None


def headline(corpus: str, seeds: Sequence[int]) -> str:
    """The line above a table."""
    return f"**{corpus}**, seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds))}"


def short_of(pool: SystemRuns, seeds: Sequence[int]) -> str:
    """What is said of an arm that lacks runs."""
    return "" if len(pool.trials) == len(seeds) else f" ({len(pool.trials)} of {len(seeds)} seeds)"


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
