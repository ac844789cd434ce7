"""From what users write to a recipe: a registered name, a module, a `module:Class`, or a path to a Python file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from longtail.core.errors import PackageError, ParameterError, UnsupportedError, nearest
from longtail.core.recipe import Recipe, problem_of, recipes


@contextmanager
def found(target: str) -> Iterator[type[Recipe]]:
    """The recipe that `target` stands for; inside the block it is known by its name, so that its models can be loaded.

    A `module` or file must have one recipe, else `:Class` says which. Modules are also looked for in the current
    folder.
    """
    if target in recipes:
        yield recipes[target]
        return
    place, colon, attribute = target.rpartition(":")
    if not colon or not attribute.isidentifier():  # a path may have a colon too
        place, attribute = target, ""
    recipe = recipe_in(module_of(place), attribute, target)
    with nullcontext() if is_registered(recipe) else recipes.lend(recipe.name, recipe):
        yield recipe


def is_registered(recipe: type[Recipe]) -> bool:
    """Whether the class is the recipe of its name already, of ours or of an installed package."""
    try:
        return recipe.name in recipes and recipes[recipe.name] is recipe
    except PackageError:  # what has the name does not work
        return False


def module_of(place: str) -> ModuleType:
    """The module with this name, or in this file."""
    path = Path(place)
    if path.suffix == ".py":
        return module_in(path)
    if not all(part.isidentifier() for part in place.split(".")):
        raise ParameterError(
            f"unknown recipe {place!r}.{nearest(place, recipes)} Or give a module:Class, or a path to a .py file"
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # as the last: what is installed comes first
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not (place == error.name or place.startswith(f"{error.name}.")):
            raise not_importable(place, error) from error
        raise ParameterError(
            f"{place!r} is neither a recipe nor a module that can be imported from here.{nearest(place, recipes)} "
            "A recipe of your own is given as module:Class, or as a path to a .py file"
        ) from error
    except (Exception, SystemExit) as error:  # foreign code: it may raise anything
        raise not_importable(place, error) from error


def module_in(path: Path) -> ModuleType:
    """The module in a file; other modules in its folder can be imported by it."""
    if not path.is_file():
        raise ParameterError(f"{path}: there is no such file")
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    if spec is None or spec.loader is None:
        raise ParameterError(f"{path}: is not a Python module")
    module = importlib.util.module_from_spec(spec)
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) != module.__file__:
        raise ParameterError(f"{path}: another module {name!r} is in use; rename the file, or give module:Class")
    folder = str(path.parent.absolute())
    if folder not in sys.path:
        sys.path.append(folder)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # foreign code: it may raise anything
        del sys.modules[name]
        raise not_importable(str(path), error) from error
    return module


def not_importable(place: str, error: BaseException) -> UnsupportedError:
    """The error for code that cannot be imported."""
    return UnsupportedError(f"{place} cannot be imported: {type(error).__name__}: {error}. Correct that first")


def recipe_in(module: ModuleType, attribute: str, target: str) -> type[Recipe]:
    """The recipe of a module: the one called `attribute`, or its only one."""
    if attribute:
        if not hasattr(module, attribute):
            raise ParameterError(f"{target}: there is no {attribute}.{nearest(attribute, recipes_of(module))}")
        recipe: Any = getattr(module, attribute)
    else:
        classes = recipes_of(module)
        if len(classes) != 1:
            listed = ", ".join(f"{target}:{name}" for name in classes) or "none"
            raise ParameterError(f"{target}: must have one recipe, or say which (module:Class); found {listed}")
        (recipe,) = classes.values()
    problem = problem_of(getattr(recipe, "name", ""), recipe)
    if problem is not None:
        raise UnsupportedError(f"{target} {problem}")
    return recipe


def recipes_of(module: ModuleType) -> dict[str, type[Recipe]]:
    """The recipes that a module defines, by the names of their classes; if it defines none, those it imports."""
    named = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Recipe) and "name" in vars(value)
    }
    own = {name: value for name, value in named.items() if value.__module__ == module.__name__}
    return own or {name: value for name, value in named.items() if not value.__module__.startswith("longtail.")}
