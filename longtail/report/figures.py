"""Numbers for people: how they are written, and where the ticks of an axis are."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """A count or a mean as text: thousands separated, with at most two decimals and fewer for large numbers."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0}f}"


def percent(share: float) -> str:
    """A share (0 to 1) as a percentage."""
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def power(exponent: int, ascii: bool = False) -> str:
    """A power of ten: `10³`, or `10^3` with `ascii`."""
    return f"10^{exponent}" if ascii else "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def ticks(high: float, about: int = 5) -> list[float]:
    """Round numbers at even steps from 0 to at least `high`, about `about` of them."""
    scale = 10.0 ** math.floor(math.log10(high / about)) if high > 0 else 1.0
    step = next(s for s in (scale, 2 * scale, 5 * scale, 10 * scale) if s * about >= high * 0.999)
    return [round(i * step, 10) for i in range(math.ceil(high / step - 1e-9) + 1)]


def decades(high: float) -> float:
    """The exponent of 10 at which a logarithmic axis from 1 ends: a little above `high`, and above 10¹."""
    return max(math.log10(max(high, 1)) * 1.02, 1.02)


def ticks_between(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers at even steps from at most `low` to at least `high`, about `about` of them and at least two."""
    step = ticks((high - low) or 1.0, about)[1]
    first = math.floor(low / step + 1e-9)
    last = max(math.ceil(high / step - 1e-9), first + 1)
    return [round(i * step, 10) for i in range(first, last + 1)]


def duration(seconds: float) -> str:
    """A time for people: `0.4 s`, `45 s`, `5.3 min`, `2 h`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size * (1 if seconds % size == 0 else 1.495):
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    if seconds < 0.05:
        return "< 0.1 s"
    return f"{seconds:.1f}".removesuffix(".0") + " s" if seconds < 9.95 else f"{seconds:.0f} s"


def memory(megabytes: float) -> str:
    """An amount of memory for people: `311 MB`, `2.3 GB`."""
    return f"{megabytes:,.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"


def instant(microseconds: float) -> str:
    """A short time for people: `85 µs`, `0.21 ms`, `12 ms`."""
    if microseconds < 99.5:
        return f"{microseconds:.0f} µs"
    milliseconds = microseconds / 1000
    return f"{milliseconds:.2g} ms" if milliseconds < 9.95 else f"{milliseconds:,.0f} ms"
