"""Transformers as encoders: word pieces → layers of self-attention → one vector for each text.

Shapes: B texts, W word pieces of a text, T tokens of it with special tokens, D dimensions of a word vector, d
dimensions of a feature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from longtail.core.errors import DataError, ParameterError
from longtail.encoders.encoder import Embedded, Encoder
from longtail.encoders.export import Exported
from longtail.encoders.pretrained import DEPTH, Model, positions, pretrained, settings_of
from longtail.encoders.sequence import Sequences
from longtail.encoders.source import encoder_files
from longtail.encoders.specials import Specials, chunk_sizes
from longtail.encoders.subwords import Subwords
from longtail.encoders.table import Table, compact
from longtail.encoders.tokens import FIRST

EMPTY: Mapping[str, Any] = {}
Pooling = Literal["mean", "cls"]
FEATURE = re.compile(r"text|cls([1-9]\d*)?")
CPU_CHUNK, GPU_CHUNK = 1024, 65536  # places that run together: a CPU gains nothing from more, and fewer are pads


class Transformer(nn.Module):
    """Word vectors (B, T, D) → named features (B, d).

    `features` says which: "text" is the mean of the last layer over all tokens, special ones included, or with
    `pooling` "cls" its first token; "cls" is the first token of the last layer, and "cls3" that of layer 3. Texts run
    from long to short in chunks of at most `chunk` places, each as long as its longest text, so that few are pads.
    With `checkpointing` only the features of a chunk are kept for the backward pass, which computes its layers again.
    """

    def __init__(
        self,
        model: Model,
        features: Sequence[str],
        pooling: Pooling,
        chunk: int | None = None,
        checkpointing: bool = False,
    ):
        super().__init__()
        if chunk is not None and chunk < 1:
            raise ParameterError(f"transformer: chunk must be at least 1 (token), but is {chunk}")
        if pooling not in ("mean", "cls"):
            raise ParameterError(f"transformer: pooling must be 'mean' or 'cls', but is {pooling!r}")
        self.model, self.pooling, self.chunk, self.checkpointing = model, pooling, chunk, checkpointing
        self.layers = {name: layer_of(name, getattr(model.config, DEPTH)) for name in features}  # None: the last one
        self.widths: dict[str, int] = dict.fromkeys(self.layers, model.config.hidden_size)

    def forward(self, vectors: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Features of texts with these word vectors (B, T, D); `mask` (B, T) is true for tokens, which come first."""
        lengths, order = mask.sum(1).sort(descending=True, stable=True)  # (B,) each
        longest = lengths.tolist()
        sizes = chunk_sizes(longest, self.chunk or (CPU_CHUNK if mask.device.type == "cpu" else GPU_CHUNK))
        if not sizes:
            return {name: vectors.new_zeros(0, width) for name, width in self.widths.items()}
        run = self.run_again if self.checkpointing and torch.is_grad_enabled() else self.run
        if len(sizes) == 1:
            return run(vectors[:, : longest[0]], mask[:, : longest[0]])
        found, start = [], 0
        for x, own in zip(vectors[order].split(sizes), mask[order].split(sizes), strict=True):
            T = longest[start]
            found.append(run(x[:, :T], own[:, :T]))
            start += len(x)
        back = order.argsort()
        return {name: torch.cat([chunk[name] for chunk in found])[back] for name in self.layers}

    def run(self, vectors: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Features (b, d), float32, of the texts of one chunk (b, T, D)."""
        taps = any(layer is not None for layer in self.layers.values())
        states = self.model(inputs_embeds=vectors, attention_mask=mask.long(), output_hidden_states=taps)
        last = states.last_hidden_state  # (b, T, d)
        found = {}
        for name, layer in self.layers.items():
            if name == "text" and self.pooling == "mean":
                weight = mask.unsqueeze(2).float()  # (b, T, 1)
                found[name] = (last.float() * weight).sum(1) / weight.sum(1)
            else:
                found[name] = (last if layer is None else states.hidden_states[layer])[:, 0].float()
        return found

    def run_again(self, vectors: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """As `run`, which is called once more in the backward pass, with the same random numbers."""
        found: dict[str, Tensor] = checkpoint(self.run, vectors, mask, use_reentrant=False)
        return found


class TransformerEncoder(Encoder):
    """A pretrained transformer over word vectors E (V, D); tokens are the numbers of sub-words, without special tokens.

    The tokenizer's own special tokens are put around each text. `length` counts all tokens of a text, these included,
    as papers do; `pieces` is how many sub-words that leaves, and the rest of a text is not read.
    """

    kind = "transformer"

    def __init__(self, E: Table, net: Transformer, specials: Specials, length: int, about: Mapping[str, Any] = EMPTY):
        super().__init__()
        self.E, self.net, self.specials, self.length = E, net, specials, length
        self.about, self.widths = dict(about), net.widths
        most = positions(net.model)
        if length <= specials.around or (most is not None and length > most):
            raise ParameterError(
                f"transformer: length must be {specials.around + 1} to {most or 'any number'} tokens of a text, "
                f"{specials.around} of them special, but is {length}"
            )

    @classmethod
    def load(
        cls,
        source: str | Path | None = None,
        *,
        layers: int | None = None,
        dropout: float | None = None,
        length: int = 32,  # the papers' for titles
        features: Sequence[str] = ("text",),
        pooling: Pooling = "mean",
        chunk: int | None = None,
        checkpointing: bool = False,
        reader: Subwords | None = None,
    ) -> TransformerEncoder:
        """An encoder from a folder as transformers saves it, from the hub, or (None) from the installed package.

        Keeps the first `layers` layers (None: all). `dropout` replaces the encoder's own rates. See `Transformer` for
        `features`, `pooling`, `chunk` (None: by the device), and `checkpointing`: less memory, one more forward pass.
        `reader`, if it is given, must cut texts by the encoder's own tokenizer.
        """
        files = encoder_files(source, "encoder=transformer with the default encoder")
        model, vectors = pretrained(files, layers, dropout)
        file = files.tokenizer.read_bytes()
        if reader is not None and reader.file != file:
            raise ParameterError(
                f"the encoder is {files.about['source']}, but the texts are cut by another tokenizer "
                f"({reader.about.get('source', 'unknown')}); take both from the same source"
            )
        net = Transformer(model, features, pooling, chunk, checkpointing)
        specials = Specials.of(file, model.config.pad_token_id)
        ids = len(Subwords(file)) - FIRST
        if ids > len(vectors):
            raise DataError(
                f"the tokenizer has {ids} pieces, but the encoder has vectors for {len(vectors)}",
                where=files.folder,
                fix="give the tokenizer.json that the encoder was saved with",
            )
        return cls(Table(vectors), net, specials, length, files.about)

    @property
    def pieces(self) -> int:
        """The sub-words of a text that are read."""
        return self.length - self.specials.around

    def embed(self, tokens: Sequences) -> Embedded:
        """Word vectors (B, T, D) with those of the special tokens, and which of them belong to a text (B, T)."""
        placed, mask = self.specials.place(tokens.words.cpu().numpy(), self.length)
        device = tokens.words.device
        numbers, at = compact(torch.from_numpy(placed).to(device), len(self.E))
        return functional.embedding(at, self.E.rows(numbers)), torch.from_numpy(mask).to(device)

    def mix(self, one: Embedded, other: Embedded, share: float) -> Embedded:
        """Word vectors are mixed place by place; where a text has no token, its vector counts as 0."""
        (x, tokens), (y, others) = one, other  # (B, T, D), (B, T)
        return share * x * tokens.unsqueeze(2) + (1 - share) * y * others.unsqueeze(2), tokens | others

    def encode(self, embedded: Embedded, detached: frozenset[str] = frozenset()) -> dict[str, Tensor]:
        """The features (B, d) by name. A detached one trains nothing: all of the encoder is shared."""
        found: dict[str, Tensor] = self.net(*embedded)
        return {name: feature.detach() if name in detached else feature for name, feature in found.items()}

    @torch.no_grad()
    def export(self) -> Exported:
        """Word vectors, layers and settings, for `encoders.transformer_served.TransformerFeatures`."""
        state = self.net.model.state_dict()
        arrays = {f"net.{name}": tensor.cpu().numpy() for name, tensor in state.items()}
        meta = {
            "kind": self.kind,
            "config": settings_of(self.net.model),
            "specials": self.specials._asdict(),
            "length": self.length,
            "features": list(self.widths),
            "width": self.net.model.config.hidden_size,
            "pooling": self.net.pooling,
            "about": self.about,
        }
        return Exported(arrays | {"E": self.E.weight.cpu().numpy()}, meta)


def layer_of(feature: str, depth: int) -> int | None:
    """The layer that a feature is taken from, from 1; None: the last one."""
    read = FEATURE.fullmatch(feature)
    if read is None:
        raise ParameterError(
            f"transformer: a feature is 'text', 'cls' or 'cls' with the number of a layer, but is {feature!r}"
        )
    layer = int(read[1]) if read[1] else depth
    if layer > depth:
        raise ParameterError(f"transformer: feature {feature!r} is of layer {layer}, but the encoder has {depth}")
    return None if layer == depth else layer
