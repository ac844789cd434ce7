"""Self-attention of transformers in training on a CPU, with dropout that draws its random numbers fast."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from longtail.encoders.dropout import dropped

NAME = "longtail"  # under which the library transformers knows this attention


def attend_by(model: Any) -> None:
    """Let a model of the library transformers use `attention`, if its type and the library's version allow that."""
    if not getattr(model, "_supports_attention_backend", False):
        return
    try:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask
    except ImportError:  # before 4.53: the model keeps the attention it has
        return
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.config._attn_implementation = NAME


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """softmax(q kᵀ · scaling) v for heads h of b texts: (b, h, T, d) → (b, T, h, d).

    Where attention weights are dropped, torch on a CPU computes this by plain products too, but draws a random number
    of 64 bits for each weight, which takes longer than the products. Everything else is left to torch.
    """
    causal = options.get("is_causal")
    causal = getattr(module, "is_causal", False) if causal is None else causal
    plain = not causal and query.shape[1] == key.shape[1] and options.get("position_bias") is None
    if not (dropout and plain and query.device.type == "cpu"):
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        found, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options
        )
        return found, None
    logits = (query * (query.shape[-1] ** -0.5 if scaling is None else scaling)) @ key.transpose(2, 3)  # (b, h, T, T)
    if attention_mask is not None:
        least = torch.finfo(logits.dtype).min
        boolean = attention_mask.dtype == torch.bool
        logits = logits.masked_fill(~attention_mask, least) if boolean else logits + attention_mask
    weights = dropped(logits.softmax(-1), dropout)
    return (weights.to(value.dtype) @ value).transpose(1, 2).contiguous(), None
