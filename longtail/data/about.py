"""`corpus.json`: a description of the data, stored beside its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from longtail.core.errors import DataError, ParameterError
from longtail.core.labels import Propensity

FILE = "corpus.json"


def read_about(folder: Path) -> dict[str, Any]:
    """Return the content of `corpus.json`, or an empty dict if there is none."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        about = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise DataError("not valid JSON", where=path, line=error.lineno, found=error.msg) from None
    if not isinstance(about, dict):
        raise DataError("must contain one JSON object", where=path, found=about)
    propensity_of(about, path)
    for name, what in (("group", "must name a field"), ("name", "must be text")):
        if not isinstance(about.get(name, ""), str):
            raise DataError(f"{name!r} {what}", where=path, found=about[name])
    return about


def propensity_of(about: dict[str, Any], path: Path | str = FILE) -> Propensity:
    """Return the propensity constants from `corpus.json`, or the usual ones."""
    given = about.get("propensity", {})
    if not isinstance(given, dict) or not set(given) <= {"A", "B"}:
        raise DataError("'propensity' must be an object with A and B", where=path, found=given)
    try:
        return Propensity(**{name: float(value) for name, value in given.items()})
    except (TypeError, ValueError, ParameterError) as error:
        raise DataError(f"'propensity' is invalid ({error})", where=path, found=given) from None
