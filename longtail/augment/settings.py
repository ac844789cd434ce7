"""The settings of augmentation: the `augment` field of every recipe."""

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
USES: dict[str, tuple[str, ...]] = {  # the options that each method uses
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
TRIED: dict[str, dict[str, float]] = {  # by auto; δ chosen on validation (debian-related, eurlex57k-titles)
    "none": {},
    "self": {},
    "gandalf": {},
    "gandalf-shrunk": {"delta": 0.3},
}
OF_EMBEDDINGS = ("mixup", "label-mixup")  # do not change training points: a network mixes embeddings during training


@dataclass(frozen=True)
class Augmentation(Parameters):
    """How a training set D is augmented, usually by Z: the label texts z_j as additional training points.

    The target of label i at z_j depends on the method. `gandalf`: y_ji = G_ij / G_jj if above δ (eq. 1.6), with G the
    number of points two labels share. `gandalf-shrunk`: G_ij / (G_jj + κ). `self`: only y_jj = 1. `glas`: σ of the
    symmetric estimate. `walk`: from visit counts of random walks. `labels-only` is Z of eq. 1.6 without D; `budgeted`
    draws as many points from D ∪ Z as D has. `synonyms` adds copies of D with some words replaced. `mixup` and
    `label-mixup` leave D unchanged; the network trains on vectors between two points, or between a point and one of its
    label texts. `auto` compares some of these on the validation part.
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
        10.0, "κ of gandalf-shrunk: reduces the targets of labels with few examples", at_least=0.0
    )  # chosen in the same way as TRIED
    share: float = param(1.0, "share of the labels whose texts become points", above=0.0, at_most=1.0)
    order: Literal["uniform", "tail-first"] = param("uniform", "which labels to take if share is below 1")
    self_target: Literal["sigmoid", "one"] = param("sigmoid", "a label's target at its own text in glas: σ(1) or 1")
    hops: int = param(400, "hops of a random walk", at_least=1)  # ECLARE: 400
    restart: float = param(0.8, "probability that a walk restarts", at_least=0.0, below=1.0)  # ECLARE: 0.8
    top: int = param(10, "how many labels to keep per walk", at_least=1)  # ECLARE: 10
    head: int = param(500, "labels with more points than this are left out of walks", at_least=1)  # ECLARE: 500
    words: float = param(0.15, "share of the words that synonyms replaces", above=0.0, at_most=1.0)
    near: int = param(5, "a word is replaced by one of this many nearest words", at_least=1)
    copies: int = param(1, "copies of each text made by synonyms", at_least=1, at_most=100)
    # Zhang et al. 2018: 0.1 to 0.4, above that networks underfit; paper 001 gives no value
    mix: float = param(0.2, "α of mixup and label-mixup: shares come from Beta(α, α); 1 means uniform", above=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        idle = sorted(set(self.changed()) - {"method", *USES[self.method]})
        if idle:
            known = ", ".join(USES[self.method]) or "no options"
            raise ParameterError(f"augment={self.method} does not use {idle[0]}; it takes {known}")

    def __repr__(self) -> str:
        options = (f"{name}={value!r}" for name, value in self.changed().items() if name != "method")
        return f"Augmentation({', '.join([repr(self.method), *options])})"

    @property
    def of_labels(self) -> bool:
        """Whether label texts become training points."""
        return self.method not in ("none", "synonyms", *OF_EMBEDDINGS)

    @property
    def of_embeddings(self) -> bool:
        """Whether the method mixes embeddings, which only networks do, during training."""
        return self.method in OF_EMBEDDINGS

    def check(self, data: Dataset, labels: Labels, kind: str) -> None:
        """Refuse data without the texts that the method needs; `kind` is the recipe's name in error messages."""
        if self.method in ("none", "auto"):
            return
        if not data.has_text:
            raise UnsupportedError(
                f"{kind}: augment={self.method} needs texts, but the points of this corpus are rows of features; "
                "use a corpus with texts, or augment=none"
            )
        wants_texts = self.of_labels or self.method == "label-mixup"
        if wants_texts and not usable_labels(labels).any():
            does = "makes training points from" if self.of_labels else "mixes training points with"
            raise UnsupportedError(
                f"{kind}: augment={self.method} {does} label texts, but the labels of this corpus have none; "
                "add label texts (docs/data.md), or use augment=none"
            )

    def candidates(self, data: Dataset, labels: Labels) -> list[Augmentation]:
        """Return the settings to compare on the validation part: only itself, unless the method is `auto`."""
        if self.method != "auto":
            return [self]
        if not data.has_text or not usable_labels(labels).any():
            log.info("augment: there are no label texts, so no training points are added")
            return [Augmentation()]
        given = self.changed()
        return [
            Augmentation.of(method=method, **{**usual, **{name: given[name] for name in USES[method] if name in given}})
            for method, usual in TRIED.items()
        ]

    def usual(self, data: Dataset, labels: Labels) -> Augmentation:
        """Return the settings to use if there is no validation part to decide on: itself, unless it is `auto`."""
        if self.method != "auto":
            return self
        tried = self.candidates(data, labels)
        return next((candidate for candidate in tried if candidate.method == "self"), tried[0])

    @property
    def spelled(self) -> str:
        """Return the settings on one line, such as "gandalf-shrunk delta=0.3"."""
        return " ".join(
            [self.method, *(f"{name}={value}" for name, value in self.changed().items() if name != "method")]
        )


def usable_labels(labels: Labels) -> NDArray[np.bool_]:
    """Return a mask (L,) of the labels that can become points: they have a text and are not removed."""
    if labels.texts is None:
        return np.zeros(len(labels), bool)
    usable = _native.count_words(labels.texts.data, labels.texts.offsets) > 0
    return usable if labels.removed is None else usable & ~labels.removed
