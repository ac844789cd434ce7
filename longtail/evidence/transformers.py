"""The claims about transformer cascades (papers 002 and 003): which trainings to compare, on which metrics.

All arms are small presets with one seed and as many texts as fit into 25 minutes on two cores at rest (45 on
debian-related), at the 53 texts a second that bench/fine_tuning.py measured. X6 (word vectors instead of a
transformer's embedding) and C4 (ensembles) are not measured yet.
"""

from __future__ import annotations

from typing import Any

from longtail.evidence.claim import Arm, Claim, Part, ahead_of
from longtail.evidence.trials import System

TITLES, CASCADES = ("eurlex57k-titles",), ("eurlex57k-titles", "debian-related")
ONE = (0,)
STEPS = {"eurlex57k-titles": 1200, "debian-related": 2200}  # batches of 64
XR_STEPS = {"eurlex57k-titles": 2400}  # batches of 32, however many levels are fine-tuned on


def _small(title: str, name: str, steps: dict[str, int] = STEPS, **settings: Any) -> Arm:
    """A small preset; ranker_features="embedding" stands for ranker.features=embedding."""
    given = {key.replace("ranker_", "ranker."): value for key, value in settings.items()}
    return Arm(title, System.of(name, given, "small"), tuple(steps.items()))


def _xr(title: str, steps: dict[str, int] = XR_STEPS, **settings: Any) -> Arm:
    """XR-Transformer."""
    return _small(title, "xr-transformer", steps, **settings)


WORDS = Arm("TF-IDF alone", System.of("xr-linear", {}))
XR = _xr("XR-Transformer")
EMBEDDING = _xr("embedding alone", ranker_features="embedding")
PRETRAINED = _xr("pretrained embedding and TF-IDF", {"eurlex57k-titles": 1}, fine_tune=False)
EQUAL = _xr("equal costs", costs="equal", ranker_costs="equal")
RESOLUTIONS = [_xr(f"up to {most:,} clusters", ranker_features="embedding", most_clusters=most) for most in (32, 512)]
RESOLUTIONS.append(EMBEDDING)
X = _small("X-Transformer", "x-transformer")
LIGHT = _small("LightXML", "lightxml")
CASCADE = _small("CascadeXML", "cascadexml")
DISMEC = _small("CascadeXML + DiSMEC", "cascadexml", ranker="dismec")
TREE = _small("CascadeXML + XR-Linear", "cascadexml", ranker="xr-linear")


def _claim(id: str, paper: str, says: str, *parts: Part, corpora: tuple[str, ...] = TITLES) -> Claim:
    return Claim(id, paper, says, parts, corpora, seeds=ONE)


CLAIMS: tuple[Claim, ...] = (
    _claim(
        "X1",
        "003 F2, T5",
        "fine-tuned embedding and TF-IDF over each of them alone",
        ahead_of(XR, WORDS, "P@1", "P@5"),
        ahead_of(XR, EMBEDDING, "P@1", "P@5"),
    ),
    _claim("X2", "003 T5", "a fine-tuned embedding over a pretrained one", ahead_of(XR, PRETRAINED, "P@1", "P@5")),
    _claim("X3", "003 T6", "cost-sensitive learning on over off", ahead_of(XR, EQUAL, "P@1")),
    _claim(
        "X4",
        "003 F2",
        "finer label resolution gives better embeddings",
        Part("trend", "coarse to fine", tuple(RESOLUTIONS), ("P@1",)),
    ),
    _claim(
        "X5",
        "003 T3, T4",
        "fine-tuning level by level is faster than on clusters alone (X-Transformer)",
        Part("faster", "XR-Transformer beside X-Transformer", (XR, X), ("P@1",)),
    ),
    _claim(
        "C1",
        "002 T10",
        "CascadeXML trains faster than LightXML and XR-Transformer",
        *(Part("faster", f"CascadeXML beside {other.title}", (CASCADE, other), ("P@1",)) for other in (LIGHT, XR)),
    ),
    _claim(
        "C2",
        "002 T11",
        "shortlist recall of each level (98, 92 and 83 in the paper)",
        Part("level", "CascadeXML and LightXML", (CASCADE, LIGHT), ()),
        corpora=CASCADES,
    ),
    _claim(
        "C3", "002 A.3", "DiSMEC on words and embedding over CascadeXML alone", ahead_of(DISMEC, CASCADE, "P@1", "P@5")
    ),
    _claim(
        "C5",
        "002 A.3",
        "XR-Linear on words and embedding slightly over DiSMEC, at more memory",
        Part("level", "both rankers", (TREE, DISMEC), ()),
    ),
)
