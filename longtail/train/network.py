"""The base of recipes that train networks with the training loop: how many, for how many steps, and how they resume.

Importing this file does not need torch; training does.
"""

from __future__ import annotations

import hashlib
import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import orjson

from longtail.core.errors import MissingExtraError, ParameterError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param, param_of
from longtail.core.run import Run
from longtail.data.dataset import Dataset
from longtail.train.recipe import TrainedRecipe
from longtail.train.settings import LoopParameters
from longtail.train.validation import chosen_by, validate

if TYPE_CHECKING:
    from longtail.train.learner import Learner

log = logging.getLogger("longtail")
History = list[dict[str, Any]]


@dataclass(frozen=True)
class NetworkRecipe(TrainedRecipe):
    """A recipe that trains `trees` networks and averages their scores.

    A subclass implements `read`, `network` and `model`. The networks that were scored on the validation part are kept.
    With `refit` they are trained once more, on all of train, for the steps that were best: those of the best epoch with
    `patience`, else all. This is also done without `refit` where more than 15 % of train was held out, as it is of a
    small corpus; but not with `patience`.
    """

    version = 3
    needs: ClassVar[tuple[str, ...]] = ("text",)
    supports = frozenset({"device", "budget", "resume"})
    refit_above = 0.15  # a tenth of train is held out, but at least 200 points
    mixes = True

    trees: int = param(1, "networks whose scores are averaged, each with clusters of its own", at_least=1)
    batch: int = param_of(LoopParameters, "batch")
    accumulate: int = param_of(LoopParameters, "accumulate")
    clip: float | None = param_of(LoopParameters, "clip")
    precision: Literal["float32", "bfloat16"] = param_of(LoopParameters, "precision")
    min_steps: int = param_of(LoopParameters, "min_steps")
    steps: int | None = param_of(LoopParameters, "steps")
    patience: int | None = param_of(LoopParameters, "patience")
    curve: bool = param(False, "score the validation part after every epoch of the last phase")
    refit: bool = param(False, "train once more on all of train, for the steps that were best")

    @abstractmethod
    def read(self, data: Dataset, labels: Labels, run: Run) -> Any:
        """What all networks of this recipe learn from: the training set as they read it."""

    @abstractmethod
    def network(self, read: Any, seed: int) -> Learner:
        """A network and its phases, not yet trained; the state of torch's random numbers follows from `seed`."""

    @abstractmethod
    def model(self, read: Any, labels: Labels, learners: list[Learner]) -> Model:
        """What predicts, made of trained networks."""

    def last_stage(self, read: Any, labels: Labels, learners: list[Learner], run: Run) -> Model:
        """What predicts in the end: by default the networks; or something that is trained on their features."""
        return self.model(read, labels, learners)

    def finish(self, model: Model, validation: Dataset | None) -> Model:
        """Called with the model of all trained networks, to choose what needs no training; by default nothing is."""
        return model

    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> Model:
        """Train each network in its phases; with a budget, for as many steps as measuring shows that it allows."""
        if self.patience is not None and validation is None:
            log.warning("patience=%d has no validation part to watch here: all steps are taken", self.patience)
        read = self._read_with_torch(data, labels, run)
        recipe = self
        if run.budget is not None and self.steps is None:
            recipe = replace(self, steps=self._steps_for_budget(read, data, labels, run, validation))
        return recipe._train_networks(read, data, labels, run, validation)

    def retrain(self, chosen: Model, data: Dataset, labels: Labels, run: Run) -> Model:
        """Train for as many steps of each phase as the networks of `chosen` were, up to those that were kept."""
        model = self._train_networks(
            self._read_with_torch(data, labels, run), data, labels, run, None, chosen.about["steps"]
        )
        again = [row | {"refit": True} for row in model.about["training"]]
        model.about["training"] = chosen.about["training"] + again
        if before := chosen.about.get("seconds_before", 0.0) + model.about.get("seconds_before", 0.0):
            model.about["seconds_before"] = round(before, 3)
        return model

    @property
    def watches(self) -> bool:
        """Whether the validation part is scored after every epoch of the last phase."""
        return self.curve or self.patience is not None

    @property
    def looks_at_scores(self) -> bool:
        """Whether training or a decision depends on scores of the validation part."""
        return self.patience is not None or self.decides

    def refits(self, held_out: float) -> bool:
        """On request; else of small corpora, but with patience the networks that were best there are kept."""
        return self.refit or (self.patience is None and super().refits(held_out))

    def check_run(self, run: Run) -> None:
        """Refuse a budget together with `steps`: both say how long to train."""
        super().check_run(run)
        if run.budget is not None and self.steps is not None:
            raise ParameterError(f"{self.kind}: a budget and steps={self.steps} contradict each other; give one")

    def loop_parameters(self) -> LoopParameters:
        """The settings of the training loop."""
        return LoopParameters(**{field.name: getattr(self, field.name) for field in fields(LoopParameters)})

    def checkpoint_key(self, data: Dataset, labels: Labels, seed: int) -> str:
        """All that a checkpoint depends on: recipe, settings that a network's training reads, seed, data."""
        last = self.settings_of_last_stage()
        settings = {name: value for name, value in self.changed().items() if name not in last}
        told = {"recipe": self.name, "version": self.version, "settings": settings, "seed": seed}
        digests = f"{data.digest()} {labels.digest()}"
        return orjson.dumps(told | {"data": hashlib.sha256(digests.encode()).hexdigest()}).decode()

    def _read_with_torch(self, data: Dataset, labels: Labels, run: Run) -> Any:
        try:
            import longtail.train.loop  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(self.kind, "deep") from error
        return self.read(data, labels, run)

    def _train_networks(
        self,
        read: Any,
        data: Dataset,
        labels: Labels,
        run: Run,
        validation: Dataset | None,
        like: dict[str, Any] | None = None,
    ) -> Model:
        """All networks, one after another; `like` are the steps of an earlier training that are to be repeated."""
        from longtail.train.loop import Loop

        learners: list[Learner] = []
        history: History = []
        kept: list[int] = []
        before = 0.0  # seconds of earlier processes, which were interrupted
        for number in range(self.trees):
            own = replace(run, seed=(run.seed + (number << 40)) % 2**63)  # far from the seeds of other networks
            learner = self._seeded_network(read, own.seed)
            key, watch = self.checkpoint_key(data, labels, own.seed), self._watch(read, labels, learner, validation)
            planned, stop = (None, None) if like is None else (like["planned"], like["kept"][number])
            loop = Loop(learner, self.loop_parameters(), own, key, watch, planned, stop)
            rows = loop.train()
            before += loop.seconds_before
            history += [{"network": number + 1} | row for row in rows]
            kept.append(kept_step(rows, self.patience))
            learners.append(learner)
        model = self.finish(self.last_stage(read, labels, learners, run), validation)
        model.about["training"] = history
        model.about["steps"] = {"planned": loop.steps, "kept": kept}
        if before:
            model.about["seconds_before"] = round(before, 3)
        return model

    def _seeded_network(self, read: Any, seed: int) -> Learner:
        """A network whose random start follows from the seed."""
        import torch

        torch.manual_seed(int(np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0] >> 1))
        return self.network(read, seed)

    def _watch(
        self, read: Any, labels: Labels, learner: Learner, validation: Dataset | None
    ) -> Callable[[], dict[str, float]] | None:
        """What scores a network while it is trained; None where nothing asks for it."""
        if validation is None or not self.watches:
            return None
        return lambda: chosen_by(validate(self.model(read, labels, [learner]), validation))

    def _steps_for_budget(self, read: Any, data: Dataset, labels: Labels, run: Run, validation: Dataset | None) -> int:
        """How many steps the rest of the budget allows each network."""
        from longtail.train.budget import Costs, steps_for_budget

        def score(learner: Learner) -> None:
            model = self.last_stage(read, labels, [learner], replace(run, folder=None, resume=False))
            if validation is not None:
                validate(model, validation)

        watched = self.watches and validation is not None
        costs = Costs(score, networks=self.trees, scorings=3 if self.decides else 1, every_epoch=watched)
        last = {name: value for name, value in self.changed().items() if name in self.settings_of_last_stage()}
        key = f"steps {self.checkpoint_key(data, labels, run.seed)} {last} {run.budget}"
        return steps_for_budget(lambda: self._seeded_network(read, run.seed), self.loop_parameters(), run, key, costs)


def kept_step(rows: History, patience: int | None) -> int:
    """The step, counted over all phases, of the network that was kept: its best epoch, or the last."""
    scored = [row for row in rows if "validation" in row]
    if patience is None or not scored:
        return int(rows[-1]["step"])
    return int(max(scored, key=lambda row: row["validation"]["mean"])["step"])
