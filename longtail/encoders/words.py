"""Texts as sequences of word numbers: what the encoders read that care for the order of words."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longtail import _native
from longtail.core.errors import DataError, MissingExtraError, ParameterError, StoreError
from longtail.core.progress import Bar, Progress
from longtail.core.texts import Texts
from longtail.store.cache import cached as kept
from longtail.store.parts import pack_texts, unpack_texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PADDING, UNKNOWN, FIRST = 0, 1, 2  # numbers of no word, of a word never seen, and of the most frequent word
NAMES = {" ": PADDING, "\n": UNKNOWN}  # no word holds a blank, so that no text can spell these
BLOCK = 4096  # texts handed to the tokenizer at a time
VERSION = 1  # of how texts are cut: raise it when the same text gives other words

# Scripts written without spaces, as tools/unicode_table.py has them, in a regular expression's brackets.
UNSPACED = "".join(
    f"\\x{{{first:X}}}-\\x{{{last:X}}}"
    for first, last in (
        (0x0E00, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF),  # Thai, Lao, Tibetan, Burmese, Khmer
        (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),  # kana, Han
        (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F), (0x20000, 0x323AF),
    )
)  # fmt: skip
LETTER = r"\p{L}\p{M}\p{N}"  # marks belong to the letter before: vowels of Hindi, accents that stand alone
WORD = rf"[{LETTER}&&[^{UNSPACED}]]+|[{LETTER}&&[{UNSPACED}]]\p{{M}}*"


class Words:
    """A vocabulary learnt from texts, and texts as sequences of its numbers.

    A word is a run of letters and digits, brought to one spelling (Unicode NFKC) and lower-cased; in scripts written
    without spaces (Chinese, Japanese, Thai, …) every character is one. `terms[i]` is the word with number i + 2, the
    most frequent first, those alike by their bytes; 0 is padding and 1 every other word. `len` counts all numbers,
    so that it is the number of rows a table of word vectors needs.
    """

    def __init__(self, terms: Texts):
        self.terms = terms

    @classmethod
    def fit(
        cls, texts: Texts, *, min_texts: int = 1, limit: int | None = None, progress: Progress | None = None
    ) -> Words:
        """The words of `texts` that stand in at least `min_texts` of them; of these at most `limit`."""
        at_least_one(min_texts=min_texts, limit=1 if limit is None else limit)
        texts = Texts.of(texts)
        tokenizer = cutter({})
        # without a number it would stop at 30,000 words
        trainer = tokenizers().trainers.WordLevelTrainer(vocab_size=2**31, min_frequency=0, show_progress=False)
        with (progress or Progress()).bar("Words", len(texts), "texts") as bar:
            tokenizer.train_from_iterator(blocks(texts, bar), trainer)
        number = tokenizer.get_vocab(with_added_tokens=False)
        terms = Texts.of(sorted(number, key=number.__getitem__))
        if min_texts > 1:
            terms = terms[cls(terms)._texts_with(texts) >= min_texts]
        if not len(terms):
            fix = "a word is a letter or digit at least, and must stand in as many texts as min_texts asks for"
            raise DataError("the texts hold no word to tell them by", found=texts[0] if len(texts) else None, fix=fix)
        return cls(terms if limit is None else terms[:limit])

    def __len__(self) -> int:
        return FIRST + len(self.terms)

    def encode(
        self, texts: Texts, length: int = 32, *, cached: bool = False, progress: Progress | None = None
    ) -> NDArray[np.int32]:
        """The numbers of the first `length` words of each text (N, length), padded by 0.

        `cached` keeps them on disk, under a digest of texts, vocabulary and settings: the next call maps the file.
        """
        at_least_one(length=length)
        texts = Texts.of(texts)
        if not cached:
            return self._encode(texts, length, progress)
        version = f"{VERSION}, tokenizers {tokenizers().__version__}"  # another one may know other letters
        key = f"words {self.digest} of {texts.digest()}, length {length}, version {version}"
        return kept(key, lambda: {"words": self._encode(texts, length, progress)})["words"]

    @functools.cached_property
    def digest(self) -> str:
        """Tells vocabularies apart."""
        return self.terms.digest()

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and JSON values that make this encoder again."""
        return dict(pack_texts("words", self.terms)), {"version": VERSION}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Words:
        """The encoder that `state` described."""
        terms = unpack_texts("words", arrays)
        if terms is None:
            raise StoreError("the arrays of the words are not in this folder; it is damaged: make it again")
        if meta["version"] != VERSION:
            raise StoreError(
                f"the words were cut by version {meta['version']} of this encoder, but it is {VERSION}; train again"
            )
        return cls(terms)

    def _encode(self, texts: Texts, length: int, progress: Progress | None = None) -> NDArray[np.int32]:
        found = np.full((len(texts), length), PADDING, np.int32)
        places = np.arange(length)
        with (progress or Progress()).bar("Cutting texts to words", len(texts), "texts") as bar:
            for start, numbers, lengths in self._cut(texts, bar, length):
                rows = found[start : start + len(lengths)]
                rows[places < lengths[:, None]] = numbers
        return found

    def _texts_with(self, texts: Texts) -> NDArray[np.int64]:
        """In how many texts each word stands (V,)."""
        found = np.zeros(len(self), np.int64)
        for _, numbers, lengths in self._cut(texts, Bar()):
            pairs = np.unique(np.repeat(np.arange(len(lengths)), lengths) * len(self) + numbers)
            found += np.bincount(pairs % len(self), minlength=len(self))
        return found[FIRST:]

    def _cut(
        self, texts: Texts, bar: Bar, length: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.int64]]]:
        """Block by block: its first text, the numbers of all its words one after another, how many each text has."""
        start = 0
        for block in blocks(texts, bar):
            numbers = [one.ids[:length] for one in self._tokenizer.encode_batch_fast(block, add_special_tokens=False)]
            lengths = np.fromiter(map(len, numbers), np.int64, len(numbers))
            yield start, np.fromiter(itertools.chain.from_iterable(numbers), np.int32, lengths.sum()), lengths
            start += len(block)

    @functools.cached_property
    def _tokenizer(self) -> Tokenizer:
        return cutter(dict(zip(self.terms, itertools.count(FIRST), strict=False)))


def blocks(texts: Texts, bar: Bar) -> Iterator[list[str]]:
    """The texts as lists of Python's strings, a block at a time."""
    for start in range(0, len(texts), BLOCK):
        block = list(texts[start : start + BLOCK])
        yield block
        bar.advance(len(block))


def cutter(numbers: Mapping[str, int]) -> Tokenizer:
    """A tokenizer that cuts texts to words and gives their numbers."""
    of = tokenizers()
    made = of.Tokenizer(of.models.WordLevel({**NAMES, **numbers}, unk_token="\n"))
    made.normalizer = of.normalizers.Sequence([of.normalizers.NFKC(), of.normalizers.Lowercase()])
    made.pre_tokenizer = of.pre_tokenizers.Split(of.Regex(WORD), "removed", invert=True)
    return made


def tokenizers() -> ModuleType:
    """The library of that name. Its threads are as many as ours, unless the environment says how many."""
    os.environ.setdefault("RAYON_NUM_THREADS", str(_native.get_threads()))  # read once, at its first work
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtraError("cutting texts to sequences of words", "deep") from error
    return tokenizers


def at_least_one(**values: int) -> None:
    """Refuses what is below one, by its name."""
    for name, value in values.items():
        if value < 1:
            raise ParameterError(f"words: {name} must be at least 1, but is {value}")
