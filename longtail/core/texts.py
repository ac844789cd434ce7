"""Many strings in one buffer: compact, memory-mappable, and readable by native code without a copy."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import ParameterError, shorten


class Texts(Sequence[str]):
    """An immutable sequence of strings, stored as UTF-8 `data` (uint8) split at `offsets` (int64, n + 1).

    A million short Python strings need ten times the memory of their bytes; here each needs its bytes plus eight.
    An integer index returns a `str`; a slice, mask or index array returns another `Texts`.
    """

    __slots__ = ("data", "offsets")

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]):
        self.data = data
        self.offsets = offsets

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Build from any iterable of strings. Lone surrogates, which UTF-8 cannot store, become U+FFFD."""
        if isinstance(texts, Texts):
            return texts
        if isinstance(texts, str):
            raise ParameterError(f"texts must be a list of strings; got one string {shorten(texts)}")
        builder = TextsBuilder()
        builder.extend(list(texts))
        return builder.finish()

    @classmethod
    def from_utf8(cls, data: NDArray[np.uint8], lengths: NDArray[np.int64]) -> Texts:
        """Build from well-formed UTF-8 and the byte length of each text."""
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(data, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice | NDArray[Any]) -> Texts: ...
    def __getitem__(self, index: int | slice | NDArray[Any]) -> str | Texts:
        if isinstance(index, (int, np.integer)):
            row = range(len(self))[index]
            return bytes(self.data[self.offsets[row] : self.offsets[row + 1]]).decode("utf-8")
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                first = self.offsets[start]
                offsets = self.offsets[start : max(stop, start) + 1]
                return Texts(self.data[first : offsets[-1]], offsets - first)
            return self.take(np.arange(start, stop, step))
        rows = np.asarray(index)
        return self.take(np.flatnonzero(rows) if rows.dtype == bool else rows)

    def take(self, rows: NDArray[Any]) -> Texts:
        """Return the texts at `rows`, in that order."""
        return Texts(*_native.gather_texts(self.data, self.offsets, np.asarray(rows, np.int64)))

    def __iter__(self) -> Iterator[str]:
        block = 4096
        for start in range(0, len(self), block):
            offsets = self.offsets[start : start + block + 1]
            base = int(offsets[0])
            raw = bytes(self.data[base : offsets[-1]])
            cuts = (offsets - base).tolist()
            for a, b in itertools.pairwise(cuts):
                yield raw[a:b].decode("utf-8")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Texts):
            return NotImplemented
        return np.array_equal(self.byte_lengths, other.byte_lengths) and np.array_equal(self._bytes(), other._bytes())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        head = ", ".join(shorten(t, 40) for t in self[:3])
        return f"Texts({len(self):,}: {head}{', …' if len(self) > 3 else ''})"

    def __add__(self, other: Texts) -> Texts:
        offsets = np.concatenate([self.offsets - self.offsets[0], other.offsets[1:] - other.offsets[0]])
        offsets[len(self) + 1 :] += len(self._bytes())
        return Texts(np.concatenate([self._bytes(), other._bytes()]), offsets)

    @property
    def byte_lengths(self) -> NDArray[np.int64]:
        """Return the length of each text in UTF-8 bytes."""
        return np.diff(self.offsets)

    def digest(self) -> str:
        """Return the SHA-256 of the content: equal sequences have equal digests, however they were built."""
        hasher = hashlib.sha256(np.ascontiguousarray(self.byte_lengths, np.int64).tobytes())
        hasher.update(np.ascontiguousarray(self._bytes()).data)
        return hasher.hexdigest()

    def _bytes(self) -> NDArray[np.uint8]:
        return self.data[self.offsets[0] : self.offsets[-1]]


class TextsBuilder:
    """Collects strings, chunk by chunk, into a `Texts`; peak memory is the result plus one chunk."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._lengths = bytearray()

    def extend(self, texts: Sequence[str]) -> None:
        """Append a chunk of strings."""
        joined = "".join(texts)
        if joined.isascii():  # the common case: character lengths are byte lengths
            lengths = np.fromiter(map(len, texts), np.int64, len(texts))
            self._data += joined.encode("ascii")
        else:
            encoded = [_encode(text) for text in texts]
            lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
            self._data += b"".join(encoded)
        self._lengths += lengths.tobytes()

    def extend_utf8(self, data: NDArray[np.uint8], lengths: NDArray[np.int64]) -> None:
        """Append a chunk of strings given as well-formed UTF-8 and their byte lengths."""
        self._data += data.data
        self._lengths += np.ascontiguousarray(lengths, np.int64).data

    def finish(self) -> Texts:
        """Return the collected `Texts`; the builder must not be used afterwards."""
        return Texts.from_utf8(np.frombuffer(self._data, np.uint8), np.frombuffer(self._lengths, np.int64))

    def __len__(self) -> int:
        return len(self._lengths) // 8


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def printable(text: str) -> str:
    """The text on one line: characters that would move the cursor or cannot be shown become spaces."""
    return "".join(c if c.isprintable() else " " for c in text)
