"""Gradient clipping whose bound follows the gradients (AttentionXML, You et al. 2019)."""

from __future__ import annotations

KEPT, GROWTH, MOST = 5, 2.0, 1.0  # norms that are remembered; what one of them counts as, at most


class Recent:
    """Gradients may be `times` as long as the longest of the last five, and any length at first.

    As in the authors' code, a norm counts as at most 1, and at most twice the longest before it: a single outlier does
    not let the next ones through.
    """

    def __init__(self, times: float):
        self.times = times
        self.norms: list[float] = []

    @property
    def bound(self) -> float:
        """The largest norm that a gradient may have now."""
        return self.times * max(self.norms, default=float("inf"))

    def add(self, norm: float) -> None:
        """Remember the norm that a gradient had before it was clipped."""
        largest = max(self.norms, default=float("inf"))
        self.norms = [*self.norms, min(norm, GROWTH * largest, MOST)][-KEPT:]
