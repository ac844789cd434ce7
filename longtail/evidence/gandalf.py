"""The claims about Gandalf (paper 001, chapter 1; paper 000): which trainings to compare, on which metrics."""

from __future__ import annotations

from typing import Any

from longtail.evidence.claim import BINS, Arm, Claim, Part, ahead_of
from longtail.evidence.trials import System

# Claims about label texts. On debian-related few co-labels of a label text are true of the text itself, on man-seealso
# many (docs/augment.md).
ITEMS = ("debian-related", "man-seealso")
SHORT_TEXTS = (*ITEMS, "eurlex57k-titles")
ONCE = ("debian-related",)  # the five networks take hours for each seed


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
SHRUNK = _linear("gandalf-shrunk, δ = 0.3", augment="gandalf-shrunk", delta=0.3)
COMPARED = (D, SELF, GANDALF, SHRUNK)  # beside the share of true co-labels (evidence/premises.py)
SHARES = (0.25, 0.5, 0.75)
UNIFORM = [_linear(f"{share:.0%} of Z, uniform", augment="gandalf", share=share, order="uniform") for share in SHARES]
TAIL = [
    _linear(f"{share:.0%} of Z, tail first", augment="gandalf", share=share, order="tail-first") for share in SHARES
]
# Networks: the small preset. All arms of a recipe on a corpus take the same number of steps with the same batch size:
# as many as the preset's epochs take over D ∪ Z. Without Z these are more epochs.
STEPS = {
    "debian-related": {"astec": 7400, "decaf": 1380, "eclare": 1380, "inceptionxml": 2300, "inceptionxml-lf": 920}
    | {"renee": 1840},
    "man-seealso": {"astec": 1900, "decaf": 600, "eclare": 600, "inceptionxml": 600, "inceptionxml-lf": 240}
    | {"renee": 470},
}
TITLES = {
    "astec": "Astec",
    "decaf": "DECAF",
    "eclare": "ECLARE",
    "inceptionxml": "InceptionXML",
    "inceptionxml-lf": "InceptionXML-LF",
}


def _network(name: str, title: str, augment: str, corpora: tuple[str, ...] = ITEMS, **settings: Any) -> Arm:
    """A network of the small preset; delta=0.2 stands for augment.delta=0.2, curve=True for itself."""
    given = {key if key == "curve" else f"augment.{key}": value for key, value in settings.items()}
    if name != "astec":  # which searches labels; the others, as in their papers, search as many clusters as in training
        given["breadth"] = 1.0
    steps = tuple((corpus, STEPS[corpus][name]) for corpus in corpora)
    return Arm(f"{TITLES[name]}{title}", System.of(name, {"augment": augment, **given}, "small"), steps)


