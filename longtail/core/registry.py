"""Names for objects that are imported only when needed: our own, and those that other packages offer."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, TypeVar, cast

from longtail.core.errors import PackageError, ParameterError, nearest
from longtail.core.outside import Offer, offers_of

log = logging.getLogger("longtail")
T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Maps names to objects; each is given as "module:attribute" and imported on first use.

    `group`: the entry points by which other packages offer objects. They are looked for only when a name is not one of
    ours, or when all names are wanted. A name of ours stays ours. `problem(name, object)` says why what a package
    offers cannot have this name, or returns None.
    """

    def __init__(self, kind: str, group: str | None = None, problem: Callable[[str, object], str | None] | None = None):
        self.kind = kind
        self.group = group
        self._problem = problem
        self._places: dict[str, str] = {}
        self._offers: dict[str, list[Offer]] | None = None  # None: nobody has looked yet
        self._loaded: dict[str, T] = {}  # of other packages, checked
        self._lent: dict[str, T] = {}

    def add(self, name: str, place: str) -> None:
        """Register `place` ("package.module:attribute") under `name`."""
        self._places[name] = place

    @property
    def own(self) -> list[str]:
        """The names that are registered here, without those of other packages."""
        return list(self._places)

    def offers(self, again: bool = False) -> dict[str, list[Offer]]:
        """What other packages offer, by name; with `again`, also what was installed since the first look.

        Names of ours are left out, with a warning that names both packages.
        """
        if self._offers is None or again:
            if again:
                importlib.invalidate_caches()
            self._offers, self._loaded = {}, {}
            for offer in offers_of(self.group) if self.group is not None else []:
                if offer.name in self._places:
                    log.warning(
                        "the package %s offers a %s %r (%s), but longtail has one of that name, which is used; "
                        "give the other one another name",
                        *(offer, self.kind, offer.name, offer.place),
                    )
                else:
                    self._offers.setdefault(offer.name, []).append(offer)
        return self._offers

    def offer(self, name: str) -> Offer | None:
        """The offer of another package that `name` stands for; None for a name of ours, or of nobody.

        A name that two packages offer is refused: neither may hide the other.
        """
        if name in self._places or name in self._lent:
            return None
        found = self.offers().get(name) or self.offers(again=True).get(name, [])
        if len(found) > 1:
            named = " and ".join(f"{offer} ({offer.place})" for offer in found)
            raise PackageError(
                f"{len(found)} packages offer a {self.kind} {name!r}: {named}. Uninstall all but one: "
                f"pip uninstall {found[-1].package}"
            )
        return found[0] if found else None

    @contextmanager
    def lend(self, name: str, thing: T) -> Iterator[None]:
        """Use `thing` under `name` inside the block, whatever another package offers; a name of ours stays ours."""
        if name in self._places:
            raise ParameterError(f"longtail itself has a {self.kind} {name!r}; choose another name")
        before = dict(self._lent)
        self._lent[name] = thing
        try:
            yield
        finally:
            self._lent = before

    def __getitem__(self, name: str) -> T:
        if name in self._places:
            module, _, attribute = self._places[name].partition(":")
            return cast(T, getattr(importlib.import_module(module), attribute))
        if name in self._lent:
            return self._lent[name]
        offer = self.offer(name)
        if offer is None:
            raise ParameterError(f"unknown {self.kind} {name!r}.{nearest(name, self)}")
        if name not in self._loaded:
            self._loaded[name] = self._checked(offer)
        return self._loaded[name]

    def _checked(self, offer: Offer) -> T:
        """The object of an offer, imported and fit for its name."""
        found = offer.load(self.kind)
        problem = None if self._problem is None else self._problem(offer.name, found)
        if problem is not None:
            raise offer.broken(self.kind, problem)
        return cast(T, found)

    def __contains__(self, name: object) -> bool:
        known = name in self._places or name in self._lent or name in self.offers()
        return known or name in self.offers(again=True)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._places, *self._lent, *self.offers()]))

    def __len__(self) -> int:
        return len(list(iter(self)))
