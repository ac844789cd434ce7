"""Label-wise attention: each label reads the tokens that matter to it (AttentionXML, You et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from longtail.encoders.export import Exported
from longtail.encoders.table import Table
from longtail.scoring.candidates import Candidates
from longtail.scoring.level import Level, found_in, numbers
from longtail.scoring.losses import Loss
from longtail.scoring.weights import LabelWeights

HELD = 2**25  # numbers of one layer that a step holds at a time


class Shared(nn.Module):
    """The layers that all nodes share: u · ReLU(… ReLU(U₁ m + b₁) …) + c for an attended text m (2h,).

    The a_i add up to 1, so U₁ Σ_i a_i h_i + b₁ = Σ_i a_i (U₁ h_i + b₁): tokens go through the first layer once, and not
    once for each candidate.
    """

    def __init__(self, d: int, widths: Sequence[int]):
        super().__init__()
        self.first = nn.Linear(d, widths[0])
        self.rest = nn.ModuleList(nn.Linear(*size) for size in pairwise(widths))
        self.out = nn.Linear(widths[-1], 1)
        self.widths = tuple(widths)
        for layer in self.linear():
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def linear(self) -> list[nn.Linear]:
        """All layers, the one that gives the logit last."""
        return [self.first, *(layer for layer in self.rest if isinstance(layer, nn.Linear)), self.out]

    def tokens(self, H: Tensor) -> Tensor:
        """U₁ h + b₁ of each token: (B, W, d) → (B, W, m)."""
        found: Tensor = self.first(H)
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, C) of Σ_i a_i (U₁ h_i + b₁), (B, C, m), which is overwritten."""
        x = functional.relu_(x)
        for layer in self.rest:
            x = functional.relu_(layer(x))
        logits: Tensor = self.out(x)[..., 0]
        return logits


class Attended(Level):
    """Each node j has a vector w_j, by which it attends to the tokens h_i of a text.

    a_ij = softmax over i of h_i · w_j, m_j = Σ_i a_ij h_i, logit_j = shared(m_j) (+ bias_j; the paper has none).
    The feature is (B, W, d); `mask`, a feature too, is true for tokens that are no pads (B, W). Candidates are taken
    in parts if they are too many to be held at once; in training each part is then computed again for its gradient.
    """

    kind = "attended"

    def __init__(
        self,
        K: int,
        feature: str,
        weights: LabelWeights,
        shared: Shared,
        bias: Table | None = None,
        candidates: Candidates | None = None,
        loss: Loss | None = None,
        weight: float = 1.0,
        mask: str = "mask",
    ):
        super().__init__(K, feature, candidates, loss, weight)
        self.weights, self.shared, self.bias, self.mask = weights, shared, bias, mask

    def logits(self, features: dict[str, Tensor], nodes: Tensor | None = None) -> Tensor:
        """The weights of a node that is a candidate of several points are gathered once (U different nodes)."""
        H, pads = features[self.feature], ~features[self.mask].unsqueeze(2)  # (B, W, d), (B, W, 1)
        U = self.shared.tokens(H)  # (B, W, m)
        if nodes is None:
            different, at = numbers(self.K, H), None
        else:
            different, at = found_in(nodes, self.K)  # (U,), (B, C)
        rows = self.weights.rows(different)  # (U, d)

        def part(first: int, last: int) -> Tensor:
            w = rows[first:last] if at is None else functional.embedding(at[:, first:last], rows)  # (c, d) or (B, c, d)
            scores = (H @ w.mT).masked_fill_(pads, -torch.inf)  # (B, W, c)
            logits: Tensor = self.shared(scores.softmax(1).mT @ U)  # (B, c)
            return logits.float()

        each = len(H) * (H.shape[1] + sum(self.shared.widths) + (0 if at is None else H.shape[2]))  # for a candidate
        logits = in_parts(part, self.K if at is None else at.shape[1], max(1, HELD // max(each, 1)))
        if self.bias is None:
            return logits
        biases = self.bias.rows(different)[:, 0]
        return logits + (biases if at is None else biases[at])

    def copy_shared(self, other: Level) -> None:
        """Let the shared layers begin where those of another level are."""
        if not isinstance(other, Attended):
            raise TypeError(f"a {type(other).__name__} has no shared layers")
        self.shared.load_state_dict(other.shared.state_dict())

    @torch.no_grad()
    def export(self) -> Exported:
        """Attention vectors and shared layers, for `cascade.attended_served.ServedAttended`."""
        arrays = {"weights": self.weights.all_rows(self.K).cpu().numpy()}
        if self.bias is not None:
            arrays["bias"] = self.bias.weight.cpu().numpy()[:, 0]
        layers = self.shared.linear()
        for i, layer in enumerate(layers):
            arrays |= {f"layer{i}.{name}": tensor.cpu().numpy() for name, tensor in layer.state_dict().items()}
        meta = {"kind": self.kind, "feature": self.feature, "mask": self.mask, "layers": len(layers)}
        return Exported(arrays, meta).plus(self.exported_candidates())


def in_parts(part: Callable[[int, int], Tensor], C: int, step: int) -> Tensor:
    """`part(first, last)` for candidates 0 … C, `step` at a time, side by side (B, C)."""
    if step >= C:
        return part(0, C)
    bounds = [(first, min(first + step, C)) for first in range(0, C, step)]
    if not torch.is_grad_enabled():
        return torch.cat([part(*each) for each in bounds], 1)
    again = [checkpoint(part, *each, use_reentrant=False, preserve_rng_state=False) for each in bounds]
    return torch.cat(again, 1)
