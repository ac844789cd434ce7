"""How the learning rate changes within a phase, as a factor of its highest value."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["constant", "linear", "cosine", "one-cycle", "plateau"]
WARM, FALLING = 0.1, 0.2  # of a plateau: the shares of the steps in which the rate rises and falls


def factor(schedule: Schedule, step: int, steps: int, warmup: int = 0) -> float:
    """The factor at step 0 ≤ step < steps.

    `one-cycle` rises from a tenth over the first third and falls to a further 1e-4 of that, both along a cosine (as
    torch's OneCycleLR). `plateau` rises from a tenth over `warmup` steps (0: a tenth of the steps), stays, and falls to
    a hundredth of that in the last fifth, along cosines too (CascadeXML). The others rise from 0 over `warmup` steps,
    then stay, fall to 0 in a line, or along a cosine.
    """
    if schedule == "one-cycle":
        peak = max(1.0, steps / 3 - 1)
        if step <= peak:
            return _between(0.1, 1.0, step / peak)
        return _between(1.0, 0.1 * 1e-4, (step - peak) / max(1.0, steps - 1 - peak))
    if schedule == "plateau":
        rising, last = warmup or round(WARM * steps), round((1 - FALLING) * steps)
        if step < rising:
            return _between(0.1, 1.0, step / rising)
        return _between(1.0, 0.1 * 0.01, (step - last) / max(1, steps - 1 - last)) if step > last else 1.0
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}[schedule]


def _between(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(share, 1.0))) / 2
