"""What every encoder of the torch engines offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from longtail.encoders.export import Exported

Embedded = tuple[Tensor, ...]  # texts after their first layer, B rows in each tensor


class Encoder(nn.Module, ABC):
    """Tokens → embedded texts → named features.

    `widths` lists the features and their dimensions, as {"meta": 480, "label": 300}. Texts are mixed (MixUp) between
    `embed` and `encode`. `kind` is the registered name of what serves the encoder (encoders/served.py).
    """

    kind: ClassVar[str]
    widths: dict[str, int]
    block = 4096  # texts encoded at a time outside of training steps; fewer where features are large

    @abstractmethod
    def embed(self, tokens: Any) -> Embedded:
        """Tokens of B texts → what the next layers see of them, as vectors of bags (B, D) or words (B, T, D)."""

    def mix(self, one: Embedded, other: Embedded, share: float) -> Embedded:
        """share · one + (1 − share) · other."""
        return tuple(share * x + (1 - share) * y for x, y in zip(one, other, strict=True))

    @abstractmethod
    def encode(self, embedded: Embedded, detached: frozenset[str] = frozenset()) -> dict[str, Tensor]:
        """Features by name, (B, d) each, or (B, T, d) of tokens.

        Those in `detached` do not train what they share with other features.
        """

    @abstractmethod
    def export(self) -> Exported:
        """The arrays and settings by which the encoder is served."""

    def forward(self, tokens: Any) -> dict[str, Tensor]:
        """Tokens → features."""
        return self.encode(self.embed(tokens))
