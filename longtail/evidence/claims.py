"""What the papers claim, as a table: which trainings to set beside each other, on which metrics, on which corpora.

A claim has one or more parts, each a comparison of its own; `judge.py` has the rules. A new system adds rows here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from longtail.core.errors import ParameterError, nearest
from longtail.evidence.trials import System

Kind = Literal["ahead", "equal", "trend", "tail", "faster", "level"]
SEEDS = (0, 1, 2)
BINS = ("bin 1", "bin 2", "bin 3", "bin 4", "bin 5")  # of label frequency, head to tail: parts of P@5


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: what the paper calls it, and how it is trained here."""

    title: str
    system: System


@dataclass(frozen=True)
class Part:
    """One comparison.

    The order of `arms` says what is claimed. ahead: the first is ahead of the second; equal: of these two; trend: a
    series that rises from the first to the last; tail: the first is ahead in every bin of label frequency, and by the
    largest share in the last; faster: the first trains faster than the second; level: any number.
    `margin` is what still counts as equal (equal), or what P@1 may lose (faster), in points.
    """

    kind: Kind
    says: str
    arms: tuple[Arm, ...]
    metrics: tuple[str, ...]
    margin: float = 0.5


@dataclass(frozen=True)
class Claim:
    """A claim of a paper; `paper` names its table or figure. Each arm is trained once for each of the `seeds`."""

    id: str
    paper: str
    says: str
    parts: tuple[Part, ...]
    corpora: tuple[str, ...]
    seeds: tuple[int, ...] = SEEDS

    @property
    def kind(self) -> str:
        """The kinds of its parts, each once."""
        return ", ".join(dict.fromkeys(part.kind for part in self.parts))

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms of all parts, each once."""
        return tuple({arm.system: arm for part in self.parts for arm in part.arms}.values())


def claims_of(ids: Sequence[str] = (), seeds: Sequence[int] | None = None) -> list[Claim]:
    """The claims of these ids, in the order of the table; all of them for none. `seeds` replaces their own."""
    known = {claim.id.lower(): claim for claim in CLAIMS}
    for id in ids:
        if id.lower() not in known:
            raise ParameterError(f"there is no claim {id!r}.{nearest(id.upper(), [c.id for c in CLAIMS])}")
    wanted = {id.lower() for id in ids} or set(known)
    found = [claim for claim in CLAIMS if claim.id.lower() in wanted]
    return found if seeds is None else [replace(claim, seeds=tuple(dict.fromkeys(seeds))) for claim in found]


def _ahead(better: Arm, worse: Arm, *metrics: str) -> Part:
    return Part("ahead", f"{better.title} over {worse.title}", (better, worse), metrics)


def _linear(title: str, **settings: Any) -> Arm:
    """xr-linear with options of `augment`: share=0.25 stands for augment.share=0.25."""
    given = {key if key == "augment" else f"augment.{key}": value for key, value in settings.items()}
    return Arm(title, System.of("xr-linear", given))


D = _linear("D", augment="none")
Z = _linear("Z alone", augment="labels-only")
BUDGETED = _linear("U(G, N)", augment="budgeted")
SELF = _linear("D ∪ Z′", augment="self")
GANDALF = _linear("D ∪ Z", augment="gandalf")
GLAS = _linear("GLaS targets", augment="glas")
WALK = _linear("random-walk graph", augment="walk")
SHARES = (0.25, 0.5, 0.75)
UNIFORM = [_linear(f"{share:.0%} of Z, uniform", augment="gandalf", share=share, order="uniform") for share in SHARES]
TAIL = [
    _linear(f"{share:.0%} of Z, tail first", augment="gandalf", share=share, order="tail-first") for share in SHARES
]
SHORT_TEXTS = ("debian-related", "eurlex57k-titles")

# Networks: the small preset, every arm of a recipe with the same number of steps of the same batch. The steps are those
# of the preset's epochs over D ∪ Z of debian-related; without Z they are more epochs.
STEPS = {"astec": 7400, "decaf": 2300, "eclare": 2300, "inceptionxml": 4600, "inceptionxml-lf": 920}
TITLES = {
    "astec": "Astec",
    "decaf": "DECAF",
    "eclare": "ECLARE",
    "inceptionxml": "InceptionXML",
    "inceptionxml-lf": "InceptionXML-LF",
}
ONCE = (0,)  # a seed takes the five systems hours
ITEMS = ("debian-related",)


def _network(name: str, title: str, augment: str, **settings: Any) -> Arm:
    """A network of the small preset with options of `augment`."""
    given = {"augment": augment, **{f"augment.{key}": value for key, value in settings.items()}, "steps": STEPS[name]}
    return Arm(f"{TITLES[name]}{title}", System.of(name, given, "small"))


PLAIN = {name: _network(name, "", "none") for name in STEPS}
WITH_GANDALF = {name: _network(name, " + Gandalf", "gandalf") for name in STEPS}
OTHERS = [_network("inceptionxml", f" + {method}", method) for method in ("mixup", "label-mixup", "synonyms")]
DELTAS = {
    delta: _network("inceptionxml-lf", f" + Gandalf, δ = {delta}", "gandalf", delta=delta) for delta in (0.0, 0.2)
}
# beside Table 1.3's two columns, what helps on corpora whose labels have few examples
ELSE = [_network(name, f" + {method}", method) for name in STEPS for method in ("self", "gandalf-shrunk")]

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "G1",
        "001 T1.2",
        "D ∪ Z over D (InceptionXML)",
        (_ahead(WITH_GANDALF["inceptionxml"], PLAIN["inceptionxml"], "P@1", "P@5", "PSP@1", "PSP@5"),),
        ITEMS,
        ONCE,
    ),
    Claim("G2", "001 T1.2", "Z alone over D", (_ahead(Z, D, "PSP@5"),), SHORT_TEXTS),
    Claim(
        "G3",
        "001 T1.2",
        "U(G, N), the same number of points, over D",
        (_ahead(BUDGETED, D, "P@1", "PSP@5"),),
        SHORT_TEXTS,
    ),
    Claim(
        "G4",
        "001 T1.2",
        "D ∪ Z′ over D, and D ∪ Z over D ∪ Z′",
        (_ahead(SELF, D, "P@1", "PSP@5"), _ahead(GANDALF, SELF, "P@1", "PSP@5")),
        SHORT_TEXTS,
    ),
    Claim("G5", "001 T1.2", "eq. 1.6 over GLaS targets", (_ahead(GANDALF, GLAS, "P@1", "P@5", "PSP@5"),), SHORT_TEXTS),
    Claim(
        "G6",
        "001 T1.7",
        "δ = 0.1 over 0 and over 0.2 (InceptionXML-LF)",
        tuple(_ahead(WITH_GANDALF["inceptionxml-lf"], other, "P@1", "PSP@5") for other in DELTAS.values()),
        ITEMS,
        ONCE,
    ),
    Claim(
        "G7",
        "001 T1.7",
        "count graph and random-walk graph are equal",
        (Part("equal", "D ∪ Z beside the random-walk graph", (GANDALF, WALK), ("P@1", "PSP@5")),),
        SHORT_TEXTS,
    ),
    Claim(
        "G8",
        "001 T1.6",
        "Gandalf over MixUp, Label-MixUp and synonym replacement (InceptionXML)",
        tuple(_ahead(WITH_GANDALF["inceptionxml"], other, "P@1", "PSP@5") for other in OTHERS),
        ITEMS,
        ONCE,
    ),
    Claim(
        "G9a",
        "001 T1.3",
        "Gandalf over none on Astec, DECAF, ECLARE, InceptionXML, InceptionXML-LF",
        (
            *(_ahead(WITH_GANDALF[name], PLAIN[name], "P@1", "P@5", "PSP@1", "PSP@5") for name in STEPS),
            Part("level", "self and gandalf-shrunk beside them", tuple(ELSE), ()),
        ),
        ITEMS,
        ONCE,
    ),
    Claim(
        "G10",
        "001 T1.3",
        "Astec with Gandalf is not below ECLARE without it",
        (_ahead(WITH_GANDALF["astec"], PLAIN["eclare"], "P@1", "PSP@5"),),
        ITEMS,
        ONCE,
    ),
    Claim(
        "G11",
        "001 T1.4",
        "coverage rises with Gandalf",
        tuple(_ahead(WITH_GANDALF[name], PLAIN[name], "C@1", "C@3", "C@5") for name in STEPS),
        ITEMS,
        ONCE,
    ),
    Claim(
        "G12",
        "001 F1.3",
        "gains in all five bins of label frequency, relatively largest in the tail",
        tuple(
            Part(
                "tail", f"{WITH_GANDALF[name].title} over {PLAIN[name].title}", (WITH_GANDALF[name], PLAIN[name]), BINS
            )
            for name in STEPS
        ),
        ITEMS,
        ONCE,
    ),
    Claim(
        "G13",
        "001 F1.4",
        "P@1 and PSP@5 rise with the share of labels sampled; tail first over uniform at 25–75 %",
        (
            Part("trend", "25 % to 100 % of Z, uniform", (*UNIFORM, GANDALF), ("P@1", "PSP@5")),
            Part("trend", "25 % to 100 % of Z, tail first", (*TAIL, GANDALF), ("P@1", "PSP@5")),
            *(_ahead(tail, uniform, "PSP@5") for tail, uniform in zip(TAIL, UNIFORM, strict=True)),
        ),
        SHORT_TEXTS,
    ),
)
