"""Give memory back to the system that the C library keeps after it was freed."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable

EVERY = 5.0  # seconds: it takes up to a tenth of one


@functools.cache
def malloc_trim() -> Callable[[int], int] | None:
    """The function of that name, if the C library is glibc; else None."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    return trim


class Kept:
    """Freed memory that glibc does not give back by itself.

    The tensors of each step have other sizes, because points share more or fewer candidates. glibc keeps freed memory
    in pieces into which the tensors of the next step do not fit: ten megabytes in a step of InceptionXML-LF with 60,000
    labels, fifteen gigabytes after 1,400 steps.
    """

    def __init__(self) -> None:
        self.last = time.monotonic()

    def give_back(self) -> None:
        """Give it back, at most every few seconds."""
        trim = malloc_trim()
        if trim is not None and time.monotonic() > self.last + EVERY:
            trim(0)
            self.last = time.monotonic()
