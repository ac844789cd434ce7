"""Progress on stderr: a bar on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
PLAIN_EVERY = 10.0  # seconds between plain lines, so that the log of a long run stays readable


class Progress:
    """Creates progress bars; with `quiet`, silent ones. The library is quiet by default, the command line is not."""

    def __init__(self, quiet: bool = True, stream: Any = None):
        self.quiet = quiet
        self.stream = stream

    @contextmanager
    def bar(self, title: str, total: int | None = None, unit: str = "it") -> Iterator[Bar]:
        """Open a bar to `advance`; it is closed at the end of the block."""
        stream = self.stream or sys.stderr
        if self.quiet:
            yield Bar()
        elif stream.isatty():
            with RichBar(title, total, unit) as bar:
                yield bar
        else:
            with PlainBar(title, total, unit, stream) as bar:
                yield bar

    def track(self, items: Iterable[T], title: str, total: int | None = None, unit: str = "it") -> Iterator[T]:
        """Iterate over `items` and show a bar."""
        if total is None and isinstance(items, Sized):
            total = len(items)
        with self.bar(title, total, unit) as bar:
            for item in items:
                yield item
                bar.advance()


class Bar:
    """A silent bar, and the interface of the others."""

    def advance(self, by: int = 1) -> None:
        """Report `by` more units as done."""

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class RichBar(Bar):
    """A bar with rate and time left."""

    def __init__(self, title: str, total: int | None, unit: str):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}" + ("/{task.total:,.0f} " if total else " ") + unit),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            *([TimeRemainingColumn()] if total else []),
        )
        self._rich = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._rich.add_task(title, total=total, rate="")
        self._start, self._done = time.monotonic(), 0

    def advance(self, by: int = 1) -> None:
        self._done += by
        rate = self._done / max(time.monotonic() - self._start, 1e-9)
        self._rich.update(self._task, advance=by, rate=f"{rate:,.0f}/s")

    def __enter__(self) -> Bar:
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()


class PlainBar(Bar):
    """Prints a line every few seconds, for logs and pipes; a loop that ends sooner prints nothing."""

    def __init__(self, title: str, total: int | None, unit: str, stream: Any):
        self._title, self._total, self._unit, self._stream = title, total, unit, stream
        self._start = self._last = time.monotonic()
        self._done = 0

    def advance(self, by: int = 1) -> None:
        self._done += by
        now = time.monotonic()
        if now - self._last < PLAIN_EVERY:
            return
        self._last = now
        rate = self._done / (now - self._start)
        of, left = "", ""
        if self._total:
            of = f"/{self._total:,}"
            left = f", {(self._total - self._done) / max(rate, 1e-9):,.0f} s left"
        self._stream.write(f"{self._title}: {self._done:,}{of} {self._unit}, {rate:,.0f}/s{left}\n")
        self._stream.flush()
