"""Saving and loading models: an engine only names its arrays and JSON values."""

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
from longtail.core.errors import DataError, PackageError, ParameterError, StoreError, shorten
from longtail.core.labels import Labels
from longtail.core.model import Model
from longtail.core.recipe import Recipe, recipes
from longtail.store.cache import forget
from longtail.store.folder import RUN, check_place, open_folder, save_folder, size_of, sweep_folder
from longtail.store.manifest import plain, read_manifest
from longtail.store.package import PACKAGE, package_of
from longtail.store.parts import pack_labels, unpack_labels

log = logging.getLogger("longtail")

MANIFEST = "model.json"
KIND = "longtail-model"
LABELS = "labels"  # arrays whose name starts with this belong to the label space
DECISION = "decision"  # and these to the model's calibration and cut-off


@dataclass(frozen=True)
class Saved:
    """The opened content of a model folder; `arrays` are memory-mapped and read-only."""

    recipe: Recipe
    labels: Labels
    arrays: Mapping[str, NDArray[Any]]
    meta: dict[str, Any]
    about: dict[str, Any]
    path: Path = Path(MANIFEST)  # of the manifest, for messages
    verify: bool = True  # whether checksums are compared


class StoredModel(Model):
    """A model whose state is arrays and a few JSON values.

    The recipe's `class_of_model` returns the class; `load` uses it to rebuild the model.
    """

    @abstractmethod
    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and JSON values that, together with recipe and labels, make up this model."""

    @classmethod
    @abstractmethod
    def from_state(cls, saved: Saved) -> Self:
        """Rebuild the model whose `state` was saved."""

    @classmethod
    def load(cls, folder: str | Path, verify: bool = True) -> Self:
        """Load a model of this class from a folder; `longtail.load` accepts any class."""
        model = load(folder, verify)
        if not isinstance(model, cls):
            raise StoreError(f"{folder}: holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def save(self, folder: str | Path, overwrite: bool = False, replaces: str | None = None) -> None:
        """Write the model to a new or empty folder, atomically; with `overwrite`, also over an existing model.

        `replaces` is a `generation` as `describe` returns it: the save needs no `overwrite`, but is refused
        unless the folder still holds that generation.
        """
        manifest, arrays = packed(self)
        save_folder(folder, MANIFEST, KIND, manifest, arrays, overwrite=overwrite, replaces=replaces)
        try:
            forget(Path(folder) / RUN)  # training has succeeded: its checkpoints are no longer needed
        except StoreError as error:
            log.warning("could not delete the checkpoints of the training: %s", error)


def load(folder: str | Path, verify: bool = True) -> Model:
    """Load the model in a folder; its arrays are memory-mapped.

    With `verify`, all files are read once and their checksums compared. Without it, a large model opens in
    milliseconds, but damage inside a file is not noticed.
    """
    path = Path(folder) / MANIFEST
    manifest, arrays = open_folder(folder, MANIFEST, KIND, verify)
    _check_fields(path, manifest)
    try:
        return unpacked(path, manifest, arrays, verify)
    except (StoreError, DataError, ParameterError) as error:
        told = str(error)
        raise StoreError(told if told.startswith(f"{path}:") else f"{path.parent}: {told}") from error
    except KeyError as error:
        raise StoreError(f"{path.parent}: {error} is missing; the model is damaged: train it again") from error
    except (TypeError, AttributeError, IndexError, ValueError) as error:  # unexpected shapes or types
        raise StoreError(f"{path.parent}: its parts do not fit together; damaged: train again ({error})") from error


def packed(model: StoredModel, labels: Labels | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the fields of a model's manifest, and its arrays. `unpacked` makes the same model of them.

    `labels` are stored elsewhere: if they are the model's own, they are left out here.
    """
    own, meta = model.state()
    for part in (LABELS, DECISION):
        taken = sorted(name for name in own if name.startswith(f"{part}."))
        if taken:
            raise StoreError(f"array {taken[0]!r} of this model uses a name reserved for its {part}; rename it")
    manifest = {
        "recipe": model.recipe.name,
        "settings": _settings(model.recipe),
        "about": model.about,
        "meta": meta,
    }
    if offer := recipes.offer(model.recipe.name):  # the recipe of another package
        manifest[PACKAGE] = {"name": offer.package, "version": offer.version}
    arrays: dict[str, NDArray[Any]] = {}
    if labels is None or labels is not model.labels:
        arrays, manifest["labels"] = pack_labels(LABELS, model.labels)
    arrays |= own
    if model.decision is not None:
        decision_arrays, manifest[DECISION] = model.decision.state()
        arrays |= {f"{DECISION}.{name}": array for name, array in decision_arrays.items()}
    return manifest, arrays


