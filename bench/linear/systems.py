"""The systems by name: the environment each needs, the class that runs it, and its settings.

Peers are used as `longtail peers` uses them (`longtail/evidence/peers/listed.py`); scikit-learn is only here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from longtail.evidence.peers.listed import PEERS, XR_LINEAR, Peer

SLICE = 200  # labels in the one-vs-rest comparison: the most frequent
MIN_TEXTS = 2  # in which a word must occur to be a feature

OWN = "longtail"  # the environment that runs bench/linear.py itself
BENCH = Path(__file__).parent.parent  # drivers of ours and of scikit-learn are imported from here
SCIKIT = Peer("sklearn", "scikit-learn", "BSD-3-Clause", (("scikit-learn==1.9.1", "scipy"),), ())
ENVIRONMENTS = PEERS | {"sklearn": SCIKIT}


class System(NamedTuple):
    """`reads` is what it needs of the exchange folder; `space` is the label space of its predictions."""

    environment: str
    driver: str
    settings: dict[str, Any]
    reads: str = "matrices"
    space: str = "all"

    @property
    def packages(self) -> list[str]:
        """The packages whose versions are recorded."""
        return ["longtail"] if self.environment == OWN else ENVIRONMENTS[self.environment].packages


def of_peer(environment: str, name: str) -> System:
    """A system of a peer, by its name there."""
    (found,) = (system for system in PEERS[environment].systems if system.name == name)
    return System(environment, found.driver, found.settings, found.reads)


FLAT = {key: XR_LINEAR[key] for key in ("C", "eps")}
WORDS = {"min_texts": MIN_TEXTS}
SYSTEMS = {
    "longtail tfn": System(OWN, "linear.ours:Longtail", XR_LINEAR | {"negatives": "tfn"}),
    "longtail tfn+man": System(OWN, "linear.ours:Longtail", XR_LINEAR | {"negatives": "tfn+man"}),
    "longtail chosen": System(OWN, "linear.ours:Chosen", {}),
    "longtail chosen words": System(OWN, "linear.ours:ChosenWords", {}),
    "longtail flat slice": System(OWN, "linear.ours:Flat", FLAT, space="slice"),
    "longtail tfidf": System(OWN, "linear.ours:TfidfOnly", WORDS, "texts", "none"),
    "pecos tfn": of_peer("pecos", "PECOS, tfn"),
    "pecos tfn+man": of_peer("pecos", "PECOS, tfn+man"),
    "omikuji parabel": of_peer("omikuji", "omikuji, 3 Parabel trees"),
    "omikuji bonsai": of_peer("omikuji", "omikuji, 1 Bonsai-like tree"),
    "napkinxc plt": of_peer("napkinxc", "napkinXC PLT"),
    "fasttext hs": of_peer("fasttext", "fastText, hierarchical softmax, 25 epochs"),
    "sklearn slice": System("sklearn", "linear.scikit:OneVsRest", FLAT, space="slice"),
    "sklearn tfidf": System("sklearn", "linear.scikit:SklearnTfidf", WORDS, "texts", "none"),
}
