"""`longtail`: parse, run one command, turn errors into a message and an exit code.

Exit codes: 0 done; 1 the data, model or machine was at fault; 2 wrong usage; 130 stopped by Ctrl-C; 70 a bug.
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

from longtail.cli.options import HelpFormatter
from longtail.core.errors import LongtailError, ParameterError

COMMANDS = (
    "train",
    "predict",
    "evaluate",
    "compare",
    "inspect",
    "explain",
    "tree",
    "graph",
    "labels",
    "info",
    "recipes",
    "convert",
    "bench",
    "reproduce",
)
DESCRIPTION = "Give a text the right few labels out of thousands to millions."
EPILOG = """first steps:
  longtail inspect debian-related                    # look at the bundled corpus
  longtail train debian-related --out model          # train with the default recipe
  longtail evaluate model debian-related             # score it on the test part
  longtail predict model "a text editor" -k 5        # use it

exit codes: 0 done, 1 bad data or model, 2 wrong usage, 130 interrupted, 70 a bug in longtail"""


class Version(argparse.Action):
    """Prints the version; looked up only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import longtail

        sys.stdout.write(f"longtail {longtail.__version__}\n")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = build_parser()
    args, late = parser.parse_known_args(arguments)
    if late and (not hasattr(args, "inputs") or any(word.startswith("-") for word in late)):
        parser.error(f"unrecognized arguments: {' '.join(late)}")
    if late:  # argparse gives up on texts that follow an option: predict MODEL -k 5 "a text"
        args.inputs += late
    if args.command is None:
        parser.print_help()
        return 2
    set_up_logging(args)
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no Unicode shows what it can
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
    except BrokenPipeError:  # the reader of our output has gone (| head): nothing is wrong
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
    """The command itself."""
    from longtail._native import set_threads
    from longtail.core.run import resolve_threads

    importlib.import_module("longtail.recipes")
    set_threads(resolve_threads(args.threads))
    code: int | None = importlib.import_module(f"longtail.cli.{args.command}").run(args)
    if sys.stdout is not None:
        sys.stdout.flush()
    return code or 0


def drop_output() -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not fail on it at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser("longtail", description=DESCRIPTION, epilog=EPILOG, formatter_class=HelpFormatter)
    parser.add_argument("--version", action=Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in COMMANDS:
        importlib.import_module(f"longtail.cli.{name}").add(commands)
    return parser


def set_up_logging(args: argparse.Namespace) -> None:
    """Messages of the library go to stderr, warnings marked as such."""

    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            mark = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
            return mark + super().format(record)

    said: set[str] = set()

    def once(record: logging.LogRecord) -> bool:  # a recipe that trains twice need not say everything twice
        message = record.getMessage()
        return message not in said and not said.add(message)  # type: ignore[func-returns-value]

    log = logging.getLogger("longtail")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    handler.addFilter(once)
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(logging.DEBUG if args.debug else logging.WARNING if args.quiet else logging.INFO)


def fail(args: argparse.Namespace, shown: BaseException, code: int, cause: BaseException | None = None) -> int:
    """Say what went wrong; with --debug, where."""
    if args.debug:
        raise cause or shown
    hint = " (--debug shows where)" if code == 70 else ""
    sys.stderr.write(f"longtail: {shown}{hint}\n")
    return code
