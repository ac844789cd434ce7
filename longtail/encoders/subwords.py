"""Texts as sub-word tokens (word pieces) of an existing tokenizer: sequences of numbers, and TF-IDF bags."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail._native.terms import weigh
from longtail.core.errors import DataError, StoreError
from longtail.core.progress import Progress
from longtail.core.texts import Texts
from longtail.data.sparse import with_data
from longtail.encoders.source import encoder_files
from longtail.encoders.tfidf import smoothed_idf
from longtail.encoders.tokens import FIRST, UNKNOWN, TokenReader, refuse_other_version, tokenizers

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Subwords(TokenReader):
    """A tokenizer made elsewhere, with the document frequencies of its pieces in the training texts.

    `file` is the content of its tokenizer.json; `texts_with` (V,) says in how many of `texts` training texts each
    piece occurs; `about` where the file comes from and its licence. Piece i of the tokenizer has number i + 2; 0 is
    padding, 1 the tokenizer's own token for unknown characters. Rare words become several pieces, so hardly any text
    is unknown. Special tokens never occur in the output, even where a text spells one.
    """

    kind, version = "subwords", 1

    def __init__(self, file: bytes, texts_with: NDArray[Any] | None = None, texts: int = 0, about: Any = None):
        self.file, self.texts, self.about = file, texts, dict(about or {})
        self._number = numbers(self._tokenizer, file)
        self.texts_with = np.zeros(len(self), np.int64) if texts_with is None else texts_with

    @classmethod
    def fit(
        cls, texts: Texts, source: str | Path | None = None, *, progress: Progress | None = None
    ) -> tuple[Subwords, sp.csr_matrix]:
        """The reader with the document frequencies of these texts, and their counts (N, V), for `weigh`.

        `source` is a tokenizers file or a folder with a tokenizer.json; None: that of the installed encoder.
        """
        files = encoder_files(source, "reader=subwords with the default tokenizer")
        try:
            reader = cls(files.tokenizer.read_bytes(), about=files.about)
        except ValueError as error:
            fix = "give a tokenizer.json as the library `tokenizers` saves it"
            raise DataError("not a tokenizers file", where=files.tokenizer, found=str(error), fix=fix) from None
        counts = reader.count(texts, progress)
        if not counts.nnz:
            fix = "the tokenizer knows none of the characters in these texts: choose one that was made for them"
            raise DataError("the texts hold no known token", found=texts[0] if len(texts) else None, fix=fix)
        return reader.learnt_from(counts), counts

    def learnt_from(self, counts: sp.csr_matrix) -> Subwords:
        """The same reader with the document frequencies of texts that have these counts (N, V)."""
        texts_with = np.bincount(counts.indices, minlength=len(self))
        return Subwords(self.file, texts_with, counts.shape[0], self.about)

    def __len__(self) -> int:
        return FIRST + len(self._number)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the tokenizers file."""
        return hashlib.sha256(self.file).hexdigest()

    @functools.cached_property
    def idf(self) -> NDArray[np.float32]:
        """ln((1 + N)/(1 + n)) + 1 for each number (V,)."""
        return smoothed_idf(self.texts, self.texts_with)

    def bags(self, texts: Texts) -> sp.csr_matrix:
        """TF-IDF rows of unit length (N, V), of all pieces of a text; a text without known pieces has an empty row."""
        return self.weigh(self.count(texts))

    def weigh(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """TF-IDF rows of unit length from counts (N, V); a piece that occurs c times counts 1 + ln c."""
        return with_data(counts, weigh(counts, self.idf, sublinear=True))

    def names(self, columns: Iterable[int]) -> list[str]:
        """The pieces with these numbers, as the tokenizer spells them; padding and unknown are empty strings."""
        known = (int(column) - FIRST for column in columns)
        return ["" if piece < 0 else self._tokenizer.id_to_token(piece) or "" for piece in known]

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON values from which `from_state` makes the same reader."""
        arrays = {"subwords.file": np.frombuffer(self.file, np.uint8), "subwords.texts": self.texts_with}
        made_by = {"version": self.version, "tokenizers": tokenizers().__version__}
        return arrays, made_by | {"texts": self.texts, "digest": self.digest, "about": self.about}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Subwords:
        """The reader that `state` described."""
        refuse_other_version(cls, meta)
        missing = {"subwords.file", "subwords.texts"} - set(arrays)
        if missing:
            raise StoreError(f"array {min(missing)!r} is not in this folder; it is damaged: make it again")
        file = arrays["subwords.file"].tobytes()
        if hashlib.sha256(file).hexdigest() != meta["digest"]:
            raise StoreError("the tokenizers file in this folder is damaged: its digest has changed; make it again")
        reader = cls(file, arrays["subwords.texts"], meta["texts"], meta["about"])
        if reader.texts_with.shape != (len(reader),):
            shape = reader.texts_with.shape
            raise StoreError(f"'subwords.texts' must have shape {(len(reader),)}, but has {shape}; make it again")
        return reader

    @functools.cached_property
    def _tokenizer(self) -> Tokenizer:
        return opened(self.file)

    def _numbers(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._number[ids]


def opened(file: bytes) -> Tokenizer:
    """The tokenizer of a file's content, without padding, truncation and special tokens; ValueError if it is none."""
    of = tokenizers()
    try:
        made = of.Tokenizer.from_buffer(file)
    except Exception as error:  # the library raises nothing more precise
        raise ValueError(str(error)) from None
    made.no_padding()
    made.no_truncation()
    made.encode_special_tokens = True  # cuts "[SEP]" in a text as any other characters
    return made


def numbers(tokenizer: Tokenizer, file: bytes) -> NDArray[np.int32]:
    """The number of each id of a tokenizer: id + 2, and 1 for its unknown token."""
    ids = tokenizer.get_vocab(with_added_tokens=True).values()
    found = np.arange(FIRST, FIRST + max(ids, default=-1) + 1, dtype=np.int32)
    model = orjson.loads(file)["model"]
    unknown = model.get("unk_id")  # of a unigram model; the others name the token
    if unknown is None and model.get("unk_token") is not None:
        unknown = tokenizer.token_to_id(model["unk_token"])
    if unknown is not None:
        found[unknown] = UNKNOWN
    return found


def specials_of(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The ids of the special tokens that a tokenizer puts before and after a text."""
    one = tokenizer.encode("a", add_special_tokens=True)
    text = [place for place, special in enumerate(one.special_tokens_mask) if not special]
    first, last = (text[0], text[-1] + 1) if text else (len(one.ids), len(one.ids))
    return one.ids[:first], one.ids[last:]
