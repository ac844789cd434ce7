"""The claims about dual encoders (paper 004; paper 001, chapter 2): which trainings to compare, on which metrics."""

from __future__ import annotations

from typing import Any

from longtail.evidence.claim import Arm, Claim, Part, ahead_of
from longtail.evidence.gandalf import ITEMS, ONCE, RENEE
from longtail.evidence.trials import System

# The small preset of every recipe: the static encoder, batches of 1,024 texts. All encoders take the same number of
# steps, at most four minutes (UniDEC's preset alone takes 400). In two-stage systems a part of the steps, given here as
# a sum, trains classifiers alone: NGAME 178 and 80, SiameseXML half of them. Renee has its own (evidence/gandalf.py):
# its classifiers begin at random numbers, and its batches have 512 texts.
ENCODER_STEPS = {"debian-related": 320, "man-seealso": 200}
NGAME_STEPS = {"debian-related": 400, "man-seealso": 378}
SIAMESE_STEPS = {"debian-related": 640, "man-seealso": 400}


def _dual(title: str, name: str, steps: dict[str, int] = ENCODER_STEPS, **settings: Any) -> Arm:
    """A dual encoder of the small preset."""
    return Arm(title, System.of(name, settings, "small"), tuple(steps.items()))


def _unidec(title: str, **settings: Any) -> Arm:
    """UniDEC with the encoder that the others have, of 256 dimensions."""
    return _dual(title, "unidec", dimension=256, **settings)


UNIDEC = _unidec("UniDEC")
DE = _unidec("UniDEC, DE alone", share=0.0)
CLF = _unidec("UniDEC, CLF alone", share=1.0)
NOT_MINED = _unidec("UniDEC without mined negatives", negatives=0)
WITH_BCE = _unidec("UniDEC, CLF with BCE beside", bce=1.0)
ONLY_BCE = _unidec("UniDEC, CLF with BCE alone", table_loss="bce")
MORE_POSITIVES = _unidec("UniDEC, β = 6, η = 1", positives=6, negatives=1)
MORE_NEGATIVES = _unidec("UniDEC, η = 6", negatives=6)
EXTRA = _unidec("UniDEC, β_C = 6", extra_positives=6)
MEMORY = _unidec("UniDEC with memory", memory=True)
FORGOTTEN = _unidec("the same, memory left out", memory=True, memory_share=1.0)

DEPSL = _dual("DePSL", "depsl")
SUPCON = _dual("SupConDE", "depsl", loss="supcon")
ONE_WAY = _dual("DePSL, queries to labels only", "depsl", forth=1.0)
PAL = _dual("DePSL with PAL", "depsl", per_label=False)
NGAME = _dual("NGAME", "ngame", NGAME_STEPS)
NGAME_ENCODER = _dual("NGAME (Φ)", "ngame", NGAME_STEPS, share=0.0)
DPR = _dual("DPR", "dpr")
ANCE = _dual("ANCE", "ance")
DEXML = _dual("DEXML", "dexml")
SIAMESE = _dual("SiameseXML, static", "siamesexml", SIAMESE_STEPS)
SIAMESE_BAG = _dual("SiameseXML, bag", "siamesexml", SIAMESE_STEPS, backbone="bag")
RENEE_SELF = RENEE["self"]
SYSTEMS = (UNIDEC, DEPSL, SUPCON, NGAME, SIAMESE, SIAMESE_BAG, DPR, ANCE, DEXML, RENEE_SELF)


def _claim(id: str, paper: str, says: str, *parts: Part) -> Claim:
    return Claim(id, paper, says, parts, ITEMS, once=ONCE)


CLAIMS: tuple[Claim, ...] = (
    _claim(
        "U1",
        "001 T2.5, 004 T5",
        "UniDEC with both heads over its DE and CLF heads",
        ahead_of(UNIDEC, DE, "P@5"),
        ahead_of(UNIDEC, CLF, "P@5"),
    ),
    _claim(
        "U2",
        "001 T2.5",
        "mined negatives raise P@1; leaving them out raises PSP@1",
        ahead_of(UNIDEC, NOT_MINED, "P@1"),
        ahead_of(NOT_MINED, UNIDEC, "PSP@1"),
    ),
    _claim(
        "U3",
        "001 T2.4, T2.6",
        "decoupled softmax over SupCon (DePSL)",
        ahead_of(DEPSL, SUPCON, "P@1", "PSP@5"),
    ),
    _claim(
        "U4",
        "001 T2.4",
        "BCE beside the classifiers' softmax raises P@1 and lowers PSP@1 of UniDEC",
        ahead_of(WITH_BCE, UNIDEC, "P@1"),
        ahead_of(UNIDEC, WITH_BCE, "PSP@1"),
    ),
    _claim(
        "U5",
        "001 T2.6",
        "both directions of the loss raise PSP over queries to labels only (DePSL)",
        ahead_of(DEPSL, ONE_WAY, "PSP@1", "PSP@5"),
    ),
    _claim("U6", "004 T6, T7", "PAL-N over PAL (DePSL)", ahead_of(DEPSL, PAL, "P@1", "PSP@1")),
    _claim(
        "U7",
        "001 T2.2",
        "DePSL over NGAME (Φ), DPR and ANCE",
        *(ahead_of(DEPSL, other, "P@1", "P@5") for other in (NGAME_ENCODER, DPR, ANCE)),
        Part("level", "all systems", SYSTEMS, ()),
    ),
    _claim(
        "U8",
        "001 T2.3",
        "a pool of a few thousand labels equals training on all labels",
        Part("equal", "DePSL beside DEXML", (DEPSL, DEXML), ("P@1", "P@5"), margin=1.0),
        Part("equal", "UniDEC beside Renee", (UNIDEC, RENEE_SELF), ("P@1", "P@5"), margin=1.0),
    ),
    _claim(
        "U9",
        "004 T6",
        "more positives and fewer negatives in the pool raise PSP@1 (UniDEC); η beyond 3 gains little",
        ahead_of(MORE_POSITIVES, UNIDEC, "PSP@1"),
        Part("level", "more negatives", (MORE_NEGATIVES, UNIDEC), ()),
    ),
    _claim(
        "U10",
        "004 T6, T7",
        "extra positives for the classifiers alone: PSP up and P down on dense corpora, no change on sparse ones",
        Part("level", "β_C = 6 and 0", (EXTRA, UNIDEC), ()),
    ),
    _claim(
        "U11",
        "001 T2.4",
        "classifiers trained by decoupled softmax over classifiers trained by BCE alone (UniDEC)",
        ahead_of(UNIDEC, ONLY_BCE, "PSP@1", "PSP@5"),
    ),
    _claim(
        "R1",
        "RAE-XMC 2025",
        "a memory of training points beside UniDEC's labels",
        Part("level", "with the memory and without it", (MEMORY, FORGOTTEN), ()),
    ),
)
