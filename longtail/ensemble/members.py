"""Which recipes an ensemble has as members, and the settings of each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from longtail.core.errors import ParameterError, shorten
from longtail.core.parameters import Listed, Parameters
from longtail.core.recipe import recipe as make_recipe
from longtail.core.recipe import recipes
from longtail.train.recipe import TrainedRecipe

NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
FORM = "RECIPE, RECIPE:PRESET or NAME=RECIPE:PRESET"
OF_THE_WHOLE = ("calibration", "cut_off")  # of the ensemble: fitted to what the members say together


@dataclass(frozen=True)
class Member:
    """One member: the name that its settings are given under, and its recipe."""

    name: str
    recipe: TrainedRecipe

    @property
    def spelled(self) -> str:
        """As it stands in `members`, without a preset."""
        return self.name if self.name == self.recipe.name else f"{self.name}={self.recipe.name}"


@dataclass(frozen=True)
class Members(Parameters):
    """Recipes with commas between them, each with a preset after a colon: "xr-linear,neighbours,unidec:small".

    A recipe that stands there twice needs names: "a=unidec:small,b=unidec:small". The settings of a member are called
    by its name: unidec.epochs=3, a.lr=0.001.
    """

    kind = "members"
    each: tuple[Member, ...]

    def __post_init__(self) -> None:
        names = [member.name for member in self.each]
        if not names:
            raise ParameterError(f"members: an ensemble needs a member; give {FORM}, with commas between them")
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ParameterError(f"members: {twice[0]!r} stands there twice; give names: a={twice[0]},b={twice[0]}")

    def __len__(self) -> int:
        return len(self.each)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Members from their spelling (`members`), and settings called NAME.SETTING."""
        spelled = str(values.pop("members"))
        members = [member_of(part.strip(), values) for part in spelled.split(",") if part.strip()]
        if values:
            names = ", ".join(member.name for member in members)
            raise ParameterError(f"members: {next(iter(values))!r} is no setting of a member; members are {names}")
        return cls(tuple(members))

    @classmethod
    def taken(cls, value: Any) -> Self:
        """Members from an object of this class, a dictionary as `of` takes it, or their spelling."""
        if isinstance(value, cls):
            return value
        if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
            value = ",".join(value)
        if not isinstance(value, (str, dict)):
            raise ParameterError(f"members must be {FORM}, with commas between them; got {shorten(value)}")
        return cls.of(**(value if isinstance(value, dict) else {"members": value}))

    @classmethod
    def listed(cls) -> list[Listed]:
        """As one parameter; those of members are listed with their recipes."""
        return [Listed("members", None, str, "")]

    def changed(self) -> dict[str, Any]:
        """The spelling without presets, and what differs from the defaults of each recipe, as NAME.SETTING."""
        found: dict[str, Any] = {"members": self.spelled}
        for member in self.each:
            found |= {f"{member.name}.{key}": value for key, value in member.recipe.changed().items()}
        return found

    @property
    def members(self) -> str:
        """The spelling without presets."""
        return self.spelled

    @property
    def spelled(self) -> str:
        """All members without presets, with commas between them."""
        return ",".join(member.spelled for member in self.each)

    def spelled_settings(self) -> dict[str, Any]:
        """As `changed`, with presets where all of their settings are those of a member."""
        spelled: list[str] = []
        found: dict[str, Any] = {}
        for member in self.each:
            preset, rest = shortest(member.recipe)
            spelled.append(member.spelled if preset is None else f"{member.spelled}:{preset}")
            found |= {f"{member.name}.{key}": value for key, value in rest.items()}
        return {"members": ",".join(spelled), **found}

    def augmented(self, augment: Any) -> Members:
        """The members, with this augmentation where they have none of their own and can have one."""
        return Members(tuple(with_augment(member, augment) for member in self.each))


def member_of(spelled: str, settings: dict[str, Any]) -> Member:
    """The member that "NAME=RECIPE:PRESET" stands for, with its own of the `settings`, which are taken out."""
    name, _, rest = spelled.rpartition("=")
    chosen, _, preset = rest.partition(":")
    name = name.strip() or chosen.strip()
    if not NAME.fullmatch(name):
        raise ParameterError(f"members: a name has small letters, digits and dashes; got {name!r} in {spelled!r}")
    kind = recipes[chosen.strip()]
    if not issubclass(kind, TrainedRecipe) or kind.chooses_recipes:
        raise ParameterError(f"members: {chosen!r} cannot be a member of an ensemble; name the recipes that it trains")
    own = {key.partition(".")[2]: settings.pop(key) for key in list(settings) if key.partition(".")[0] == name}
    wrong = [key for key in own if key in OF_THE_WHOLE]
    if wrong:
        raise ParameterError(
            f"members: {name}.{wrong[0]} is for the ensemble as a whole; give {wrong[0]}={own[wrong[0]]}"
        )
    return Member(name, cast(TrainedRecipe, make_recipe(kind.name, preset=preset.strip() or None, **own)))


def with_augment(member: Member, augment: Any) -> Member:
    """The member with this augmentation, if it has none of its own and trains on more points than those given."""
    if member.recipe.augment.method != "none" or not member.recipe.augments:
        return member
    return replace(member, recipe=replace(member.recipe, augment=augment))


def shortest(recipe: TrainedRecipe) -> tuple[str | None, dict[str, Any]]:
    """A preset whose settings a recipe has, if there is one, and what differs from it otherwise."""
    changed = recipe.changed()
    for name, settings in recipe.presets.items():
        base = type(recipe).of(**settings).changed()
        if base.items() <= changed.items():
            return name, {key: value for key, value in changed.items() if key not in base}
    return None, changed
