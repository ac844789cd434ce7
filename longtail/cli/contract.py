"""`longtail contract`: check that a recipe does what every recipe must do."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longtail.cli.options import command, parse_settings, progress
from longtail.core.errors import ParameterError

EXAMPLES = """
longtail contract my-recipe                          # of a package that is installed
longtail contract my_package.recipe                  # the recipe in a module: installed, or in this folder
longtail contract my_package.recipe:MyRecipe
longtail contract my_recipe.py --set epochs=3        # in a file
longtail contract xr-linear --only it_learns it_respects_k
longtail contract --list                             # what is checked
"""
DESCRIPTION = """Run the checks that every recipe must pass over one, on tiny corpora that the checks make themselves:
it learns, reloads to identical predictions, trains the same model for the same seed, honours ignored pairs, refuses bad
input, and so on. One line for each check; the exit code is 1 if one fails. docs/own-recipe.md tells how to add a recipe
of your own, and how to make a large one small enough for the checks."""
WIDTH = 15  # of the column of results


def add(commands: Any) -> None:
    """Options of `contract`."""
    parser = command(commands, "contract", "check that a recipe does what every recipe must do", EXAMPLES, DESCRIPTION)
    parser.add_argument(
        "recipe", metavar="RECIPE", nargs="?", help="a recipe, a module, a module:Class, or a path to a .py file"
    )
    parser.add_argument("--only", metavar="CHECK", nargs="+", action="extend", default=[], help="run these checks only")
    parser.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="a parameter of the recipe; may be repeated"
    )
    parser.add_argument("--preset", metavar="P", help="the settings to train with (default: contract, if there is one)")
    parser.add_argument("--list", action="store_true", help="list the checks, and run none")
    parser.add_argument("--json", action="store_true", help="JSON instead of lines")


def run(args: argparse.Namespace) -> int:
    """Find the recipe, run the checks over it, show what became of each."""
    from tempfile import TemporaryDirectory

    from longtail.contract.subject import Subject
    from longtail.contract.suite import chosen
    from longtail.contract.target import found
    from longtail.store.cache import without_cache

    cases = chosen(args.only)
    if args.list:
        show_checks(cases, args)
        return 0
    if args.recipe is None:
        raise ParameterError("say which recipe to check: longtail contract RECIPE (`longtail recipes` lists them)")
    with found(args.recipe) as recipe, TemporaryDirectory(prefix="longtail-contract-") as folder:
        subject = Subject(recipe, Path(folder), parse_settings(args.set), args.preset)
        subject.fully()  # refuse wrong settings before any check
        quieten(args)
        with without_cache(), default_threads(args.threads):
            return show(subject, cases, args)


@contextmanager
def default_threads(count: int | None) -> Iterator[None]:
    """Use this many threads where a training is not told how many, which is how the checks train."""
    from longtail._native.threads import VARIABLE

    before = os.environ.get(VARIABLE)
    try:
        if count is not None:
            os.environ[VARIABLE] = str(count)
        yield
    finally:
        if count is not None:
            os.environ.pop(VARIABLE)
            os.environ |= {} if before is None else {VARIABLE: before}


def quieten(args: argparse.Namespace) -> None:
    """Trainings on tiny corpora have much to warn of; without --debug, only the checks are heard."""
    if not args.debug:
        logging.getLogger("longtail").setLevel(logging.ERROR)


def show(subject: Any, cases: list[Any], args: argparse.Namespace) -> int:
    """Run the cases and show each result when it is there; returns the exit code."""
    from dataclasses import asdict

    from longtail.cli.show import dump
    from longtail.contract.suite import run as run_cases

    outcomes, out = [], sys.stdout
    for outcome in run_cases(subject, cases, progress(args)):
        outcomes.append(outcome)
        if not args.json:
            reason = f": {outcome.reason}" if outcome.reason else ""
            # an open bar catches what is printed, to show it above itself: right on a terminal, but not for a file
            place = sys.stdout if out.isatty() else out
            print(f"{outcome.result:{WIDTH}} {outcome.check}{reason}", file=place, flush=True)
    counts = {result: 0 for result in ("passed", "failed", "not applicable")}
    for outcome in outcomes:
        counts[outcome.result] += 1
    seconds = sum(outcome.seconds for outcome in outcomes)
    if args.json:
        shown = {"recipe": subject.name, "counts": counts, "checks": [asdict(outcome) for outcome in outcomes]}
        print(dump(shown | {"seconds": round(seconds, 3)}))  # noqa: T201
    else:
        told = ", ".join(f"{count} {result}" for result, count in counts.items())
        print(f"{subject.name}: {told}, in {seconds:.0f} s")  # noqa: T201
    return int(counts["failed"] > 0)


def show_checks(cases: list[Any], args: argparse.Namespace) -> None:
    """The checks and what each asks for."""
    from longtail.cli.show import console, dump, table

    says = {case.check: case.says for case in cases}
    if args.json:
        print(dump([{"check": name, "says": text} for name, text in says.items()]))  # noqa: T201
        return
    console().print(table(["check", "what it asks for"], list(says.items())))
