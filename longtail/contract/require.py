"""What a check says: that a recipe breaks the contract, or that the check does not apply to it.

These are functions and not `assert`, because `python -O` leaves out every assert.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from longtail.core.errors import LongtailError
from longtail.core.ranking import Ranking


class BrokenContractError(LongtailError):
    """A recipe does not do what every recipe must do; the message says what was expected and what was found."""


class NotApplicableError(Exception):
    """A check has nothing to say of this recipe; the message says why."""


def require(fine: object, problem: str) -> None:
    """Raise the error with this message unless `fine`."""
    if not fine:
        raise BrokenContractError(problem)


def not_applicable(why: str) -> NoReturn:
    """End a check that has nothing to say of this recipe."""
    raise NotApplicableError(why)


def same(a: Ranking, b: Ranking) -> bool:
    """Whether two rankings have the same labels and the same scores, to the last bit."""
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.scores, b.scores)


def require_same(a: Ranking, b: Ranking, what: str) -> None:
    """`what` says which two rankings must be the same; the message says where they first differ."""
    if same(a, b):
        return
    if a.indices.shape != b.indices.shape:
        raise BrokenContractError(f"{what}: the rankings have the shapes {a.indices.shape} and {b.indices.shape}")
    differs = (a.indices != b.indices) | (a.scores != b.scores)
    row, column = (int(at) for at in np.argwhere(differs)[0])
    first, second = (f"label {r.indices[row, column]} with {r.scores[row, column]:.9g}" for r in (a, b))
    raise BrokenContractError(
        f"{what}: {int(differs.any(axis=1).sum())} of {len(differs)} rows differ, the first is row {row}, "
        f"at rank {column + 1}: {first} and {second}"
    )


@contextmanager
def refused(what: str, *errors: type[Exception], match: str = "") -> Iterator[None]:
    """What happens inside must be refused by one of `errors`, with a message that matches the pattern `match`."""
    expected = " or ".join(error.__name__ for error in errors) + (f" with a message like {match!r}" if match else "")
    try:
        yield
    except errors as error:
        require(re.search(match, str(error)), f"{what} must be refused by {expected}; the message was: {error}")
    except Exception as error:
        raise BrokenContractError(
            f"{what} must be refused by {expected}; got {type(error).__name__}: {error}"
        ) from error
    else:
        raise BrokenContractError(f"{what} must be refused by {expected}, but was accepted")
