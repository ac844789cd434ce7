"""Names for objects that are imported only when needed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar, cast

from longtail.core.errors import ParameterError, nearest

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Maps names to objects; each is given as "module:attribute" and imported on first use."""

    def __init__(self, kind: str):
        self.kind = kind
        self._places: dict[str, str] = {}

    def add(self, name: str, place: str) -> None:
        """Register `place` ("package.module:attribute") under `name`."""
        self._places[name] = place

    def __getitem__(self, name: str) -> T:
        if name not in self._places:
            raise ParameterError(f"unknown {self.kind} {name!r}.{nearest(name, self._places)}")
        module, _, attribute = self._places[name].partition(":")
        return cast(T, getattr(importlib.import_module(module), attribute))

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
