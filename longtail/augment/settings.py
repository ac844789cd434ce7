"""What augmentation can be told: the `augment` field of every recipe."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import ParameterError, UnsupportedError
from longtail.core.labels import Labels
from longtail.core.parameters import Parameters, param
from longtail.data.dataset import Dataset

log = logging.getLogger("longtail")

SAMPLING = ("share", "order")
USES: dict[str, tuple[str, ...]] = {  # the options that make a difference to each method
    "none": (),
    "gandalf": ("delta", *SAMPLING),
    "gandalf-shrunk": ("delta", "shrink", *SAMPLING),
    "self": SAMPLING,
    "labels-only": ("delta", *SAMPLING),
    "budgeted": ("delta", *SAMPLING),
    "glas": ("self_target", *SAMPLING),
    "walk": ("delta", "hops", "restart", "top", "head", *SAMPLING),
    "synonyms": ("words", "near", "copies"),
    "mixup": ("mix",),
    "label-mixup": ("mix",),
    "auto": ("delta", "shrink", *SAMPLING),
}
TRIED: dict[str, dict[str, float]] = {  # by auto; δ of gandalf-shrunk: debian-related and eurlex57k-titles, validation
    "none": {},
    "self": {},
    "gandalf": {},
    "gandalf-shrunk": {"delta": 0.3},
}
OF_EMBEDDINGS = ("mixup", "label-mixup")  # change no training point: a network mixes them as it is trained


@dataclass(frozen=True)
class Augmentation(Parameters):
    """How a training set D is augmented, most often by Z: the texts z_j of the labels as points of their own.

    The target of label i at z_j is for `gandalf` y_ji = G_ij / G_jj where that is above δ (eq. 1.6), G the number of
    points two labels share; for `gandalf-shrunk` G_ij / (G_jj + κ); for `self` only y_jj = 1; for `glas` σ of the
    symmetric estimate; for `walk` by visits of random walks. `labels-only` is Z of eq. 1.6 without D, `budgeted` as
    many points of D ∪ Z as D has. `synonyms` adds copies of D in which words are replaced. `mixup` and `label-mixup`
    leave D as it is, and have a network trained on vectors between two points, or between a point and one of its
    labels' texts. `auto` tries some of these on the validation part.
    """

    kind = "augment"
    method: Literal[
        "none",
        "gandalf",
        "gandalf-shrunk",
        "self",
        "labels-only",
        "budgeted",
        "glas",
        "walk",
        "synonyms",
        "mixup",
        "label-mixup",
        "auto",
    ] = param("none", "label texts as training points")
    delta: float = param(0.1, "δ: smaller targets are dropped", at_least=0.0, below=1.0)  # paper: 0.1
    shrink: float = param(
        10.0, "κ of gandalf-shrunk: labels with few examples say less", at_least=0.0
    )  # chosen as that of TRIED
    share: float = param(1.0, "share of the labels whose texts become points", above=0.0, at_most=1.0)
    order: Literal["uniform", "tail-first"] = param("uniform", "which labels, where the share is below 1")
    self_target: Literal["sigmoid", "one"] = param("sigmoid", "a label's target at its own text in glas: σ(1) or 1")
    hops: int = param(400, "of a random walk", at_least=1)  # ECLARE: 400
    restart: float = param(0.8, "probability that a walk begins again", at_least=0.0, below=1.0)  # ECLARE: 0.8
    top: int = param(10, "labels a walk keeps", at_least=1)  # ECLARE: 10
    head: int = param(500, "labels with more points than this are left out of walks", at_least=1)  # ECLARE: 500
    words: float = param(0.15, "share of the words that synonyms replaces", above=0.0, at_most=1.0)
    near: int = param(5, "a word is replaced by one of so many nearest in meaning", at_least=1)
    copies: int = param(1, "of each text that synonyms makes", at_least=1, at_most=100)
    # Zhang et al. 2018: 0.1 to 0.4, and above that networks learn too little; paper 001 does not say
    mix: float = param(0.2, "α of mixup and label-mixup: shares come from Beta(α, α); 1: any share alike", above=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        idle = sorted(set(self.changed()) - {"method", *USES[self.method]})
        if idle:
            known = ", ".join(USES[self.method]) or "no options"
            raise ParameterError(f"augment={self.method} has no use for {idle[0]}; it takes {known}")

    def __repr__(self) -> str:
        options = (f"{name}={value!r}" for name, value in self.changed().items() if name != "method")
        return f"Augmentation({', '.join([repr(self.method), *options])})"

    @property
    def of_labels(self) -> bool:
        """Whether label texts become points."""
        return self.method not in ("none", "synonyms", *OF_EMBEDDINGS)

    @property
    def of_embeddings(self) -> bool:
        """Whether it is a matter of networks, which mix the vectors of points as they are trained."""
        return self.method in OF_EMBEDDINGS

    def check(self, data: Dataset, labels: Labels, kind: str) -> None:
        """Refuse data that lacks what is needed, in the name of a recipe (`kind`)."""
        if self.method in ("none", "auto"):
            return
        if not data.has_text:
            raise UnsupportedError(
                f"{kind}: augment={self.method} needs texts, but the points of this corpus are rows of features; "
                "give it a corpus with texts, or leave augment at none"
            )
        wants_texts = self.of_labels or self.method == "label-mixup"
        if wants_texts and not usable_labels(labels).any():
            does = "makes training points of" if self.of_labels else "mixes training points with"
            raise UnsupportedError(
                f"{kind}: augment={self.method} {does} label texts, but the labels of this corpus have none; "
                "give labels texts (docs/data.md), or leave augment at none"
            )

    def candidates(self, data: Dataset, labels: Labels) -> list[Augmentation]:
        """What is to be tried on the validation part: itself alone, unless it is `auto`."""
        if self.method != "auto":
            return [self]
        if not data.has_text or not usable_labels(labels).any():
            log.info("augment: there are no label texts, so nothing is added to the training points")
            return [Augmentation()]
        given = self.changed()
        return [
            Augmentation.of(method=method, **{**usual, **{name: given[name] for name in USES[method] if name in given}})
            for method, usual in TRIED.items()
        ]

    def usual(self, data: Dataset, labels: Labels) -> Augmentation:
        """What to take where there is no validation part to decide on: itself, unless it is `auto`."""
        if self.method != "auto":
            return self
        tried = self.candidates(data, labels)
        return next((candidate for candidate in tried if candidate.method == "self"), tried[0])

    @property
    def spelled(self) -> str:
        """On one line, as "gandalf-shrunk delta=0.3"."""
        return " ".join(
            [self.method, *(f"{name}={value}" for name, value in self.changed().items() if name != "method")]
        )


def usable_labels(labels: Labels) -> NDArray[np.bool_]:
    """Which labels can be points (L,): those that have a text and are not removed."""
    if labels.texts is None:
        return np.zeros(len(labels), bool)
    usable = _native.count_words(labels.texts.data, labels.texts.offsets) > 0
    return usable if labels.removed is None else usable & ~labels.removed
