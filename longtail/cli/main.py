"""The command `longtail`: parses arguments, runs one command, turns errors into a message and an exit code.

Exit codes: 0 success; 1 a problem with the data, the model or the machine; 2 wrong usage; 130 stopped by Ctrl-C; 70 a
bug in longtail.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import logging
import os
import sys
from collections.abc import Sequence

from longtail.cli.options import Parser
from longtail.core.errors import LongtailError, ParameterError

COMMANDS = (
    "train",
    "ensemble",
    "predict",
    "evaluate",
    "compare",
    "inspect",
    "explain",
    "tree",
    "graph",
    "labels",
    "memory",
    "embed",
    "encoders",
    "info",
    "recipes",
    "contract",
    "convert",
    "bench",
    "peers",
    "reproduce",
)
DESCRIPTION = "Give a text the right few labels out of thousands to millions."
EPILOG = """first steps:
  longtail inspect debian-related                    # look at the bundled corpus
  longtail train debian-related --out model          # train with the default recipe
  longtail evaluate model debian-related             # score it on the test part
  longtail predict model "a text editor" -k 5        # use it

exit codes:
  0 success, 1 bad data or model, 2 wrong usage, 130 interrupted, 70 a bug in longtail"""


class Version(argparse.Action):
    """Prints the version. It is looked up only here, because that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import longtail

        sys.stdout.write(f"longtail {longtail.__version__}\n")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = build_parser()
    args, rest = parser.parse_known_args(arguments)
    if rest and (not hasattr(args, "inputs") or any(word.startswith("-") for word in rest)):
        getattr(args, "parser", parser).refuse(rest)
    if rest:  # argparse does not take texts that follow an option: predict MODEL -k 5 "a text"
        args.inputs = [*args.inputs, *rest]
    if args.command is None:
        parser.print_help()
        return 2
    set_up_logging(args)
    for stream in (sys.stdout, sys.stderr):  # for terminals without Unicode
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return run(args)
    except ParameterError as error:
        return fail(args, error, 2)
    except LongtailError as error:
        return fail(args, error, 1)
    except KeyboardInterrupt:
        return fail(args, KeyboardInterrupt("interrupted"), 130)
    except BrokenPipeError:  # the reader of our output has ended (| head): not an error
        drop_output()
        return 0
    except OSError as error:
        drop_output()
        return fail(args, LongtailError(f"{error.filename or 'file'}: {error.strerror or error}"), 1, error)
    except MemoryError as error:
        return fail(args, LongtailError(f"out of memory: {error or 'the data does not fit'}"), 1)
    except Exception as error:
        return fail(args, LongtailError(f"a bug in longtail: {type(error).__name__}: {error}"), 70, error)


def run(args: argparse.Namespace) -> int:
    """Run the command that was parsed; returns the exit code."""
    from longtail._native import set_threads
    from longtail.core.run import resolve_threads

    importlib.import_module("longtail.recipes")
    set_threads(resolve_threads(args.threads))
    code: int | None = importlib.import_module(f"longtail.cli.{args.command}").run(args)
    if sys.stdout is not None:
        sys.stdout.flush()
    return code or 0


def drop_output() -> None:
    """Discard buffered output, so that the interpreter does not fail when it flushes it at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser() -> Parser:
    """The parser with all commands."""
    parser = Parser("longtail", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action=Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in COMMANDS:
        importlib.import_module(f"longtail.cli.{name}").add(commands)
    return parser


def set_up_logging(args: argparse.Namespace) -> None:
    """Write messages of the library to stderr, each of them once. Warnings are marked."""

    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            mark = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
            return mark + super().format(record)

    shown: set[str] = set()

    def once(record: logging.LogRecord) -> bool:  # a recipe that trains twice would repeat its messages
        message = record.getMessage()
        return message not in shown and not shown.add(message)  # type: ignore[func-returns-value]

    log = logging.getLogger("longtail")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    handler.addFilter(once)
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(logging.DEBUG if args.debug else logging.WARNING if args.quiet else logging.INFO)


def fail(args: argparse.Namespace, shown: BaseException, code: int, cause: BaseException | None = None) -> int:
    """Print what went wrong and return `code`; with --debug, raise the error instead."""
    if args.debug:
        raise cause or shown
    hint = " (--debug shows where)" if code == 70 else ""
    sys.stderr.write(f"longtail: {shown}{hint}\n")
    return code
