"""`longtail tree`: show or export the label tree of a model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from longtail.cli.options import add_model, command, parse_whole
from longtail.core.errors import ParameterError

if TYPE_CHECKING:
    from longtail.core.model import Model
    from longtail.labels.show import TreeView

STYLES = {"branch": "dim", "node": "cyan", "way": "bold", "label": "", "size": "dim", "words": "green", "names": ""}
FORMATS = {"text": ".txt", "json": ".json", "jsonl": ".jsonl", "tsv": ".tsv", "dot": ".dot"}
WHOLE = {"json", "jsonl", "tsv"}  # formats for other programs: complete, unless --depth is given
LEGEND = "\nin brackets: words that distinguish a cluster from its siblings; then its most frequent labels"
EXAMPLES = """
longtail tree model                        # the upper levels, with words and frequent labels
longtail tree model --node 2.1 --depth 2   # the nodes below child 1 of child 2 of the root
longtail tree model --label vim            # the path to one label, and its siblings
longtail tree model --out tree.json        # the whole tree, nested; .jsonl: list of parents; .tsv: label and path
longtail tree model --format dot | dot -Tsvg > tree.svg
"""


def add(commands: Any) -> None:
    """Options of `tree`."""
    parser = command(
        commands,
        "tree",
        "show or export the label tree of a model",
        EXAMPLES,
        "Show or export the label tree of a model: for each cluster its number of labels, the words that distinguish "
        "it from its siblings, and its most frequent labels. The name of a node is its path of child numbers from the "
        "root, for example 2.1.",
    )
    add_model(parser)
    parser.add_argument(
        "--depth",
        type=parse_whole,
        metavar="N",
        help="number of levels (default: all in files, else one or two screens)",
    )
    parser.add_argument("--label", metavar="KEY", help="show the path to this label, with its siblings")
    parser.add_argument("--node", metavar="NAME", help="start at this node instead of the root, for example 2.1")
    parser.add_argument("--out", metavar="FILE", help="write to a file; its ending gives the format")
    parser.add_argument("--format", choices=FORMATS, help="text (default), json (nested), jsonl, tsv, dot")
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument(
        "--children", type=parse_whole, metavar="N", default=20, help="children shown for each node (default: 20)"
    )
    parser.add_argument(
        "--words", type=parse_whole, metavar="N", default=5, help="words shown for each cluster (default: 5)"
    )
    parser.add_argument(
        "--examples", type=parse_whole, metavar="N", default=4, help="labels shown for each cluster (default: 4)"
    )
    parser.add_argument(
        "--tree",
        type=parse_whole,
        metavar="N",
        default=1,
        help="number of the tree, if the model has several (default: 1)",
    )


def run(args: argparse.Namespace) -> None:
    """Load the model, print its tree or write it to a file."""
    from longtail.cli.show import write_output
    from longtail.labels.export import graph, label_paths, nested, parent_list
    from longtail.labels.show import ROOT, Line, outline, pieces
    from longtail.store import load

    form = format_of(args)
    for name, least in (("depth", 1), ("children", 1), ("words", 0), ("examples", 0), ("tree", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise ParameterError(f"--{name} must be a whole number of at least {least}; got {value}")
    if args.label is not None and (args.node is not None or form not in ("text", "json")):
        raise ParameterError(
            "--label shows one path from the root, as text or json; leave out --node and other formats"
        )
    view, title = view_of(load(args.model), args)
    start = ROOT if args.node is None else view.find(args.node)
    follow = None if args.label is None else view.way(view.labels.index(args.label))
    whole = form in WHOLE or follow is not None
    depth = args.depth or (view.depth if whole else view.few_levels(start, args.children))
    head = [] if start is ROOT else [Line("", start)]
    lines = chain(head, outline(view, start, depth, args.children, follow))
    outlined = (pieces(view, line, follow) for line in lines)
    if form == "text" and args.out is None:
        show_outline(title, outlined)
        return
    chunks: dict[str, Callable[[], Iterable[bytes]]] = {
        "text": lambda: plain_lines(title, outlined),
        "json": lambda: (orjson.dumps(nested(view, start, depth, follow)), b"\n"),
        "jsonl": lambda: parent_list(view, start, depth),
        "tsv": lambda: label_paths(view, start, depth),
        "dot": lambda: graph(view, start, depth),
    }
    if args.out is not None:
        write_output(Path(args.out), chunks[form]())
        return
    sys.stdout.buffer.writelines(chunks[form]())
    sys.stdout.buffer.flush()


def plain_lines(title: str, lines: Iterable[list[tuple[str, str]]]) -> Iterator[bytes]:
    """The lines of the outline, for a file."""
    yield f"{title}\n".encode()
    for line in lines:
        yield ("".join(text for text, _ in line) + "\n").encode()


def format_of(args: argparse.Namespace) -> str:
    """The format that was asked for; else that of the file's ending; else text."""
    if args.json and args.format not in (None, "json"):
        raise ParameterError(f"--json and --format {args.format} contradict each other; give only one")
    if args.json or args.format is not None:
        return "json" if args.json else str(args.format)
    endings = {ending: name for name, ending in FORMATS.items()} | {".gv": "dot"}
    if args.out is None:
        return "text"
    if Path(args.out).suffix not in endings:
        raise ParameterError(f"{args.out}: this ending is not known; use {', '.join(endings)}, or give --format")
    return endings[Path(args.out).suffix]


def view_of(model: Model, args: argparse.Namespace) -> tuple[TreeView, str]:
    """The tree that was asked for, and a title for it."""
    from longtail.core.errors import UnsupportedError
    from longtail.labels.show import TreeView
    from longtail.linear.explain import node_words
    from longtail.linear.model import LinearModel

    if not isinstance(model, LinearModel):
        raise UnsupportedError(
            f"recipe {model.recipe.name!r} has no label tree to show; train a recipe with a tree, for example xr-linear"
        )
    found = [(ranker.tree, ranker) for ranker in model.rankers]
    if args.tree > len(found):
        raise ParameterError(f"--tree must be at most {len(found)}, the number of trees of this model; got {args.tree}")
    tree, ranker = found[args.tree - 1]

    def words(level: int, node: int, count: int) -> list[str]:
        return node_words(model, ranker, level, node, count)

    view = TreeView(tree, model.labels, words, word_count=args.words, examples=args.examples)
    sizes = [f"{len(ends) - 1:,}" for ends in tree.levels]
    which = f"tree {args.tree} of {len(found)}: " if len(found) > 1 else ""
    clusters = f"in {' → '.join(sizes[:-1])} clusters" if sizes[1:] else "in no clusters"
    return view, f"{which}{sizes[-1]} labels {clusters} ({model.recipe.name}){LEGEND if sizes[1:] else ''}"


def show_outline(title: str, lines: Iterable[list[tuple[str, str]]]) -> None:
    """Print the outline on the terminal, one node on each line."""
    from rich.text import Text

    from longtail.cli.show import console

    out = console()
    heading, _, legend = title.partition("\n")
    out.print(Text.assemble((heading, "bold"), f"\n{legend}" if legend else ""), soft_wrap=True)
    for line in lines:
        out.print(Text.assemble(*((text, STYLES[kind]) for text, kind in line)), no_wrap=True, overflow="ellipsis")
