"""Several recipes as one: each names candidates, and what they say of them is fused by what is best on validation.

longtail train DATA --recipe ensemble --set members=xr-linear,neighbours,unidec:small --out MODEL
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, cast

from longtail.augment import Augmentation
from longtail.core.errors import LongtailError, ParameterError
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.parameters import param
from longtail.core.run import Run
from longtail.data.corpus import Corpus
from longtail.data.dataset import Dataset
from longtail.ensemble.choose import Fuse, FuseSettings, check_weights
from longtail.ensemble.course import failed, train_validated, train_whole
from longtail.ensemble.fuser import Fuser
from longtail.ensemble.members import Member, Members
from longtail.ensemble.model import EnsembleModel, Part
from longtail.ensemble.stack import Stack
from longtail.ensemble.trees import TreeSettings
from longtail.train.recipe import TrainedRecipe

MEMBERS = "xr-linear,neighbours"


@dataclass(frozen=True)
class Ensemble(TrainedRecipe):
    """Members are trained on the same points; a fuser ranks the labels that any of them names.

    Settings of a member are called by its name: unidec.epochs=3. A recipe that is wanted twice needs names:
    members=a=unidec:small,b=unidec:small, and a.epochs=3. Ways to fuse: `mean` of probabilities, or of `rank`s;
    `weights` that are best on the validation part; `stack`, boosted trees over the members' scores and ranks and the
    label's frequency. `auto` takes what is better of the last two, by cross-fitting. `augment` is for all members that
    have no augmentation of their own.
    """

    name = "ensemble"
    title = "several recipes as one, fused by what is best on the validation part"
    chooses_recipes: ClassVar[bool] = True
    other_parameters = " Settings of a member are called by its name, such as neighbours.power."

    members: Members = param(Members.of(members=MEMBERS), "recipes with commas between them, as NAME=RECIPE:PRESET")  # noqa: RUF009
    fuse: Fuse = param("auto", "what ranks the labels that members name")  # noqa: RUF009
    weights: str | None = param(
        None, "weights of the members for mean, rank and weights (none: equal, or chosen): 0.8,0.2"
    )
    depth: int = param(50, "labels that each member names", at_least=1)
    tail: float | None = param(
        None,
        "power of the propensity by which stack divides: rare labels come earlier (none: chosen)",
        at_least=0.0,
        at_most=1.0,
    )
    boost: TreeSettings = param(TreeSettings(), "stack: boosting rounds")  # noqa: RUF009
    refit: Literal["quick", "all", "none"] = param(
        "quick", "members trained again on all of train: those that do it by themselves, all or none"
    )
    on_failure: Literal["stop", "continue"] = param("stop", "what happens if a member cannot be trained")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.given_weights(len(self.members))
        able = frozenset().union(*(member.recipe.supports for member in self.members.each))
        object.__setattr__(self, "supports", able)  # what a member can: the others train without it

    @classmethod
    def of(cls, **values: Any) -> Self:
        """As for all parameters; NAME.SETTING is the setting of a member."""
        own = {key: values[key] for key in values if "." not in key or key in cls.names()}
        of_members = {key: value for key, value in values.items() if key not in own}
        if of_members:
            given = own.get("members", MEMBERS)
            spelled = given.changed() if isinstance(given, Members) else {"members": given}
            own["members"] = Members.of(**{**spelled, **of_members})
        return super().of(**own)

    def changed(self) -> dict[str, Any]:
        """What differs from the defaults; settings of members by NAME.SETTING."""
        found = super().changed()
        return found if "members" not in found else found | self.members.changed()

    def spelled_settings(self) -> dict[str, Any]:
        """As `changed`, but with presets where members have their settings: shorter, for people."""
        own = {key: value for key, value in super().changed().items() if key != "members"}
        return self.members.spelled_settings() | own

    @classmethod
    def model_class(cls) -> type[Model]:
        """The class of the models, `EnsembleModel`."""
        return EnsembleModel

    def fit_validated(self, corpus: Corpus, split: Corpus, run: Run) -> Model:
        """Train the members without the validation part, fuse them by it."""
        return train_validated(self, corpus, split, run)

    def fit_whole(self, corpus: Corpus, run: Run) -> Model:
        """Train the members where there is no validation part."""
        return self.train(corpus.train, corpus.labels, run)

    def train(self, data: Dataset, labels: Labels, run: Run, validation: Dataset | None = None) -> Model:
        """Members of this data with their usual settings, and the mean of what they say, with the weights given."""
        return train_whole(self, data, labels, run)

    def trained_members(self) -> tuple[Member, ...]:
        """The members as they are trained: with the augmentation of the ensemble, where they have none."""
        return self.members.augmented(self.augment).each

    def settled(self, parts: Sequence[Part], fuser: Fuser) -> Ensemble:
        """The recipe with nothing left open: what trains this same model again."""
        own = [cast(TrainedRecipe, part.model.recipe) for part in parts]
        members = tuple(
            Member(part.name, replace(recipe, calibration="none", cut_off="none"))
            for part, recipe in zip(parts, own, strict=True)
        )
        told = fuser.told()
        if isinstance(fuser, Stack):
            chosen: dict[str, Any] = {"fuse": "stack", "tail": fuser.tail, "weights": None}
        elif self.fuse in ("mean", "rank"):
            chosen = {}
        else:
            chosen = {"fuse": "weights", "weights": ",".join(map(str, told["weights"]))}
        return replace(self, members=Members(members), augment=Augmentation(), on_failure="stop", **chosen)

    def fuse_settings(self) -> FuseSettings:
        """What `longtail.ensemble.choose` needs to know."""
        given = self.given_weights(None)
        fuse = "weights" if given is not None and self.fuse == "auto" else self.fuse
        return FuseSettings(fuse, given, self.tail, self.boost)

    def given_weights(self, members: int | None) -> tuple[float, ...] | None:
        """The weights as numbers, which must be as many as there are members; None if none are given."""
        if self.weights is None:
            return None
        try:
            found = tuple(float(part) for part in self.weights.split(","))
        except ValueError:
            found = ()
        if not found or not all(0 <= weight < float("inf") for weight in found) or not any(found):
            raise ParameterError(
                f"{self.kind}: weights must be numbers of at least 0, not all 0, with commas between them; "
                f"got {self.weights!r}"
            )
        return found if members is None else check_weights(found, members)

    def check_corpus(self, corpus: Corpus) -> None:
        """Refuse a corpus that lacks what a member needs."""
        super().check_corpus(corpus)
        for member in self.trained_members():
            try:
                member.recipe.check_corpus(corpus)
            except LongtailError as error:
                if self.on_failure == "stop":
                    raise
                failed(self, member, error)
