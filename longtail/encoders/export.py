"""Trained parts as arrays: what a model folder holds of encoders, levels and joins. Read without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from longtail.core.errors import ParameterError, StoreError
from longtail.core.registry import Registry

Arrays = Mapping[str, NDArray[Any]]


class Exported(NamedTuple):
    """The arrays of a part by name, and what JSON holds of it: `kind`, its registered name, and its settings."""

    arrays: dict[str, NDArray[Any]]
    meta: dict[str, Any]

    def plus(self, other: Exported) -> Exported:
        """Both together."""
        return Exported(self.arrays | other.arrays, self.meta | other.meta)

    def under(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The arrays with a prefix to their names."""
        return {f"{prefix}.{name}": array for name, array in self.arrays.items()}


def arrays_under(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The arrays whose names have this prefix, without it: the reverse of `Exported.under`."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def served(registry: Registry[Any], arrays: Arrays, meta: Mapping[str, Any]) -> Any:
    """The object that serves a part: the class registered as its kind, made by `from_arrays`."""
    kind = meta.get("kind")
    try:
        found = registry[str(kind)]
    except ParameterError as error:
        raise StoreError(
            f"the model has a {registry.kind} of kind {kind!r}, which this version of longtail does not know; "
            "install the version that saved the model, or train it again"
        ) from error
    return found.from_arrays(arrays, meta)
