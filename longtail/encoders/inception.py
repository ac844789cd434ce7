"""InceptionXML's encoder of short texts, and its routed form (paper 000, section A.1; Kharbanda et al. 2023).

Shapes: B texts, T words of a text, D dimensions of a word vector, C channels, S = ⌊D/4⌋ places after the first
convolutions, d dimensions of a feature.
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import spectral_norm

from longtail.core.errors import ParameterError
from longtail.encoders.dropout import Dropout

STRIDE = 4
EXPERTS = {4: 0, 8: 2, 16: 6}  # widths with their circular padding: each gives ⌊D/4⌋ places
WIDTH = 16  # of the second convolution
LEAST = STRIDE * WIDTH  # dimensions, of which the second convolution has one place left

M = TypeVar("M", nn.Conv1d, nn.Linear)
N = TypeVar("N", bound=nn.Module)


class Inception(nn.Module):
    """Word vectors (B, T, D) → the features "meta" and "label" (B, d), for the two tasks of InceptionXML.

    Convolutions use words as channels and run along the D dimensions of word vectors. They divide these by 4 twice;
    flattened, 32·(⌊(⌊D/4⌋ − 16)/4⌋ + 1) values remain (`flat`), the width of a feature. Vectors with fewer than 64
    dimensions are first projected to 64.

    `routed` is the form of InceptionXML-LF: the three convolutions are mixed by weights that depend on the text instead
    of being concatenated; each task has its own second convolution; "label" has D dimensions, because its label weights
    are made from word vectors. `width` sets the dimensions of "label" in either form.

    `widths` are the dimensions of the features, `shape` the arguments that build the same network again.
    """

    def __init__(
        self,
        D: int,
        length: int = 32,  # words of a text: the paper's for titles; channels and rates are the paper's too
        routed: bool = False,
        width: int | None = None,
        *,
        channels: int = 32,
        word_dropout: float = 0.25,
        map_dropout: float = 0.25,
        hidden_dropout: float = 0.25,
    ):
        super().__init__()
        at_least_one(D=D, length=length, width=1 if width is None else width, channels=channels)
        self.length, inner = length, max(D, LEAST)
        self.flat = channels * ((inner // STRIDE - WIDTH) // STRIDE + 1)
        self.widths = {"meta": self.flat, "label": width or (D if routed else self.flat)}
        self.shape = {"D": D, "length": length, "routed": routed, "width": width, "channels": channels}
        self.project = glorot(nn.Linear(D, inner, bias=False)) if inner > D else None  # no bias: padding stays zero
        self.enhance = EmbeddingEnhancement(inner, length, word_dropout)
        self.words = glorot(nn.Conv1d(length, channels, 1))
        self.after_words = nn.Sequential(nn.GELU(), BatchNorm(channels))
        self.maps: Concatenation = Mixture(channels) if routed else Concatenation(channels)
        mixed = self.maps.channels
        self.after_maps = nn.Sequential(nn.GELU(), BatchNorm(mixed), Dropout(map_dropout))
        self.reads = {task: task if routed else "both" for task in self.widths}  # which of `second` a task goes on from
        self.second = nn.ModuleDict({name: second(mixed, channels) for name in dict.fromkeys(self.reads.values())})
        self.hidden = nn.ModuleDict({task: Hidden(self.flat, d, hidden_dropout) for task, d in self.widths.items()})

    def forward(self, x: Tensor, mask: Tensor, detached: frozenset[str] = frozenset()) -> dict[str, Tensor]:
        """Features of texts with word vectors `x` (B, T, D), T at most `length`; `mask` (B, T) is true for words.

        Shorter texts cost less and give the same result: padding is zero in every layer.
        The gradient of tasks named in `detached` stops at their own last layer; InceptionXML detaches "label" for its
        first ten epochs, the routed form never does.
        """
        x, mask = self._trimmed(x, mask)
        x = x * mask.unsqueeze(2)  # (B, T, D), zero where no word is
        if self.project is not None:
            x = self.project(x)  # (B, T, 64)
        x = self.enhance(x)  # (B, T, D)
        x = functional.conv1d(x, self.words.weight[:, : x.shape[1]], self.words.bias)  # (B, C, D)
        x = self.maps(self.after_words(x))  # (B, 3C, S); routed: (B, C, S)
        x = self.after_maps(x)
        flat = {name: second(x) for name, second in self.second.items()}  # (B, flat)
        reads = {task: flat[name].detach() if task in detached else flat[name] for task, name in self.reads.items()}
        return {task: hidden(reads[task]) for task, hidden in self.hidden.items()}  # (B, d)

    def _trimmed(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Cut to the longest text of the batch.

        On a GPU this would mean waiting for its length, so all places are kept.
        """
        if x.shape[1] > self.length:
            raise ParameterError(f"inception: texts have at most {self.length} words (length), but got {x.shape[1]}")
        if x.device.type != "cpu":
            return x, mask
        used = mask.any(0).nonzero()
        longest = int(used[-1]) + 1 if len(used) else 1
        return x[:, :longest], mask[:, :longest]


