"""All exceptions. Every message says what was wrong, what was found and where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class LongtailError(Exception):
    """Base class of all errors that longtail raises on purpose."""


class ParameterError(LongtailError, ValueError):
    """An argument, option or setting has an invalid value or an unknown name."""


class DataError(LongtailError, ValueError):
    """Data that cannot be read in its format.

    `where` is the file, `line` the line in it (from 1), `found` the content found there, `fix` what to do.
    """

    def __init__(
        self,
        problem: str,
        *,
        where: str | Path | None = None,
        line: int | None = None,
        found: object = None,
        fix: str | None = None,
    ):
        self.problem, self.where, self.line, self.found, self.fix = problem, where, line, found, fix
        place = "" if where is None else f"{where}: " if line is None else f"{where}, line {line}: "
        shown = "" if found is None else f"; found {shorten(found)}"
        advice = "" if fix is None else f". {fix[0].upper()}{fix[1:]}"
        super().__init__(f"{place}{problem}{shown}{advice}")


class StoreError(LongtailError):
    """A model or corpus folder that is missing, damaged, from another version, or not one of longtail's."""


class UnsupportedError(LongtailError):
    """This recipe or model cannot do what was asked; the message names one that can, or what it needs."""


class PackageError(LongtailError):
    """Another installed package offers something to longtail that cannot be used; the message names the package."""


class MissingExtraError(LongtailError, ImportError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, feature: str, extra: str):
        super().__init__(f"{feature} needs an optional package: pip install 'longtail[{extra}]'")


def shorten(value: object, limit: int = 80) -> str:
    """Return the `repr` of a value, shortened in the middle if long; safe to print for any value."""
    text = repr(value)
    if len(text) > limit:
        text = f"{text[: limit - 20]}…{text[-15:]}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'? Known: …`, the end of every message about an unknown name."""
    names = sorted(known)
    same = [other for other in names if other.lower() == name.lower()]  # to difflib, c and C are different
    close = same or difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{hint} Known: {', '.join(names) or 'none'}."
