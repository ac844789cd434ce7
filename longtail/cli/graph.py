"""`longtail graph`: the neighbours of a label."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.cli.options import add_data, command, parse_number, parse_whole, progress, read_data
from longtail.core.defaults import NEIGHBOURS, SEED
from longtail.core.errors import ParameterError

if TYPE_CHECKING:
    from longtail.core.labels import Labels
    from longtail.labels.neighbourhood import Neighbourhood

log = logging.getLogger("longtail")
KINDS = {"counts": "P[i|j]", "symmetric": "½(P[i|j] + P[j|i])", "walk": "visits"}
PICTURES = (".svg", ".html")
BAR = 12  # cells of the longest bar
EXAMPLES = """
longtail graph debian-related vim                          # labels that occur together with vim
longtail graph eurlex57k "fresh cheese" -k 20              # a label given by its text
longtail graph debian-related vim --kind walk              # by a random walk over labels
longtail graph debian-related vim --picture vim.svg        # also as a drawing
longtail graph my-folder sport --threshold 0.1 --json      # the targets that Gandalf gives its text
"""


def add(commands: Any) -> None:
    """Options of `graph`."""
    parser = command(
        commands,
        "graph",
        "show which labels occur together with a label",
        EXAMPLES,
        "Show the neighbours of a label: labels that share training points with it. P[i|j] is the share of the points "
        "with label j that also have the neighbour i; P[j|i] is the reverse. With --kind counts and --threshold 0.1, "
        "the neighbours are the targets that Gandalf gives to the text of the label.",
    )
    add_data(parser)
    parser.add_argument("label", metavar="LABEL", help="the key of a label, or its text")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="counts",
        help="rank neighbours by P[i|j] (counts, the default), by the mean of P[i|j] and P[j|i] (symmetric), or by the "
        "visits of a random walk (walk)",
    )
    parser.add_argument(
        "-k", type=parse_whole, default=NEIGHBOURS, help=f"largest number of neighbours shown (default: {NEIGHBOURS})"
    )
    parser.add_argument(
        "--threshold", type=parse_number, metavar="D", help="show only neighbours above it (default: 0; not for walk)"
    )
    parser.add_argument(
        "--shrink", type=parse_number, metavar="X", help="P[i|j] = shared / (points + X); only for counts"
    )
    parser.add_argument("--seed", type=parse_whole, metavar="N", help=f"seed of the random walk (default: {SEED})")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    parser.add_argument("--picture", metavar="FILE", help="also draw the neighbours; FILE ends in .svg or .html")


def run(args: argparse.Namespace) -> None:
    """Read the corpus, find the label, show its neighbours."""
    from longtail.augment.premise import premise_of
    from longtail.cli.show import console, dump
    from longtail.labels.neighbourhood import find_label, neighbourhood

    settings = graph_settings(args)
    if args.picture is not None and Path(args.picture).suffix not in PICTURES:
        raise ParameterError(f"--picture must end in {' or '.join(PICTURES)}; got {args.picture}")
    corpus = read_data(args, test=False)
    found = neighbourhood(corpus.train.Y, find_label(corpus.labels, args.label), args.kind, top=args.k, **settings)
    if args.picture is not None:
        write_picture(Path(args.picture), corpus.labels, found, corpus.name)
    premise = premise_of(corpus, progress(args))
    if args.json:
        more = {} if premise is None else {"gandalf_premise": premise.to_json()}
        sys.stdout.write(dump(as_json(corpus.labels, found) | more) + "\n")
    else:
        out = console()
        out.print(neighbours_page(corpus.labels, found, "#" if out.options.ascii_only else "━"))
        if premise is not None:
            out.print(str(premise), markup=False, highlight=False, soft_wrap=True)


def graph_settings(args: argparse.Namespace) -> dict[str, float]:
    """The settings that were given; refuses those that this kind of graph does not have, before data is read."""
    from longtail.core.how_many import check_k
    from longtail.labels.graph import check_share, check_shrink, check_whole

    fits = {"threshold": ("counts", "symmetric"), "shrink": ("counts",), "seed": ("walk",)}
    given = {name: getattr(args, name) for name in fits if getattr(args, name) is not None}
    for name in given:
        if args.kind not in fits[name]:
            raise ParameterError(
                f"--{name} is only for --kind {' or '.join(fits[name])}; leave it out with {args.kind}"
            )
    check_k(args.k)
    check_share("--threshold", given.get("threshold", 0.0))
    check_shrink("--shrink", given.get("shrink", 0.0))
    check_whole("--seed", given.get("seed", SEED), 0)
    return given


def neighbours_page(labels: Labels, found: Neighbourhood, cell: str) -> Any:
    """A line about the label, and the table of its neighbours, with bars made of `cell`."""
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
    """The neighbourhood as JSON values, with the keys of labels."""

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
    """Draw the neighbourhood, as SVG or as an HTML page."""
    from longtail.cli.show import write_output
    from longtail.report.neighbours import drawing, picture_page

    drawn = drawing(labels, found) if path.suffix == ".svg" else picture_page(labels, found, corpus)
    write_output(path, [drawn.encode("utf-8", "replace")])
