"""The systems by name: the environment each needs, the class that runs it, and its settings."""

from __future__ import annotations

from typing import Any, NamedTuple

# The settings of the paired comparison, the same on both sides: XR-Linear's own.
BRANCHING, LEAF_SIZE, C, EPS, PRUNE, BEAM = 16, 100, 1.0, 0.1, 0.1, 10
TREE = {"branching": BRANCHING, "leaf_size": LEAF_SIZE, "C": C, "eps": EPS, "prune": PRUNE, "beam": BEAM}
FASTTEXT = {"loss": "hs", "epoch": 25, "lr": 0.5, "dim": 100}
BONSAI = {"n_trees": 1, "cluster_k": 100, "cluster_balanced": False, "collapse_every_n_layers": 0, "max_depth": 3}
SLICE = 200  # labels in the one-vs-rest comparison: the most frequent

OWN = "longtail"  # the environment that runs bench/linear.py itself


class System(NamedTuple):
    """`package` is the distribution whose version is recorded; `space` is the label space of its predictions."""

    environment: str
    package: str
    driver: str
    settings: dict[str, Any]
    space: str = "all"


SYSTEMS = {
    "longtail tfn": System(OWN, "longtail", "ours:Longtail", TREE | {"negatives": "tfn"}),
    "longtail tfn+man": System(OWN, "longtail", "ours:Longtail", TREE | {"negatives": "tfn+man"}),
    "longtail chosen": System(OWN, "longtail", "ours:Chosen", {}),
    "longtail chosen words": System(OWN, "longtail", "ours:ChosenWords", {}),
    "longtail flat slice": System(OWN, "longtail", "ours:Flat", {"C": C, "eps": EPS}, "slice"),
    "longtail tfidf": System(OWN, "longtail", "ours:TfidfOnly", {}, "none"),
    "pecos tfn": System("pecos", "libpecos", "peers:Pecos", TREE | {"negatives": "tfn"}),
    "pecos tfn+man": System("pecos", "libpecos", "peers:Pecos", TREE | {"negatives": "tfn+man"}),
    "omikuji parabel": System("omikuji", "omikuji", "peers:Omikuji", {"beam": BEAM}),
    "omikuji bonsai": System("omikuji", "omikuji", "peers:Omikuji", BONSAI | {"beam": BEAM}),
    "napkinxc plt": System("napkinxc", "napkinxc", "peers:Napkin", {}),
    "fasttext hs": System("fasttext", "fasttext-community", "peers:FastText", FASTTEXT),
    "sklearn slice": System("sklearn", "scikit-learn", "peers:OneVsRest", {"C": C, "eps": EPS}, "slice"),
    "sklearn tfidf": System("sklearn", "scikit-learn", "peers:SklearnTfidf", {}, "none"),
}
ENVIRONMENTS = tuple(dict.fromkeys(system.environment for system in SYSTEMS.values()))
