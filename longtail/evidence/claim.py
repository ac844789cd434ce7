"""What a claim of a paper is: arms that are trained, parts that compare them, and the corpora and seeds for that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from longtail.evidence.trials import System

Kind = Literal["ahead", "equal", "trend", "tail", "faster", "level", "curve"]
SEEDS = (0, 1, 2)
BINS = ("bin 1", "bin 2", "bin 3", "bin 4", "bin 5")  # of label frequency, head to tail: contributions to P@5


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: the paper's name for it, and how it is trained here.

    `steps` says for each corpus how many steps a network is trained; an arm with `steps` is trained on no other
    corpus.
    """

    title: str
    system: System
    steps: tuple[tuple[str, int], ...] = ()

    def on(self, corpus: str) -> Arm | None:
        """The arm with the number of steps for this corpus; None where it is not trained there."""
        if not self.steps:
            return self
        steps = dict(self.steps).get(corpus)
        settings = (*self.system.settings, ("steps", steps))
        return None if steps is None else Arm(self.title, replace(self.system, settings=settings))


@dataclass(frozen=True)
class Part:
    """One comparison of a claim.

    The order of `arms` says what is claimed. ahead: the first arm is ahead of the second. equal: the two are equal.
    trend: a series that rises from the first arm to the last. tail: the first arm is ahead in every bin of label
    frequency, and by the largest share in the last bin. faster: the first arm trains faster than the second. level and
    curve: any number of arms, reported without a verdict, with curve also epoch by epoch.
    `margin` is in points: what still counts as equal (equal), or what P@1 may lose (faster).
    """

    kind: Kind
    says: str
    arms: tuple[Arm, ...]
    metrics: tuple[str, ...]
    margin: float = 0.5


def ahead_of(better: Arm, worse: Arm, *metrics: str) -> Part:
    """The comparison that says: the first arm is ahead of the second on these metrics."""
    return Part("ahead", f"{better.title} over {worse.title}", (better, worse), metrics)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper; `paper` names its table or figure.

    Each arm is trained once for each of the `seeds`; on the corpora in `once` only for the first seed, because a
    training takes too long there.
    """

    id: str
    paper: str
    says: str
    parts: tuple[Part, ...]
    corpora: tuple[str, ...]
    seeds: tuple[int, ...] = SEEDS
    once: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kinds of its parts, each once."""
        return ", ".join(dict.fromkeys(part.kind for part in self.parts))

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms of all parts, each once."""
        return tuple({arm.system: arm for part in self.parts for arm in part.arms}.values())

    def on(self, corpus: str) -> Claim:
        """The claim as it is measured on one corpus: with the arms, steps and seeds for it."""
        parts = []
        for part in self.parts:
            arms = tuple(arm for arm in (arm.on(corpus) for arm in part.arms) if arm is not None)
            parts.append(replace(part, arms=arms))
        seeds = self.seeds[:1] if corpus in self.once else self.seeds
        return replace(self, parts=tuple(part for part in parts if part.arms), seeds=seeds, once=())
