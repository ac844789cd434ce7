"""`longtail graph`."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.cli.options import add_data_options, command, read_data
from longtail.core.errors import ParameterError

if TYPE_CHECKING:
    from longtail.core.labels import Labels
    from longtail.labels.neighbourhood import Neighbourhood

log = logging.getLogger("longtail")
KINDS = {"counts": "P[i|j]", "symmetric": "½(P[i|j] + P[j|i])", "walk": "visits"}
PICTURES = (".svg", ".html")
BAR = 12  # cells of the longest bar
EXAMPLES = """
longtail graph debian-related vim                          # which labels stand where vim does
longtail graph eurlex57k "fresh cheese" -k 20              # by its text
longtail graph debian-related vim --kind walk              # by a random walk from label to label
longtail graph debian-related vim --picture vim.svg        # drawn, with the edges among the neighbours
longtail graph my-folder sport --threshold 0.1 --json      # what Gandalf gives it as targets
"""


def add(commands: Any) -> None:
    """Options of `graph`."""
    parser = command(
        commands,
        "graph",
        "show which labels a label stands with",
        EXAMPLES,
        "Show the neighbours of a label in the graph of labels that share training points: how far the label j says "
        "that the neighbour i is there too, P[i|j], and the other way round. With --kind counts and --threshold 0.1 "
        "these are the targets that Gandalf gives the label's own text.",
    )
    parser.add_argument("data", metavar="DATA", help="a folder, a file, or the name of a bundled corpus")
    parser.add_argument("label", metavar="LABEL", help="the key of a label, or its text")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="counts",
        help="neighbours by P[i|j] (counts, the default), by the mean of both ways, or by a random walk",
    )
    parser.add_argument("-k", "--top", type=int, metavar="N", default=10, help="how many at most (default: 10)")
    parser.add_argument("--threshold", type=float, metavar="D", help="only those above it (default: 0; not for walks)")
    parser.add_argument("--shrink", type=float, metavar="K", help="P[i|j] = shared / (points + K); for counts only")
    parser.add_argument("--seed", type=int, metavar="N", help="of the random walk (default: 0)")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--picture", metavar="FILE", help="also draw it: FILE ends in .svg or .html")
    add_data_options(parser)


def run(args: argparse.Namespace) -> None:
    """Read, find the label, show what is around it."""
    from longtail.cli.show import console, dump
    from longtail.labels.neighbourhood import find_label, neighbourhood

    settings = settings_of(args)
    if args.picture is not None and Path(args.picture).suffix not in PICTURES:
        raise ParameterError(f"--picture {args.picture}: end it in {' or '.join(PICTURES)}")
    corpus = read_data(args, test=False)
    found = neighbourhood(corpus.train.Y, find_label(corpus.labels, args.label), args.kind, top=args.top, **settings)
    if args.picture is not None:
        write_picture(Path(args.picture), corpus.labels, found, corpus.name)
    if args.json:
        sys.stdout.write(dump(as_json(corpus.labels, found)) + "\n")
    else:
        out = console()
        out.print(page(corpus.labels, found, "#" if out.options.ascii_only else "━"))


def settings_of(args: argparse.Namespace) -> dict[str, float]:
    """What was asked for of the graph; refuses what its kind does not have, before anything is read."""
    from longtail.labels.graph import check_share, check_shrink, check_whole

    fits = {"threshold": ("counts", "symmetric"), "shrink": ("counts",), "seed": ("walk",)}
    given = {name: getattr(args, name) for name in fits if getattr(args, name) is not None}
    for name in given:
        if args.kind not in fits[name]:
            raise ParameterError(f"--{name} is for --kind {' or '.join(fits[name])}; leave it out with {args.kind}")
    check_whole("--top", args.top, 1)
    check_share("--threshold", given.get("threshold", 0.0))
    check_shrink("--shrink", given.get("shrink", 0.0))
    check_whole("--seed", given.get("seed", 0), 0)
    return given


def page(labels: Labels, found: Neighbourhood, cell: str) -> Any:
    """A line about the label, and the table of its neighbours, with bars of `cell`."""
    from rich.console import Group
    from rich.markup import escape
    from rich.text import Text

    from longtail.cli.show import table
    from longtail.report.names import full_name

    of = f"{found.points:,} training point{'' if found.points == 1 else 's'}"
    shown = f"{len(found.neighbours):,} of {found.found:,} neighbours" if found.found else "no neighbours"
    lines = Text.assemble((full_name(labels, found.label), "bold"), f"\n{of}, {shown}")
    if not found.neighbours:
        return lines
    most = found.neighbours[0].degree
    extra = [] if found.kind == "counts" else [KINDS[found.kind]]
    rows = []
    for n in found.neighbours:
        degree = [] if not extra else [f"{n.degree:.0f}" if found.kind == "walk" else f"{n.degree:.3f}"]
        bar = cell * max(1, round(BAR * n.degree / most))
        figures = (f"{n.forward:.3f}", f"{n.backward:.3f}", n.shared, n.points)
        rows.append([full_name(labels, n.label), bar, *degree, *figures])
    columns = ["neighbour i", "degree", *extra, "P[i|j]", "P[j|i]", "shared", "points"]
    return Group(lines, table([escape(column) for column in columns], rows))


def as_json(labels: Labels, found: Neighbourhood) -> dict[str, Any]:
    """All of it, by key."""

    def named(label: int) -> dict[str, Any]:
        return {"label": labels.keys[label], **({} if labels.texts is None else {"text": labels.texts[label]})}

    return {
        **named(found.label),
        "points": found.points,
        "kind": found.kind,
        "found": found.found,
        "neighbours": [
            {
                **named(n.label),
                "degree": n.degree,
                "p_given_label": n.forward,
                "p_of_label": n.backward,
                "shared": n.shared,
                "points": n.points,
            }
            for n in found.neighbours
        ],
        "between": [[labels.keys[a], labels.keys[b], degree] for a, b, degree in found.between],
    }


def write_picture(path: Path, labels: Labels, found: Neighbourhood, corpus: str) -> None:
    """Draw it, as SVG or on a page."""
    from longtail.cli.tree import write
    from longtail.report.neighbours import drawing, picture_page

    drawn = drawing(labels, found) if path.suffix == ".svg" else picture_page(labels, found, corpus)
    write(path, [drawn.encode("utf-8", "replace")])
