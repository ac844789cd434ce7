"""Memory that the C library holds on to."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable

EVERY = 5.0  # seconds: it takes up to a tenth of one


@functools.cache
def malloc_trim() -> Callable[[int], int] | None:
    """That of glibc, where that is the library."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    return trim


class Kept:
    """What is freed and not given back to the system.

    Each step's tensors have sizes of their own, since points share more or fewer candidates, and glibc keeps what is
    freed in pieces that the next step's do not fit into: ten megabytes in a step of InceptionXML-LF with 60,000 labels,
    fifteen gigabytes after 1,400 of them.
    """

    def __init__(self) -> None:
        self.last = time.monotonic()

    def give_back(self) -> None:
        """Now and then."""
        trim = malloc_trim()
        if trim is not None and time.monotonic() > self.last + EVERY:
            trim(0)
            self.last = time.monotonic()
