"""A recipe: a published system as validated parameters and one verb, `fit`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from longtail.core.errors import ParameterError, UnsupportedError, shorten
from longtail.core.parameters import Parameters
from longtail.core.registry import Registry

if TYPE_CHECKING:  # for types only: core imports nothing from the layers above
    from longtail.core.model import Model
    from longtail.core.run import Run
    from longtail.data.corpus import Corpus


@dataclass(frozen=True)
class Recipe(Parameters):
    """Base of all recipes. A subclass is a frozen dataclass whose fields are made with `param`.

    `name` is what users type, `title` one line about it, `paper` where it was published (or "–"),
    `needs` what the corpus must have: "text" for texts instead of features, "label text" for label texts. `supports`
    names what of a `Run` it can handle; the rest is refused. `presets` are named groups of settings, as "small" for a
    small machine or corpus; settings that are given as well take precedence.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str] = "–"
    needs: ClassVar[tuple[str, ...]] = ()
    version: ClassVar[int] = 1  # raised when the same settings train another model: older measurements no longer count
    supports: ClassVar[frozenset[str]] = frozenset()  # any of "device", "budget", "resume"
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    exempt: ClassVar[dict[str, str]] = {}  # checks of the contract that do not apply to it, each with the reason
    renamed: ClassVar[dict[str, str]] = {}  # old name → new name of parameters, for models saved with the old one

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:  # a base of recipes has no name
            cls.kind = f"recipe {cls.name!r}"

    @classmethod
    def preset(cls, name: str | None) -> dict[str, Any]:
        """The settings of a preset; none for None. An unknown name is refused."""
        if name is None:
            return {}
        if name not in cls.presets:
            known = f"it has {', '.join(cls.presets)}" if cls.presets else "it has none at all"
            raise ParameterError(f"{cls.kind} has no preset {name!r}; {known}")
        return dict(cls.presets[name])

    def fit(self, corpus: Corpus, run: Run | None = None) -> Model:
        """Train on `corpus.train`; the validation part is used for choices, test is never read."""
        raise UnsupportedError(f"{self.kind} cannot be trained")

    def settings_after_training(self) -> frozenset[str]:
        """Settings that change how a trained model predicts and nothing of its training.

        `Model.with_settings` gives a trained model other values of them; the bench then trains once for all values.
        """
        return frozenset()

    def settings_of_last_stage(self) -> frozenset[str]:
        """Settings that only the last stage of a training reads, such as rankers on features of a trained network.

        Trainings that differ in nothing else share what comes before: a checkpoint of one continues the other, and the
        bench trains the network once.
        """
        return frozenset()

    @classmethod
    def model_class(cls) -> type[Model]:
        """The class of the models this recipe trains; it opens a saved one."""
        raise UnsupportedError(f"{cls.kind} does not name the class of its models; a saved one cannot be opened")

    def class_of_model(self) -> type[Model]:
        """The class of the models that these settings train: `model_class`, unless settings change it."""
        return self.model_class()

    def check_run(self, run: Run) -> None:
        """Refuse a device, budget or resume that this recipe does not support, by name."""
        asked = {"budget": run.budget is not None, "resume": run.resume, "device": run.device not in ("auto", "cpu")}
        for name, given in asked.items():
            if given and name not in self.supports:
                raise UnsupportedError(f"{self.kind} has no use for {name}: leave --{name} out")
        if run.resume and run.folder is None:
            raise ParameterError("to resume a training, say where it is saved: --out MODEL, or Run(folder=…)")

    def check_corpus(self, corpus: Corpus) -> None:
        """Refuse a corpus that lacks what this recipe needs, by name."""
        if "text" in self.needs and not corpus.train.has_text:
            raise UnsupportedError(
                f"{self.kind} needs texts, but {corpus.name!r} has feature matrices only; "
                "give it a corpus with texts, or take a recipe that works on features (`longtail recipes`)"
            )
        if "label text" in self.needs and not corpus.labels.has_text:
            raise UnsupportedError(f"{self.kind} needs labels with texts, but those of {corpus.name!r} have none")


def problem_of(name: str, found: object) -> str | None:
    """Why `found`, which another package offers, cannot be the recipe `name`; None if it can."""
    if not isinstance(found, type) or not issubclass(found, Recipe):
        return f"is no class derived from longtail.core.recipe.Recipe, but {shorten(found)}"
    own = getattr(found, "name", None)
    if not isinstance(own, str):
        return f'has no name: write name = "{name}" into the class'
    if own != name:
        return f"is called {own!r} in its class: give the class and the entry point the same name"
    if not isinstance(getattr(found, "title", None), str):
        return 'has no title: write title = "…" into the class, one line about it'
    if undecorated := [key for key, value in vars(found).items() if isinstance(value, dataclasses.Field)]:
        return f"has the parameter {undecorated[0]}, but is no dataclass: write @dataclass(frozen=True) above the class"
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        return f"does not implement {', '.join(missing)}"
    return None


GROUP = "longtail.recipes"  # the entry points by which other packages offer recipes (docs/own-recipe.md)
recipes: Registry[type[Recipe]] = Registry("recipe", GROUP, problem_of)


def recipe(name: str, *, preset: str | None = None, **parameters: Any) -> Recipe:
    """The recipe called `name` with these parameters; all others as in `preset`, or at their defaults."""
    recipes.offers()  # also where the name is ours: it warns of a package that offers one of the same name
    chosen = recipes[name]
    return chosen.of(**{**chosen.preset(preset), **parameters})
