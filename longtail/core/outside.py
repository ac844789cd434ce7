"""What other installed packages offer to longtail by entry points. Nothing of them is imported before it is named."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longtail.core.errors import PackageError

if TYPE_CHECKING:  # takes tens of milliseconds to import, so only those who look for offers do
    from importlib.metadata import Distribution, EntryPoint

log = logging.getLogger("longtail")


@dataclass(frozen=True)
class Offer:
    """One entry point of an installed package: a name, and the place ("module:attribute") of what has it."""

    name: str
    place: str
    package: str
    version: str
    folder: str  # where the package is installed; child processes look there too
    entry: EntryPoint

    @classmethod
    def of(cls, entry: EntryPoint) -> Offer:
        """The offer of an entry point; a package whose metadata is incomplete is called "unknown"."""
        package, version = name_and_version(entry.dist)
        folder = "" if entry.dist is None else str(entry.dist.locate_file(""))
        return cls(entry.name, entry.value, package, version, folder, entry)

    def load(self, kind: str) -> Any:
        """Import the object; whatever goes wrong is an error that names the package."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:  # foreign code: it may raise anything
            raise self.broken(kind, f"cannot be imported: {type(error).__name__}: {error}") from error

    def broken(self, kind: str, problem: str) -> PackageError:
        """The error for an offer that is of no use; `problem` follows the name, as in "cannot be imported: …"."""
        return PackageError(
            f"{kind} {self.name!r} of the package {self} ({self.place}) {problem}. If the package is yours, correct "
            f"it; if not, install another version of it, or remove it: pip uninstall {self.package}"
        )

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


def offers_of(group: str) -> list[Offer]:
    """All offers of the installed packages in a group of entry points, by name, then package."""
    from importlib.metadata import entry_points

    try:
        entries: Iterable[EntryPoint] = entry_points(group=group)
    except Exception:  # of one package; the others are not to suffer from it
        entries = readable(group)
    return sorted({Offer.of(entry) for entry in entries}, key=lambda offer: (offer.name, offer.package))


def readable(group: str) -> Iterator[EntryPoint]:
    """The entry points of a group, without those of packages that have a file of them that cannot be read."""
    from importlib.metadata import distributions

    seen: set[str] = set()
    for distribution in distributions():
        package, version = name_and_version(distribution)
        if package in seen:  # as in imports, the first on the path counts
            continue
        seen.add(package)
        try:
            yield from distribution.entry_points.select(group=group)
        except Exception as error:
            log.warning("the entry points of the package %s %s cannot be read: %s", package, version, error)


def name_and_version(distribution: Distribution | None) -> tuple[str, str]:
    """The name and version of an installed package, "unknown" where its metadata does not say."""
    try:
        metadata: Any = {} if distribution is None else distribution.metadata
        return metadata["Name"] or "unknown", metadata["Version"] or "unknown"
    except (KeyError, OSError, ValueError, TypeError):
        return "unknown", "unknown"
