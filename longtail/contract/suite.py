"""All checks, and running them over one recipe."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from longtail.contract import augmenting, deciding, learning, predicting, running, storing
from longtail.contract.check import Case, Check
from longtail.contract.require import BrokenContractError, NotApplicableError
from longtail.contract.subject import Subject
from longtail.core.errors import LongtailError, ParameterError, nearest
from longtail.core.progress import Progress

log = logging.getLogger("longtail")
MODULES = (learning, predicting, storing, running, deciding, augmenting)
CASES: list[Case] = [
    case for module in MODULES for check in vars(module).values() if isinstance(check, Check) for case in check.cases
]

Result = Literal["passed", "failed", "not applicable"]


@dataclass(frozen=True)
class Outcome:
    """What became of one case; `reason` is empty if it passed."""

    check: str
    result: Result
    reason: str
    seconds: float


def chosen(names: Sequence[str]) -> list[Case]:
    """The cases of the checks with these names, or single cases such as `it_respects_k[3]`; all, without names."""
    known = {name for case in CASES for name in (case.check, str(case))}
    for name in names:
        if name not in known:
            raise ParameterError(f"unknown check {name!r}.{nearest(name, {case.check for case in CASES})}")
    return [case for case in CASES if not names or {case.check, str(case)} & set(names)]


def run(subject: Subject, cases: Sequence[Case], progress: Progress) -> Iterator[Outcome]:
    """Run the cases over a recipe, one after the other."""
    for name in subject.recipe.exempt:
        if name not in {case.check for case in CASES}:
            raise ParameterError(f"{subject.recipe.kind} is exempt from {name!r}, which is no check; correct `exempt`")
    with progress.bar(f"contract of {subject.name}", len(cases), "checks") as bar:
        for case in cases:
            yield run_case(subject, case)
            bar.advance()


def run_case(subject: Subject, case: Case) -> Outcome:
    """Run one case; whatever the recipe raises is a failure of it."""
    began = time.perf_counter()
    result: Result = "passed"
    reason = ""
    try:
        case.run(subject)
    except NotApplicableError as why:
        result, reason = "not applicable", str(why)
    except BrokenContractError as error:
        result, reason = "failed", str(error)
    except Exception as error:
        log.debug("%s", case, exc_info=True)
        result, reason = "failed", f"{raised(error)}: {error}"
    return Outcome(str(case), result, reason, round(time.perf_counter() - began, 3))


def raised(error: Exception) -> str:
    """The kind of an error and, unless longtail raised it on purpose, the place in the code that raised it."""
    kind = type(error).__name__
    if isinstance(error, LongtailError):
        return kind
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"{kind} in {last.filename}:{last.lineno}"
