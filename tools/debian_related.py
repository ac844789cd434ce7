"""Rebuilds the bundled corpus `debian-related` from Debian's package indexes.

    python tools/debian_related.py Packages [Packages …] --out FOLDER

A point is a binary package. Its text is `name: short description`; its labels are the packages it names in Depends,
Pre-Depends, Recommends, Suggests or Enhances, with all alternatives. Several indexes are merged: a package relates
to everything that any stanza of its name relates to, and takes description and source from its newest version (from
the one read last if versions are equal), so the order of the files does not matter. Left out are

- packages without a description, and names that belong to no package in the indexes (virtual packages);
- packages named by more than 1 % of the packages that name any (libc6, perl, python3, …);
- points without a label, and labels without a point.

Points are split by source package, so that packages of one source never stand in both parts: the SHA-256 of `src:`
and the source is read as a fraction, and points below 0.2 are test. A point and the label that is the same package
form a filter pair. Labels are in alphabetical order. Points are too, but in two runs: a first version of this corpus
was split by the name of the package, and its two parts still follow one after the other.

The bundled corpus was made this way from the main amd64 indexes of bullseye, bookworm, trixie and sid.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debian_packages import Stanza, read_stanzas, version_key

from longtail.core.errors import DataError, LongtailError, ParameterError
from longtail.core.progress import Progress

log = logging.getLogger("longtail")

TEST_SHARE = 0.2
MOST_NAMED = 0.01
ABOUT = {
    "name": "debian-related",
    "propensity": {"A": 0.55, "B": 1.5},
    "group": "src",
    "kind": "short text, label text, item to item",
    "licence": "Debian package metadata, free to redistribute",
}


@dataclass(slots=True)
class Package:
    """A package united over all its stanzas: what the newest says, and what any of them relates to."""

    newest: Stanza
    related: set[str]

    @property
    def text(self) -> str:
        """`name: short description`."""
        return f"{self.newest.name}: {self.newest.description}"


@dataclass(frozen=True)
class Related:
    """The corpus as plain values: `labels` by key; for each part the points, as lines of its JSON file.

    `dropped` are the packages left out because too many name them.
    """

    labels: dict[str, str]
    parts: dict[str, list[dict[str, Any]]]
    dropped: list[str]

    def filter_pairs(self, part: str) -> Iterator[tuple[int, int]]:
        """(row, label) of the points that are labels themselves."""
        index = {key: i for i, key in enumerate(self.labels)}
        return ((row, index[point["id"]]) for row, point in enumerate(self.parts[part]) if point["id"] in index)


def build(paths: Sequence[Path], most_named: float = MOST_NAMED, progress: Progress | None = None) -> Related:
    """The corpus from `Packages` files; `most_named` is the share of packages above which a label is dropped."""
    if not 0 < most_named <= 1:
        raise ParameterError(f"most_named must be above 0 and at most 1; got {most_named!r}")
    progress = progress or Progress()
    stanzas = (s for path in paths for s in progress.track(read_stanzas(path), f"reading {path.name}", unit="packages"))
    packages = unite(stanzas)
    related = {name: (p.related & packages.keys()) - {name} for name, p in packages.items()}
    named_by = Counter(other for names in related.values() for other in names)
    naming = sum(1 for names in related.values() if names)
    dropped = sorted(name for name, count in named_by.items() if count > most_named * naming)
    kept = named_by.keys() - set(dropped)
    labels = {key: packages[key].text for key in sorted(kept)}
    index = {key: i for i, key in enumerate(labels)}
    parts: dict[str, list[dict[str, Any]]] = {"train": [], "test": []}
    for name in sorted(packages, key=lambda name: (is_test(name), name)):
        if names := related[name] & kept:
            p = packages[name]
            point = {"text": p.text, "labels": sorted(index[n] for n in names), "id": name, "src": p.newest.source}
            parts["test" if is_test(f"src:{p.newest.source}") else "train"].append(point)
    for part, points in parts.items():
        if not points:
            found = f"{len(packages):,} packages with a description, {len(dropped):,} dropped as named too often"
            raise DataError(f"no package is left for {part}", found=found, fix="give larger indexes or --most-named")
    return Related(labels, parts, dropped)


def unite(stanzas: Iterable[Stanza]) -> dict[str, Package]:
    """One package for each name that has a description anywhere."""
    packages: dict[str, Package] = {}
    for stanza in stanzas:
        known = packages.get(stanza.name)
        if known is None:
            packages[stanza.name] = Package(stanza, set(stanza.related))
            continue
        known.related |= stanza.related
        if stanza.description and (not known.newest.description or not _older(stanza, known.newest)):
            known.newest = stanza
    return {name: package for name, package in packages.items() if package.newest.description}


def is_test(key: str) -> bool:
    """Whether the SHA-256 of a key, read as a fraction of 1, is below the share of the test part."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64 < TEST_SHARE


def write(corpus: Related, folder: Path) -> None:
    """Write the files of the corpus: the same bytes for the same corpus, gzip without a time stamp."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(f"{folder} exists and is not an empty folder; give --out another, or remove it first")
    folder.mkdir(parents=True, exist_ok=True)
    for part, points in corpus.parts.items():
        _write_gzip(folder / f"{part}.jsonl.gz", map(json.dumps, points))
        pairs = (f"{row} {label}" for row, label in corpus.filter_pairs(part))
        _write_gzip(folder / f"filter_labels_{part}.txt.gz", pairs)
    labels = ({"id": i, "key": key, "text": text} for i, (key, text) in enumerate(corpus.labels.items()))
    # unescaped, unlike the points: as the bundled file is, so that the two can be compared byte for byte
    _write_gzip(folder / "labels.jsonl.gz", (json.dumps(label, ensure_ascii=False) for label in labels))
    (folder / "corpus.json").write_text(json.dumps(ABOUT, indent=1), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python tools/debian_related.py",
        description="Rebuild the corpus debian-related from Debian package indexes.",
        epilog="example: python tools/debian_related.py /var/lib/apt/lists/*Packages* --out related",
    )
    parser.add_argument("indexes", nargs="+", type=Path, metavar="Packages", help="plain, .gz, .xz, .bz2 or .lz4")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="a new or empty folder")
    parser.add_argument(
        "--most-named",
        type=float,
        default=MOST_NAMED,
        metavar="SHARE",
        help="drop labels that more than this share of the packages name (default: %(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.WARNING if options.quiet else logging.INFO, format="%(message)s")
    try:
        corpus = build(options.indexes, options.most_named, Progress(options.quiet))
        write(corpus, options.out)
    except (LongtailError, OSError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    sizes = ", ".join(f"{part} {len(points):,}" for part, points in corpus.parts.items())
    log.info("%s: %s; %s labels", options.out, sizes, f"{len(corpus.labels):,}")
    log.info("%d packages left out because too many name them: %s", len(corpus.dropped), ", ".join(corpus.dropped))
    return 0


def _older(a: Stanza, b: Stanza) -> bool:
    return a.version != b.version and version_key(a.version) < version_key(b.version)


def _write_gzip(path: Path, lines: Iterable[str]) -> None:
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write("".join(f"{line}\n" for line in lines).encode())


if __name__ == "__main__":
    raise SystemExit(main())