def unpacked(
    path: Path,
    manifest: dict[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    verify: bool = True,
    labels: Labels | None = None,
) -> Model:
    """Return the model of these fields and arrays; `path` is the file of the manifest, for messages.

    `labels` are the model's where its manifest has none of its own.
    """
    recipe = _recipe(path, manifest)
    model_class = recipe.class_of_model()
    if not issubclass(model_class, StoredModel):
        raise StoreError(f"{path}: {recipe.kind} builds a {model_class.__name__}, which cannot be loaded from a folder")
    shared = (f"{LABELS}.", f"{DECISION}.")
    own = {name: array for name, array in arrays.items() if not name.startswith(shared)}
    if labels is None or "labels" in manifest:
        labels = unpack_labels(LABELS, arrays, manifest["labels"], check=verify)
    model = model_class.from_state(Saved(recipe, labels, own, manifest["meta"], manifest["about"], path, verify))
    model.decision = _decision(manifest, arrays)
    return model


def sweep_model(folder: str | Path) -> None:
    """Delete files that interrupted saves of the model in a folder left behind; an error if that is not possible."""
    sweep_folder(folder, MANIFEST, KIND)


def describe(folder: str | Path) -> dict[str, Any]:
    """Return the manifest of a saved model, plus its size on disk under `bytes`; no array is opened."""
    manifest = read_manifest(folder, MANIFEST, KIND)
    _check_fields(Path(folder) / MANIFEST, manifest)
    return manifest | {"bytes": size_of(folder, MANIFEST, manifest)}


def check_model_place(folder: str | Path) -> bool:
    """Whether a folder holds a model; a folder where no model can be saved is refused."""
    return check_place(Path(folder), MANIFEST, KIND) is not None


def _check_fields(path: Path, manifest: dict[str, Any]) -> None:
    for key, kind in (("recipe", str), ("settings", dict), ("labels", dict), ("about", dict), ("meta", dict)):
        if not isinstance(manifest.get(key), kind):
            what = f"is {shorten(manifest[key])}" if key in manifest else "is missing"
            raise StoreError(f"{path}: {key!r} {what}; it is damaged: train the model again")


def _decision(manifest: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Decision | None:
    """Return the decision of a saved model; most models, and all older ones, have none."""
    if manifest.get(DECISION) is None:
        return None
    prefix = f"{DECISION}."
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return Decision.from_state(own, manifest[DECISION])


def _settings(recipe: Recipe) -> dict[str, Any]:
    """Return the settings that differ from the recipe's defaults; refuse those that JSON cannot restore."""
    settings: dict[str, Any] = orjson.loads(orjson.dumps(plain(recipe.changed(), "settings")))
    try:
        if type(recipe).of(**settings) == recipe:
            return settings
    except ParameterError:
        pass
    raise StoreError(f"{recipe.kind}: these settings cannot be saved to a file: {recipe.changed()}")


def _recipe(path: Path, manifest: dict[str, Any]) -> Recipe:
    """Return the recipe that a manifest names, with its settings."""
    name, writer = manifest["recipe"], f"longtail {manifest.get('longtail', '(the same version)')}"
    package = package_of(path, manifest)
    if package is not None:
        writer = str(package)
        package.check(path, name)
    elif name not in recipes:
        raise StoreError(
            f"{path}: was made by the recipe {name!r} of {writer}, which this longtail does not know "
            f"(known: {', '.join(sorted(recipes)) or 'none'}); use that version, or train again"
        )
    try:
        renamed = recipes[name].renamed
        return recipes[name].of(**{renamed.get(key, key): value for key, value in manifest["settings"].items()})
    except PackageError as error:
        raise StoreError(f"{path}: was made by the recipe {name!r} of {writer}: {error}") from error
    except (ParameterError, TypeError) as error:
        raise StoreError(
            f"{path}: its settings, written by {writer}, are not valid in this version: {error} "
            "Use that version, or train again"
        ) from error
