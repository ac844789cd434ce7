"""A check of the contract: a function of a subject, run once for each of its cases."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from longtail.contract.require import not_applicable
from longtail.contract.subject import Subject


@dataclass(frozen=True)
class Case:
    """A check with the values that it is run with; its name is as in `it_respects_k[3]`."""

    check: str
    function: Callable[..., None]
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def says(self) -> str:
        """What the check asks for, in a sentence."""
        return " ".join((inspect.getdoc(self.function) or "").partition("\n\n")[0].split())

    def run(self, subject: Subject) -> None:
        """Raises `BrokenContractError`, or whatever the recipe raises; `NotApplicableError` if it does not apply."""
        if self.check in subject.recipe.exempt:
            not_applicable(f"the recipe says: {subject.recipe.exempt[self.check]}")
        self.function(subject, **self.values)

    def __str__(self) -> str:
        return self.check + "".join(f"[{value}]" for value in self.values.values())


@dataclass(frozen=True)
class Check:
    """A function with its cases: every combination of the given values."""

    function: Callable[..., None]
    values: dict[str, Sequence[Any]]

    @property
    def cases(self) -> list[Case]:
        """All cases; one if there are no values."""
        combinations = itertools.product(*self.values.values())
        return [Case(self.name, self.function, dict(zip(self.values, each, strict=True))) for each in combinations]

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__


def check(**values: Sequence[Any]) -> Callable[[Callable[..., None]], Check]:
    """Make a function a check: `@check()`, or `@check(k=[1, 3])` for one that is run with each of these values."""
    return lambda function: Check(function, values)
