"""Features made of other features: side by side, with dropout, through a linear layer, scaled to length 1.

CascadeXML reads its first level from two layers of a transformer, LightXML all levels from five.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from longtail.encoders.encoder import Embedded, Encoder
from longtail.encoders.export import Exported


class Tap(NamedTuple):
    """A feature: those named in `of` side by side, then dropout, then a linear layer to `width` (None: no layer).

    With `unit`, the result is scaled to length 1.
    """

    of: tuple[str, ...]
    dropout: float = 0.0
    width: int | None = None
    unit: bool = False


class Tapped(Encoder):
    """An encoder with more features, each made of the encoder's own and of those named before it.

    What only serves to make others is not listed in `widths`: pass the names that levels read as `features`.
    """

    kind = "tapped"

    def __init__(self, encoder: Encoder, taps: Mapping[str, Tap], features: tuple[str, ...] | None = None):
        super().__init__()
        self.inner, self.taps = encoder, dict(taps)
        widths = dict(encoder.widths)
        self.layers = nn.ModuleDict()
        for name, tap in self.taps.items():
            wide = sum(widths[own] for own in tap.of)
            widths[name] = tap.width or wide
            if tap.width is not None:
                self.layers[name] = layer = nn.Linear(wide, tap.width)
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)
        self.widths = {name: widths[name] for name in features or widths}

    @property
    def E(self) -> Any:  # noqa: N802  # the name of word vectors in every encoder
        """The word vectors of the encoder inside."""
        return self.inner.E

    def embed(self, tokens: Any) -> Embedded:
        """As the encoder inside."""
        return self.inner.embed(tokens)

    def mix(self, one: Embedded, other: Embedded, share: float) -> Embedded:
        """As the encoder inside."""
        return self.inner.mix(one, other, share)

    def encode(self, embedded: Embedded, detached: frozenset[str] = frozenset()) -> dict[str, Tensor]:
        """All features (B, d) by name. A detached one trains its own linear layer only."""
        found = self.inner.encode(embedded)
        for name, tap in self.taps.items():
            x = torch.cat([found[own] for own in tap.of], 1)  # (B, Σ d)
            x = nn.functional.dropout(x, tap.dropout, self.training)
            x = x.detach() if name in detached else x
            x = self.layers[name](x) if name in self.layers else x
            found[name] = nn.functional.normalize(x, dim=1) if tap.unit else x
        return {
            name: found[name].detach() if name in detached and name not in self.layers else found[name]
            for name in self.widths
        }

    @torch.no_grad()
    def export(self) -> Exported:
        """The encoder inside and the linear layers, for `encoders.taps_served.TappedFeatures`."""
        inner = self.inner.export()
        arrays: dict[str, np.ndarray] = inner.under("inner")
        for name, layer in self.layers.items():
            arrays |= {f"{name}.{part}": tensor.cpu().numpy() for part, tensor in layer.state_dict().items()}
        taps = [
            {"name": name, "of": list(tap.of), "layer": tap.width is not None, "unit": tap.unit}
            for name, tap in self.taps.items()
        ]
        return Exported(arrays, {"kind": self.kind, "inner": inner.meta, "taps": taps, "features": list(self.widths)})