# G14: InceptionXML is scored on the validation part after every epoch, which does not change what is trained
CURVE: dict[str, dict[str, Any]] = {"inceptionxml": {"curve": True}}
PLAIN = {name: _network(name, "", "none", **CURVE.get(name, {})) for name in TITLES}
WITH_GANDALF = {name: _network(name, " + Gandalf", "gandalf", **CURVE.get(name, {})) for name in TITLES}
OTHERS = [_network("inceptionxml", f" + {method}", method) for method in ("mixup", "label-mixup", "synonyms")]
DELTAS = {
    delta: _network("inceptionxml-lf", f" + Gandalf, δ = {delta}", "gandalf", delta=delta) for delta in (0.0, 0.2)
}
# Not in Table 1.3: what helps networks where Gandalf's premise does not hold.
SELF_TARGETS = [_network(name, " + self", "self") for name in TITLES]
SHRUNK_TARGETS = [_network(name, " + gandalf-shrunk", "gandalf-shrunk", ITEMS[:1]) for name in ("astec", "decaf")]
RENEE = {
    augment: Arm(
        f"Renee{title}",
        System.of("renee", {"augment": augment}, "small"),
        tuple((corpus, STEPS[corpus]["renee"]) for corpus in ITEMS),
    )
    for title, augment in (("", "none"), (" + self", "self"), (" + Gandalf", "gandalf"))
}

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "G1",
        "001 T1.2",
        "D ∪ Z over D (InceptionXML)",
        (ahead_of(WITH_GANDALF["inceptionxml"], PLAIN["inceptionxml"], "P@1", "P@5", "PSP@1", "PSP@5"),),
        ITEMS,
        once=ONCE,
    ),
    Claim("G2", "001 T1.2", "Z alone over D", (ahead_of(Z, D, "PSP@5"),), SHORT_TEXTS),
    Claim(
        "G3",
        "001 T1.2",
        "U(G, N), the same number of points, over D",
        (ahead_of(BUDGETED, D, "P@1", "PSP@5"),),
        SHORT_TEXTS,
    ),
    Claim(
        "G4",
        "001 T1.2",
        "D ∪ Z′ over D, and D ∪ Z over D ∪ Z′",
        (ahead_of(SELF, D, "P@1", "PSP@5"), ahead_of(GANDALF, SELF, "P@1", "PSP@5")),
        SHORT_TEXTS,
    ),
    Claim(
        "G5", "001 T1.2", "eq. 1.6 over GLaS targets", (ahead_of(GANDALF, GLAS, "P@1", "P@5", "PSP@5"),), SHORT_TEXTS
    ),
    Claim(
        "G6",
        "001 T1.7",
        "δ = 0.1 over 0 and over 0.2 (InceptionXML-LF)",
        tuple(ahead_of(WITH_GANDALF["inceptionxml-lf"], other, "P@1", "PSP@5") for other in DELTAS.values()),
        ITEMS,
        once=ONCE,
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
        tuple(ahead_of(WITH_GANDALF["inceptionxml"], other, "P@1", "PSP@5") for other in OTHERS),
        ITEMS,
        once=ONCE,
    ),
    Claim(
        "G9a",
        "001 T1.3",
        "Gandalf over none on Astec, DECAF, ECLARE, InceptionXML, InceptionXML-LF",
        (
            *(ahead_of(WITH_GANDALF[name], PLAIN[name], "P@1", "P@5", "PSP@1", "PSP@5") for name in TITLES),
            Part("level", "self and gandalf-shrunk for comparison", (*SELF_TARGETS, *SHRUNK_TARGETS), ()),
        ),
        ITEMS,
        once=ONCE,
    ),
    Claim(
        "G9b",
        "001 T1.3",
        "Gandalf on Renee: P and PSP move in opposite directions on some corpora",
        (Part("level", "Renee with and without Gandalf", tuple(RENEE.values()), ()),),
        ITEMS,
        once=ONCE,
    ),
    Claim(
        "G10",
        "001 T1.3",
        "Astec with Gandalf is not below ECLARE without it",
        (ahead_of(WITH_GANDALF["astec"], PLAIN["eclare"], "P@1", "PSP@5"),),
        ITEMS,
        once=ONCE,
    ),
    Claim(
        "G11",
        "001 T1.4",
        "coverage rises with Gandalf",
        tuple(ahead_of(WITH_GANDALF[name], PLAIN[name], "C@1", "C@3", "C@5") for name in TITLES),
        ITEMS,
        once=ONCE,
    ),
    Claim(
        "G12",
        "001 F1.3",
        "gains in all five bins of label frequency, relatively largest in the tail",
        tuple(
            Part(
                "tail", f"{WITH_GANDALF[name].title} over {PLAIN[name].title}", (WITH_GANDALF[name], PLAIN[name]), BINS
            )
            for name in TITLES
        ),
        ITEMS,
        once=ONCE,
    ),
    Claim(
        "G13",
        "001 F1.4",
        "P@1 and PSP@5 rise with the share of labels sampled; tail first over uniform at 25–75 %",
        (
            Part("trend", "25 % to 100 % of Z, uniform", (*UNIFORM, GANDALF), ("P@1", "PSP@5")),
            Part("trend", "25 % to 100 % of Z, tail first", (*TAIL, GANDALF), ("P@1", "PSP@5")),
            *(ahead_of(tail, uniform, "PSP@5") for tail, uniform in zip(TAIL, UNIFORM, strict=True)),
        ),
        SHORT_TEXTS,
    ),
    Claim(
        "G14",
        "000 F5",
        "Gandalf is ahead from the first steps on, and still gains where training without it levels off (InceptionXML)",
        (
            Part(
                "curve",
                "validation part after every epoch",
                (WITH_GANDALF["inceptionxml"], PLAIN["inceptionxml"]),
                ("P@1", "PSP@5"),
            ),
        ),
        ITEMS,
        once=ONCE,
    ),
)
