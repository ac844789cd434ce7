"""A very small transformer with a tokenizer that knows the words of the tiny corpora."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

from longtail.contract.corpora import TOPICS, UNSEEN

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = sorted({word for topic in TOPICS.values() for word in topic.split()} | {*TOPICS, UNSEEN})
WORDS += ["telescope", "planet", "comet", "the", "and", "sonnet", "verse"]
LAYERS, WIDTH = 4, 64


@functools.cache
def tiny_encoder() -> str:
    """The folder of a random encoder of four layers; deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="longtail-encoder-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make_encoder(folder)
    return str(folder)


def make_encoder(folder: Path, layers: int = LAYERS, width: int = WIDTH, places: int = 64) -> None:
    """Write a random encoder and its tokenizer."""
    import tokenizers
    import torch
    import transformers

    pieces = SPECIAL + WORDS
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(SPECIAL)
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.save(str(folder / "tokenizer.json"))
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=width,
        num_attention_heads=2,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        max_position_embeddings=places,
        initializer_range=0.2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.BertModel(config)
        stack: Any = model.encoder.layer
        for layer in stack:  # at first every token sees the mean of all, so that little data teaches it
            attention = layer.attention
            for seen in (attention.self.query, attention.self.key):
                torch.nn.init.zeros_(seen.weight)
            for passed in (attention.self.value, attention.output.dense):
                torch.nn.init.eye_(passed.weight)
        model.save_pretrained(folder)
