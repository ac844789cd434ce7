"""What recipes of the torch engines have in common: how they are trained, watched, and taken up again."""

from __future__ import annotations

import hashlib
import logging
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import orjson

from longtail.core.errors import MissingExtraError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param, param_of
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.recipes.refit import RefitRecipe, chosen_by, validate
from longtail.train.settings import LoopParameters

if TYPE_CHECKING:
    from longtail.cascade.mixing import Mixing
    from longtail.train.learner import Learner

log = logging.getLogger("longtail")


@dataclass(frozen=True)
class DeepRecipe(RefitRecipe):
    """A recipe that trains a network.

    `prepare` reads the training set once; `learner` makes the network of one of the `trees`, `model` what predicts. A
    network is not trained again on what was held out for validation: the one that was scored is kept.
    """

    needs: ClassVar[tuple[str, ...]] = ("text",)
    keeps_to = frozenset({"device", "budget", "resume"})
    refits = False
    mixes = True

    dimension: int = param(300, "of word vectors", at_least=1)
    trees: int = param(1, "networks whose scores are averaged, each with clusters of its own", at_least=1)
    batch: int = param_of(LoopParameters, "batch")
    accumulate: int = param_of(LoopParameters, "accumulate")
    clip: float | None = param_of(LoopParameters, "clip")
    precision: Literal["float32", "bfloat16", "float16"] = param_of(LoopParameters, "precision")
    min_steps: int = param_of(LoopParameters, "min_steps")
    steps: int | None = param_of(LoopParameters, "steps")
    patience: int | None = param_of(LoopParameters, "patience")

    @abstractmethod
    def prepare(self, data: Dataset, labels: Labels, run: Run) -> Any:
        """What all networks of this recipe learn from."""

    @abstractmethod
    def learner(self, prepared: Any, seed: int) -> Learner:
        """A network, not yet trained."""

    @abstractmethod
    def model(self, prepared: Any, labels: Labels, learners: list[Learner]) -> Model:
        """What predicts."""

    def mixing(self) -> Mixing | None:
        """How points are mixed in training, where `augment` says so; for `learner` to pass on."""
        method = self.augment.method
        if method not in ("mixup", "label-mixup"):
            return None
        from longtail.cascade.mixing import Mixing

        return Mixing(method, self.augment.mix)

    def train(self, data: Dataset, labels: Labels, run: Run) -> Model:
        """Without a validation part to watch."""
        return self.train_watched(data, labels, None, run)

    def train_watched(self, data: Dataset, labels: Labels, validation: Dataset | None, run: Run) -> Model:
        """Each network in its phases."""
        try:
            from longtail.train.loop import Loop
        except ImportError as error:
            raise MissingExtraError(self.kind, "deep") from error
        settings = LoopParameters(**{field.name: getattr(self, field.name) for field in fields(LoopParameters)})
        prepared = self.prepare(data, labels, run)
        learners: list[Learner] = []
        history: list[dict[str, Any]] = []
        for number in range(self.trees):
            own = replace(run, seed=(run.seed + (number << 40)) % 2**63)  # a network apart from its neighbours' seeds
            seeded(own.seed)
            learner = self.learner(prepared, own.seed)

            def watch(learner: Learner = learner) -> float:
                model = self.model(prepared, labels, [learner])
                return chosen_by(validate(model, validation))["mean"] if validation is not None else 0.0

            key = self.checkpoint_key(data, labels, own.seed)
            loop = Loop(learner, settings, own, key, watch if validation is not None else None)
            history += [{"network": number + 1} | row for row in loop.train()]
            learners.append(learner)
        model = self.model(prepared, labels, learners)
        model.about["training"] = history
        return model

    def checkpoint_key(self, data: Dataset, labels: Labels, seed: int) -> str:
        """All that a checkpoint depends on."""
        told = {"recipe": self.name, "version": self.version, "settings": self.changed(), "seed": seed}
        digests = f"{data.digest()} {labels.digest()}"
        return orjson.dumps(told | {"data": hashlib.sha256(digests.encode()).hexdigest()}).decode()


def seeded(seed: int) -> None:
    """How a network begins follows from the seed."""
    import torch

    torch.manual_seed(int(np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0] >> 1))
