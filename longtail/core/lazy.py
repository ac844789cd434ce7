"""Modules that are imported when they are first used: recipes are listed and saved models opened without torch."""

from __future__ import annotations

import importlib
from typing import Any


class Lazy:
    """Stands for a module and imports it at the first use of one of its names."""

    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)
