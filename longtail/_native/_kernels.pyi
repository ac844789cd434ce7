"""Types of the extension module, for mypy; `longtail._native` documents what the kernels do."""

from typing import Any

def __getattr__(name: str) -> Any: ...
