"""What recipes of the torch engines have in common: how they are trained, watched, and taken up again."""

from __future__ import annotations

import hashlib
import logging
import time
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import orjson

from longtail.core.errors import DataError, MissingExtraError, ParameterError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param, param_of
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.recipes.refit import Draft, RefitRecipe, chosen_by, validate
from longtail.store.cache import find, keep
from longtail.train.settings import LoopParameters

if TYPE_CHECKING:
    from longtail.cascade.mixing import Mixing
    from longtail.train.learner import Learner

log = logging.getLogger("longtail")


@dataclass(frozen=True)
class DeepRecipe(RefitRecipe):
    """A recipe that trains a network.

    `prepare` reads the training set once; `learner` makes the network of one of the `trees`, `model` what predicts. The
    network that was scored on the validation part is kept; only of a small corpus, whose validation part is much of
    it, a network is trained again on everything.
    """

    version = 2
    needs: ClassVar[tuple[str, ...]] = ("text",)
    keeps_to = frozenset({"device", "budget", "resume"})
    keeps_up_to = 0.15  # of train: a tenth is held out, but 200 points at the least
    mixes = True

    dimension: int = param(300, "of word vectors", at_least=1)
    trees: int = param(1, "networks whose scores are averaged, each with clusters of its own", at_least=1)
    batch: int = param_of(LoopParameters, "batch")
    accumulate: int = param_of(LoopParameters, "accumulate")
    clip: float | None = param_of(LoopParameters, "clip")
    precision: Literal["float32", "bfloat16"] = param_of(LoopParameters, "precision")
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
        if self.patience is not None:
            log.warning("patience=%d has no validation part to watch here: all steps are taken", self.patience)
        return self.train_watched(data, labels, None, run)

    def train_watched(self, data: Dataset, labels: Labels, validation: Dataset | None, run: Run) -> Model:
        """Each network in its phases; with a budget, after a rehearsal that says how many steps it allows."""
        try:
            import longtail.train.loop  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(self.kind, "deep") from error
        prepared = self.prepare(data, labels, run)
        if run.budget is not None and self.steps is None:
            steps = self.steps_within_budget(prepared, data, labels, validation, run)
            return replace(self, steps=steps).train_prepared(prepared, data, labels, validation, run)
        return self.train_prepared(prepared, data, labels, validation, run)

    def train_prepared(
        self, prepared: Any, data: Dataset, labels: Labels, validation: Dataset | None, run: Run
    ) -> Model:
        """Each network in its phases; the number of steps is settled."""
        from longtail.train.loop import Loop

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
            loop = Loop(learner, self.loop_parameters(), own, key, watch if validation is not None else None)
            history += [{"network": number + 1} | row for row in loop.train()]
            learners.append(learner)
        model = self.model(prepared, labels, learners)
        model.about["training"] = history
        return model

    def loop_parameters(self) -> LoopParameters:
        """What the loop is told."""
        return LoopParameters(**{field.name: getattr(self, field.name) for field in fields(LoopParameters)})

    def check_run(self, run: Run) -> None:
        """A budget says how many steps there are, and so may not be given with these."""
        super().check_run(run)
        if run.budget is not None and self.steps is not None:
            raise ParameterError(f"{self.kind}: a budget and steps={self.steps} contradict each other; give one")

    def fit(self, corpus: Corpus, run: Run | None = None) -> Model:
        """As every recipe; what is trained to compare, and again with the dev part, shares the budget."""
        run = run or Run()
        if run.budget is not None:
            run = replace(run, budget=run.budget / self.trainings(corpus, run))
        return super().fit(corpus, run)

    def trained_again(self, corpus: Corpus, split: Corpus, run: Run) -> bool:
        """With patience the network is kept that was best on the validation part, however small the corpus."""
        return super().trained_again(corpus, split, run) and (self.patience is None or run.train_on_dev)

    def trainings(self, corpus: Corpus, run: Run) -> int:
        """How many networks `fit` trains, one after another."""
        try:
            again = self.trained_again(corpus, corpus.with_validation(run.seed), run)
        except DataError:  # there is nothing to hold out
            return 1
        return len(self.augment.candidates(corpus.train, corpus.labels)) + again

    def draft(self, data: Dataset, labels: Labels, validation: Dataset, run: Run) -> tuple[Draft, list[dict[str, Any]]]:
        """The clock of a budget begins here."""
        return super().draft(data, labels, validation, begun(run))

    def trained(self, data: Dataset, labels: Labels, run: Run) -> Model:
        """Here too."""
        return super().trained(data, labels, begun(run))

    def steps_within_budget(
        self, prepared: Any, data: Dataset, labels: Labels, validation: Dataset | None, run: Run
    ) -> int:
        """What the rest of the budget allows, measured on a network that is thrown away.

        A training that is taken up again keeps the number it had.
        """
        from longtail.train.budget import MARGIN, Rehearsal, steps_within
        from longtail.train.learner import steps_of

        budget, key = run.budget or 0.0, f"steps {self.checkpoint_key(data, labels, run.seed)} {run.budget}"
        kept = find(run.folder, key) if run.resume and run.folder is not None else None
        if kept is not None:
            return int(kept["steps"][0])
        settings = self.loop_parameters()
        seeded(run.seed)
        learner = self.learner(prepared, run.seed)
        rehearsal = Rehearsal(learner, settings, replace(run, folder=None, resume=False))
        log.info("measuring how many steps a budget of %.0f s allows", budget)
        phases = rehearsal.measure(budget)
        began = time.monotonic()
        model = self.model(prepared, labels, [learner])
        if validation is not None:
            validate(model, validation)
        once = time.monotonic() - began  # to make a model of a network and see how good it is
        if validation is not None and self.patience is not None:  # which is done after every epoch of the last phase
            phases[-1] = replace(phases[-1], step=phases[-1].step + once * settings.batch / learner.points)
        until = time.monotonic() + budget if run.until is None else run.until
        left = (until - time.monotonic()) * (1 - MARGIN) / self.trees - once * self.validations
        planned = steps_of(learner.phases, learner.points, settings)
        steps = rehearsal.agreed(steps_within(left, phases, planned))
        log.info("the budget of %.0f s allows %d of %d steps: --set steps=%d", budget, steps, sum(planned), steps)
        if run.folder is not None:
            keep(run.folder, key, {"steps": np.array([steps])})
        return steps

    @property
    def validations(self) -> int:
        """How often a trained model ranks the validation part, at most."""
        return 3 if self.decides else 1

    def checkpoint_key(self, data: Dataset, labels: Labels, seed: int) -> str:
        """All that a checkpoint depends on."""
        told = {"recipe": self.name, "version": self.version, "settings": self.changed(), "seed": seed}
        digests = f"{data.digest()} {labels.digest()}"
        return orjson.dumps(told | {"data": hashlib.sha256(digests.encode()).hexdigest()}).decode()


def begun(run: Run) -> Run:
    """The run with its budget counted from now."""
    return run if run.budget is None else replace(run, until=time.monotonic() + run.budget)


def seeded(seed: int) -> None:
    """How a network begins follows from the seed."""
    import torch

    torch.manual_seed(int(np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0] >> 1))
