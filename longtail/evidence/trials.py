"""What is measured: a recipe with its settings, trained on a corpus with a seed; and the id of such a run."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import orjson

from longtail.core.errors import PackageError, ParameterError
from longtail.core.recipe import Recipe, recipe, recipes

EVALUATION = 1  # to be raised when the same predictions get other figures; older records no longer count then


@dataclass(frozen=True)
class System:
    """A recipe by name, with the settings `--set` would give it, as (key, value) pairs, over those of a preset."""

    recipe: str
    settings: tuple[tuple[str, Any], ...] = ()
    preset: str | None = None

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any] | None = None, preset: str | None = None) -> System:
        """The system with these settings, given as a dict."""
        return cls(name, tuple((settings or {}).items()), preset)

    @property
    def given(self) -> dict[str, Any]:
        """All settings, including those of the preset."""
        return {**recipes[self.recipe].preset(self.preset), **dict(self.settings)}

    @property
    def lacks(self) -> str | None:
        """What this version of longtail does not have of it: the recipe, or one of its settings; None if it has all."""
        try:
            known = {field.name for field in fields(recipes[self.recipe])}
        except (ParameterError, PackageError):  # unknown, or its package does not work
            return self.recipe
        unknown = [key for key, _ in self.settings if key.partition(".")[0] not in known]
        return f"the setting {unknown[0]} of {self.recipe}" if unknown else None

    def made(self) -> Recipe:
        """The recipe; raises an error for settings that `longtail train` would refuse."""
        return recipe(self.recipe, preset=self.preset, **dict(self.settings))

    def __str__(self) -> str:
        preset = [] if self.preset is None else [f"--preset {self.preset}"]
        return " ".join([self.recipe, *preset, *(f"{key}={value}" for key, value in self.settings)])


@dataclass(frozen=True)
class Trial:
    """One run, made or still to make; `changed` is what differs from the recipe's defaults, as recorded in results."""

    corpus: str
    digest: str
    system: System
    changed: tuple[tuple[str, Any], ...]
    version: int
    seed: int

    @classmethod
    def of(cls, corpus: str, digest: str, system: System, seed: int) -> Trial:
        """A run of this system; raises an error for wrong settings or seeds."""
        if not 0 <= seed < 2**63:
            raise ParameterError(f"seed must be at least 0 and below 2^63; got {seed}")
        made = system.made()
        changed = {key: told(value) for key, value in made.changed().items()}
        return cls(corpus, digest, system, tuple(sorted(changed.items())), made.version, seed)

    @property
    def id(self) -> str:
        """The same for the same corpus, recipe, settings, seed and version of the code, on any machine."""
        return digest_of(
            {
                "corpus": self.digest,
                "recipe": self.system.recipe,
                "settings": dict(self.changed),
                "seed": self.seed,
                "version": self.version,
                "evaluation": EVALUATION,
                **self.package,
            }
        )

    @property
    def package(self) -> dict[str, str]:
        """The package that offers the recipe, as a part of id and record; empty for a recipe of ours."""
        offer = recipes.offer(self.system.recipe)
        return {} if offer is None else {"package": offer.package}

    @property
    def after_training(self) -> dict[str, Any]:
        """Those of its settings that change nothing of the training (`Recipe.settings_after_training`).

        None asks the training to choose a value, so it is not one of them.
        """
        made = self.system.made()
        late = [key for key, _ in self.system.settings if key in made.settings_after_training()]
        return {key: getattr(made, key) for key in late if getattr(made, key) is not None}

    @property
    def training(self) -> Trial:
        """The run without those settings: runs that have it in common can share one training."""
        late = self.after_training
        kept = tuple((key, value) for key, value in self.system.settings if key not in late)
        return Trial.of(self.corpus, self.digest, replace(self.system, settings=kept), self.seed) if late else self

    @property
    def network(self) -> Trial:
        """The training without the settings of its last stage: trainings that have it in common can share a network."""
        own = self.training
        late = own.system.made().settings_of_last_stage()
        kept = tuple((key, value) for key, value in own.system.settings if key not in late)
        if len(kept) == len(own.system.settings):
            return own
        return Trial.of(self.corpus, self.digest, replace(own.system, settings=kept), self.seed)

    @property
    def name(self) -> str:
        """The recipe and what differs from its defaults, for display."""
        return name_of(self.system.recipe, dict(self.changed))

    def __str__(self) -> str:
        return f"{self.corpus}: {self.name}, seed {self.seed}"

    def record(self) -> dict[str, Any]:
        """The first fields of a line of the results."""
        return {
            "kind": "run",
            "id": self.id,
            "corpus": {"name": self.corpus, "digest": self.digest},
            "recipe": self.system.recipe,
            "settings": dict(self.changed),
            "seed": self.seed,
            "version": {"recipe": self.version, "evaluation": EVALUATION},
            **self.package,
        }


def name_of(name: str, settings: Mapping[str, Any]) -> str:
    """The name of a system for display, as "xr-linear augment=self beam=20"."""
    return " ".join([name, *(f"{key}={value}" for key, value in sorted(settings.items()))])


def digest_of(value: Any) -> str:
    """The first half of a SHA-256 over the JSON of `value`, keys sorted."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def told(value: Any) -> Any:
    """A setting as results record it: for a file its name and content, since its folder means nothing elsewhere."""
    if isinstance(value, str) and (Path(value).suffix or Path(value).name != value) and Path(value).is_file():
        return f"{Path(value).name}:{hashlib.sha256(Path(value).read_bytes()).hexdigest()[:12]}"
    return value


def grid(
    names: Sequence[str],
    settings: Mapping[str, Any],
    values: Mapping[str, Sequence[Any]] | None = None,
    preset: str | None = None,
) -> list[System]:
    """Every recipe with `settings` and every combination of `values`, in the given order, on top of a preset."""
    values = values or {}
    if clash := sorted(set(settings) & set(values)):
        raise ParameterError(f"{clash[0]} is given both one value (--set) and several (--grid); give one of the two")
    return [
        System.of(name, {**settings, **dict(zip(values, combination, strict=True))}, preset)
        for name in names
        for combination in itertools.product(*values.values())
    ]


def trials_of(corpus: str, digest: str, systems: Iterable[System], seeds: Iterable[int]) -> list[Trial]:
    """The runs of a grid on one corpus, each once: systems with the same settings in the end count once."""
    seeds = list(seeds)
    made = [Trial.of(corpus, digest, system, seed) for system in systems for seed in seeds]
    return list({trial.id: trial for trial in made}.values())
