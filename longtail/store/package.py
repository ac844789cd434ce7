"""The package whose recipe made a saved model, for recipes that are none of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from longtail.core.errors import PackageError, StoreError, shorten
from longtail.core.recipe import recipes

PACKAGE = "package"  # the field of a manifest


class Package(NamedTuple):
    """A package as a manifest names it."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def check(self, path: Path, recipe: str) -> None:
        """Refuse a model of this package's `recipe` if the package does not offer it here."""
        made = f"{path}: was made by the recipe {recipe!r} of the package {shorten(str(self))}"
        if recipe in recipes.own:
            raise StoreError(
                f"{made}, but here {recipe!r} is a recipe of longtail itself; use the longtail that made it"
            )
        try:
            offer = recipes.offer(recipe)
        except PackageError as error:
            raise StoreError(f"{made}: {error}") from error
        if offer is None and recipe in recipes:  # lent: it is being developed
            return
        if offer is None:
            raise StoreError(
                f"{made}, which is not installed here, or not with this recipe. Install it: "
                f"pip install {shorten(f'{self.name}=={self.version}')}"
            )
        if offer.package != self.name:
            other = f"but here {recipe!r} is a recipe of the package {offer}"
            raise StoreError(f"{made}, {other}. Install the first in place of the second")


def package_of(path: Path, manifest: Mapping[str, Any]) -> Package | None:
    """Return the package whose recipe made a model; None for a recipe of ours."""
    found = manifest.get(PACKAGE)
    if found is None:
        return None
    if not isinstance(found, dict) or not all(isinstance(found.get(key), str) for key in Package._fields):
        raise StoreError(f"{path}: {PACKAGE!r} is {shorten(found)}; it is damaged: train the model again")
    return Package(found["name"], found["version"])
