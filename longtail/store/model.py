"""Saved models: what every engine gets for naming its arrays."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
from numpy.typing import NDArray

from longtail.core.decision import Decision
from longtail.core.errors import DataError, ParameterError, StoreError, shorten
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.recipe import Recipe, recipes
from longtail.store.cache import forget
from longtail.store.folder import RUN, check_place, open_folder, save_folder, size_of
from longtail.store.manifest import plain, read_manifest
from longtail.store.parts import pack_labels, unpack_labels

log = logging.getLogger("longtail")

MANIFEST = "model.json"
KIND = "longtail-model"
LABELS = "labels"  # arrays of this name and prefix are those of the label space
DECISION = "decision"  # and these of the model's calibration and cut-off


@dataclass(frozen=True)
class Saved:
    """What a model folder holds, opened: `arrays` are mapped from the disk and read-only."""

    recipe: Recipe
    labels: Labels
    arrays: Mapping[str, NDArray[Any]]
    meta: dict[str, Any]
    about: dict[str, Any]


class StoredModel(Model):
    """A model that is arrays and a few JSON values.

    Its recipe names it in `model_class`, by which `load` finds it again.
    """

    @abstractmethod
    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON values that, with recipe and labels, are all of this model."""

    @classmethod
    @abstractmethod
    def from_state(cls, saved: Saved) -> Self:
        """The model whose `state` was saved."""

    @classmethod
    def load(cls, folder: str | Path, verify: bool = True) -> Self:
        """The model of this class in a folder; `longtail.load` takes one of any class."""
        model = load(folder, verify)
        if not isinstance(model, cls):
            raise StoreError(f"{folder}: holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def save(self, folder: str | Path, overwrite: bool = False, replaces: str | None = None) -> None:
        """Write the model to a new or empty folder, atomically; with `overwrite` also over a model that is there.

        With `replaces` (a `generation`, as `describe` returns it), a model that is there is replaced only if it is
        still of that generation.
        """
        arrays, meta = self.state()
        for part in (LABELS, DECISION):
            own = sorted(name for name in arrays if name.startswith(f"{part}."))
            if own:
                raise StoreError(f"array {own[0]!r} of this model stands in the place of its {part}; call it otherwise")
        label_arrays, labels = pack_labels(LABELS, self.labels)
        manifest = {
            "recipe": self.recipe.name,
            "settings": _settings(self.recipe),
            "labels": labels,
            "about": self.about,
            "meta": meta,
        }
        if self.decision is not None:
            decision_arrays, manifest[DECISION] = self.decision.state()
            arrays = arrays | {f"{DECISION}.{name}": array for name, array in decision_arrays.items()}
        save_folder(folder, MANIFEST, KIND, manifest, label_arrays | arrays, overwrite=overwrite, replaces=replaces)
        try:
            forget(Path(folder) / RUN)  # the training has succeeded: its checkpoints are of no more use
        except StoreError as error:
            log.warning("checkpoints of the training could not be deleted: %s", error)


def load(folder: str | Path, verify: bool = True) -> Model:
    """The model in a folder, its arrays mapped.

    With `verify` all files are read once and compared with their checksums; without it a large model opens
    in milliseconds, and damage inside a file is not noticed.
    """
    path = Path(folder) / MANIFEST
    manifest, arrays = open_folder(folder, MANIFEST, KIND, verify)
    _check_fields(path, manifest)
    recipe = _recipe(path, manifest)
    model_class = recipe.model_class()
    if not issubclass(model_class, StoredModel):
        raise StoreError(f"{path}: {recipe.kind} makes {model_class.__name__}, which cannot be opened from a folder")
    shared = (f"{LABELS}.", f"{DECISION}.")
    own = {name: array for name, array in arrays.items() if not name.startswith(shared)}
    try:
        labels = unpack_labels(LABELS, arrays, manifest["labels"], check=verify)
        model = model_class.from_state(Saved(recipe, labels, own, manifest["meta"], manifest["about"]))
        model.decision = _decision(manifest, arrays)
        return model
    except (StoreError, DataError, ParameterError) as error:
        raise StoreError(f"{path.parent}: {error}") from error
    except KeyError as error:
        raise StoreError(f"{path.parent}: {error} is not in it; it is damaged: train the model again") from error
    except (TypeError, AttributeError, IndexError, ValueError) as error:  # JSON or arrays of another shape
        raise StoreError(f"{path.parent}: what it holds does not fit; it is damaged: train again ({error})") from error


def describe(folder: str | Path) -> dict[str, Any]:
    """The manifest of a saved model, and under `bytes` its size on disk; no array is opened."""
    manifest = read_manifest(folder, MANIFEST, KIND)
    _check_fields(Path(folder) / MANIFEST, manifest)
    return manifest | {"bytes": size_of(folder, MANIFEST, manifest)}


def check_model_place(folder: str | Path) -> bool:
    """Whether a folder holds a model; one that a model could not be saved in is refused."""
    return check_place(Path(folder), MANIFEST, KIND) is not None


def _check_fields(path: Path, manifest: dict[str, Any]) -> None:
    for key, kind in (("recipe", str), ("settings", dict), ("labels", dict), ("about", dict), ("meta", dict)):
        if not isinstance(manifest.get(key), kind):
            what = f"is {shorten(manifest[key])}" if key in manifest else "is not in it"
            raise StoreError(f"{path}: {key!r} {what}; it is damaged: train the model again")


def _decision(manifest: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Decision | None:
    """The decision of a saved model; most have none, and older ones do not know of it."""
    if manifest.get(DECISION) is None:
        return None
    prefix = f"{DECISION}."
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return Decision.from_state(own, manifest[DECISION])


def _settings(recipe: Recipe) -> dict[str, Any]:
    """What differs from the recipe's defaults; refuses what would not come back the same."""
    settings: dict[str, Any] = orjson.loads(orjson.dumps(plain(recipe.changed(), "settings")))
    try:
        if type(recipe).of(**settings) == recipe:
            return settings
    except ParameterError:
        pass
    raise StoreError(f"{recipe.kind}: these settings cannot be kept in a file: {recipe.changed()}")


def _recipe(path: Path, manifest: dict[str, Any]) -> Recipe:
    """The recipe a manifest names, with its settings."""
    name, writer = manifest["recipe"], manifest["longtail"]
    if name not in list(recipes):
        raise StoreError(
            f"{path}: was made by the recipe {name!r} of longtail {writer}, which is not known here "
            f"(known: {', '.join(sorted(recipes)) or 'none'}); use that longtail, or train again"
        )
    try:
        renamed = recipes[name].renamed
        return recipes[name].of(**{renamed.get(key, key): value for key, value in manifest["settings"].items()})
    except (ParameterError, TypeError) as error:
        raise StoreError(
            f"{path}: its settings, written by longtail {writer}, do not fit here: {error} "
            "Use that longtail, or train again"
        ) from error
