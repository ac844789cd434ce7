"""Texts as sequences of numbers: what the readers `Words` and `Subwords` have in common."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import ParameterError, StoreError
from longtail.core.progress import Bar, Progress
from longtail.core.texts import Texts
from longtail.data.sparse import csr
from longtail.store.cache import cached as kept

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PADDING, UNKNOWN, FIRST = 0, 1, 2  # numbers: no token, a token that is not known, the first known one
BLOCK = 4096  # texts that the tokenizer gets at a time


class TokenReader(ABC):
    """Cuts texts to tokens and gives their numbers: 0 is padding, 1 an unknown token, the known ones start at 2.

    `len` counts all numbers: a table of token vectors has this many rows.
    """

    kind: ClassVar[str]  # of the tokens, in the plural
    version: ClassVar[int]  # of how texts are cut: raise it when the same text gives other tokens

    @abstractmethod
    def __len__(self) -> int:
        """V, the padding and the unknown token included."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """Equal for readers that cut all texts alike."""

    @property
    @abstractmethod
    def _tokenizer(self) -> Tokenizer:
        """Cuts texts; `_numbers` turns its ids into numbers."""

    def _numbers(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of the tokenizer's ids; the same here."""
        return ids

    def encode(
        self, texts: Texts, length: int = 32, *, cached: bool = False, progress: Progress | None = None
    ) -> NDArray[np.int32]:
        """The numbers of the first `length` tokens of each text (N, length), padded by 0.

        `cached` keeps them on disk, under a digest of texts, vocabulary and settings: the next call maps the file.
        """
        at_least_one(self.kind, length=length)
        texts = Texts.of(texts)
        if not cached:
            return self._encode(texts, length, progress)
        version = f"{self.version}, tokenizers {tokenizers().__version__}"  # another one may know other letters
        key = f"tokens: {self.kind} {self.digest} of {texts.digest()}, length {length}, version {version}"
        return kept(key, lambda: {"tokens": self._encode(texts, length, progress)})["tokens"]

    def count(self, texts: Texts, progress: Progress | None = None) -> sp.csr_matrix:
        """How often each known token occurs in each text: CSR (N, V), float32, the columns 0 and 1 empty."""
        texts = Texts.of(texts)
        with (progress or Progress()).bar(f"Counting {self.kind}", len(texts), "texts") as bar:
            blocks = list(self._counted(texts, bar))
        return sp.vstack(blocks, "csr") if blocks else sp.csr_matrix((0, len(self)), dtype=np.float32)

    def document_frequency(self, texts: Texts) -> NDArray[np.int64]:
        """The number of texts that contain each token (V,)."""
        found = np.zeros(len(self), np.int64)
        for counts in self._counted(Texts.of(texts), Bar()):
            found += np.bincount(counts.indices, minlength=len(self))
        return found

    def _encode(self, texts: Texts, length: int, progress: Progress | None = None) -> NDArray[np.int32]:
        found = np.full((len(texts), length), PADDING, np.int32)
        places = np.arange(length)
        with (progress or Progress()).bar(f"Cutting texts to {self.kind}", len(texts), "texts") as bar:
            for start, numbers, lengths in self._cut(texts, bar, length):
                rows = found[start : start + len(lengths)]
                rows[places < lengths[:, None]] = numbers
        return found

    def _counted(self, texts: Texts, bar: Bar) -> Iterator[sp.csr_matrix]:
        """Block by block what `count` gives."""
        for _, numbers, lengths in self._cut(texts, bar):
            known = numbers >= FIRST
            rows = np.repeat(np.arange(len(lengths)), lengths)[known]
            pairs, counts = np.unique(rows * len(self) + numbers[known], return_counts=True)
            indptr = np.searchsorted(pairs, np.arange(len(lengths) + 1) * len(self))
            columns, shape = (pairs % len(self)).astype(np.int32), (len(lengths), len(self))
            yield csr(indptr, columns, counts.astype(np.float32), shape, canonical=True)

    def _cut(
        self, texts: Texts, bar: Bar, length: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.int64]]]:
        """Block by block: its first text, the numbers of all its tokens one after another, how many each text has."""
        start = 0
        for block in blocks(texts, bar):
            ids = [one.ids[:length] for one in self._tokenizer.encode_batch_fast(block, add_special_tokens=False)]
            lengths = np.fromiter(map(len, ids), np.int64, len(ids))
            flat = np.fromiter(itertools.chain.from_iterable(ids), np.int32, lengths.sum())
            yield start, self._numbers(flat), lengths
            start += len(block)


def blocks(texts: Texts, bar: Bar) -> Iterator[Sequence[str]]:
    """The texts as lists of Python's strings, a block at a time."""
    for start in range(0, len(texts), BLOCK):
        block = list(texts[start : start + BLOCK])
        yield block
        bar.advance(len(block))


def tokenizers() -> ModuleType:
    """The library of that name. It uses as many threads as longtail does, unless the environment sets a number."""
    os.environ.setdefault("RAYON_NUM_THREADS", str(_native.get_threads()))  # read once, at its first work
    import tokenizers

    return tokenizers


def at_least_one(kind: str, **values: Any) -> None:
    """Refuses values below one, by their names."""
    for name, value in values.items():
        if value < 1:
            raise ParameterError(f"{kind}: {name} must be at least 1, but is {value}")


def refuse_other_version(reader: type[TokenReader], meta: Mapping[str, Any]) -> None:
    """Refuses the state of a reader that cut texts in another way."""
    if meta["version"] != reader.version:
        raise StoreError(
            f"the {reader.kind} were cut by version {meta['version']} of this encoder, but it is {reader.version}; "
            "train again"
        )
