"""The words of a text in context, by bidirectional LSTMs (AttentionXML, You et al. 2019).

Shapes: B texts, W tokens of the longest with its end, D dimensions of a word vector, h of a state in one direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from longtail.encoders.dropout import Dropout
from longtail.encoders.encoder import Embedded
from longtail.encoders.export import Exported
from longtail.encoders.on_demand import OnDemand
from longtail.encoders.sequence import WordEncoder
from longtail.encoders.table import Table

HELD = 2**24  # numbers of a feature that are held at a time, outside of training steps


class LSTMEncoder(WordEncoder):
    """Word vectors E (V, D), and for each name in `features` a bidirectional LSTM, whose states (B, W, 2h) it names.

    In AttentionXML each level of the tree has a network of its own. A feature is computed when a level reads it
    (`OnDemand`): training or searching one level runs one LSTM. The feature "mask" (B, W) is true for tokens of a
    text; pads change nothing.

    A text ends with a token whose vector is zero. The paper has none; but in a text of one token every label attends
    to that token alone, and all labels would have the same score.
    """

    kind = "lstm"

    def __init__(
        self,
        E: Table,
        features: Sequence[str],
        hidden: int,
        length: int,  # the most words of a text
        word_dropout: float = 0.2,
        dropout: float = 0.5,
    ):
        super().__init__(E)
        self.nets = nn.ModuleDict({name: BothWays(E.width, hidden) for name in features})
        self.widths = dict.fromkeys(features, 2 * hidden)
        self.word_dropout, self.dropout = Dropout(word_dropout), Dropout(dropout)
        self.hidden, self.length = hidden, length
        self.block = block_of(length, hidden)

    def copy_net(self, start: str, end: str) -> None:
        """Let the LSTM of the feature `end` begin where that of `start` is."""
        self.nets[end].load_state_dict(self.nets[start].state_dict())

    def encode(self, embedded: Embedded, detached: frozenset[str] = frozenset()) -> dict[str, Tensor]:
        """Features of tokens (B, W, 2h), computed when they are read, and "mask" (B, W)."""
        vectors, words = embedded  # (B, T, D), (B, T)
        lengths = words.sum(1) + 1  # (B,), with the end of the text
        W = int(lengths.max())
        x = functional.pad(vectors * words.unsqueeze(2), (0, 0, 0, 1))  # (B, T + 1, D), zero where no word is
        x = self.word_dropout(x[:, :W])  # (B, W, D)
        places = torch.arange(W, device=x.device)
        mask = places < lengths[:, None]  # (B, W)
        backwards = (lengths[:, None] - 1 - places).clamp(min=0)  # (B, W): the places of a text from its end

        def states(name: str) -> Tensor:
            found: Tensor = self.dropout(self.nets[name](x, backwards))  # (B, W, 2h)
            return found.detach() if name in detached else found

        return OnDemand(states, {"mask": mask})

    @torch.no_grad()
    def export(self) -> Exported:
        """Word vectors and LSTMs, for `encoders.lstm_served.LSTMFeatures`. Arrays are (2, …), forth and back."""
        arrays = {"E": self.E.weight.cpu().numpy()}
        for name, net in self.nets.items():
            own = net.state_dict()
            U, W, b, c = (
                torch.stack([own[f"{way}.{part}_l0"] for way in ("forth", "back")]).cpu().numpy()
                for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            arrays |= {f"{name}.input": U, f"{name}.state": W, f"{name}.bias": b + c}
        meta = {"kind": self.kind, "features": list(self.widths), "length": self.length}
        return Exported(arrays, meta)


class BothWays(nn.Module):
    """An LSTM for each direction: word vectors (B, W, D) → states (B, W, 2h); beyond a text they mean nothing.

    The second reads each text from its own last word on (`backwards`, (B, W)), so it needs no packed sequences: with
    these a step on a CPU takes 2.5 times as long for texts of 32 words, and 24 times for 300.
    """

    def __init__(self, D: int, h: int):
        super().__init__()
        self.forth, self.back = nn.LSTM(D, h, batch_first=True), nn.LSTM(D, h, batch_first=True)

    def forward(self, x: Tensor, backwards: Tensor) -> Tensor:
        """(B, W, D) → (B, W, 2h)."""
        at = backwards[:, :, None]
        reversed_ = self.back(x.gather(1, at.expand_as(x)))[0]  # (B, W, h)
        return torch.cat([self.forth(x)[0], reversed_.gather(1, at.expand_as(reversed_))], 2)


def block_of(length: int, hidden: int) -> int:
    """How many texts of so many words are encoded at a time."""
    return max(1, min(HELD // (2 * hidden * length), WordEncoder.block))