class EmbeddingEnhancement(nn.Module):
    """Words see each other, then dimensions do: h = x + γ₁(x xᵀ)(W₁x), h′ = hᵀ + γ₂(hᵀx)(W₂hᵀ); gives h′ᵀ (B, T, D).

    W₁ (T, T) and W₂ (D, D) are 1×1 convolutions with spectral norm; both γ begin at 0. The second product is taken
    as hᵀ(x(W₂hᵀ)), the same with T×T in its middle instead of D×D. Rows of zeros stay so.
    """

    def __init__(self, D: int, length: int, dropout: float = 0.25):
        super().__init__()
        self.dropout = Dropout(dropout)
        self.W1 = spectral_norm(glorot(nn.Conv1d(length, length, 1, bias=False)))
        self.W2 = spectral_norm(glorot(nn.Linear(D, D, bias=False)))
        self.gamma1 = nn.Parameter(torch.zeros(()))
        self.gamma2 = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D), for T words at most."""
        T = x.shape[1]
        x = self.dropout(x)
        gram = x @ x.mT  # (B, T, T)
        W1: Tensor = self.W1.weight  # type: ignore[assignment]  # computed once, with its spectral norm
        h = x + self.gamma1 * (gram @ functional.conv1d(x, W1[:T, :T]))  # (B, T, D)
        cross = self.W2(h) @ x.mT  # (B, T, T), which is (x W₂hᵀ)ᵀ
        return h + self.gamma2 * (cross @ h)  # (B, T, D)


class Concatenation(nn.Module):
    """Three parallel convolutions of widths 4, 8 and 16, their outputs concatenated.

    Computed as one convolution: the narrower kernels are padded with zeros. On a CPU this takes half the time of three
    with torch's circular padding.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.channels = len(EXPERTS) * channels  # of what it gives
        self.weights = nn.ParameterList(torch.empty(channels, channels, width) for width in EXPERTS)
        self.bias = nn.Parameter(torch.zeros(self.channels))
        for weight in self.weights:
            nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, D) → (B, 3C, S)."""
        widest, margin = max(EXPERTS.items())
        weight = torch.cat([functional.pad(one, [(widest - one.shape[2]) // 2] * 2) for one in self.weights])
        around = torch.cat([x[:, :, -margin:], x, x[:, :, :margin]], 2)  # (B, C, D + 12)
        return functional.conv1d(around, weight, self.bias, STRIDE)  # (B, 3C, S); weight: (3C, C, 16)


class Mixture(Concatenation):
    """As `Concatenation`, but the three outputs are added, weighted by each text.

    The input averaged over 4 neighbours is added too. The weights are σ of a linear map of the input's means: the route
    function of Yang et al. (2019), whom the paper cites for it.
    """

    def __init__(self, channels: int):
        super().__init__(channels)
        self.channels = channels  # of what it gives
        self.route = glorot(nn.Linear(channels, len(EXPERTS)))

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, D) → (B, C, S)."""
        weight = torch.sigmoid(self.route(x.mean(2)))  # (B, 3)
        maps = super().forward(x).reshape(len(x), len(EXPERTS), self.channels, -1)  # (B, 3, C, S)
        mixed = (weight[:, :, None, None] * maps).sum(1)  # (B, C, S)
        return mixed + functional.avg_pool1d(x, STRIDE)  # (B, C, S)


class Hidden(nn.Module):
    """A task's own layer: GELU(W dropout(x)), W with spectral norm, plus x; if widths differ, a linear map of x."""

    def __init__(self, flat: int, width: int, dropout: float = 0.25):
        super().__init__()
        self.dropout = Dropout(dropout)
        self.W = spectral_norm(glorot(nn.Linear(flat, width)))
        self.skip = nn.Identity() if width == flat else glorot(nn.Linear(flat, width, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        """(B, flat) → (B, d)."""
        return functional.gelu(self.W(self.dropout(x))) + self.skip(x)


class BatchNorm(nn.BatchNorm1d):
    """Over texts and places. A batch of one text with one place has no variance: it takes the running one."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, S) → (B, C, S)."""
        if self.training and x.shape[0] * x.shape[2] == 1:
            return functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(x)


def second(mixed: int, channels: int) -> nn.Sequential:
    """The second convolution and what follows it: (B, 3C or C, S) → (B, C, ⌊(S − 16)/4⌋ + 1), flattened."""
    convolution = glorot(nn.Conv1d(mixed, channels, WIDTH, STRIDE))
    return nn.Sequential(convolution, nn.GELU(), BatchNorm(channels), nn.Flatten())


def settled(module: N) -> N:
    """A copy for prediction only: evaluation mode, spectral norms applied to the weights once.

    They would take a third or more of the time of a single text.
    """
    made = copy.deepcopy(module).eval()
    for part in list(made.modules()):
        if parametrize.is_parametrized(part, "weight"):
            # remove_parametrizations would change the class of the original too: a copy shares it
            weight = nn.Parameter(part.weight.detach())  # type: ignore[operator]
            part.__class__ = parametrize.type_before_parametrizations(part)
            del part.parametrizations
            part.weight = weight
    return made.requires_grad_(False)


def glorot(module: M) -> M:
    """Weights by Glorot's rule, biases 0: as the published encoder begins."""
    nn.init.xavier_uniform_(module.weight)
    if module.bias is not None:
        nn.init.zeros_(module.bias)
    return module


def at_least_one(**values: int) -> None:
    """Refuse values below 1, by name."""
    for name, value in values.items():
        if value < 1:
            raise ParameterError(f"inception: {name} must be at least 1, but is {value}")
