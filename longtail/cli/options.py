"""The parser, and options that several commands share. Defaults come from `core/defaults.py`."""

from __future__ import annotations

import argparse
import difflib
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from longtail.core import defaults
from longtail.core.errors import ParameterError, StoreError, nearest
from longtail.core.progress import Progress

RENAMED = {"--top": "-k"}  # old names of options that do not look like the new ones, for the error message


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps descriptions to the width of the terminal, and keeps the layout of examples."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=32)

    def add_argument(self, action: argparse.Action) -> None:
        """Also leave room for the names of commands, which argparse forgets to indent."""
        super().add_argument(action)
        for command in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(command)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        laid_out = "\n  " in text
        return super()._fill_text(text, width, indent) if laid_out else textwrap.fill(" ".join(text.split()), width)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are short and suggest the nearest known name. Options cannot be abbreviated."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **{"formatter_class": HelpFormatter, "allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        """Print the message without the usage, which may fill the screen; exit with code 2."""
        self.exit(2, f"{self.prog}: {message}\nRun `{self.prog} --help` to see all options.\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"unknown value {value!r}.{nearest(str(value), action.choices)}")

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Say which arguments are not known; for an option, name the nearest one."""
        options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
        if not options:
            self.error(f"unexpected arguments: {' '.join(unknown)}")
        name = options[0]
        known = [option for option in self._option_string_actions if option.startswith("--")]
        close = [RENAMED[name]] if RENAMED.get(name) in self._option_string_actions else []
        close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        self.error(f"there is no option {name}." + (f" Did you mean {close[0]}?" if close else ""))


def command(commands: Any, name: str, summary: str, examples: str, description: str | None = None) -> Parser:
    """The parser of a command, with examples at the end of `--help`, and the options that every command has."""
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    parser: Parser = commands.add_parser(
        name,
        help=summary,
        description=description or f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{lines}",
    )
    parser.set_defaults(parser=parser)  # for errors that are found after parsing
    general = parser.add_argument_group("general")
    general.add_argument("--quiet", action="store_true", help="show no progress, only warnings and errors")
    general.add_argument("--debug", action="store_true", help="show the traceback of an error")
    general.add_argument(
        "--threads",
        type=parse_whole,
        metavar="N",
        help="number of threads (default: LONGTAIL_THREADS, else all the machine allows)",
    )
    return parser


def add_model(parser: argparse.ArgumentParser) -> None:
    """The argument MODEL."""
    parser.add_argument("model", metavar="MODEL", help="a folder made by `longtail train`")


def add_data(parser: argparse.ArgumentParser) -> None:
    """The argument DATA, and how to read it."""
    parser.add_argument("data", metavar="DATA", help="a folder, a file, or the name of a bundled corpus")
    add_data_options(parser)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """How to read data."""
    group = parser.add_argument_group("reading the data")
    group.add_argument("--format", metavar="NAME", help="the format of the data (default: detected; see docs/data.md)")
    group.add_argument("--text", metavar="FIELD", help="field or column of the text; join several with commas")
    group.add_argument("--labels", metavar="FIELD", help="field or column of the labels")
    group.add_argument("--label-sep", metavar="SEP", help="separator of labels in one cell, for example ';'")
    group.add_argument("--group-by", metavar="FIELD", help="keep points with the same value on one side of a split")
    group.add_argument(
        "--on-bad-line",
        choices=("error", "skip"),
        default="error",
        help="stop at a bad line (error, the default), or leave it out (skip)",
    )


def add_k(parser: argparse.ArgumentParser) -> None:
    """-k: how many labels a text gets (`core/how_many.py`)."""
    parser.add_argument(
        "-k",
        type=parse_whole,
        help=f"largest number of labels for a text (default: all above the model's cut-off; without one {defaults.K})",
    )


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """--seed: one seed. An option for several is called --seeds."""
    parser.add_argument(
        "--seed",
        type=parse_whole,
        metavar="N",
        default=defaults.SEED,
        help=f"seed of {what} (default: {defaults.SEED})",
    )


def add_texts(parser: argparse.ArgumentParser) -> None:
    """The texts that `predict` and `explain` read."""
    parser.add_argument(
        "inputs",
        metavar="TEXT|FILE",
        nargs="*",
        default=(),
        help="texts or files; without any, or for -, standard input is read",
    )
    parser.add_argument(
        "--text",
        metavar="FIELD",
        default="text",
        help="field or column of the text in JSON lines and tables (default: text)",
    )
    parser.add_argument("--literal", action="store_true", help="arguments are texts, even if a file has that name")


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """Which points are scored, and at which k."""
    shown = ",".join(map(str, defaults.KS))
    parser.add_argument(
        "--part", choices=("train", "dev", "test"), help="part of the data to score (default: test, else dev, else all)"
    )
    parser.add_argument(
        "--ks", type=parse_ks, metavar="K,K", default=defaults.KS, help=f"the k of the metrics (default: {shown})"
    )


def read_data(args: argparse.Namespace, *, test: bool = True) -> Any:
    """The corpus that the arguments name. Without `test`, its test part is not read."""
    from longtail.data.read import read

    return read(
        args.data,
        format=args.format,
        text=args.text,
        labels=args.labels,
        label_sep=args.label_sep,
        group_by=args.group_by,
        on_bad_line=args.on_bad_line,
        progress=progress(args),
        test=test,
    )


def check_out(args: argparse.Namespace) -> None:
    """Refuse a folder where the model cannot be saved, before time is spent on the model."""
    from longtail.store import check_model_place

    if args.out is not None and check_model_place(args.out) and not args.overwrite:
        raise StoreError(
            f"{args.out}: already contains a model; use --overwrite to replace it, or choose another folder"
        )


def progress(args: argparse.Namespace) -> Progress:
    """Progress bars, unless --quiet was given."""
    return Progress(quiet=args.quiet)


def parse_whole(text: str) -> int:
    """Parse a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number; got {text!r}") from None


def parse_number(text: str) -> float:
    """Parse a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number; got {text!r}") from None


def parse_ks(text: str) -> tuple[int, ...]:
    """Parse a list of k: "1,3,5"."""
    from longtail.core.how_many import check_ks

    try:
        return check_ks([int(part) for part in text.split(",")])
    except (ValueError, ParameterError):
        message = f"must be whole numbers of at least 1 with commas between them, for example 1,3,5; got {text!r}"
        raise argparse.ArgumentTypeError(message) from None


def parse_time(text: str) -> float:
    """Parse a time in seconds, minutes or hours ("90s", "10m", "2h"); returns seconds."""
    try:
        seconds = float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
    except (ValueError, KeyError, IndexError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a time such as 90s, 10m or 2h; got {text!r}")
    return seconds


def parse_settings(settings: list[str], option: str = "--set") -> dict[str, str]:
    """Parse KEY=VALUE pairs, the values of `option`."""
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ParameterError(f"{option} takes KEY=VALUE; got {setting!r}")
        parsed[key.strip()] = value.strip()
    return parsed
