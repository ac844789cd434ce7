"""What longtail's encoder adds to a bare transformer: forward and backward of one batch, against the same texts.

python bench/transformer_step.py [--layers 3] [--batch 256] [--rounds 5] [--threads 1]

"bare" is the library's own model on input_ids: once on the whole batch as long as its longest text, and once on the
very chunks that the encoder makes (same texts, same lengths). Both take turns with the encoder. The ratio to the second
is the cost of everything that is ours: special tokens, the table of word vectors, sorting, pooling; the bar is 1.15.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

import longtail
from longtail._native import set_threads
from longtail.core.texts import Texts
from longtail.encoders.pretrained import quiet
from longtail.encoders.sequence import Sequences
from longtail.encoders.source import encoder_files
from longtail.encoders.specials import chunk_sizes, padding
from longtail.encoders.subwords import Subwords
from longtail.encoders.transformer import CPU_CHUNK, TransformerEncoder

BAR = 1.15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    set_threads(chosen.threads)
    torch.set_num_threads(chosen.threads)
    encoder = TransformerEncoder.load(layers=chosen.layers).train()
    rows = some_rows(chosen.batch, encoder.pieces)
    ids, mask = (torch.from_numpy(array) for array in encoder.specials.place(rows, encoder.length))
    lengths, order = mask.sum(1).sort(descending=True, stable=True)
    sizes = chunk_sizes(lengths.tolist(), CPU_CHUNK)
    model = bare(chosen.layers)
    runs = {
        "bare, one chunk": lambda: forward_backward(model, ids, mask, [len(ids)], torch.arange(len(ids))),
        "bare, the same chunks": lambda: forward_backward(model, ids, mask, sizes, order),
        "longtail": lambda: ours(encoder, Sequences.of(rows)),
    }
    seconds = alternately(runs, chosen.rounds)
    known = lengths.numpy()
    print(f"{len(rows)} texts, {known.mean():.1f} tokens each; pads: {padding(known, len(known)):.0%} in one chunk")
    for name, found in seconds.items():
        ratio = np.median(np.array(found) / seconds["bare, the same chunks"])
        print(f"{name:>22}: {1e3 * np.median(found):7.0f} ms, {ratio:.2f} × the same chunks", flush=True)
    print("within the bar" if ratio <= BAR else f"above the bar of {BAR}")


def some_rows(count: int, pieces: int) -> np.ndarray:
    """Sub-words of names and short descriptions in the bundled corpus (count, pieces)."""
    texts = Texts.of([" ".join(text.split()[:12]) for text in longtail.read("debian-related").train.texts[:count]])
    reader, _ = Subwords.fit(texts)
    return reader.encode(texts, pieces)


def bare(layers: int) -> torch.nn.Module:
    """The library's own model, without the layer on its first token, which nothing here reads."""
    from transformers import AutoModel

    with quiet():
        model = AutoModel.from_pretrained(encoder_files(None, "this script").folder, num_hidden_layers=layers)
    model.pooler = None
    return model.train()


def forward_backward(
    model: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor, sizes: list[int], order: torch.Tensor
) -> None:
    """Mean over tokens of the last layer, text by text in chunks of these sizes; then the gradient."""
    model.zero_grad(set_to_none=True)
    found = []
    for own in order.split(sizes):
        T = int(mask[own].sum(1).max())
        one, tokens = ids[own, :T], mask[own, :T]
        hidden = model(input_ids=one, attention_mask=tokens.long()).last_hidden_state  # (b, T, d)
        weight = tokens.unsqueeze(2).float()
        found.append((hidden * weight).sum(1) / weight.sum(1))
    torch.cat(found).square().mean().backward()


def ours(encoder: TransformerEncoder, tokens: Sequences) -> None:
    """The same by longtail's encoder."""
    encoder.zero_grad(set_to_none=True)
    encoder(tokens)["text"].square().mean().backward()
    encoder.E.gradient()


def alternately(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each, taking turns, after one round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            if number:
                seconds[name].append(time.process_time() - start)
    return seconds


if __name__ == "__main__":
    main()
