"""From the numbers of sub-words to the token ids that an encoder was trained on, special tokens included. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.core.errors import DataError
from longtail.encoders.subwords import numbers, opened, specials_of
from longtail.encoders.tokens import FIRST, PADDING, UNKNOWN


class Specials(NamedTuple):
    """The ids that a tokenizer puts before and after a text, and those of an unknown token and of padding."""

    before: list[int]
    after: list[int]
    unknown: int
    pad: int

    @classmethod
    def of(cls, file: bytes, pad: int | None) -> Specials:
        """From a tokenizers file. `pad` is the encoder's padding id; None: 0."""
        try:
            tokenizer = opened(file)
        except ValueError as error:
            fix = "give the tokenizer.json that the encoder was saved with"
            raise DataError("not a tokenizers file", found=str(error), fix=fix) from None
        unknown = np.flatnonzero(numbers(tokenizer, file) == UNKNOWN)
        padding = pad or 0
        return cls(*specials_of(tokenizer), int(unknown[0]) if len(unknown) else padding, padding)

    @property
    def around(self) -> int:
        """How many special tokens a text has around it."""
        return len(self.before) + len(self.after)

    def place(self, words: NDArray[np.integer[Any]], length: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Ids (B, T) and which of them are tokens of a text (B, T), from the numbers of sub-words (B, W), padded by 0.

        T is W plus the special tokens, at most `length`: sub-words that do not fit are left out. A text without any
        token, which only a tokenizer without special tokens allows, counts as one pad: an encoder must see something.
        """
        words = np.asarray(words)[:, : max(length - self.around, 0)]
        first, lengths = len(self.before), (words != PADDING).sum(1)  # (B,)
        ids = np.full((len(words), words.shape[1] + self.around), self.pad, np.int64)
        ids[:, first : first + words.shape[1]] = self._ids(words)
        ids[:, :first] = self.before
        rows = np.arange(len(words))
        for place, special in enumerate(self.after):
            ids[rows, first + lengths + place] = special
        if not ids.shape[1]:
            ids = np.full((len(words), 1), self.pad, np.int64)
        mask = np.arange(ids.shape[1]) < np.maximum(lengths + self.around, 1)[:, None]
        return ids, mask

    def _ids(self, words: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The id of each number (B, W)."""
        known = np.where(words == UNKNOWN, self.unknown, words.astype(np.int64) - FIRST)
        return np.where(words == PADDING, self.pad, known)


def chunk_sizes(lengths: Sequence[int], tokens: int) -> list[int]:
    """How many texts run together: neighbours, so that a chunk has at most `tokens` places, pads included.

    `lengths` must fall: the first text of a chunk is its longest. A text longer than `tokens` runs alone.
    """
    sizes = []
    start = 0
    while start < len(lengths):
        sizes.append(min(max(tokens // max(lengths[start], 1), 1), len(lengths) - start))
        start += sizes[-1]
    return sizes


def padding(lengths: NDArray[np.integer[Any]], batch: int, order: NDArray[np.integer[Any]] | None = None) -> float:
    """The share of places that are pads, if texts with these lengths (N,) form batches as long as their longest.

    `order` (N,) says in which order they are taken, `batch` at a time; None: as they are. 0 for no texts at all.
    """
    lengths = lengths if order is None else lengths[order]
    starts = np.arange(0, len(lengths), batch)
    if not len(starts):
        return 0.0
    sizes = np.diff(np.append(starts, len(lengths)))
    places = int((np.maximum.reduceat(lengths, starts).astype(np.int64) * sizes).sum())
    return 1 - int(lengths.sum()) / places if places else 0.0
